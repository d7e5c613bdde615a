# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet's signals measure, and what uses most of it.

This machine, made-up folders, texts.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    pressure,
)
from tests.unit.support.mount_table import TABLE


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
    assert set(found["stalls"]) == {"io", "cpu"}
    assert found["pids"]["threads"] < found["pids"]["max"]
    gone = pressure.filesystem("imagefs", str(tmp_path / "gone"), [])
    assert (gone["error"], gone["total"]) == ("missing", None)
    with pytest.raises(base.Absent):
        pressure.collect(base.Context({}, [], {"kubelet": None}))


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (
            "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t2\t9\t1\nmemory\t11\t65535\t1\n",
            65535,
        ),
        ("memory\t0\t120\t1\n", 120),
        ("memory\t0\t1\t0\n", None),
        ("memory\t11\tx\t1\n", None),
        ("memory\t11\n", None),
        ("", None),
    ],
)
def test_how_many_memory_cgroups_there_are(text, number):
    assert pressure.cgroups(text) == {"memory": number}
