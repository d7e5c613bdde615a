# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet's signals measure, and what uses most of it.

This machine, made-up folders, texts.
"""

import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    largest,
    pressure,
)

# Linux 5.10: a node with a disk of its own for containers, and a volume of a pod on NFS
MOUNTINFO = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /tmp rw shared:5 - tmpfs tmpfs rw
31 22 254:16 / /var/lib/containerd rw shared:7 - xfs /dev/vdb rw,attr2
40 22 0:61 / /var/lib/kubelet/pods/a/volumes/kubernetes.io~nfs/data rw shared:9 \
- nfs4 10.0.0.9:/x rw
41 22 254:1 /elsewhere /mnt/with\\040blank rw shared:1 - ext4 /dev/vda1 rw
"""
TABLE = pressure.mounts(MOUNTINFO)


@pytest.mark.parametrize(
    ("path", "point", "device", "kind"),
    [
        ("/var/lib/kubelet", "/", "254:1", "ext4"),
        ("/var/lib/containerd", "/var/lib/containerd", "254:16", "xfs"),
        ("/var/lib/containerd2", "/", "254:1", "ext4"),
        ("/tmp/a", "/tmp", "0:25", "tmpfs"),
        ("/mnt/with blank/x", "/mnt/with blank", "254:1", "ext4"),
        (
            "/var/lib/kubelet/pods/a/volumes/kubernetes.io~nfs/data/b",
            "/var/lib/kubelet/pods/a/volumes/kubernetes.io~nfs/data",
            "0:61",
            "nfs4",
        ),
    ],
)
def test_where_a_path_lies(path, point, device, kind):
    assert pressure.mount_of(path, TABLE) == (point, device, kind)
    assert pressure.mount_of(path, []) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("evictionHard:\n  nodefs.available: 90%\n", ["90%"]),
        ('{"evictionHard": {"nodefs.available": "20Gi"}}', ["20Gi"]),
        (
            (
                "kubelet --eviction-hard=memory.available<1Gi,nodefs.available<15% --eviction-soft"
                " nodefs.available<20%"
            ),
            ["15%", "20%"],
        ),
        ("  nodefs.available: '1.5Gi'  # why", ["1.5Gi"]),
        ("nodefs.available", [""]),
        ("", []),
    ],
)
def test_thresholds_that_a_text_names(text, values):
    assert pressure.thresholds([text])["nodefs.available"] == ["10%", *values]


@pytest.mark.parametrize(
    ("value", "total", "amount"),
    [
        ("10%", 1000, 100),
        ("1Ki", 5, 1024),
        ("2k", 5, 2000),
        ("1.5Mi", 5, 1572864),
        ("7", 5, 7),
        ("", 5, None),
        ("x", 5, None),
        ("5%", None, None),
        ("1Qi", 5, None),
    ],
)
def test_amounts(value, total, amount):
    assert pressure.amount(value, total) == amount


def short(free=500, inodes_free=500, available=10**10, threads=10, texts=()):
    one = {
        "name": "nodefs",
        "free": free,
        "total": 1000,
        "inodes": 1000,
        "inodes_free": inodes_free,
    }
    found = {
        "filesystems": [one],
        "memory": {"total": 10**11, "available": available},
        "pids": {"threads": threads, "max": 1000},
    }
    return pressure.used_up(found, pressure.thresholds(texts))


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ({}, []),
        ({"free": 105}, ["nodefs.available"]),
        ({"free": None}, []),
        ({"inodes_free": 50}, ["nodefs.inodesFree"]),
        ({"available": 10**8}, ["memory.available"]),
        ({"threads": 960}, ["pid.available"]),
        ({"threads": None}, []),
        ({"texts": ["nodefs.available<60%"]}, ["nodefs.available"]),
    ],
)
def test_what_is_nearly_used_up(more, names):
    assert short(**more) == names


