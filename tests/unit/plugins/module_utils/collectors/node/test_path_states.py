# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies at the paths that messages of other collectors name."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    path_states,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files, path_state


def collect(**data):
    return path_states.collect(base.Context({}, [], data))["paths"]


def unit(*paths):
    return {
        "failed_units": {"units": [{"lines": [f"open {one}: permission denied"]} for one in paths]}
    }


def test_the_paths_of_all_messages_once(tmp_path):
    (tmp_path / "a").touch()
    rows = collect(
        **unit(tmp_path / "a", tmp_path / "a"),
        component_end={
            "components": [{"lines": [f"stat {tmp_path}/b: no such file or directory"]}]
        },
    )
    assert [(row["path"], row["kind"]) for row in rows] == [
        (f"{tmp_path}/a", "file"),
        (f"{tmp_path}/b", "missing"),
    ]


def test_without_a_message_nothing_is_read(monkeypatch):
    monkeypatch.setattr(path_state, "read", lambda path, mounts: pytest.fail("read"))
    with pytest.raises(base.Absent):
        collect(kubelet_end={"lines": ["well"]}, system_pods=unit("/etc/a"))


def test_remote_file_systems_are_left_out(monkeypatch, tmp_path):
    text = f"22 1 0:1 / / rw - ext4 x rw\n23 22 0:2 / {tmp_path}/n rw - nfs4 x rw\n"
    monkeypatch.setattr(files, "whole", lambda path: text)
    rows = collect(**unit(tmp_path / "n" / "a", tmp_path / "nb"))
    assert [row["path"] for row in rows] == [f"{tmp_path}/nb"]


def test_the_number_of_paths_is_bounded():
    context = base.Context({}, [], unit(*(f"/nowhere/{number}" for number in range(30))))
    assert len(path_states.collect(context)["paths"]) == path_states.MAX_PATHS
    assert context.truncated


def test_only_a_program_that_is_not_executed_is_opened(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).touch()
    lines = [f"fork/exec {tmp_path}/a: exec format error", f"open {tmp_path}/b: permission denied"]
    rows = collect(kubelet_end={"lines": lines})
    assert {row["path"]: row["program"] for row in rows} == {
        f"{tmp_path}/a": "empty",
        f"{tmp_path}/b": None,
    }


def test_a_unit_that_starts_a_container_has_paths_of_its_own(tmp_path):
    unit_row = {"argv": ["/usr/bin/docker", "run"], "lines": ["open /etc/a: permission denied"]}
    with pytest.raises(base.Absent):
        collect(component_units={"units": [unit_row]})
    rows = collect(component_units={"units": [{**unit_row, "argv": ["/usr/bin/etcd"]}]})
    assert [row["path"] for row in rows] == ["/etc/a"]
