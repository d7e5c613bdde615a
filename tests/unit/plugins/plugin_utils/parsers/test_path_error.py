# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What errors of the kernel about a file mean."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import path_error


@pytest.mark.parametrize(
    ("text", "operation", "path", "errno", "word"),
    [
        # k0s#363, and k0s#219 of a program
        ("Error: open /pki/etcd/ca.crt: permission denied", "open", "/pki/etcd/ca.crt", "", "open"),
        ("fork/exec /k0s/bin/etcd: permission denied", "fork/exec", "/k0s/bin/etcd", "", "execute"),
        (
            "mkdir /var/run/kubernetes: permission denied",
            "mkdir",
            "/var/run/kubernetes",
            "",
            "writ",
        ),
        # kubernetes-the-hard-way#807
        ("read /var/lib/kubelet/k: is a directory", "read", "/var/lib/kubelet/k", "is a", "folder"),
        ("stat /etc/a/b: not a directory", "stat", "/etc/a/b", "not a", "part of"),
        (
            "open /etc/x.conf: no such file or directory",
            "open",
            "/etc/x.conf",
            "no such",
            "not there",
        ),
        ('exec: "/bin/x": exec format error', "exec:", "/bin/x", "exec", "processor"),
        # the last one is what ended it
        (
            "open /a: no such file or directory: open /b: permission denied",
            "open",
            "/b",
            "",
            "open",
        ),
    ],
)
def test_what_it_means(text, operation, path, errno, word):
    found = path_error.find(text)
    assert (found.operation, found.path) == (operation, path)
    assert found.errno.startswith(errno or "permission denied")
    assert path in found.clause
    assert word in found.clause + found.advice
    assert path in found.advice


@pytest.mark.parametrize(
    "text",
    [
        "",
        "permission denied",
        "open relative/path: permission denied",
        # made by a program that does not run, or by the kernel
        "dial unix /run/containerd/containerd.sock: connect: no such file or directory",
        "open /run/flannel/subnet.env: no such file or directory",
        "open /proc/sys/net/x: no such file or directory",
        # where a certificate expired
        "stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory",
        "remove /etc/x: no such file or directory",
        "open /var/lib/x: no space left on device",
    ],
)
def test_what_tells_nothing_of_a_file(text):
    assert path_error.find(text) is None


def test_hostile_texts_do_not_make_it_raise():
    for text in ("open /" * 5000, "open /" + "a" * 5000 + ": permission denied", '"' * 5000):
        path_error.find(text)
