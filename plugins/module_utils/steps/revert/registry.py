# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what reverts a change, by the name of a journal's target or of a kind of step.

The package `capture` is above this one. Its modules are imported by name when they are needed, and
a program contains them only where its action ships them (SHIP, SHIPPED).
"""

from ...state.targets import (
    API_OBJECT,
    FILE,
    LOG_VERBOSITY,
    PACKAGE_SELECTION,
    SYSTEMD_UNIT,
    target_of,
)
from .writers import ApiObjectWriter, FileWriter, PackageWriter, UnitWriter

# Each has restore(history, former, step), which returns {changed, entry}.
WRITERS = {
    FILE: FileWriter,
    API_OBJECT: ApiObjectWriter,
    SYSTEMD_UNIT: UnitWriter,
    PACKAGE_SELECTION: PackageWriter,
}
# Each has undo_open(intent) too, since what it writes cannot be read back.
CAPTURE_WRITERS = {LOG_VERBOSITY: ("klog_level", "VerbosityWriter")}
RAISE_KUBELET = "raise_kubelet"
# Kinds of steps whose revert starts the kubelet again.
# Each has may_restart(record, allow) and take_back(record, restore, step, allow).
KUBELET_REVERTERS = {RAISE_KUBELET: "kubelet_level"}


def writer_of(intent):
    """Return what puts back the thing that an entry is about."""
    target = target_of(intent).name
    if target in WRITERS:
        return WRITERS[target]()
    module, name = CAPTURE_WRITERS[target]
    return getattr(_capture(module), name)()


def kubelet_reverter_of(step_kind):
    """Return what reverts a step of this kind, or None where no revert does that."""
    module = KUBELET_REVERTERS.get(step_kind)
    return _capture(module) if module else None


def _capture(module):
    package = __name__.rsplit(".", 3)[0]
    return __import__(f"{package}.capture.{module}", fromlist=["*"])
