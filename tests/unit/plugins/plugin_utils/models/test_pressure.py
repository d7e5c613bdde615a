# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node under pressure.

The filesystem, its use, the kubelet's threshold and the largest folders and processes of KM523.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    pressure,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    config as kubelet_config,
)
from tests.unit.support import answers

GIB = 1024**3
FILE = "/var/lib/kubelet/config.yaml"


def filesystem(name="nodefs", path="/var/lib/kubelet", free=5 * GIB, total=100 * GIB, **more):
    return {
        "name": name,
        "path": path,
        "mount": "/",
        "type": "ext4",
        "device": "254:1",
        "total": total,
        "free": free,
        "inodes": 1000,
        "inodes_free": 900,
        "error": None,
        **more,
    }


def measured(*filesystems, available=10 * GIB, threads=700):
    return {
        "filesystems": list(filesystems),
        "memory": {"total": 16 * GIB, "available": available},
        "pids": {"threads": threads, "max": 32768},
        "used_up": [],
    }


def put(world, name, data, host="w1"):
    world.documents[host]["collectors"][name] = {
        "status": "ok",
        "data": data,
        "truncated": False,
        "source": None,
        "duration_ms": 1,
        "error": None,
    }


def pressed(world, kind):
    node = next(item for item in world.data("api", "nodes")["items"] if item["name"] == "w1")
    node["conditions"] = [
        *(node.get("conditions") or []),
        {"type": kind, "status": "True", "reason": "KubeletHas", "since": "2027-01-15T07:55:00Z"},
    ]
    (found,) = world.judge(faults=frozenset({"KM523"})).findings
    return found


def config(text, *argv):
    record = {"path": FILE, "text": text, "error": None, "masked": []}
    raw = {"argv": ["kubelet", *argv], "config": record if text else None, "config_dropins": []}
    return kubelet_config.read(answers.typed(kubelet_answer.Kubelet, raw))


@pytest.mark.parametrize(
    ("text", "argv", "found"),
    [
        (
            "",
            (),
            {
                "memory.available": "100Mi",
                "nodefs.available": "10%",
                "nodefs.inodesFree": "5%",
                "imagefs.available": "15%",
                "imagefs.inodesFree": "5%",
            },
        ),
        ("evictionHard:\n  nodefs.available: 90%\n", (), {"nodefs.available": "90%"}),
        (
            "evictionHard:\n  nodefs.available: 90%\nmergeDefaultEvictionSettings: true\n",
            (),
            {
                "nodefs.available": "90%",
                "memory.available": "100Mi",
                "nodefs.inodesFree": "5%",
                "imagefs.available": "15%",
                "imagefs.inodesFree": "5%",
            },
        ),
        (
            "evictionHard:\n  nodefs.available: 90%\n",
            ("--eviction-hard=imagefs.available<20Gi,pid.available<5%",),
            {"imagefs.available": "20Gi", "pid.available": "5%"},
        ),
    ],
)
def test_the_thresholds_of_a_kubelet(text, argv, found):
    told = list(pressure.thresholds(config(text, *argv)))
    assert {one.signal: one.value for one in told} == found
    assert {one.kind for one in told} == {"evictionHard"}


def test_a_soft_threshold_stands_beside_the_hard_ones():
    told = list(pressure.thresholds(config("evictionSoft:\n  nodefs.available: 30%\n")))
    assert ("evictionSoft", "30%", 2) in {
        (one.kind, one.value, one.setting.line) for one in told if one.setting
    }
    assert len(told) == 6


def test_a_disk_under_pressure(world):
    put(
        world,
        "pressure",
        measured(filesystem(), filesystem("imagefs", "/var/lib/containerd", 40 * GIB)),
    )
    folders = [
        {"path": "/var/log/pods/a_b_c", "bytes": 30 * GIB, "files": 12},
        {"path": "/var/lib/kubelet", "bytes": GIB, "files": 4},
    ]
    put(
        world,
        "largest",
        {
            "filesystems": [
                {
                    "name": "nodefs",
                    "folders": folders,
                    "bytes": 31 * GIB,
                    "files": 16,
                    "complete": False,
                }
            ]
        },
    )
    found = pressed(world, "DiskPressure")
    for part in (
        "nodefs.available is 5.0 GiB of 100.0 GiB (5.0 %)",
        "on / ext4 (/var/lib/kubelet)",
        "nodefs.available<10%",
    ):
        assert part in found.summary, found.summary
    assert "imagefs" not in found.summary
    assert "the largest folder there is /var/log/pods/a_b_c (30.0 GiB in 12 files" in found.summary
    told = {proof.path: proof.text for proof in found.evidence if proof.path}
    assert set(told) == {"/var/lib/kubelet", "/var/log/pods/a_b_c"}
    assert "30.0 GiB in 12 files" in told["/var/log/pods/a_b_c"]


@pytest.mark.parametrize(
    ("path", "size", "is_named"),
    [
        ("/var/log/pods", 30 * GIB, True),
        ("/var/log/pods", GIB, False),
        ("/var/lib/containerd", 30 * GIB, False),
    ],
)
def test_logs_of_containers_that_the_kubelet_should_have_rotated(world, path, size, is_named):
    put(world, "pressure", measured(filesystem()))
    folders = [{"path": path, "bytes": size, "files": 120}]
    counted = {"name": "nodefs", "folders": folders, "bytes": 31 * GIB, "complete": False}
    put(world, "largest", {"filesystems": [counted]})
    found = pressed(world, "DiskPressure")
    assert ("containerLogMaxSize 10Mi (the kubelet's default)" in found.summary) is is_named
    assert ("hold at most 1.2 GiB" in found.summary) is is_named
    assert ("find /var/log/pods" in found.remedy) is is_named


