# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of nodes, KM501 and KM503: what the next power loss makes of a kubelet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence.document import one_line, shell_name
from ...models import control_plane
from ...models import unit_start as start_refused
from ...models.cluster import Host
from ...models.result import Missing, Proof
from ...parsers import systemd_unit as kubelet_unit
from ..base import Hit, Outcome, node_check

NO_UNIT = "its kubelet has no unit of systemd"


@node_check(
    "KM501",
    "Kubelet does not start at boot",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    risk=2,
    needs=("kubelet", "unit_start"),
)
def not_enabled(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM501: the kubelet's unit will not start at the next boot, and nobody masked it."""
    unit = unit_of(document)
    if unit is None:
        yield without(host)
        return
    boot, hits = kubelet_unit.at_boot(unit), []
    if boot.answer == kubelet_unit.NO and not unit.masked:
        name, node = shell_name(unit.name, "UNIT"), host.node or host.host
        doing = (
            "runs, and will not after the next boot"
            if unit.runs
            else "is not running, and will not be after the next boot"
        )
        refused = (
            None
            if unit.runs
            else start_refused.now(document, control_plane.data(document, "kubelet").get("unit"))
        )
        start = f", and systemctl start {name}"
        if refused:
            start = f"; that alone does not start it: {refused}"
        hits = [
            Hit(
                f"the kubelet of {node} {doing}: {boot.why}",
                (proof(host, unit),),
                f"systemctl enable --no-reload {name}" + ("" if unit.runs else start),
                host=host.host,
                node=host.node,
                component="kubelet",
                severity="warning" if unit.runs else None,
                risk=1 if unit.runs else None,
            )
        ]
    lacking = (
        (Missing(host.host, "kubelet", "error"),)
        if boot.answer == kubelet_unit.UNKNOWN and not unit.masked
        else ()
    )
    yield Outcome(
        tuple(hits),
        lacking,
        host=host.host,
        component="kubelet",
        applies=not unit.masked,
        note=boot.why if lacking else "",
    )


@node_check(
    "KM503",
    "Kubelet is masked",
    severity="warning",
    applies="nodes whose kubelet has a unit of systemd",
    risk=3,
    needs=("kubelet", "unit_start"),
)
def masked(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM503: somebody put the kubelet's unit out of use."""
    unit = unit_of(document)
    if unit is None:
        yield without(host)
        return
    until = " until the next boot" if unit.file_state == "masked-runtime" else ""
    runs = "; its process runs on until it ends" if unit.runs else ""
    remedy = (
        "see whether its file is a link to /dev/null or was emptied (ls -l, systemctl cat); ask"
        " who masked it, and why; nothing here repairs this node unless kubemend_allow has fenced;"
        " with kubemend_max_risk=3 too the plan unmasks it, as systemctl unmask"
        f" {shell_name(unit.name, 'UNIT')} does"
    )
    hits = (
        [
            Hit(
                f"the kubelet of {host.node or host.host} is masked{until}: somebody took the node"
                f" out on purpose{runs}",
                (proof(host, unit),),
                remedy,
                host=host.host,
                node=host.node,
                component="kubelet",
            )
        ]
        if unit.masked
        else []
    )
    yield Outcome(tuple(hits), host=host.host, component="kubelet")


def unit_of(document: Mapping[str, Any]) -> kubelet_unit.Unit | None:
    """The unit of this host's kubelet; None where its evidence names none."""
    found = control_plane.data(document, "kubelet").get("unit")
    return kubelet_unit.unit(found) if isinstance(found, Mapping) else None


def without(host: Host) -> Outcome:
    """Of a host whose evidence names no unit: nobody asked, there is no kubelet, or it has none."""
    missing = host.missing("kubelet")
    why = "no kubelet" if host.statuses.get("kubelet") == "absent" else NO_UNIT
    return Outcome((), missing, host=host.host, applies=bool(missing), note="" if missing else why)


def proof(host: Host, unit: kubelet_unit.Unit) -> Proof:
    """What systemd says of it."""
    words = (unit.active, unit.sub, unit.file_state or unit.load)
    return Proof(
        "unit",
        host.host,
        object=one_line(unit.name, 80),
        text=", ".join(one_line(word, 40) for word in words if word),
    )
