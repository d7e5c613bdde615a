# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cause of an errno: its path or its operation decides; a text with neither names no cause."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    errno_message,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.errno_message import (
    about,
    explanation,
)

NO_SPACE, MANY = "no space left on device", "too many open files"
CASES = [
    # k/k#61937, k/k#96701, runc#1725
    (f"mkdir /sys/fs/cgroup/memory/kubepods: {NO_SPACE}", "cgroup"),
    (
        "unable to ensure pod container exists: failed to create container for [kubepods burstable"
        " x] : mkdir /sys/fs/cgroup/memory/kubepods/burstable/x: " + NO_SPACE,
        "cgroup",
    ),
    ("mkdir /sys/fs/cgroup/memory/kubepods: cannot allocate memory", "cgroup"),
    ("mkdir /sys/fs/cgroup/kubepods: read-only file system", "cgroup"),
    (f"failed to create cgroup /system.slice/x: {NO_SPACE}", "cgroup"),
    # rke2#4849: a parent without CPUs
    ("cri-containerd-1.scope: Failed to set cpuset.cpus: No space left on device", "cpuset"),
    (f"write /sys/fs/cgroup/cpuset/kubepods/x/cpuset.cpus: {NO_SPACE}", "cpuset"),
    (f"failed to write 123: write /sys/fs/cgroup/cpuset/x/cgroup.procs: {NO_SPACE}", "cpuset"),
    (f"mkdir /sys/fs/cgroup/cpuset/kubepods: {NO_SPACE}", "cgroup"),
    (f"inotify_add_watch /sys/fs/cgroup/memory/x: {NO_SPACE}", "watches"),
    (f"couldn't watch /etc/cni/net.d: {NO_SPACE}", "watches"),
    (f"failed to create fsnotify watcher: {MANY}", "instances"),
    (f"inotify_init: {MANY}", "instances"),
    ("Failed to allocate directory watch: Too many open files", "instances"),
    (f"open /x: {MANY} in system", "file_max"),
    (f"accept tcp 127.0.0.1:1: accept4: {MANY}", "files"),
    (f"open /var/lib/x: {MANY}", "files"),
    (
        "unable to join session keyring: unable to create session key: disk quota exceeded",
        "keyring",
    ),
    (f"failed to mount overlay: {NO_SPACE}", "mounts"),
    (f"write /proc/sys/vm/x: {NO_SPACE}", "kernel"),
    ("open /sys/kernel/x: read-only file system", "kernel"),
    (f"open /dev/x: {NO_SPACE}", "kernel"),
    (f"write /var/lib/containerd/x: {NO_SPACE}", "disk"),
    (f"mkdir /dev/shm/x: {NO_SPACE}", "disk"),
    ("open /x: read-only file system", "disk"),
    (f'level=fatal msg="invalid log_dir: mkdir /var/log/crio: {NO_SPACE}"', "disk"),
    (f'write \\"/var/lib/x\\": {NO_SPACE}', "disk"),
    ("write /var/lib/x: disk quota exceeded", "disk"),
    (f"write /var/lib/kubelet/watch.db: {NO_SPACE}", "disk"),
    # neither a path nor an operation
    (NO_SPACE, None),
    (f"failed to run Kubelet: {NO_SPACE}", None),
    (MANY, None),
    (f"something new: {MANY}", None),
    ("x: read-only file system", None),
    ("fork/exec: cannot allocate memory", None),
    ("open /x: cannot allocate memory", None),
    ("disk quota exceeded", None),
    (f"http://127.0.0.1:1/x: {NO_SPACE}", None),
    ("no errno at all", None),
    ("", None),
]


@pytest.mark.parametrize(
    ("text", "kind"), CASES, ids=lambda value: value[-60:] if isinstance(value, str) else str(value)
)
def test_the_path_or_the_operation_decides(text, kind):
    found = about(text)
    assert (found.kind if found else None) == kind
    assert (explanation(text) is None) is (kind is None)
    if found and kind != "disk":
        assert "disk is full" not in explanation(text)[0]
        assert "df -h" not in explanation(text)[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"mkdir /sys/fs/cgroup/memory/kubepods: {NO_SPACE}",
            (f"mkdir /sys/fs/cgroup/memory/kubepods: {NO_SPACE}",),
        ),
        (f"write /var/lib/x: {NO_SPACE}", ("a disk is full", "/var/lib/x")),
        ("open /srv/x: read-only file system", ("read-only", "/srv/x", "KM521")),
    ],
)
def test_it_is_told_with_its_path(text, words):
    assert all(word in explanation(text)[0] for word in words)


@settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.text(max_size=40),
    st.sampled_from([NO_SPACE, MANY, "disk quota exceeded", "read-only file system"]),
    st.text(max_size=20),
)
def test_whatever_stands_before_it_a_disk_has_a_path(before, errno, behind):
    found = about(before + errno + behind)
    assert (
        found is None
        or found.kind != errno_message.DISK
        or (found.path.startswith("/") and found.path in before)
    )