def test_of_inodes_the_folder_with_the_most_files_is_the_largest(world):
    short = filesystem(free=90 * GIB) | {"inodes": 1000, "inodes_free": 10}
    put(world, "pressure", measured(short))
    folders = [
        {"path": "/var/log", "bytes": 30 * GIB, "files": 12},
        {"path": "/var/lib/kubelet", "bytes": GIB, "files": 900},
    ]
    counted = {"name": "nodefs", "folders": folders, "bytes": 31 * GIB, "complete": True}
    put(world, "largest", {"filesystems": [counted]})
    summary = pressed(world, "DiskPressure").summary
    assert "nodefs.inodesFree is 10 of 1000" in summary
    assert "the largest folder there is /var/lib/kubelet" in summary


@pytest.mark.parametrize(
    ("counted", "complete", "rest"),
    [(GIB, True, True), (90 * GIB, True, False), (GIB, False, False)],
)
def test_what_was_not_counted_is_said(world, counted, complete, rest):
    put(world, "pressure", measured(filesystem()))
    folders = [
        {"path": "/var/log", "bytes": GIB, "files": 4},
        {"path": "/var/log/tiny", "bytes": 4096, "files": 1},
    ]
    put(
        world,
        "largest",
        {
            "filesystems": [
                {
                    "name": "nodefs",
                    "folders": folders,
                    "bytes": counted,
                    "files": 4,
                    "complete": complete,
                }
            ]
        },
    )
    texts = [proof.text for proof in pressed(world, "DiskPressure").evidence]
    assert any("lsof +L1" in text for text in texts) == rest
    assert not any("4.0 KiB" in text for text in texts)


def test_the_threshold_names_its_line(world):
    kubelet = world.data("w1", "kubelet")
    kubelet.update(
        config={
            "path": FILE,
            "text": 'kind: KubeletConfiguration\nevictionHard:\n  nodefs.inodesFree: "95%"\n',
            "error": None,
            "masked": [],
        },
        config_dropins=[],
    )
    put(world, "pressure", measured(filesystem()))
    found = pressed(world, "DiskPressure")
    assert f"nodefs.inodesFree<95% (evictionHard, {FILE}:3)" in found.summary
    assert "nodefs.available" not in found.summary


def test_pressure_that_has_gone(world):
    put(world, "pressure", measured(filesystem(free=50 * GIB)))
    found = pressed(world, "DiskPressure")
    assert "no threshold of DiskPressure is crossed now" in found.summary
    assert [proof.path for proof in found.evidence if proof.path] == ["/var/lib/kubelet"] * 2


@pytest.mark.parametrize(
    ("kind", "large", "seen"),
    [
        ("MemoryPressure", "memory", {"available": GIB // 100}),
        ("PIDPressure", "threads", {"threads": 32700}),
    ],
)
def test_the_largest_processes(world, kind, large, seen):
    world.data("w1", "kubelet").update(
        config={
            "path": FILE,
            "text": "evictionHard:\n  pid.available: 5%\n  memory.available: 100Mi\n",
            "error": None,
            "masked": [],
        },
        config_dropins=[],
    )
    put(world, "pressure", measured(**seen))
    holder = {
        "pid": 4711,
        "comm": "java",
        "uid": 0,
        "unit": None,
        "pod_uid": None,
        "container_id": None,
        "rss": 12 * GIB,
        "threads": 30000,
    }
    put(world, "largest", {large: [holder]})
    found = pressed(world, kind)
    assert "below" in found.summary
    assert [proof.pid for proof in found.evidence if proof.pid] == [4711]


def test_without_evidence_the_condition_alone_is_told(world):
    found = pressed(world, "DiskPressure")
    assert len(found.evidence) == 1
    assert found.evidence[0].kind == "api"


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "x",
        7,
        {"filesystems": "x", "memory": [], "pids": 3},
        {"filesystems": [None, {}, {"name": [], "free": "x", "total": -5, "inodes": True}]},
        {
            "filesystems": [filesystem(free=None, total=0, error="denied")],
            "memory": {"available": {}},
            "pids": {"threads": "x"},
        },
    ],
)
def test_evidence_of_another_shape(world, data):
    put(world, "pressure", data)
    put(world, "largest", {"filesystems": data, "memory": data, "threads": [data]})
    assert pressed(world, "DiskPressure").host == "w1"
    assert len(world.judge().findings) >= 1


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * GIB, "5.0 GiB"), (2**63, "8192.0 PiB")],
)
def test_sizes(count, text):
    assert pressure.size(count) == text


def test_folders_are_counted_once_where_two_names_are_the_same_filesystem(world):
    put(
        world,
        "pressure",
        measured(filesystem(free=12 * GIB), filesystem("imagefs", "/var/lib/containerd", 12 * GIB)),
    )
    images = {"path": "/var/lib/containerd", "bytes": 74 * GIB, "files": 9}
    counted = {"name": "nodefs", "folders": [images], "bytes": 74 * GIB, "files": 9}
    put(world, "largest", {"filesystems": [{**counted, "complete": True}]})
    summary = pressed(world, "DiskPressure").summary
    assert "nodefs.available is" not in summary
    assert "the largest folder there is /var/lib/containerd (74.0 GiB" in summary