@pytest.mark.parametrize(
    ("argv", "config", "folder"),
    [
        (
            ["kubelet", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"],
            None,
            "/var/lib/containerd",
        ),
        (
            ["kubelet", "--container-runtime-endpoint=unix:///run/k3s/containerd/containerd.sock"],
            None,
            "/var/lib/rancher/k3s/agent/containerd",
        ),
        (
            ["kubelet"],
            "containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\n",
            "/var/lib/containers/storage",
        ),
        (
            ["kubelet", "--container-runtime-endpoint=unix:///run/cri-dockerd.sock"],
            None,
            "/var/lib/docker",
        ),
    ],
)
def test_the_folder_of_the_runtime(argv, config, folder):
    known = {"argv": argv, "config": config and {"text": config}, "config_dropins": []}
    assert pressure.images(known, lambda path: True) == [folder]
    assert pressure.images(known, lambda path: False) == []


def known(root, text=""):
    return {
        "argv": ["kubelet", f"--root-dir={root}"],
        "config": {"text": text},
        "config_dropins": [],
    }


def test_this_machine(tmp_path):
    context = base.Context(
        {}, [], {"kubelet": known(tmp_path, "evictionHard: {nodefs.available: 100%}")}
    )
    found = pressure.collect(context)
    first = found["filesystems"][0]
    assert (first["name"], first["path"], first["error"]) == ("nodefs", str(tmp_path), None)
    assert 0 <= first["free"] <= first["total"]
    assert first["mount"]
    assert first["device"]
    assert "nodefs.available" in found["used_up"]
    assert found["memory"]["available"]
    assert found["pids"]["threads"] < found["pids"]["max"]
    gone = pressure.filesystem("imagefs", str(tmp_path / "gone"), [])
    assert (gone["error"], gone["total"]) == ("missing", None)
    with pytest.raises(base.Absent):
        pressure.collect(base.Context({}, [], {"kubelet": None}))


def sized(path, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_the_largest_folders(tmp_path):
    sized(tmp_path / "log" / "pods" / "a" / "0.log", 900000)
    sized(tmp_path / "log" / "small", 10)
    sized(tmp_path / "lib" / "x" / "deep" / "er" / "file", 300000)
    sized(tmp_path / "lib" / "mounted" / "file", 9000000)
    os.link(tmp_path / "log" / "small", tmp_path / "log" / "again")
    Path(tmp_path / "lib" / "root").symlink_to("/")
    found = largest.walk(
        [str(tmp_path / "log"), str(tmp_path / "lib")],
        [str(tmp_path / "lib" / "mounted")],
        time.monotonic() + 60,
    )
    assert found["complete"] is True
    assert 1200000 < found["bytes"] < 2000000
    paths = [row["path"] for row in found["folders"]]
    # the folder that has most of another is told in its place; what is mounted is not looked at
    assert paths[0] == str(tmp_path / "log" / "pods" / "a")
    assert str(tmp_path / "log") not in paths
    assert str(tmp_path / "lib" / "x" / "deep") in paths
    assert not any("mounted" in path for path in paths)


def test_nothing_is_asked_of_what_is_mounted(tmp_path, monkeypatch):
    """A server that is gone does not answer, not even a stat() of its mount point."""
    (tmp_path / "hangs").mkdir()
    (tmp_path / "near").mkdir()
    point = str(tmp_path / "hangs")

    class Entry:
        def __init__(self, path):
            self.path = path

        def stat(self, follow_symlinks):
            assert self.path != point
            return os.lstat(self.path)

    class Entries(list):
        def __enter__(self):
            return self

        def __exit__(self, *dummy):
            return None

    real = os.listdir
    monkeypatch.setattr(
        largest.os,
        "scandir",
        lambda path: Entries(Entry(f"{path}/{name}") for name in real(path)),
    )
    assert largest.walk([str(tmp_path)], [point], time.monotonic() + 60)["files"] == 1


def test_out_of_time(tmp_path):
    sized(tmp_path / "a" / "b", 10)
    found = largest.walk([str(tmp_path)], [], time.monotonic() - 1)
    assert (found["complete"], found["folders"]) == (False, [])


def test_too_many_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(largest, "MAX_ENTRIES", 3)
    for number in range(9):
        sized(tmp_path / str(number) / "x", 1)
    assert largest.walk([str(tmp_path)], [], time.monotonic() + 60)["complete"] is False


def test_places_are_those_of_the_device_and_none_twice():
    paths = ("/var/lib/kubelet", "/var/log", "/var/log/pods", "/tmp", "/var/lib/containerd")
    assert largest.places(paths, "254:1", TABLE, lambda path: path) == [
        "/var/lib/kubelet",
        "/var/log",
    ]
    assert largest.places(paths, "254:16", TABLE, lambda path: path) == ["/var/lib/containerd"]


def test_processes_of_this_machine():
    found = largest.processes()
    assert found["memory"][0]["rss"] >= found["memory"][-1]["rss"] > 0
    assert found["threads"][0]["threads"] >= 1
    assert len(found["memory"]) <= largest.MAX_PROCESSES
    assert {"pid", "comm", "unit", "pod"} <= set(found["memory"][0])


@pytest.mark.parametrize(("used_up", "follows"), [(["inotify"], True), ([], False), (None, False)])
def test_what_is_used_up_starts_who_looks_for_the_holder(monkeypatch, used_up, follows):
    class Answers(registry.Collector):
        __slots__ = ()

        def run(self, context):
            return {"used_up": used_up} if self.name == "limits" else {"ran": True}

    table = (
        Answers("limits", "x"),
        Answers("descriptors", "x", tier=registry.DEEP, follows="limits"),
    )
    monkeypatch.setattr(registry, "COLLECTORS", table)
    plain = runner.run({"timeout": 20}, table[:1], [])
    assert set(plain) == ({"limits", "descriptors"} if follows else {"limits"})
    deep = runner.run({"timeout": 20}, table, [])
    assert deep["descriptors"]["data"] == {"ran": True}


def test_nothing_follows_without_what_it_needs(monkeypatch):
    class Answers(registry.Collector):
        __slots__ = ()

        def run(self, context):
            return {"used_up": ["nodefs.available"]}

    table = (
        Answers("pressure", "x"),
        Answers(
            "largest", "x", tier=registry.DEEP, needs=("kubelet", "pressure"), follows="pressure"
        ),
    )
    monkeypatch.setattr(registry, "COLLECTORS", table)
    assert set(runner.run({"timeout": 20}, table[:1], [])) == {"pressure"}


def test_nothing_is_looked_for_where_nothing_is_short():
    with pytest.raises(base.Absent):
        largest.collect(base.Context({}, [], {"pressure": {"used_up": []}}))
