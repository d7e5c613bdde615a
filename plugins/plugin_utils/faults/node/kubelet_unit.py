# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of nodes, KM501 and KM503: what the next power loss makes of a kubelet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet, KubeletUnit
from ...evidence.document import one_line, shell_name
from ...models import unit_start as model_unit_start
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...parsers import systemd_unit
from ..base import CheckResult, Detection, node_check, not_applicable, present, unknown

NO_UNIT = "its kubelet has no unit of systemd"
NOT_FOUND = "not-found"  # LoadState of a unit that runs on without its file


@node_check(
    "KM501",
    "Kubelet does not start at boot",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    risk=2,
    needs=("kubelet", "unit_start"),
)
def not_enabled(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM501: report a kubelet whose unit does not start at boot although it is not masked."""
    unit = unit_of(document)
    if unit is None:
        yield without(host)
        return
    boot = systemd_unit.at_boot(unit)
    if unit.masked:
        yield CheckResult(host=host.host, component="kubelet", applies=False)
    elif boot.answer == systemd_unit.NO:
        hit = _not_enabled(host, document, unit, boot.why)
        yield present(hit, host=host.host, component="kubelet")
    elif boot.answer == systemd_unit.UNKNOWN:
        missing = Missing(host.host, "kubelet", "error")
        yield unknown(missing, host=host.host, component="kubelet", note=boot.why)
    else:
        yield CheckResult(host=host.host, component="kubelet")


def _not_enabled(
    host: Host, document: Mapping[str, Any], unit: systemd_unit.Unit, reason: str
) -> Detection:
    name = shell_name(unit.name, "UNIT")
    enable = f"systemctl enable --no-reload {name}"
    if unit.load == NOT_FOUND:
        enable = (
            f"see whether its file is there and has its label (systemctl cat {name}, ls -lZ"
            f" /etc/systemd/system/{name}): where SELinux keeps systemd from reading it, restorecon"
            " -v FILE; where it is gone, install it again; then systemctl daemon-reload, and"
            f" {enable}"
        )
    if unit.runs:
        return Detection(
            f"the kubelet runs, and will not after the next boot: {reason}",
            (proof(host, unit),),
            enable,
            host=host.host,
            node=host.node,
            component="kubelet",
            severity="warning",
            risk=1,
        )
    record = contract.answer(document, Kubelet).unit or KubeletUnit()
    refused = model_unit_start.now(document, record)
    start = f", and systemctl start {name}"
    if refused:
        start = f"; that alone does not start it: {refused}"
    return Detection(
        f"the kubelet is not running, and will not be after the next boot: {reason}",
        (proof(host, unit),),
        f"{enable}{start}",
        host=host.host,
        node=host.node,
        component="kubelet",
    )


@node_check(
    "KM503",
    "Kubelet is masked",
    severity="warning",
    applies="nodes whose kubelet has a unit of systemd",
    risk=3,
    needs=("kubelet", "unit_start"),
)
def masked(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM503: report a kubelet whose unit is masked."""
    unit = unit_of(document)
    if unit is None:
        yield without(host)
    elif unit.masked:
        yield present(_masked(host, unit), host=host.host, component="kubelet")
    else:
        yield CheckResult(host=host.host, component="kubelet")


def _masked(host: Host, unit: systemd_unit.Unit) -> Detection:
    until, running = "", ""
    if unit.file_state == "masked-runtime":
        until = " until the next boot"
    if unit.runs:
        running = "; its process runs on until it ends"
    return Detection(
        f"the kubelet is masked{until}: the node was taken out on purpose{running}",
        (proof(host, unit),),
        "see whether its file is a link to /dev/null or was emptied (ls -l, systemctl cat); ask"
        " who masked it, and why; nothing here repairs this node unless kubemend_allow has fenced;"
        " with kubemend_max_risk=3 too the plan unmasks it, as systemctl unmask"
        f" {shell_name(unit.name, 'UNIT')} does",
        host=host.host,
        node=host.node,
        component="kubelet",
    )


def unit_of(document: Mapping[str, Any]) -> systemd_unit.Unit | None:
    """Return the unit of this host's kubelet, or None if its evidence names none."""
    record = contract.answer(document, Kubelet).unit
    if record is None:
        return None
    return systemd_unit.unit(record)


def without(host: Host) -> CheckResult:
    """Return the result for a host whose evidence names no unit of a kubelet."""
    missing = host.missing("kubelet")
    if missing:
        return unknown(*missing, host=host.host)
    if host.statuses.get("kubelet") == "absent":
        return not_applicable("no kubelet", host=host.host)
    return not_applicable(NO_UNIT, host=host.host)


def proof(host: Host, unit: systemd_unit.Unit) -> EvidenceRef:
    """Return what systemd reports about a unit, as evidence."""
    words = (unit.active, unit.sub, unit.file_state or unit.load)
    return EvidenceRef(
        "unit",
        host.host,
        object=one_line(unit.name, 80),
        text=", ".join(one_line(word, 40) for word in words if word),
    )
