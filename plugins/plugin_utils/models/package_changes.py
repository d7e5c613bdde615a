# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages changed shortly before a unit of kubelet or runtime ended. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.package_changes import PackageChange, PackageChanges
from ..evidence.answers.node.system import System
from ..evidence.answers.node.unit_start import UnitStart
from ..evidence.document import one_line
from .moments import moment
from .result import EvidenceRef

# A package's scripts stop and start its services within minutes. What ends again and again may do
# so since the upgrade.
BEFORE, AFTER, DAY = 900.0, 120.0, 86400.0  # seconds
SHOWN = 3
RUNTIMES = frozenset(
    (
        "conmon",
        "container-selinux",
        "containerd",
        "containerd.io",
        "cri-dockerd",
        "cri-o",
        "crun",
        "docker-ce",
        "docker.io",
        "moby-containerd",
        "moby-engine",
        "nvidia-container-toolkit",
        "runc",
        "systemd",
    )
)
KUBELETS = RUNTIMES | {"cri-tools", "kubeadm", "kubelet", "kubernetes-cni"}
_WORDS = {"upgrade": "was upgraded", "install": "was installed", "remove": "was removed"}


def of_unit(
    document: Mapping[str, Any], unit: str, packages: Iterable[str], *, is_stopped: bool
) -> tuple[PackageChange, ...]:
    """Return the changes of such packages that may be why a unit does not run, newest last.

    is_stopped: whether it ended once, so that its end tells which changes those are
    """
    clock = contract.answer(document, System).clock
    if clock is None:
        return ()
    begin, end = clock - DAY, clock
    ended = _ended(document, unit)
    if is_stopped and ended is not None:
        begin, end = ended - BEFORE, ended + AFTER
    names = frozenset(packages)
    rows = contract.answer(document, PackageChanges).items
    hits = [row for row in rows if row.name in names and begin <= (row.time or 0.0) <= end]
    return tuple(hits[-SHOWN:])


def clause(changes: Iterable[PackageChange]) -> str:
    """Return what changed, as a clause of a finding with its semicolon, or ""."""
    texts = [_text(row) for row in changes]
    return "".join(f"; the package {text}" for text in texts)


def proofs(host: str, changes: Iterable[PackageChange]) -> tuple[EvidenceRef, ...]:
    """Return the lines of the log, for a report."""
    return tuple(
        EvidenceRef("log", host, object="packages", text=f"the package {_text(row)}")
        for row in changes
    )


def _text(row: PackageChange) -> str:
    versions = " -> ".join(filter(None, (one_line(row.old, 80), one_line(row.new, 80))))
    time = moment(row.time)
    at = f" at {time:%Y-%m-%dT%H:%M:%SZ}" if time is not None else ""
    change = f" ({versions})" if versions else ""
    return f"{one_line(row.name, 80)} {_WORDS.get(row.action, 'changed')}{change}{at}"


def _ended(document: Mapping[str, Any], unit: str) -> float | None:
    units = contract.answer(document, UnitStart).units
    return next((row.ended_at for row in units if row.name == unit), None)
