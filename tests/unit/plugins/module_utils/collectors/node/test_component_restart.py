# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_restart: what it asks the runtime, and which lines it keeps."""

import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    cri,
    protobuf,
)
from tests.unit.support import fake_commands

ID, OTHER, SANDBOX, UID = "a" * 64, "c" * 64, "b" * 64, "0123456789abcdef0123456789abcdef"
MANIFEST = "kind: Pod\nspec:\n  containers:\n  - name: etcd\n    command: [etcd]\n"


def number(field, value):
    rest, data = value, b""
    while rest > 127:
        data += bytes([rest & 127 | 128])
        rest >>= 7
    return protobuf._size(field << 3) + data + bytes([rest])


def part(field, data):
    return protobuf._size(field << 3 | 2) + protobuf._size(len(data)) + data


def pair(field, key, value):
    return part(field, protobuf.string(1, key) + protobuf.string(2, value))


def container(identity=ID, uid=UID, attempt=3):
    return (
        protobuf.string(1, identity)
        + protobuf.string(2, SANDBOX)
        + part(3, protobuf.string(1, "etcd") + number(2, attempt))
        + number(6, 2)
        + number(7, 1_800_000_000_500_000_000)
        + pair(8, component_restart.POD_UID, uid)
        + pair(9, component_restart.RESTARTS, str(attempt))
    )


def status():
    return part(
        1,
        protobuf.string(1, ID)
        + number(3, 2)
        + number(5, 1_800_000_001_000_000_000)
        + number(6, 1_800_000_061_250_000_000)
        + number(7, 137)
        + protobuf.string(10, "OOMKilled")
        + part(16, part(1, number(4, 64 * 1024 * 1024))),
    )


