# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector next_start: whom it looks at, and that it starts nothing where nothing was changed."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    next_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command

UNIT = {"name": "containerd.service", "absent": False, "main_pid": os.getpid()}


def collect(kubelet, *units):
    data = {"kubelet": kubelet, "runtime": {"units": list(units)}}
    return next_start.collect(base.Context({}, [], data))


def test_a_node_without_a_kubelet():
    with pytest.raises(base.Absent):
        next_start.collect(base.Context({}, [], {}))


@pytest.fixture
def systemd(monkeypatch):
    """Let systemd tell of a containerd, and count the commands that are run."""
    started = []
    block = {"ExecStart": ["{ path=/x ; argv[]=/x/containerd -c /x/config.toml ; ignore=no }"]}
    monkeypatch.setattr(next_start.systemd, "show", lambda *dummy: {"containerd.service": block})
    monkeypatch.setattr(command, "run", lambda argv, *dummy: started.append(argv))
    return started


def test_kubelet_and_runtime_that_nobody_changed(systemd, monkeypatch):
    monkeypatch.setattr(next_start.swap, "container", lambda: True)
    answer = collect({"process": {"pid": os.getpid()}}, UNIT, {"name": "x", "absent": True})
    assert [(row["name"], row["replaced"]) for row in answer["programs"]] == [
        ("kubelet", False),
        ("containerd", False),
    ]
    assert answer["runtime_files"]["path"] == "/x/config.toml"
    assert answer["kernels"] is None
    assert systemd == []


def test_a_machine_has_kernels(monkeypatch):
    monkeypatch.setattr(next_start.swap, "container", lambda: False)
    answer = collect({"process": None})
    assert answer["programs"] == []
    assert answer["runtime_files"] is None
    assert answer["kernels"]["running"] == os.uname()[2]


def test_systemd_does_not_answer(monkeypatch):
    def fail(*dummy):
        raise command.CommandError("it did not end")

    monkeypatch.setattr(next_start.systemd, "show", fail)
    assert collect({"process": None}, UNIT)["runtime_files"] is None


def test_fstab(tmp_path):
    path = tmp_path / "fstab"
    path.write_text("/nowhere/gone /mnt none bind 0 0\n/dev/sdz9 /data ext4\n")
    answer = next_start.mounts(False, str(path))
    assert ([row["point"] for row in answer["rows"]], answer["unknown"]) == (["/data"], 0)
    assert answer["error"] is None
    assert next_start.mounts(True, str(tmp_path / "none"))["error"] is None
    assert next_start.mounts(True, str(tmp_path))["error"] not in (None, "missing")
