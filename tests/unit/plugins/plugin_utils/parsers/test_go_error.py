# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the kernel and of Go in a component's text."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import go_error


@pytest.mark.parametrize(
    ("text", "component", "meaning"),
    [
        ("write /var/lib/kubelet/x: no space left on device", "kubelet", "disk"),
        ("mkdir /sys/fs/cgroup/memory/a: no space left on device", "kubelet", "cgroup"),
        ("inotify_init: too many open files", "kubelet", "resources"),
        ("create session key: disk quota exceeded", "runc", "resources"),
        ("write /proc/sys/a: read-only file system", "runc", "kernel"),
        ("listen tcp 0.0.0.0:1: bind: address already in use", "etcd", "port"),
        ("listen tcp 10.9.9.9:1: bind: cannot assign requested address", "etcd", "port"),
        ("x509: certificate signed by unknown authority", "kubelet", "credential"),
        ("remote error: tls: bad certificate", "etcd", "credential"),
        ("tls: failed to find any PEM data in certificate input", "kubelet", "credential"),
        ("dial tcp: lookup etcd-0 on 10.96.0.10:53: no such host", "kube-apiserver", "network"),
        ("dial tcp 10.0.0.9:2379: connect: no route to host", "kube-apiserver", "network"),
        ("dial tcp 10.0.0.1:6443: connect: connection refused", "kubelet", "api"),
        ("dial tcp 10.0.0.1:6443: socket: permission denied", "kubelet", "kernel"),
        ("listen tcp :8080: socket: permission denied", "coredns", "kernel"),
        ("dial tcp [::1]:2379: connect: connection refused", "kube-apiserver", "dependency"),
        ("dial tcp 10.0.0.2:2380: i/o timeout", "etcd", "network"),
        ("dial unix /run/x.sock: connect: no such file or directory", "kubelet", "runtime"),
        ("dial unix /run/x.sock: connect: permission denied", "containerd", "dependency"),
        ("flag provided but not defined: -lister", "etcd", "configuration"),
        ("etcdserver: mvcc: database space exceeded", "kube-apiserver", "dependency"),
        ('nodes is forbidden: User "system:anonymous" cannot list', "kube-scheduler", "api"),
        ("listen tcp :80: bind: permission denied", "etcd", "port"),
        ("mountpoint for cpu not found", "kubelet", "cgroup"),
        ("read /var/lib/etcd/a: input/output error", "etcd", "disk"),
        ("read /etc/kubernetes/pki/ca.crt: structure needs cleaning", "etcd", "disk"),
        ("read /sys/fs/cgroup/a: input/output error", "runc", "cgroup"),
        # etcd-io/bbolt#705 and #883
        ("assertion failed: Page expected to be: 3393, but self", "containerd", "state_file"),
        ("freepages: failed to get all reachable pages (x)", "containerd", "state_file"),
        ("context deadline exceeded", "kubelet", None),
        ("open /a: no such file or directory", "kubelet", None),
        ("no space left on device", "kubelet", None),
    ],
)
def test_an_error_and_its_class(text: str, component: str, meaning: str | None) -> None:
    error = go_error.find(f"failed to start: {text}", component)
    assert (error and error.meaning) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("open /etc/resolv.conf: no such file or directory", "disk"),
        ("mkdir /var/lib/kubelet: permission denied", "disk"),
        ("open /etc/kubernetes/pki/apiserver.crt: no such file or directory", "credential"),
        ("stat /etc/kubernetes/scheduler.conf: no such file or directory", "credential"),
        ("open /sys/fs/cgroup/cpu/tasks: no such file or directory", "cgroup"),
        ("open /proc/sys/net/x: permission denied", "kernel"),
        ("open /a: something new", None),
        ('pod "open /a: permission denied"', None),
    ],
)
def test_the_error_of_a_file_by_its_path(text: str, meaning: str | None) -> None:
    error = go_error.of_file(f"failed: {text}")
    assert (error and error.meaning) == meaning
    assert go_error.find(text, "kubelet") is None


@pytest.mark.parametrize(
    ("text", "weak"),
    [("dial tcp 10.0.0.1:6443: connect: connection refused", True), ("x509: bad", False)],
)
def test_a_connection_that_is_refused_tells_little(text: str, weak: bool) -> None:
    error = go_error.find(text, "kubelet")
    assert error is not None
    assert error.weak is weak
    assert error.text == text


def test_what_stands_in_quotes_is_not_read() -> None:
    assert go_error.find('pod "x509: no" of "a: bind: address already in use', "kubelet") is None


def test_the_description_of_an_error_of_grpc_is_read() -> None:
    text = (
        'Err: connection error: desc = "transport: Error while dialing: \\"x\\": dial unix /a.sock:'
        ' connect: no such file or directory"'
    )
    error = go_error.find(text, "kubelet")
    assert error is not None
    assert error.meaning == "runtime"
    assert go_error.find(f'pod "desc = \\"{text}\\""', "kubelet") is None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("mkdir /opt/cni: permission denied", "disk"),
        ("open /proc/sys/a: operation not permitted", "kernel"),
        ("open /etc/kubernetes/pki/a.crt: permission denied", "credential"),
        ("unlinkat /var/lib/etcd/wal: device or resource busy", "disk"),
        ("create a file (no space left on device)", "disk"),
        ("open /a: no such file or directory", None),
        ("open /a: is a directory", None),
        ("no space left on device for a", None),
        ('"open /a: permission denied"', None),
    ],
)
def test_a_file_that_is_there_and_cannot_be_read(text: str, meaning: str | None) -> None:
    error = go_error.denied(f"failed: {text}")
    assert (error and error.meaning) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('no kind "A" is registered for version "v1" in scheme "a.go:1"', "configuration"),
        ('no kind "A" is known', None),
        ('a "no kind \\"A\\" is registered for version" of a user', None),
    ],
)
def test_a_file_of_another_kind(text: str, meaning: str | None) -> None:
    error = go_error.of_schema(text)
    assert (error and error.meaning) == meaning
