# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that messages of many programs name with an error."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import path_in_error


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("open /etc/a.conf: permission denied", [("/etc/a.conf", path_in_error.DENIED)]),
        (
            'err="error loading config file \\"/var/lib/kube-proxy/kubeconfig\\": read'
            ' /var/lib/kube-proxy/kubeconfig: is a directory"',
            [("/var/lib/kube-proxy/kubeconfig", path_in_error.FOLDER)],
        ),
        ("mkdir /var/lib/x: read-only file system", [("/var/lib/x", path_in_error.READ_ONLY)]),
        ("cannot open '/etc/b': No such file or directory", [("/etc/b", path_in_error.NO_ENTRY)]),
        (
            "dial unix /run/c.sock: connect: permission denied",
            [("/run/c.sock", path_in_error.DENIED)],
        ),
        (
            "stat /a/b: not a directory, open /a/: permission denied",
            [("/a", path_in_error.DENIED), ("/a/b", path_in_error.NO_FOLDER)],
        ),
        (
            "systemd[9]: Failed at step EXEC spawning /usr/bin/kubelet: Exec format error",
            [("/usr/bin/kubelet", path_in_error.FORMAT)],
        ),
        ("open /proc/sys/vm/x: permission denied", []),
        ("OCI runtime create failed: stat /x: no such file or directory", []),
        ("open /var/lib/kubelet/pods/a/x: permission denied", []),
        ("https://10.0.0.1/x: permission denied", []),
        ("open a.conf: permission denied", []),
    ],
)
def test_messages_of_many_programs(text, rows):
    assert path_in_error.find(text) == rows