@pytest.fixture
def node(monkeypatch):
    """Return a context maker; `said` are the journals by what they are asked with."""
    said, asked = {}, []

    def run(argv, dummy_seconds, dummy_limit):
        asked.append(argv)
        text = said.get(argv[-1], "")
        if not text:
            raise command.Silent("journalctl: nothing")
        return text

    def call(dummy_path, method, message, dummy_seconds):
        asked.append((method, message))
        if method.endswith("/ListContainers"):
            user = container(OTHER, "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
            return cri.OK, part(1, container()) + part(1, user)
        return cri.OK, status()

    fake_commands.replace(monkeypatch, run)
    monkeypatch.setattr(cri, "call", call)
    monkeypatch.setattr(component_restart.os, "geteuid", lambda: 0)

    def context(age=60.0, **runtime):
        process = {"component": "etcd", "static": True, "started_at": time.time() - age}
        named = {
            "path": "/run/x.sock",
            "kind": "containerd",
            "calls": {"v1": 0},
            "units": [{"name": "containerd.service", "absent": False, "main_pid": None}],
        }
        return base.Context(
            {},
            [],
            {
                "manifests": {"files": [{"text": MANIFEST}]},
                "instances": {"processes": [process]},
                "kubelet": {"unit": {"name": "kubelet.service"}},
                "runtime": dict(named, **runtime),
            },
        )

    context.said, context.asked = said, asked
    return context


def test_where_all_have_run_for_an_hour_nothing_is_read(node):
    with pytest.raises(base.Absent):
        component_restart.collect(node(age=3700))
    assert node.asked == []


def test_only_root_reads_it(node, monkeypatch):
    monkeypatch.setattr(component_restart.os, "geteuid", lambda: 1000)
    with pytest.raises(base.Denied):
        component_restart.collect(node())


def test_what_the_runtime_has_of_a_static_pods_containers(node):
    data = component_restart.collect(node())
    (row,) = data["containers"]
    assert row == {
        "component": "etcd",
        "id": ID,
        "sandbox": SANDBOX,
        "pod_uid": UID,
        "attempt": 3,
        "state": "exited",
        "created": 1_800_000_000.5,
        "started": 1_800_000_001.0,
        "finished": 1_800_000_061.25,
        "exit_code": 137,
        "reason": "OOMKilled",
        "message": "",
        "memory_limit": 64 * 1024 * 1024,
    }
    assert data["unread"] is None


@pytest.mark.parametrize("runtime", [{"kind": "embedded"}, {"calls": {}}, {"calls": {"v1": 12}}])
def test_a_runtime_that_is_not_asked_says_why(node, runtime):
    data = component_restart.collect(node(**runtime))
    assert data["containers"] is None
    assert data["unread"]


def test_which_lines_are_kept(node):
    made = (
        f'1800000000.1 m1 containerd[7]: msg="CreateContainer within sandbox \\"{SANDBOX}\\" for'
        f' &ContainerMetadata{{Name:etcd,Attempt:2,}} returns container id \\"{OTHER}\\""'
    )
    stop = (
        f'1800000000.2 m1 containerd[7]: msg="StopContainer for \\"{OTHER}\\" with timeout 30 (s)"'
    )
    foreign = stop.replace(OTHER, "d" * 64)
    probe = '1800000000.3 m1 kubelet[7]: "Probe failed" probeType="%s" containerName="etcd"'
    killed = "1800000000.4 m1 kernel: Memory cgroup out of memory: Killed process 7 (etcd)"
    node.said.update(
        {
            "containerd.service": "\n".join([foreign, stop, made]),
            "kubelet.service": "\n".join(
                [probe % "Liveness", probe % "Readiness", "1800000000.3 m1 kubelet[7]: other"]
            ),
            "-k": killed + "\n1800000000.4 m1 kernel: other",
        }
    )
    data = component_restart.collect(node())
    assert data["runtime"]["lines"] == [made, stop]
    assert data["kubelet"]["lines"] == [probe % "Liveness"]
    assert data["kernel"]["lines"] == [killed]
    assert [data[name]["error"] for name in ("runtime", "kubelet", "kernel")] == [None] * 3


def test_a_journal_that_fails_and_one_that_is_cut(node, monkeypatch):
    def run(argv, dummy_seconds, limit):
        if argv[-1] == "-k":
            raise command.CommandError("journalctl did not end within 3 s")
        return "1800000009.5 m1 x[7]: newest\n" + "1800000001.5 m1 x[7]: old\n" + "y" * limit

    fake_commands.replace(monkeypatch, run)
    data = component_restart.collect(node())
    assert data["kernel"]["error"].startswith("journalctl")
    assert data["runtime"]["oldest"] == 1800000001.5


@pytest.mark.parametrize(
    ("line", "identity"),
    [
        (f'Created container {ID}: kube-system/etcd-m1/etcd" id=x', ID),
        (f'... returns container id \\"{ID}\\""', ID),
        (f'... returns container id "{ID}"', ID),
        ("... returns container id short", ""),
    ],
)
def test_the_id_of_a_container_that_is_made(line, identity):
    assert component_restart.id_of(line) == identity


def test_a_line_of_the_oom_killer_keeps_whose_process_it_was(node):
    """It has the group three times, and names the victim behind them."""
    slices = "kubepods.slice/kubepods-burstable.slice"
    group = f"/kubelet.slice/{slices}/kubepods-burstable-pod{UID}.slice/cri-containerd-{ID}.scope"
    line = (
        "1800000000.4 m1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),"
        f"cpuset=cri-containerd-{ID}.scope,mems_allowed=0,oom_memcg={group},"
        f"task_memcg={group},task=etcd,pid=7,uid=0"
    )
    assert len(line) > component_restart.LONGEST
    together = f"1800000000.4 m1 kernel: Tasks in {group} are going to be killed due to"
    together += " memory.oom.group set"
    node.said["-k"] = f"{together}\n{line}"
    assert component_restart.collect(node())["kernel"]["lines"] == [line, together]


@pytest.mark.parametrize(
    ("complaint", "folders", "error"),
    [
        ("No journal files were opened due to insufficient permissions.", ["x"], "permissions"),
        ("", [], "journald keeps no journal"),
        ("", ["x"], None),  # a kernel that says nothing for an hour is well
    ],
)
def test_a_journal_that_says_nothing(node, monkeypatch, complaint, folders, error):
    def run(*dummy):
        silent = command.Silent("journalctl: it said nothing")
        silent.complaint = complaint
        raise silent

    fake_commands.replace(monkeypatch, run)
    monkeypatch.setattr(component_restart.files, "names", lambda dummy: folders)
    told = component_restart.collect(node())["kernel"]["error"]
    assert (error is None) is (told is None)
    assert (error or "") in (told or "")


def test_a_secret_at_the_cut_is_masked_as_a_whole(node):
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    head = "1800000000.3 m1 kubelet[7]: Liveness probe for etcd "
    node.said["kubelet.service"] = head + "x" * (480 - len(head)) + " " + token
    (kept,) = component_restart.collect(node())["kubelet"]["lines"]
    assert "eyJ" not in kept
    assert len(kept) == component_restart.LONGEST


def test_a_node_on_which_no_process_can_be_started(node, monkeypatch):
    def run(*dummy):
        raise OSError(11, "Resource temporarily unavailable")

    fake_commands.replace(monkeypatch, run)
    with pytest.raises(OSError, match="temporarily"):
        component_restart.collect(node())


def test_a_unit_that_is_not_known_is_said(node):
    context = node()
    context.data["kubelet"] = None
    data = component_restart.collect(context)
    assert data["kubelet"]["error"] == "its unit is not known"
    assert all(argv[-1] != "kubelet.service" for argv in node.asked if isinstance(argv, list))


def test_each_journal_is_that_of_its_unit(node):
    component_restart.collect(node())
    ends = [argv[-2:] for argv in node.asked if isinstance(argv, list)]
    assert ["-u", "containerd.service"] in ends
    assert ["-u", "kubelet.service"] in ends
    assert [argv[-2] == "-u" for argv in node.asked if argv[-1] == "-k"] == [False]
