# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the logs of dpkg and dnf have of the packages of a node."""

import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import package_log

# As dpkg 1.19 (Ubuntu 18.04) and dnf 4.2 (RHEL 8) write them.
UBUNTU = """\
2020-12-01 06:12:01 startup archives unpack
2020-12-01 06:12:04 upgrade containerd:amd64 1.3.3-0ubuntu1~18.04.2 1.3.3-0ubuntu1~18.04.3
2020-12-01 06:12:04 status half-configured containerd:amd64 1.3.3-0ubuntu1~18.04.2
2020-12-01 06:12:09 upgrade libc6:amd64 2.27-3ubuntu1.2 2.27-3ubuntu1.3
2020-12-01 06:12:30 install linux-image-5.4.0-1030-gcp:amd64 <none> 5.4.0-1030.32~18.04.1
2020-12-01 06:13:00 remove docker.io:amd64 19.03.6-0ubuntu1~18.04.2 <none>
"""
RHEL = """\
2021-05-04T10:12:30+0200 INFO --- logging initialized ---
2021-05-04T10:12:33+0200 SUBDEBUG Upgrade: containerd.io-1.4.4-3.1.el8.x86_64
2021-05-04T10:12:34+0200 SUBDEBUG Upgraded: containerd.io-1.4.3-3.1.el8.x86_64
2021-05-04T10:12:35+0200 SUBDEBUG Installed: vim-enhanced-8.0-1.el8.x86_64
2021-05-04T10:12:36Z SUBDEBUG Erase: kubernetes-cni-0.8.7-0.x86_64
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    (tmp_path / "var/log").mkdir(parents=True)
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


def write(root, name, text):
    (root / "var/log" / name).write_text(text)


def test_packages_of_dpkg(root):
    write(root, "dpkg.log", UBUNTU)
    rows, problem = package_log.changes(0, str(root))
    assert problem is None
    assert [(row["action"], row["name"]) for row in rows] == [
        ("upgrade", "containerd"),
        ("install", "linux-image-5.4.0-1030-gcp"),
        ("remove", "docker.io"),
    ]
    assert (rows[0]["old"], rows[0]["new"]) == ("1.3.3-0ubuntu1~18.04.2", "1.3.3-0ubuntu1~18.04.3")
    assert rows[0]["time"] == 1606803124.0
    assert (rows[1]["old"], rows[2]["new"]) == ("", "")


def test_packages_of_dnf(root):
    write(root, "dnf.rpm.log", RHEL)
    rows, _problem = package_log.changes(0, str(root))
    assert [(row["action"], row["name"], row["old"], row["new"]) for row in rows] == [
        ("upgrade", "containerd.io", "", "1.4.4-3.1.el8"),
        ("remove", "kubernetes-cni", "0.8.7-0", ""),
    ]
    assert rows[0]["time"] == 1620115953.0


def test_only_what_is_new_enough(root):
    write(root, "dpkg.log", UBUNTU)
    rows, _problem = package_log.changes(1606803140.0, str(root))
    assert [row["name"] for row in rows] == ["linux-image-5.4.0-1030-gcp", "docker.io"]


def test_a_log_that_was_cut_or_is_not_there(root):
    assert package_log.changes(0, str(root)) == ([], "neither dpkg nor dnf has a log")
    write(root, "dpkg.log", UBUNTU[:100] + "\n2020-99-99 00:00:00 upgrade runc:amd64 1 2\n\x00")
    assert package_log.changes(0, str(root)) == ([], None)


def test_no_more_rows_than_a_few(root, monkeypatch):
    monkeypatch.setattr(package_log, "MAX_ROWS", 1)
    write(root, "dpkg.log", UBUNTU)
    assert [row["name"] for row in package_log.changes(0, str(root))[0]] == ["docker.io"]
