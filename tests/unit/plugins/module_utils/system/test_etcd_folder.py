# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data folder of etcd, its disk, and the limits and stalls of its machine."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    etcd_folder,
    files,
)

MOUNTS = """22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:17 / /var/lib/etcd rw,noatime shared:9 - xfs /dev/sdb1 rw
31 22 0:44 / /mnt rw - nfs4 filer:/etcd rw
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "member" / "snap").mkdir(parents=True)
    (tmp_path / "member" / "wal").mkdir()
    (tmp_path / "member" / "snap" / "db").write_bytes(b"x" * 40)
    (tmp_path / "member" / "snap" / "1.snap").write_bytes(b"x")
    (tmp_path / "member" / "wal" / "0.wal").write_bytes(b"x" * 7)
    (tmp_path / "member" / "wal" / "1.tmp").write_bytes(b"x" * 9)
    return tmp_path


def test_the_database_and_the_log_have_sizes_and_times(folder):
    row = etcd_folder.described(str(folder), None, os.getpid())
    assert row["database"]["bytes"] == 40
    assert (row["log"]["files"], row["log"]["bytes"]) == (1, 7)
    assert row["snapshots"] == 1
    assert row["error"] is None
    assert row["mount"] is not None


def test_a_log_of_its_own_folder(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "2.wal").write_bytes(b"x" * 3)
    assert etcd_folder.described(str(folder), str(other), os.getpid())["log"]["bytes"] == 3


def test_a_folder_without_data_says_so(tmp_path):
    row = etcd_folder.described(str(tmp_path), None, os.getpid())
    assert (row["database"], row["log"], row["error"]) == (None, None, "missing")


def test_a_file_server_is_not_asked(monkeypatch, folder):
    monkeypatch.setattr(files, "whole", lambda path: f"31 22 0:44 / {folder} rw - nfs4 f:/e rw\n")
    row = etcd_folder.described(str(folder), None, os.getpid())
    assert (row["filesystem"], row["database"]) == ("nfs4", None)
    assert "file server" in row["error"]


@pytest.mark.parametrize(
    ("path", "source", "device"),
    [
        ("/var/lib/etcd", "/dev/sdb1", "8:17"),
        ("/var/lib/etcd/member", "/dev/sdb1", "8:17"),
        ("/var/lib/etcd2", "/dev/sda1", "8:1"),
    ],
)
def test_the_deepest_mount_counts(path, source, device):
    row = etcd_folder.mount(path, MOUNTS)
    assert (row["source"], row["device"]) == (source, device)


def test_no_mount_is_known_without_mountinfo():
    assert set(etcd_folder.mount("/x", "").values()) == {None}
    assert set(etcd_folder.mount("/x", "22 1 8:1 / / rw").values()) == {None}


def test_a_partition_names_its_disk(monkeypatch, tmp_path):
    disk = tmp_path / "devices" / "sdb"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue" / "rotational").write_text("1\n")
    (disk / "sdb1").mkdir()
    (tmp_path / "8:17").symlink_to(disk / "sdb1")
    monkeypatch.setattr(etcd_folder, "BLOCKS", str(tmp_path))
    row = etcd_folder.mount("/var/lib/etcd", MOUNTS)
    assert (row["disk"], row["rotational"]) == ("sdb", True)


def test_stalls(monkeypatch, tmp_path):
    (tmp_path / "io").write_text(
        "some avg10=9.00 avg60=8.00 avg300=1 total=1\nfull avg10=1.00 avg60=2.50 avg300=1 total=1\n"
    )
    (tmp_path / "cpu").write_text("some avg10=1 avg60=x avg300=1 total=1\n")
    monkeypatch.setattr(etcd_folder, "PRESSURE", str(tmp_path))
    assert etcd_folder.stalls() == {"io": 2.5, "cpu": None}
    monkeypatch.setattr(etcd_folder, "PRESSURE", str(tmp_path / "none"))
    assert etcd_folder.stalls() == {"io": None, "cpu": None}


@pytest.mark.parametrize(
    ("cgroup", "path"),
    [("0::/pod/c\n", "pod/c"), ("4:cpu,cpuacct:/pod/c\n", "cpu,cpuacct/pod/c")],
)
def test_a_cpu_limit(monkeypatch, tmp_path, cgroup, path):
    (tmp_path / path).mkdir(parents=True)
    stat = tmp_path / path / "cpu.stat"
    stat.write_text("nr_periods 100\nnr_throttled 40\n")
    monkeypatch.setattr(etcd_folder, "CGROUPS", str(tmp_path))
    text = files.text
    monkeypatch.setattr(
        files, "text", lambda name, *rest: cgroup if name == "/proc/5/cgroup" else text(name, *rest)
    )
    assert etcd_folder.throttled(5) == {"periods": 100, "throttled": 40}
    stat.write_text("nr_periods 0\nnr_throttled 0\n")
    assert etcd_folder.throttled(5) is None
