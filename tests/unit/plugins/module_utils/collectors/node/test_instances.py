# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of Kubernetes on a node, and the mounts that they see."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    instances,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files

PID = 4711


CONF, CA = "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/pki/ca.crt"


MOUNT = "{number} 1 8:1 {root} {point} ro,relatime - ext4 /dev/sda1 rw\n"


FORMER, LATER = 1600000000.0, 1700000000.0


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
    found = instances.flag_files(
        PID, ["kube-scheduler", "--kubeconfig=" + CONF, "--client-ca-file=" + CA], mounts
    )
    assert found == [
        {"path": CONF, "mtime": FORMER, "replaced": True},
        {"path": CA, "mtime": LATER, "replaced": False},
    ]


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


def test_this_process_is_nobody_of_interest():
    context = type(
        "Context", (), {"processes": [(os.getpid(), "etcd")], "truncated": False, "source": None}
    )()
    # whatever runs these tests calls itself etcd: described without a crash
    found = instances.collect(context)
    assert found["unreadable"] == []
    assert found["processes"][0]["host_network"] is True


@pytest.mark.parametrize(
    ("again", "kept"), [(["etcd"], True), ([], False), (FileNotFoundError(2, "gone"), False)]
)
def test_one_that_ends_while_it_is_looked_at_denies_nobody_elses_answers(monkeypatch, again, kept):
    """In a crash loop that is when somebody looks.

    Without a network of its own it would make every component of the node one that is not asked.
    """
    words = iter([["etcd"], again])

    def argv(pid):
        found = next(words)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(instances.procfs, "argv", argv)
    monkeypatch.setattr(
        instances, "_identity", lambda path: "net:1" if path == "/proc/self/ns/net" else None
    )
    context = type(
        "Context", (), {"processes": [(os.getpid(), "etcd")], "truncated": False, "source": None}
    )()
    assert [one["host_network"] for one in instances.collect(context)["processes"]] == [None] * kept


@pytest.mark.parametrize(
    ("status", "passes"),
    [
        ("Name:\tx\nCapEff:\t000001ffffffffff\n", True),
        ("CapEff:\t00000000a80425fb\n", True),  # of a container without further settings
        ("CapEff:\t0000000000000400\n", False),
        ("CapEff:\t0000000000000000\n", False),
        ("CapEff:\n", None),
        ("CapEff:\tmany\n", None),
        ("", None),
    ],
)
def test_whether_owner_and_mode_keep_a_process_out(status, passes):
    assert instances.ignores_modes(status) is passes


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("system_u:system_r:container_t:s0:c1,c2\0", "system_u:system_r:container_t:s0:c1,c2"),
        ("cri-containerd.apparmor.d (enforce)\n", "cri-containerd.apparmor.d (enforce)"),
        ("", None),
        (None, None),
    ],
)
def test_the_label_of_a_process(text, label):
    assert instances.label(text) == label
