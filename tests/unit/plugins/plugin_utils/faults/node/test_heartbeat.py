# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that runs while its Node is not ready: KM525. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support import pki
from tests.unit.support.api_nodes import node, silent

LONG_AGO = 1799990000.0  # hours before the API was asked, 2027-01-15T08:00:00Z
SERVER = "https://10.0.0.9:6443"


def repeats(world, error):
    """Let the kubelet of the worker repeat this error about its Node."""
    line = f'E0115 07:59:00.000001 1 x.go:1] "Error updating node status, will retry" err="{error}"'
    entry = {"count": 60, "minutes": 10, "first": 1.8e9 - 590, "last": 1.8e9 - 5, "line": line}
    rows = [{"component": "kubelet", "entries": [entry]}]
    world.documents["w1"]["collectors"]["repeated_errors"] = {
        "status": "ok",
        "data": {"read_at": 1.8e9, "components": rows},
    }


def judged(world, way=None, started=LONG_AGO, ready="Unknown", **condition):
    silent(world, "w1", ready)
    node(world, "w1")["conditions"][0].update(condition)
    world.data("w1", "kubelet")["process"] = (
        None if started is None else {"pid": 1, "argv": ["kubelet"], "started_at": started}
    )
    world.documents["w1"]["collectors"]["api_way"] = (
        {"status": "ok", "data": way} if way else {"status": "absent", "data": None}
    )
    result = world.judge(faults={"KM525"})
    return [item.verdict for item in result.verdicts] or ["not judged"], list(result.findings)


@pytest.mark.parametrize(
    ("failed", "error", "words"),
    [
        ("name", "Name or service not known", "does not find the server"),
        ("connection", "timed out", "gets no connection"),
        ("certificate", "certificate has expired", "cannot trust"),
        (None, None, "the node reaches the server"),
    ],
)
def test_each_part_of_the_way(world, failed, error, words):
    verdicts, (found,) = judged(
        world, {"server": SERVER, "address": None, "failed": failed, "error": error}
    )
    assert verdicts == ["present"]
    assert words in found.summary
    assert "the kubelet runs" in found.summary
    assert "2027-01-15T07:55:00Z" in found.summary
    assert (found.host, found.node, found.component, found.risk) == ("w1", "w1", "kubelet", 0)
    assert found.evidence[-1].object == SERVER
    assert (error or "are well") in found.evidence[-1].text


@pytest.mark.parametrize(("failed", "is_quoted"), [(None, True), ("connection", False)])
def test_what_a_kubelet_that_reaches_the_api_repeats_of_its_node(world, failed, is_quoted):
    error = 'failed to patch status for node \\"w1\\": Node \\"w1\\" is invalid: the cause'
    repeats(world, error)
    way = {"server": SERVER, "address": None, "failed": failed, "error": None}
    _verdicts, (found,) = judged(world, way)
    assert ("is invalid: the cause" in found.summary) is is_quoted
    assert ("calls it invalid" in found.summary) is is_quoted


def test_a_way_that_nobody_looked_at(world):
    verdicts, (found,) = judged(world)
    assert verdicts == ["present"]
    assert "was not looked at" in found.summary


def test_a_name_whose_lookup_never_ends(world):
    judged(world)
    world.documents["w1"]["collectors"]["api_way"] = {"status": "timeout", "data": None}
    (found,) = world.judge(faults={"KM525"}).findings
    assert "no way" in found.summary
    assert "resolver" in found.remedy


@pytest.mark.parametrize(
    ("started", "verdict"),
    [
        (None, "clear"),
        (1799999970.0, "unknown"),
        (1800000030.0, "unknown"),
        (1799999930.0, "present"),
    ],
)
def test_a_kubelet_that_is_down_is_others_and_a_young_one_has_time(world, started, verdict):
    assert judged(world, started=started)[0] == [verdict]


@pytest.mark.parametrize(
    ("reason", "message", "verdict"),
    [
        (
            "KubeletNotReady",
            (
                "runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
                " message:cni plugin not initialized"
            ),
            "clear",
        ),
        ("KubeletNotReady", "error updating node status", "present"),
        ("KubeletNotReady", "", "present"),
        ("KubeletNotReady", None, "not judged"),
    ],
)
def test_what_a_kubelet_says_of_itself(world, reason, message, verdict):
    verdicts, findings = judged(world, ready="False", reason=reason, message=message)
    assert verdicts == [verdict]
    assert all((message or reason) in item.summary for item in findings)


