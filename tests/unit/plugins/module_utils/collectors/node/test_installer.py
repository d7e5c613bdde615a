# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which installers left something, and what shows that a machine is a node."""

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import Context
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import installer
from ansible_collections.kubemend.remediation.plugins.module_utils.system import procfs


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    names = ("admin.conf", "kubelet")
    monkeypatch.setattr(installer, "MARKERS", (str(tmp_path / names[0]), str(tmp_path / "none")))
    monkeypatch.setattr(installer, "ARGUMENTS", tuple(str(tmp_path / name) for name in "abcde"))
    monkeypatch.setattr(installer, "TRACES", (str(tmp_path / names[1]), str(tmp_path / "none")))
    return tmp_path


def collect(processes: Any = ()) -> Any:
    return installer.collect(Context({}, processes, {}))


def test_a_machine_without_a_trace(machine: Path) -> None:
    found = {"paths": [], "kubelet_exe": None, "traces": [], "empty_arguments": []}
    assert collect() == found


def test_a_link_that_leads_nowhere_is_a_trace_too(machine: Path) -> None:
    (machine / "admin.conf").touch()
    (machine / "kubelet").symlink_to("/none/at/all")
    found = collect()
    assert found["paths"] == [str(machine / "admin.conf")]
    assert found["traces"] == [str(machine / "kubelet")]


@pytest.mark.parametrize(
    ("namespace", "traces"), [("pid:[2]", []), ("pid:[1]", ["a process"]), (None, ["a process"])]
)
def test_a_node_in_a_container_makes_no_node_of_its_host(
    machine: Path, monkeypatch: pytest.MonkeyPatch, namespace: Any, traces: Any
) -> None:
    def link(pid: int, name: str) -> Any:
        if name == "exe":
            return f"/exe/{pid}"
        return "pid:[1]" if pid == os.getpid() else namespace

    monkeypatch.setattr(procfs, "link", link)
    found = collect([(3, "etcd"), (4, "kubelet")])
    assert found["traces"] == traces
    assert found["kubelet_exe"] == "/exe/4"


def test_files_of_flags_that_a_power_cut_left_empty(machine: Path) -> None:
    for name, text in {"a": "", "b": "--v=1", "c": "\n \t\n", "d": "\0" * 4096}.items():
        (machine / name).write_text(text)
    assert collect()["empty_arguments"] == [str(machine / name) for name in "acd"]


def test_a_file_of_flags_that_is_not_read_is_not_called_empty(machine: Path) -> None:
    (machine / "a").mkdir()
    assert collect()["empty_arguments"] == []
