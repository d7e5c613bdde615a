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
        process = contract.answer(document, Kubelet).process
        program = _path((process and process.exe) or "")
        hits = [
            _hit(host, document, unit, *places)
            for places in _replacement(unit)
            if program != _path(places[0][1])  # the drop-in's path may be a link to it
        ]
        yield present(*hits, host=host.host, component="kubelet")


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
    document: Mapping[str, Any],
    unit: KubeletUnit,
    first: tuple[str, str],
    last: tuple[str, str],
) -> Detection:
    fragment, program = (one_line(text, 200) for text in first)
    dropin, other = (one_line(text, 200) for text in last)
    proofs = [
        EvidenceRef("file", host.host, path=fragment, text=f"ExecStart={program}"),
        EvidenceRef("file", host.host, path=dropin, text=f"ExecStart={other}"),
    ]
    process = contract.answer(document, Kubelet).process
    if process is not None and process.exe:
        text = one_line(process.exe, 200)
        proofs.append(EvidenceRef("process", host.host, object=unit.name, text=text))
    return Detection(
        f"the unit {fragment} is to start {program}, and the drop-in {dropin} of a package makes it"
        f" start {other}: upgrades of the one do not reach the kubelet that runs",
        tuple(proofs),
        "compare both programs (--version), and see that the ExecStart of the unit itself has"
        " --kubeconfig and --config. Then drain the node, switch the drop-in off (one in /usr/lib"
        " or /lib: a link to /dev/null of the same name in"
        " /etc/systemd/system/kubelet.service.d/; one in /etc: move it away), systemctl"
        " daemon-reload, and restart the kubelet's unit. Do not remove the package: kubernetes-cni"
        " may go with it. Where the package is meant, move the unit's file away instead",
        host=host.host,
        node=host.node,
        component="kubelet",
    )
