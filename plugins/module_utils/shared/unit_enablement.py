# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether systemd starts a unit at boot, as plans, journals and handlers name it."""

from .units import RUNTIMES

ENABLED = "enabled"
# From these states enable leads to enabled, and disable leads back.
DISABLED = ("disabled", "enabled-runtime")
KUBELET = "kubelet"


def component_of(unit):
    """Return what a unit runs: the kubelet, or a runtime by the name of its unit."""
    if unit in RUNTIMES:
        return unit[: -len(".service")]
    return KUBELET


def path_of(unit):
    """Return what the journal calls the enablement of a unit."""
    return f"enablement of {unit}"
