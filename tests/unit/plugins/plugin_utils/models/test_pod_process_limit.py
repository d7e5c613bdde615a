# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What limits the processes of a pod, by the configuration of kubelet and runtime."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import pod_process_limit


def limits(argv=("kubelet",), cri=None, kind="crio"):
    answers = {"kubelet": {"argv": list(argv)}, "cri": cri, "runtime": {"kind": kind}}
    document = {
        "collectors": {
            name: {"status": "ok", "data": data} for name, data in answers.items() if data
        }
    }
    return pod_process_limit.read("w1", document)


@pytest.mark.parametrize(
    ("argv", "count"),
    [
        (("kubelet", "--pod-max-pids=512"), 1),
        (("kubelet", "--pod-max-pids=-1"), 0),
        (("kubelet", "--pod-max-pids=many"), 0),
        (("kubelet",), 0),
    ],
)
def test_the_limit_of_a_kubelet(argv, count):
    found = limits(argv, kind="containerd")
    assert len(found) == count
    assert all("512" in limit.clause and limit.proof.kind == "process" for limit in found)


@pytest.mark.parametrize(
    ("version", "limit", "count"),
    [("1.20.0", None, 1), ("", None, 1), ("1.24.0", None, 0), ("1.30.0", 99, 1), ("1.20.0", 0, 0)],
)
def test_the_limit_of_cri_o(version, limit, count):
    config = {"pids_limit": limit, "pids_limit_path": "/etc/crio/crio.conf:3"}
    found = limits(cri={"version": version, "config": config})
    assert len(found) == count
    assert [bool(row.proof) for row in found] == [limit is not None] * count


def test_another_runtime_has_none():
    assert limits(cri={"version": "1.7.0"}, kind="containerd") == ()
