# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The largest folders of a full disk, within a bounded time."""

import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    largest,
)
from tests.unit.support.mount_table import TABLE


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


def test_nothing_is_looked_for_where_nothing_is_short():
    with pytest.raises(base.Absent):
        largest.collect(base.Context({}, [], {"pressure": {"used_up": []}}))
