# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that cannot make the next container of a component."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    component_end,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import refused_container

SAID = datetime(2026, 11, 29, 17, 39, 46, tzinfo=timezone.utc).timestamp()
# of a real kubelet 1.36 with CRI-O 1.34
LINE = (
    "2026-11-29T17:39:46+0000 m1 kubelet[1239]: E1129 17:39:46.653889    1239 pod_workers.go:1338]"
    ' "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"etcd\\" with'
    ' CreateContainerError: \\"container create failed: time=\\\\\\"2026-11-29T17:39:46Z\\\\\\"'
    ' level=fatal msg=\\\\\\"nsexec[2871]: failed to update /proc/self/oom_score_adj: Permission'
    ' denied\\\\\\"\\\\ntime=\\\\\\"2026-11-29T17:39:46Z\\\\\\" level=error msg=\\\\\\"runc create'
    ' failed\\\\\\"\\\\n\\"" pod="kube-system/etcd-m1" podUID="00a7"'
)
BACK_OFF = LINE.replace("CreateContainerError", "CrashLoopBackOff")
PULL = LINE.replace("CreateContainerError", "ImagePullBackOff")


def log(kubelet: str | None, last: float | None) -> component_end.ComponentLog:
    return component_end.ComponentLog("etcd", False, 0, last=last, lines=("a",), kubelet=kubelet)


@pytest.mark.parametrize(
    ("line", "last", "is_refused"),
    [
        (LINE, SAID - 100, True),
        (LINE, None, True),
        (LINE, SAID + 1, False),  # it was made since, and ended
        (PULL, SAID - 100, True),
        (BACK_OFF, SAID - 100, False),
        (LINE.partition("kubelet[")[2], SAID - 100, False),  # no time
        (None, SAID, False),
    ],
)
def test_whether_a_container_is_refused(line, last, is_refused):
    subject = log(line, last)
    assert refused_container.is_refused(subject) is is_refused
    assert bool(refused_container.without_earlier(subject).lines) is not is_refused


def test_what_the_kubelet_says():
    assert refused_container.message(LINE) == (
        'CreateContainerError: container create failed: level=fatal msg="nsexec[2871]: failed to'
        ' update /proc/self/oom_score_adj: Permission denied" level=error msg="runc create failed"'
    )
    assert refused_container.message(BACK_OFF) == ""
    assert refused_container.message("") == ""
