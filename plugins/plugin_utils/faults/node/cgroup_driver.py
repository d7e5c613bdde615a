# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM524: check that kubelet and runtime have the same cgroup driver, else every new pod fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.cri import Cri
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.kubelet_log import KubeletLog
from ...evidence.answers.node.system import System
from ...evidence.document import one_line
from ...models import runtime_cgroup
from ...models.cluster import Host
from ...models.kubelet import config as kubelet_config
from ...models.kubelet import status as kubelet_status
from ...models.result import EvidenceRef, Missing
from ...models.runtime_cgroup import Drivers
from ..base import CheckResult, Detection, causes, node_check, present, unknown

RECENT = 600.0  # seconds: the kubelet tries each pod again at least every few minutes
SHOWN = 3
STARTING = 20.0  # seconds: until then a kubelet may not have made its cgroups
SYSTEMD, CGROUPFS = "systemd", "cgroupfs"
# The messages of a runtime whose cgroup driver is not the kubelet's, and which one it has: runc's,
# and CRI-O's before it calls runc.
REFUSALS = (
    (re.compile(r"expected cgroupspath to be of format"), SYSTEMD),
    (re.compile(r"did not receive slice as parent"), SYSTEMD),
    (re.compile(r"but received slice as parent"), CGROUPFS),
)

SAME = (
    "give both the same driver, systemd where systemd runs the machine: SystemdCgroup = true in"
    " the options of the runtime in containerd's configuration (below"
    " [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options] in version 3,"
    ' [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options] in version 2),'
    " cgroup_manager in CRI-O's, cgroupDriver in the kubelet's. Drain the node before either is"
    " changed and restarted: the pods' cgroups move"
)
ASK_AGAIN = (
    "the runtime was given another driver after the kubelet had asked it: drain the node, because"
    " the pods' cgroups move, and restart the kubelet (systemctl restart kubelet), which asks again"
    " (from 1.31 on; an older one has the cgroupDriver of its own configuration). Where the"
    " runtime's driver is not the one that is wanted, correct its configuration and restart it"
)


@node_check(
    "KM524",
    "Runtime refuses the cgroups of the kubelet",
    severity="critical",
    applies="nodes whose kubelet and runtime write to journald",
    needs=("system", "kubelet", "kubelet_log"),
    tier="deep",
    component="kubelet",
    explained_by=causes("KM516", component="kubelet"),
)
def refused(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM524: report a runtime that refuses the cgroups that the kubelet names."""
    refusals = _refusals(document)
    if not refusals:
        yield unknown(*host.missing("kubelet_log"))
        return
    clock = contract.answer(document, System).clock
    logged = kubelet_status.moment(refusals[-1][0])
    if clock is None or logged is None:
        note = "it cannot be determined whether it is still so"
        yield unknown(Missing(host.host, "system", "error"), note=note)
        return
    note = _over(host, document, clock - logged, logged, refusals[-1][0])
    if note:
        yield unknown(*host.missing("kubelet_log"), note=note)
    else:
        yield present(_hit(host, document, refusals))


def with_configuration(
    host: Host, document: Mapping[str, Any], outcome: CheckResult
) -> CheckResult:
    """Add to a result of KM516 that kubelet and runtime run with different drivers."""
    drivers = runtime_cgroup.drivers(document)
    if drivers is None or not drivers.differ or _is_starting(host, document, drivers):
        # an older release did not ask the runtime
        missing = tuple(item for item in host.missing("cri") if item.status != "not_asked")
        return outcome if outcome.missing else outcome._replace(missing=missing)
    return outcome._replace(hits=(_differ(host, document, drivers),), missing=(), note="")


def _is_starting(host: Host, document: Mapping[str, Any], drivers: Drivers) -> bool:
    """Tell whether a kubelet may not have made its cgroup for pods yet, which is the proof."""
    clock, started = contract.answer(document, System).clock, host.kubelet_started
    if not drivers.root:
        return False
    return clock is None or started is None or clock - started.timestamp() < STARTING


def _proof(host: Host, drivers: Drivers) -> EvidenceRef:
    """Return what shows the driver of the kubelet."""
    if drivers.root:
        path = f"/sys/fs/cgroup/{drivers.root}"
        return EvidenceRef("file", host.host, path=path, text="the kubelet's cgroup for all pods")
    if drivers.setting is not None:
        return drivers.setting.proof(host.host)
    return EvidenceRef("process", host.host, object="kubelet", text="cgroupfs is its default")


def _differ(host: Host, document: Mapping[str, Any], drivers: Drivers) -> Detection:
    cri, advice = contract.answer(document, Cri), SAME
    if drivers.root:
        advice = ASK_AGAIN
    runtime = f"{one_line(cri.name, 40) or 'its runtime'} {one_line(cri.version, 40)}".strip()
    unread = runtime_cgroup.unread(document)
    if unread:
        unread = f"; {unread}"
    return Detection(
        f"kubelet and runtime have different cgroup drivers: the kubelet"
        f" {one_line(drivers.kubelet, 40)}, {runtime} {drivers.runtime}; pods are killed and made"
        f" again, or do not start{unread}",
        (_proof(host, drivers), *runtime_cgroup.places(document, host.host)),
        advice,
        host=host.host,
        node=host.node,
        component="kubelet",
    )


def _refusals(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the log lines that refuse cgroups, with the driver of the runtime."""
    lines = contract.answer(document, KubeletLog).lines
    return [(line, driver) for line in lines for driver in _drivers(line)]


def _drivers(line: str) -> list[str]:
    return [driver for pattern, driver in REFUSALS if pattern.search(line.lower())]


def _over(host: Host, document: Mapping[str, Any], age: float, logged: float, line: str) -> str:
    """Return why a refusal does not count any more, or ""."""
    if not -RECENT <= age <= RECENT:
        return f"it was so at {line.partition(' ')[0][:40]}"
    if _is_down(document):
        return "its kubelet does not run: what it was refused before says nothing of its next start"
    if host.kubelet_started is not None and host.kubelet_started.timestamp() > logged:
        return "its kubelet was started again since, and nothing was refused to it"
    return ""


def _is_down(document: Mapping[str, Any]) -> bool:
    """Tell whether the kubelet is known not to run: a unit of it is there, and no process."""
    status = kubelet_status.read(document)
    process = contract.answer(document, Kubelet).process
    return status is not None and process is None and not status.unit.runs


def _hit(host: Host, document: Mapping[str, Any], refusals: list[tuple[str, str]]) -> Detection:
    driver, other = refusals[-1][1], SYSTEMD
    if driver == SYSTEMD:
        other = CGROUPFS
    config = kubelet_config.read(contract.answer(document, Kubelet))
    setting = config.setting("cgroupDriver", "cgroup-driver")
    place = ""
    if setting and setting.path and setting.value == other:
        place = f" (the kubelet's stands in {setting.path})"
    return Detection(
        f"no new pod starts: the runtime uses the cgroup driver {driver}, the kubelet {other}",
        tuple(EvidenceRef("log", host.host, text=line) for line, _driver in refusals[-SHOWN:]),
        f"give both the same driver, systemd where systemd runs the machine{place}: SystemdCgroup"
        " in containerd's configuration, cgroup_manager in CRI-O's, cgroupDriver in the kubelet's."
        " Drain the node before whichever of the two is changed: the pods' cgroups move",
        host=host.host,
        node=host.node,
        component="kubelet",
    )
