# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State files, CPUs and the sets of containers.

They come from made-up trees of /sys and from this very machine.
"""

import json
import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    pinning,
)

ID = "5a264048b04d476b86bc1eaab133f342a4517f5c554da4472aa53e165975bc2c"
V1 = (
    "1837 1818 0:421 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n1838 1837 0:29 / /sys/fs/cgroup/cpu rw -"
    " cgroup cgroup rw,cpu\n1840 1837 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup"
    " rw,cpuset\n1686 1837 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
V2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"


def tree(path, files):
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def collect(tmp_path, argv=(), config="", healthz=200, deep=False, replaced=False):
    context = base.Context(
        {"deep": deep},
        [],
        {
            "kubelet": {
                "argv": ["kubelet", f"--root-dir={tmp_path}", *list(argv)],
                "config": {"text": config},
                "config_dropins": [],
                "process": {"exe": "kubelet", "exe_deleted": True} if replaced else None,
                "healthz": {"status": healthz},
            }
        },
    )
    return pinning.collect(context)


@pytest.mark.parametrize(
    "config",
    [
        "",
        (
            "cpuManagerPolicy: none\nstaticPodPath: /etc/kubernetes/manifests\nstaticPodURL:"
            " ''\nmemorySwap: {}\n"
        ),
    ],
)
def test_a_node_that_pins_nobody_is_not_walked(tmp_path, config):
    found = collect(tmp_path, config=config)
    assert (
        found["cpu_state"],
        found["memory_state"],
        found["pods"],
        found["containers"],
        found["runc"],
    ) == (None, None, None, None, None)
    assert found["cpus"]["online"]
    assert found["cpus"]["topology"] is None
    tree(
        tmp_path,
        {
            "cpu_manager_state": '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
            "pods/1b/x": "",
        },
    )
    found = collect(tmp_path)
    assert found["cpu_state"]["text"].startswith('{"policyName":"none"')
    assert found["pods"] == ["1b"]
    assert found["containers"] is None


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({}, 0),
        ({"healthz": None}, 1),
        ({"healthz": 500}, 1),
        ({"deep": True}, 1),
        ({"replaced": True}, 1),
        ({"argv": ["--container-runtime=docker"]}, 1),
        ({"argv": ["--container-runtime", "remote"]}, 1),
        ({"argv": ["--container-runtime-endpoint=unix:///run/containerd/containerd.sock"]}, 0),
        ({"config": "memorySwap:\n  swapBehavior: LimitedSwap"}, 1),
        ({"argv": ["--feature-gates=NodeSwap=true"]}, 1),
        ({"config": "cpuManagerPolicy: static"}, 1),
        ({"config": "topologyManagerPolicy: Restricted"}, 1),
        ({"argv": ["--memory-manager-policy=None"]}, 1),
        ({"config": "reservedMemory: []"}, 1),
        ({"config": "enforceNodeAllocatable: [pods]"}, 0),
    ],
)
def test_a_kubelet_is_asked_its_version_where_that_decides_what_it_makes_of_its_settings(
    tmp_path, monkeypatch, told, asked
):
    calls = []
    monkeypatch.setattr(
        pinning, "_version", lambda program, context: calls.append(program) or "Kubernetes v1.30.1"
    )
    found = collect(tmp_path, **told)
    assert calls.count("kubelet") == asked
    assert found["kubelet_version"] == ("Kubernetes v1.30.1" if asked else None)


@pytest.mark.parametrize(
    "told",
    [
        {"argv": ["--cpu-manager-policy=static"]},
        {"config": "cpuManagerPolicy: static"},
        {"config": "memoryManagerPolicy: Static"},
        {"config": "staticPodPath: /x\ncpuManagerPolicy: static"},
        {"deep": True},
    ],
)
def test_a_kubelet_that_is_told_to_pin_needs_the_topology_and_whose_cpus_would_change(
    tmp_path, told
):
    found = collect(tmp_path, **told)
    rows = found["cpus"]["topology"]
    assert isinstance(found["containers"], list)
    assert len(rows) == os.cpu_count()
    assert all(len(row) == 4 for row in rows)


def test_a_node_that_pins_is_walked(tmp_path):
    tree(
        tmp_path,
        {"cpu_manager_state": '{"policyName":"static","defaultCpuSet":"0-1","checksum":0}'},
    )
    found = collect(tmp_path)
    assert isinstance(found["containers"], list)
    assert isinstance(found["frozen"], list)


def test_topology_of_what_is_online(tmp_path):
    for cpu, core, socket in ((0, 0, 0), (1, 1, 0), (2, 0, 0), (10, 0, 1)):
        tree(
            tmp_path / "cpu",
            {
                f"cpu{cpu}/topology/core_id": f"{core}\n",
                f"cpu{cpu}/topology/physical_package_id": f"{socket}\n",
            },
        )
    tree(tmp_path / "cpu", {"cpu3/online": "0", "cpufreq/x": "", "cpuidle/x": ""})
    tree(
        tmp_path / "node",
        {"node0/cpu0/x": "", "node0/cpu1/x": "", "node0/cpulist": "0-1", "node1/cpu10/x": ""},
    )
    found = pinning.topology(str(tmp_path / "cpu"), str(tmp_path / "node"))
    assert found == [[0, 0, 0, 0], [1, 1, 0, 0], [2, 0, 0, None], [10, 0, 1, 1]]


@pytest.mark.parametrize(
    ("mounts", "group", "folder"),
    [
        (
            V1,
            f"4:cpuset:/kubepods/podx/{ID}\n0::/x\n",
            "/sys/fs/cgroup/cpuset/kubepods/podx/" + ID,
        ),
        (
            V2,
            f"0::/kubepods.slice/cri-containerd-{ID}.scope/init\n",
            f"/sys/fs/cgroup/kubepods.slice/cri-containerd-{ID}.scope",
        ),
        (
            V1.replace(" 0:31 / ", " 0:31 /outer "),
            f"4:cpuset:/outer/kubepods/{ID}\n",
            "/sys/fs/cgroup/cpuset/kubepods/" + ID,
        ),
        ("", f"4:cpuset:/kubepods/{ID}\n", None),
        (V2, "", None),
    ],
)
def test_where_a_containers_set_is(mounts, group, folder):
    assert pinning._own(pinning._folder(group, pinning._hierarchy(mounts)), ID) == folder


def test_the_set_that_is_in_effect(tmp_path):
    tree(
        tmp_path,
        {
            "v2/cpuset.cpus": "\n",
            "v2/cpuset.cpus.effective": "0-3\n",
            "v1/cpuset.cpus": "1\n",
            "none/x": "",
        },
    )
    assert [pinning._set_of(str(tmp_path / name)) for name in ("v2", "v1", "none")] == [
        "0-3",
        "1",
        None,
    ]
    assert pinning._set_of(None) is None


def test_names_of_containers_by_the_links_to_their_logs(tmp_path, monkeypatch):
    monkeypatch.setattr(pinning, "LOGS", str(tmp_path))
    tree(tmp_path, {f"pinned_lab-jobs-5f8cea_my-work-{ID}.log": "", "odd.log": "", "a_b_c.txt": ""})
    assert pinning.container_names() == {ID: ("lab-jobs-5f8cea/pinned", "my-work")}


@pytest.mark.parametrize(
    ("entries", "logged"),
    [({ID: "1", "f" * 64: "0"}, [ID]), ({"uid": {"work": "1"}}, []), ({}, [])],
)
def test_logs_are_told_of_the_containers_that_the_state_names(
    tmp_path, monkeypatch, entries, logged
):
    monkeypatch.setattr(pinning, "LOGS", str(tmp_path / "logs"))
    tree(
        tmp_path,
        {
            "cpu_manager_state": json.dumps({"policyName": "static", "entries": entries}),
            f"logs/pinned_lab_work-{ID}.log": "",
            "logs/other_lab_work-{}.log".format("e" * 64): "",
            "logs/a_b_c-.log": "",
        },
    )
    assert collect(tmp_path)["logged"] == logged


def test_a_frozen_cgroup_names_its_tasks(tmp_path):
    tree(tmp_path, {"cgroup.freeze": "1\n", "cgroup.procs": f"{os.getpid()}\n"})
    (found,) = pinning._frozen(
        [{"pod_uid": "u", "container_id": ID, "pid": os.getpid(), "folder": str(tmp_path)}]
    )[:1]
    assert found["state"] == "FROZEN"
    assert found["tasks"][0][0] == os.getpid()
    assert found["tasks"][0][2] in "RSD"
    tree(tmp_path, {"cgroup.freeze": "0\n"})
    assert all(
        one["path"] != str(tmp_path)
        for one in pinning._frozen(
            [{"pod_uid": "u", "container_id": ID, "pid": os.getpid(), "folder": str(tmp_path)}]
        )
    )


def test_tasks_that_no_freezer_stops_come_first_and_are_known_of_their_container(
    tmp_path, monkeypatch
):
    said = {str(pid): f"{pid} (task {pid}) S 1" for pid in range(1, 40)}
    said["33"] = "33 (nfs (old)) D 1"
    monkeypatch.setattr(
        pinning.files, "text", lambda path, limit=None, default=None: said.get(path.split("/")[2])
    )
    (tmp_path / "tasks").write_text("\n".join([*sorted(said, key=int), "99"]))
    assert pinning._tasks(str(tmp_path))[0] == [33, "nfs (old)", "D"]
    assert len(pinning._tasks(str(tmp_path))) == pinning.MAX_TASKS
    one = {
        "pod_uid": "u",
        "pod": "n/p",
        "name": "app",
        "container_id": ID,
        "pid": 1,
        "static": False,
        "folder": str(tmp_path),
        "cpus": "1",
    }
    assert pinning._stuck([one, dict(one, folder=None), dict(one, folder="/none")]) == [
        {
            "pod_uid": "u",
            "pod": "n/p",
            "name": "app",
            "container_id": ID,
            "tasks": [[33, "nfs (old)", "D"]],
        }
    ]
    monkeypatch.setattr(pinning, "MAX_READ", 20)
    assert pinning._stuck([one]) == []


def test_only_the_deep_tier_looks_for_them(tmp_path):
    tree(
        tmp_path,
        {"cpu_manager_state": '{"policyName":"static","defaultCpuSet":"0-1","checksum":0}'},
    )
    assert collect(tmp_path)["stuck"] is None
    assert isinstance(collect(tmp_path, deep=True)["stuck"], list)


def test_the_machine_tells_its_numa_nodes_and_its_memory(tmp_path):
    tree(tmp_path, {"node0/cpulist": "0-3", "node10/cpulist": "", "has_cpu": "0", "nodes": ""})
    assert pinning.numa_nodes(str(tmp_path)) == [0, 10]
    assert pinning.numa_nodes(str(tmp_path / "none")) == [0]
    assert pinning.numa_nodes(str(tmp_path / "has_cpu")) is None
    assert pinning.memory_total("MemTotal:       16384 kB\nMemFree: 1 kB\n") == 16384 * 1024
    assert pinning.memory_total("") is pinning.memory_total("MemTotal: much kB\n") is None
    found = collect(tmp_path)
    assert found["numa"]
    assert found["memory_total"] > 1 << 20
    assert found["cgroups"] == []


def told(**texts):
    return {
        "argv": ["kubelet", *texts.pop("argv", [])],
        "config": {"text": texts.get("config")},
        "config_dropins": [{"text": texts.get("dropin")}],
    }
