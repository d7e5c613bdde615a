# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel lists comes a page at a time.

Mounts and tasks behind the first one are seen too.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    instances,
    pinning,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files

PID = 4711
CONF, CA = "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/pki/ca.crt"
MOUNT = "{number} 1 8:1 {root} {point} ro,relatime - ext4 /dev/sda1 rw\n"
FORMER, LATER = 1600000000.0, 1700000000.0


@pytest.fixture
def pages(monkeypatch):
    """One read gives at most so many bytes, as the kernel does it with a page."""
    read, size = os.read, [4096]
    monkeypatch.setattr(
        files.os, "read", lambda descriptor, count: read(descriptor, min(count, size[0]))
    )
    return size


@pytest.fixture
def mountinfo():
    with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="backslashreplace") as file:
        return file.read()


def test_a_file_of_proc_is_read_to_its_end():
    with Path("/proc/self/maps").open("rb") as file:
        size = len(file.read())
    assert size > os.sysconf("SC_PAGE_SIZE"), "of a process this small the test shows nothing"
    assert len(files.whole("/proc/self/maps")) > 0.9 * size
    assert files.whole("/proc/self/nowhere") is None
    assert len(files.whole("/proc/self/maps", 10)) == 10


def test_files_that_were_replaced_are_told_wherever_their_mount_is_listed(
    tmp_path, monkeypatch, pages
):
    """The lines of a container's own file systems are long; its files come behind them."""
    root, host, node = f"/proc/{PID}", tmp_path / "host", tmp_path / "proc"
    inside = node / "root"
    for base, when in ((inside, FORMER), (host, LATER)):
        for path in (CONF, CA):
            (base / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (base / path[1:]).write_text("x")
            os.utime(base / path[1:], (when, when))
    overlay = "1 0 0:40 / / rw - overlay overlay rw,lowerdir={}\n".format(
        ":".join(f"/var/lib/containers/{one:040d}" for one in range(100))
    )
    (node / "mountinfo").write_text(
        overlay
        + MOUNT.format(number=2, root=CONF + "//deleted", point=CONF)
        + MOUNT.format(number=3, root=CA, point=CA)
    )
    whole, stat = files.whole, os.stat
    monkeypatch.setattr(
        files, "whole", lambda path, *rest: whole(path.replace(root, str(node)), *rest)
    )
    monkeypatch.setattr(
        instances.os,
        "stat",
        lambda path, **how: stat(
            path.replace(root, str(node)) if isinstance(path, str) else path, **how
        ),
    )
    mounts = MOUNT.format(number=1, root="/", point=str(host))
    found = instances.given(
        PID, ["kube-scheduler", "--kubeconfig=" + CONF, "--client-ca-file=" + CA], mounts
    )
    assert found == [
        {"path": CONF, "mtime": FORMER, "replaced": True},
        {"path": CA, "mtime": LATER, "replaced": False},
    ]


def test_the_mounts_of_the_host_are_read_whole(monkeypatch, pages, mountinfo):
    pages[0] = 64
    asked = []
    monkeypatch.setattr(instances, "given", lambda pid, argv, mounts: asked.append(mounts) or [])
    monkeypatch.setattr(instances.procfs, "argv", lambda pid: ["kube-scheduler"])
    instances.collect(Context({}, [(os.getpid(), "kube-scheduler")], {}))
    preconditions._pending(
        {"expect": {"component": "kube-scheduler"}},
        SimpleNamespace(pid=os.getpid(), started_at=1.0, argv=["kube-scheduler"]),
        "m2",
    )
    assert len(mountinfo) > 64
    assert asked == [mountinfo, mountinfo]


def test_a_configuration_is_proven_to_be_the_hosts_by_all_mounts(
    tmp_path, monkeypatch, pages, mountinfo
):
    pages[0] = 64
    asked = []
    (tmp_path / "config").write_text("x")
    monkeypatch.setattr(
        instances.procfs, "host_path", lambda path, theirs, mounts: asked.append(theirs)
    )
    assert instances._host_path(os.getpid(), "/config", str(tmp_path), mountinfo) is None
    assert asked == [mountinfo]


def test_the_hierarchy_of_cpusets_is_found_behind_many_mounts(monkeypatch, pages, mountinfo):
    pages[0] = 64
    asked = []
    monkeypatch.setattr(pinning, "_hierarchy", asked.append)
    pinning._containers(Context({}, [], {}), {})
    assert asked == [mountinfo]


def test_all_tasks_of_a_container_are_looked_at(tmp_path, pages):
    (tmp_path / "cgroup.threads").write_text("".join(f"{one}\n" for one in range(10000, 11000)))
    assert len(pinning._listed(str(tmp_path))) == 1000
