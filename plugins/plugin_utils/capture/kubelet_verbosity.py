# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files make a kubelet start with another log level. Pure, from evidence.

Where its unit has a variable for the level (kubespray's KUBE_LOG_LEVEL), the number in that file
changes. Elsewhere a managed drop-in gives the last variable of ExecStart another value. The drop-in
is under /run, so that a reboot removes it. The package's own files stay as they are.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from ...module_utils.shared import restart_impact
from ...module_utils.shared.klog_verbosity import explicit_verbosity
from ...module_utils.shared.units import KUBELET as KUBELET_UNIT
from ..editing import draft as editing_draft
from ..evidence import contract
from ..evidence.answers.file_record import FileRecord
from ..evidence.answers.http_answer import HttpAnswer
from ..evidence.answers.node.devices import Devices
from ..evidence.answers.node.kubelet import Kubelet, KubeletProcess, KubeletUnit
from ..models.kubelet import dropin as kubelet_dropin
from ..planning import fencing
from ..planning.plan import RemedyContext, Step
from ..planning.remedies import control_plane as remedie_control_plane
from ..planning.remedies.kubelet_dropin import argument_files

REMEDY, VARIABLE = "raise_kubelet", "KUBE_LOG_LEVEL"
DROPIN, ENVIRONMENT = (
    "/run/systemd/system/kubelet.service.d/zz-kubemend.conf",
    "/run/kubemend/kubelet.env",
)
ASSIGNMENT = re.compile(rf"(?m)^[ \t]*{VARIABLE}[ \t]*=.*$")
NUMBER = re.compile(r"(?<=--v[= ])\d+")


def raise_kubelet(scene: RemedyContext, level: int, run_id: str) -> Step:
    """Return the step that starts this host's kubelet again with that level."""
    kubelet = contract.answer(scene.document, Kubelet)
    unit, process = kubelet.unit or KubeletUnit(), kubelet.process or KubeletProcess()
    expect = {
        "component": "kubelet",
        "restart": "unit",
        "level": level,
        "pid": process.pid,
        "started_at": process.started_at,
    }
    change, diff, reason = None, "", _refusal(scene)
    try:
        change, diff = _in_its_file(unit, level) or _beside_it(unit, level, run_id)
    except editing_draft.EditRefused as refused:
        reason = reason or str(refused)
    return remedie_control_plane.new_step(
        scene,
        REMEDY,
        change["path"] if change else KUBELET_UNIT,
        reason,
        component="kubelet",
        diff=diff,
        change=change,
        expect=expect,
        guard=remedie_control_plane.node_guard(scene),
    )


def _refusal(scene: RemedyContext) -> str | None:
    """Return what forbids the restart, as far as evidence shows it.

    The node checks again at the last moment.
    """
    host, allow = scene.finding.host or "", scene.consent.allow
    refusal = _not_well(scene, host) or fencing.refusal(scene)
    if refusal:
        return refusal
    devices = _devices(scene)
    if devices and "kubelet_restart" not in allow:
        return (
            f"pods with devices run on {host} ({', '.join(devices[:5])}): they may lose them when"
            " the kubelet restarts; wait for their end, or allow it with -e"
            " kubemend_allow=capture_restart,kubelet_restart"
        )
    if devices is None and "kubelet_restart" not in allow:
        return (
            f"the checkpoint of the device manager of {host} cannot be read: whether pods with"
            " devices run there is not known, and they may lose them when the kubelet restarts;"
            " allow it with -e kubemend_allow=capture_restart,kubelet_restart"
        )
    waiting = restart_impact.of_kubelet(asdict(contract.answer(scene.document, Kubelet)))
    if waiting and "pending_changes" not in allow:
        return str(restart_impact.sentence(host, "the kubelet", waiting))
    return None


def _not_well(scene: RemedyContext, host: str) -> str | None:
    """Return why this kubelet, or its API server, is not in a state for a restart, or None."""
    kubelet = contract.answer(scene.document, Kubelet)
    unit, healthz = kubelet.unit or KubeletUnit(), kubelet.healthz or HttpAnswer()
    if unit.name != KUBELET_UNIT or kubelet.process is None:
        return (
            f"the kubelet of {host} does not run as {KUBELET_UNIT}: raise its level where it is"
            " started"
        )
    if healthz.status != 200:
        return f"the kubelet of {host} is not healthy: fix it first (journalctl -u kubelet)"
    if scene.cluster.api_status != "ok":
        return (
            f"no API server answers ({scene.cluster.api_reason or scene.cluster.api_status}):"
            " kubelets are left alone until one does"
        )
    return None


def _devices(scene: RemedyContext) -> tuple[str, ...] | None:
    """Return the running pods with devices, None where their checkpoint cannot be read."""
    devices = contract.answer(scene.document, Devices)
    if devices.checkpoint is not None and devices.checkpoint.error:
        return None
    return devices.names or devices.running or ()


def _in_its_file(unit: KubeletUnit, level: int) -> tuple[dict[str, Any], str] | None:
    """Return the change of the number of --v in the file that sets the variable.

    The result is None where another way is needed.
    """
    names = [name for name, _value in unit.split_variables]
    if (
        VARIABLE not in names
        or explicit_verbosity(kubelet_dropin.behind(unit, VARIABLE)) is not None
    ):
        return None  # what follows it counts
    for file in reversed(unit.environment_files):
        lines = list(ASSIGNMENT.finditer(file.text or ""))
        if lines:
            return _changed_number(file, lines[-1], level)
    return None


def _changed_number(
    file: FileRecord, line: re.Match[str], level: int
) -> tuple[dict[str, Any], str] | None:
    numbers = list(NUMBER.finditer(line.group()))
    if not numbers:
        return None
    place = line.start() + numbers[-1].start()
    return _spliced(file, place, numbers[-1].group(), str(level))


def _spliced(file: FileRecord, place: int, old: str, new: str) -> tuple[dict[str, Any], str]:
    source = editing_draft.Source.from_record(asdict(file))
    data = source.text.encode("utf-8")
    begin = len(source.text[:place].encode("utf-8"))
    splice = editing_draft.Splice(
        begin, begin + len(old.encode("utf-8")), old.encode("utf-8"), new.encode("ascii")
    )
    if source.hides(splice.start, splice.end):
        raise editing_draft.EditRefused(
            source.path, None, "a secret stands at the place to change", editing_draft.BY_HAND
        )
    change = editing_draft.change_of(source.path, source.sha256, [splice])
    diff = editing_draft.unified(source.path, data, editing_draft.apply(data, [splice]))
    return {"kind": "files", "path": source.path, "files": [change], "reload": False}, diff


def _beside_it(unit: KubeletUnit, level: int, run_id: str) -> tuple[dict[str, Any], str]:
    """Return a drop-in that sorts after the others, and the file of the variable that it reads."""
    name = unit.split_variables[-1][0] if unit.split_variables else ""
    if explicit_verbosity(kubelet_dropin.behind(unit, name)) is not None:
        raise editing_draft.EditRefused(
            KUBELET_UNIT,
            None,
            f"its ExecStart sets the level behind the variable {name}",
            "raise it there",
        )
    header = (
        f"# Made by kubemend run {run_id} for a capture; it takes it away again, and so does a"
        " reboot.\n"
    )
    files, diff = argument_files(unit, [f"--v={level}"], header, DROPIN, ENVIRONMENT)
    return {"kind": "files", "path": DROPIN, "files": files, "reload": True}, diff
