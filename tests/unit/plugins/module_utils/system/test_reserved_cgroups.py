# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroups that a kubelet's configuration names, and whether they exist."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    reserved_cgroups,
)


def tree(path, files):
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/kubelet.slice", "/kubelet.slice"),
        ("kubelet", "/kubelet.slice"),
        ("/system.slice/kubelet.service", "/kubelet.service.slice"),
        ("/kube-reserved.slice", "/kube.slice/kube-reserved.slice"),
    ],
)
def test_the_folder_that_systemd_has_for_a_cgroup(name, path):
    assert reserved_cgroups.systemd_path(name) == path


def told(**texts):
    return {
        "argv": ["kubelet", *texts.pop("argv", [])],
        "config": {"text": texts.get("config")},
        "config_dropins": [{"text": texts.get("dropin")}],
    }


def test_whether_the_cgroups_that_are_named_are_there(tmp_path):
    lines = "".join(
        f"{number} 1 0:{number} / {tmp_path}/{name} rw - cgroup cgroup rw,{name}\n"
        for number, name in enumerate(("cpu", "memory", "devices"))
    )
    tree(tmp_path, {"cpu/kube/tasks": "", "memory/kube/tasks": "", "cpu/half/tasks": ""})
    found = reserved_cgroups.cgroups(
        told(config="kubeReservedCgroup: /kube\nsystemReservedCgroup: /half\n"), lines
    )
    assert [(one["name"], one["driver"], one["path"]) for one in found] == [
        ("/half", "cgroupfs", "/half"),
        ("/half", "systemd", "/half.slice"),
        ("/kube", "cgroupfs", "/kube"),
        ("/kube", "systemd", "/kube.slice"),
    ]
    assert [one["missing"] for one in found] == [
        [f"{tmp_path}/memory/half"],
        [f"{tmp_path}/cpu/half.slice", f"{tmp_path}/memory/half.slice"],
        [],
        [f"{tmp_path}/cpu/kube.slice", f"{tmp_path}/memory/kube.slice"],
    ]
    one, _dummy = reserved_cgroups.cgroups(
        told(config="kubeReservedCgroup: /a\n", dropin="kubeReservedCgroup: /b\n"), lines
    )
    assert one["name"] == "/b"
    one, _dummy = reserved_cgroups.cgroups(
        told(config="kubeReservedCgroup: /a\n", argv=["--kube-reserved-cgroup=/c"]), lines
    )
    assert one["name"] == "/c"
    assert (
        reserved_cgroups.cgroups(told(config="kubeReservedCgroup: ../x y\n"), lines)
        == reserved_cgroups.cgroups(told(), lines)
        == []
    )
    assert [
        one["missing"]
        for one in reserved_cgroups.cgroups(told(config="kubeReservedCgroup: /a\n"), "")
    ] == [None, None]


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (("kubepods.slice",), ["kubepods.slice"]),
        (("memory/kubepods", "cpu/kubepods"), ["kubepods"]),
        (("kubepods", "kubepods.slice"), ["kubepods.slice", "kubepods"]),
        (("system.slice",), []),
    ],
)
def test_the_cgroups_for_pods_of_both_hierarchies(tmp_path, folders, names):
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    assert reserved_cgroups.of_pods(str(tmp_path)) == names
