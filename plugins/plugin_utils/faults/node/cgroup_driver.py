# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM524, a kubelet that lives with a runtime of another cgroup driver.

Every new pod of the node fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...models import control_plane
from ...models.cluster import Host
from ...models.kubelet import config as kubelet_config
from ...models.kubelet import status as kubelet_why
from ...models.result import Missing, Proof
from ...parsers import systemd_unit as kubelet_unit
from ..base import Hit, Outcome, node_check

RECENT = 600.0  # seconds: the kubelet tries each pod again at least every few minutes
SHOWN = 3
SYSTEMD, CGROUPFS = "systemd", "cgroupfs"
# What the runtime says where the kubelet's driver is another, and which one it has itself: runc,
# and CRI-O before it asks runc.
REFUSALS = (
    (re.compile(r"expected cgroupspath to be of format"), SYSTEMD),
    (re.compile(r"did not receive slice as parent"), SYSTEMD),
    (re.compile(r"but received slice as parent"), CGROUPFS),
)


@node_check(
    "KM524",
    "Runtime refuses the cgroups of the kubelet",
    severity="critical",
    applies="nodes whose kubelet and runtime write to journald",
    needs=("system", "kubelet", "kubelet_log"),
    tier="deep",
)
def refused(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM524: the runtime refuses the cgroups that the kubelet names."""
    told = control_plane.data(document, "kubelet_log").get("lines")
    lines = [line for line in (told if isinstance(told, list) else ()) if isinstance(line, str)]
    found = [
        (line, driver) for line in lines for words, driver in REFUSALS if words.search(line.lower())
    ]
    missing = host.missing("kubelet_log")
    if not found:
        yield Outcome((), missing, host=host.host, component="kubelet")
        return
    clock, at = (
        control_plane.data(document, "system").get("clock"),
        kubelet_why.moment(found[-1][0]),
    )
    if not isinstance(clock, (int, float)) or isinstance(clock, bool) or at is None:
        yield Outcome(
            (),
            (Missing(host.host, "system", "error"),),
            host=host.host,
            component="kubelet",
            note="it cannot be told whether it is still so",
        )
    elif not -RECENT <= clock - at <= RECENT:
        yield Outcome(
            (),
            missing,
            host=host.host,
            component="kubelet",
            note=f"it was so at {found[-1][0].partition(' ')[0][:40]}",
        )
    elif _is_down(document):
        yield Outcome(
            (),
            missing,
            host=host.host,
            component="kubelet",
            note=(
                "its kubelet does not run: what it was refused before says nothing of its next"
                " start"
            ),
        )
    elif host.kubelet_started is not None and host.kubelet_started.timestamp() > at:
        yield Outcome(
            (),
            missing,
            host=host.host,
            component="kubelet",
            note="its kubelet was started again since, and nothing was refused to it",
        )
    else:
        yield Outcome((_hit(host, document, found),), host=host.host, component="kubelet")


def _is_down(document: Mapping[str, Any]) -> bool:
    """Tell whether the kubelet is known not to run: a unit of it is there, and no process."""
    kubelet = control_plane.data(document, "kubelet")
    unit = kubelet.get("unit")
    return (
        isinstance(unit, Mapping)
        and not kubelet.get("process")
        and not kubelet_unit.unit(unit).runs
    )


def _hit(host: Host, document: Mapping[str, Any], found: list[tuple[str, str]]) -> Hit:
    name, driver = host.node or host.host, found[-1][1]
    other = CGROUPFS if driver == SYSTEMD else SYSTEMD
    config = kubelet_config.read(control_plane.data(document, "kubelet"))
    setting = config.setting("cgroupDriver", "cgroup-driver")
    where = (
        f" (the kubelet's stands in {setting.path})"
        if setting and setting.path and setting.value == other
        else ""
    )
    return Hit(
        f"no new pod starts on {name}: its runtime has the cgroup driver {driver}, and its kubelet"
        f" {other}",
        tuple(Proof("log", host.host, text=line) for line, _driver in found[-SHOWN:]),
        f"give both the same driver, systemd where systemd runs the machine{where}: SystemdCgroup"
        " in containerd's configuration, cgroup_manager in CRI-O's, cgroupDriver in the kubelet's."
        " Drain the node before whichever of the two is changed: the pods' cgroups move",
        host=host.host,
        node=host.node,
        component="kubelet",
    )
