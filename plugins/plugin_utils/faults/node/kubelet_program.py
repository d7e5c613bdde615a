# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM531: check that a package's drop-in does not replace the program of an installer's unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit
from ...evidence.document import one_line
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, node_check, present, unknown
from . import kubelet_unit

OF_ADMINISTRATORS = "/etc/systemd/system/"
OF_PACKAGES = ("/usr/lib/systemd/", "/lib/systemd/")
# The package kubeadm, whose older releases have it in /etc/systemd/system.
OF_KUBEADM = "/kubelet.service.d/10-kubeadm.conf"


@node_check(
    "KM531",
    "A package's drop-in starts another kubelet than the unit",
    severity="warning",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("kubelet",),
)
def replaced(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM531: report a unit in /etc whose program a drop-in of a package replaces."""
    unit = contract.answer(document, Kubelet).unit
    if unit is None:
        yield kubelet_unit.without(host)
    elif unit.programs is None:
        missing = Missing(host.host, "kubelet", "not_asked")
        yield unknown(missing, host=host.host, component="kubelet")
    else:
        running = _running(document)
        hits = [
            _hit(host, unit, running, *places)
            for places in _replacement(unit)
            if _path(running) != _path(places[0][1])  # the drop-in's path may be a link to it
        ]
        yield present(*hits, host=host.host, component="kubelet")


def _running(document: Mapping[str, Any]) -> str:
    """Return the path of the kubelet that runs, or ""."""
    process = contract.answer(document, Kubelet).process
    if process is None:
        return ""
    return one_line(process.exe or "", 200)


def _replacement(unit: KubeletUnit) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield (the unit's file, the drop-in of a package), each with its program, if they differ."""
    programs = unit.programs or ()
    first = next((row for row in programs if row[0] == unit.fragment_path), None)
    if first is None or not first[0].startswith(OF_ADMINISTRATORS):
        return
    last = programs[-1]  # the one that counts
    is_of_package = last[0].startswith(OF_PACKAGES) or last[0].endswith(OF_KUBEADM)
    if is_of_package and _path(first[1]) != _path(last[1]):
        yield first, last


def _path(program: str) -> str:
    """Return the path of a program without /usr, to which / is linked on most systems."""
    if program.startswith("/usr/bin/"):
        return program[len("/usr") :]
    return program


def _hit(
    host: Host,
    unit: KubeletUnit,
    running: str,
    first: tuple[str, str],
    last: tuple[str, str],
) -> Detection:
    fragment, program = (one_line(text, 200) for text in first)
    dropin, other = (one_line(text, 200) for text in last)
    proofs = [
        EvidenceRef("file", host.host, path=fragment, text=f"ExecStart={program}"),
        EvidenceRef("file", host.host, path=dropin, text=f"ExecStart={other}"),
    ]
    if running:
        proofs.append(EvidenceRef("process", host.host, object=unit.name, text=running))
    return Detection(
        f"the unit {fragment} starts {program}, but the drop-in {dropin} of a package replaces that"
        f" with {other}: an upgrade of {program} does not change the kubelet that runs",
        tuple(proofs),
        "compare the versions of both programs (--version), and check that the unit's own ExecStart"
        " has --kubeconfig and --config. Then drain the node and disable the drop-in: for one in"
        " /usr/lib or /lib, make a link of the same name to /dev/null in"
        " /etc/systemd/system/kubelet.service.d/; move one in /etc away. Run systemctl"
        " daemon-reload and systemctl restart kubelet. Do not remove the package: kubernetes-cni"
        " may be removed with it. If the package is the intended kubelet, move the unit's file away"
        " instead",
        host=host.host,
        node=host.node,
        component="kubelet",
    )