@pytest.mark.parametrize(
    ("error", "cgroups", "version", "is_told", "are_cgroups_told"),
    [
        ("timed out", 5200, "v1", True, True),
        ("timed out", 5200, "v2", True, False),
        ("timed out", 700, "hybrid", True, False),
        (None, 5200, "v1", False, False),
    ],
)
def test_a_kubelet_that_does_not_answer_itself(
    world, error, cgroups, version, is_told, are_cgroups_told
):
    world.data("w1", "kubelet")["healthz"] = {
        "url": "http://127.0.0.1:10248/healthz",
        "error": error,
    }
    world.data("w1", "system")["cgroup"] = version
    world.documents["w1"]["collectors"]["pressure"] = {
        "status": "ok",
        "data": {"cgroups": {"memory": cgroups}},
    }
    way = {"server": SERVER, "address": None, "failed": None, "error": None}
    _verdicts, (found,) = judged(world, way)
    assert ("healthz" in found.summary) is is_told
    assert (f"{cgroups} memory cgroups" in found.summary) is are_cgroups_told
    assert ("unified_cgroup_hierarchy=1" in found.remedy) is are_cgroups_told
    assert len(found.evidence) == 3 + is_told + are_cgroups_told


LATE = "[container runtime is down, PLEG is not healthy: pleg was last seen active 5m0s ago]"
UNIT = {
    "name": "containerd.service",
    "load_state": "loaded",
    "active_state": "active",
    "sub_state": "running",
    "result": "success",
    "n_restarts": 2,
}


def with_runtime(world, **fields):
    """Let the runtime of the worker run and answer, but for these fields."""
    runtime = {
        "kind": "containerd",
        "path": "/run/containerd/containerd.sock",
        "socket": "socket",
        "asked": True,
        "error": None,
        "calls": {"v1": 0},
        "units": [UNIT],
        **fields,
    }
    world.documents["w1"]["collectors"]["runtime"] = {"status": "ok", "data": runtime}
    return judged(world, ready="False", reason="KubeletNotReady", message=LATE)


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, "present"),
        ({"kind": "embedded", "units": []}, "present"),
        ({"asked": False, "calls": None}, "present"),
        ({"calls": {"v1": "no answer"}}, "clear"),
        ({"error": "connection refused"}, "clear"),
        ({"socket": "missing"}, "clear"),
        ({"units": [{**UNIT, "active_state": "failed", "sub_state": "failed"}]}, "clear"),
    ],
)
def test_a_runtime_that_a_kubelet_calls_down(world, fields, verdict):
    """KM508 reports one that does not run or does not answer; nothing else reports the others."""
    verdicts, found = with_runtime(world, **fields)
    assert verdicts == [verdict]
    assert all(LATE in item.summary for item in found)


@pytest.mark.parametrize("message", [LATE, "container runtime status check may not have completed"])
def test_a_kubelet_that_just_started_has_no_list_yet(world, message):
    world.documents["w1"]["collectors"]["runtime"] = {"status": "absent", "data": None}
    verdicts, found = judged(
        world, started=1800000030.0, ready="False", reason="KubeletNotReady", message=message
    )
    assert (verdicts, found) == (["unknown"], [])


@pytest.mark.parametrize(
    ("collector", "data", "words"),
    [
        ("hangs", {"tasks": [{"pid": 7, "name": "runc", "wchan": "rpc_wait_bit"}]}, "runc (pid 7"),
        (
            "space",
            {"stores": [{"path": "/var/lib/containerd", "use": "runtime", "read_only": True}]},
            "/var/lib/containerd is read-only",
        ),
        ("pressure", {"memory": {"total": 4 << 30, "available": 90 << 20}}, "90"),
        (
            "kernel_log",
            {"rows": [{"kind": "hang", "count": 1, "last": 1.8e9, "line": "task runc:7 blocked"}]},
            "task runc:7 blocked",
        ),
    ],
)
def test_why_a_runtime_is_late_is_told_by_its_node(world, collector, data, words):
    world.documents["w1"]["collectors"][collector] = {"status": "ok", "data": data}
    _verdicts, (found,) = with_runtime(world)
    assert words in found.summary
    assert "2 times" in found.summary
    assert len(found.evidence) == 2
    assert "journalctl -u containerd.service" in found.remedy


