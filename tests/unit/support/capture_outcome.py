# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan and the answers of a capture of logs."""

from __future__ import annotations

import json

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    outcome as capture_outcome,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Plan, Target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import cluster_lock
from tests.unit.plugins.plugin_utils.capture.test_log_merge import NOW, document, line

RUN, OTHER = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
WIDE = 1000  # a terminal in which every line is whole
SCHEDULER, KUBELET = "level:kube-scheduler", "level:kubelet/w1"
FIRST = Target("m1", "m1", "kube-scheduler", SCHEDULER, 2, 4, "m1")
SECOND = Target("m1", "w1", "kubelet", KUBELET, 0, 4, "w1", "ks")
EVIL = "\x1b[31mevil\x1b]0;x\x07\r\u202e"


def plan(*targets, **more):
    return Plan(
        RUN,
        60,
        4,
        ("kubelet", "kube-scheduler"),
        targets or (FIRST, SECOND),
        begun=NOW,
        logging={"m1": ("kube-scheduler",), "w1": ("kubelet",)},
        **more,
    )


def says(real, state, reason=""):
    return {"real": real, "state": state, "reason": reason}


def note(folder, suffix, *targets, error=None, status="ok", reason="", host="m1"):
    return capture_outcome.note(
        str(folder),
        host,
        suffix,
        status,
        reason,
        {"targets": list(targets), "error": error} if status == "ok" else {},
    )


def record_capture(folder):
    """Write into the folder what a capture leaves that went well, with the cluster's lock held."""
    cluster_lock.note(str(folder), cluster_lock.Held("m1", None, "ok", True, RUN))
    note(folder, capture_outcome.RAISED, says(SCHEDULER, "raised"), says(KUBELET, "raised"))
    note(folder, capture_outcome.RESTORED, says(SCHEDULER, "restored"), says(KUBELET, "restored"))
    logs = folder / "capture" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for host, name in (("m1", "kube-scheduler"), ("w1", "kubelet")):
        (logs / f"{host}.json").write_text(json.dumps(document(host, line(NOW, "x", name))))
