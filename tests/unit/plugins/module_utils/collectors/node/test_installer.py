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
    monkeypatch.setattr(installer, "TRACES", (str(tmp_path / names[1]), str(tmp_path / "none")))
    return tmp_path


def collect(processes: Any = ()) -> Any:
    return installer.collect(Context({}, processes, {}))


def test_a_machine_without_a_trace(machine: Path) -> None:
    assert collect() == {"paths": [], "kubelet_exe": None, "traces": []}


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