def test_a_node_that_shows_no_reason(world):
    _verdicts, (found,) = with_runtime(world)
    assert len(found.evidence) == 1
    assert found.severity == "critical"


def test_a_host_that_is_silent_is_down(world):
    silent(world, "w1")
    world.silence("w1")
    result = world.judge(faults={"KM525"})
    assert [item.verdict for item in result.verdicts] == ["clear"]


def test_a_whole_group_is_told_once(world):
    for name in ("m1", "m2", "m3"):
        silent(world, name)
        node(world, name)["control_plane"] = False
        world.data(name, "kubelet")["process"] = {
            "pid": 1,
            "argv": ["kubelet"],
            "started_at": LONG_AGO,
        }
    verdicts, findings = judged(world)
    assert verdicts == ["clear"]
    assert findings == []


def test_a_host_that_was_renamed_is_told_by_its_own_fault(world):
    world.data("w1", "kubelet")["argv"] = ["kubelet", "--hostname-override=other"]
    silent(world, "w1")
    world.data("w1", "kubelet")["process"] = {"pid": 1, "argv": ["kubelet"], "started_at": LONG_AGO}
    found = world.judge(faults={"KM509", "KM525"}).findings
    assert [item.code for item in found] == ["KM509"]


def test_no_api(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert [item.verdict for item in world.judge(faults={"KM525"}).verdicts] == ["unknown"]


@pytest.mark.parametrize(
    ("no_proxy", "failed", "words"),
    [
        ("localhost", None, "http://192.0.2.20:3128"),
        ("10.0.0.9", None, "the node reaches the server"),
        ("localhost", "connection", "gets no connection"),
    ],
)
def test_a_proxy_between_a_kubelet_and_a_server_that_answers(world, no_proxy, failed, words):
    judged(world, {"server": SERVER, "address": None, "failed": failed, "error": None})
    proxy = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": no_proxy}
    world.data("w1", "kubelet")["process"]["proxy"] = proxy
    (found,) = world.judge(faults={"KM525"}).findings
    assert words in found.summary


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("error getting node: Unauthorized", "401 Unauthorized"),
        ("Get: dial tcp 10.0.0.9:6443: i/o timeout", "http://192.0.2.20:3128"),
    ],
)
def test_an_answer_of_the_api_server_comes_before_the_proxy(world, error, words):
    judged(world, {"server": SERVER, "address": None, "failed": None, "error": None})
    proxy = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": "localhost"}
    world.data("w1", "kubelet")["process"]["proxy"] = proxy
    repeats(world, error)
    (found,) = world.judge(faults={"KM525"}).findings
    assert words in found.summary


@pytest.mark.parametrize(
    ("ends", "address", "is_named"),
    [(-3, "10.0.0.1", True), (100, "10.0.0.1", False), (-3, "10.0.0.9", False)],
)
def test_the_expired_certificate_of_its_server_is_named(world, ends, address, is_named):
    made = pki.Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    pair = made.ca.issue("kube-apiserver", ["10.0.0.1"], begins=-400, ends=ends)
    pki.set_file(world.data("m1", "certificates"), f"{pki.FOLDER}/apiserver.crt", pair)
    error = "certificate verify failed: certificate has expired"
    way = {"server": SERVER, "address": address, "failed": "certificate", "error": error}
    _verdicts, (found,) = judged(world, way)
    assert (found.because == ("KM120",)) is is_named
    assert ("the certificate of its API server, on m1, has expired" in found.summary) is is_named


def test_the_cause_of_a_known_message_is_told(world):
    message = "open /run/systemd/resolve/resolv.conf: no such file or directory"
    (found,) = judged(world, ready="False", reason="KubeletNotReady", message=message)[1]
    assert "Known cause: The kubelet is configured to take name servers from" in found.summary
    assert "systemctl enable --now systemd-resolved" in found.remedy
