# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What texts mean by the whole table, and that no text takes long."""

from __future__ import annotations

import time

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import message_form
from tests.messages import tables

SIZE = 65536
SECONDS = 0.05
POLICIES = "cpuManagerPolicy memoryManagerPolicy topologyManagerPolicy"


@pytest.mark.parametrize(
    ("text", "meaning", "key", "inner"),
    [
        # kubernetes/kubernetes#102073
        (
            'failed to run Kubelet: unknown policy: "static"',
            "configuration",
            POLICIES,
            'unknown policy: "static"',
        ),
        # kubernetes/kubernetes#96352
        (
            "Failed to start ContainerManager: Failed to enforce Kube Reserved Cgroup Limits on"
            ' "/kubelet.slice": ["kubelet"] cgroup does not exist',
            "configuration",
            "kubeReservedCgroup",
            '["kubelet"] cgroup does not exist',
        ),
        # kubernetes/kubernetes#61937
        (
            "Failed to start ContainerManager: failed to initialize top level QOS containers: mkdir"
            " /sys/fs/cgroup/memory/kubepods: no space left on device",
            "cgroup",
            "",
            "failed to initialize top level QOS containers: mkdir /sys/fs/cgroup/memory/kubepods:"
            " no space left on device",
        ),
        (
            "Failed to start ContainerManager: start cpu manager error: [cpumanager] unable to"
            " determine reserved CPU resources for static policy",
            "configuration",
            "kubeReserved systemReserved reservedSystemCPUs",
            "[cpumanager] unable to determine reserved CPU resources for static policy",
        ),
        (
            "Failed to start ContainerManager: start cpu manager error: SMT Alignment Error:"
            " requested 3 cpus not multiple cpus per core = 2",
            "resources",
            "",
            "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
        ),
        (
            "failed to run Kubelet: unable to load client CA file /a/ca.crt: open /a/ca.crt: no"
            " such file or directory",
            "credential",
            "",
            "unable to load client CA file /a/ca.crt: open /a/ca.crt: no such file or directory",
        ),
        # an aggregate, of which the first error has a comma
        (
            "failed to validate kubelet configuration, error: [invalid configuration: healthzPort"
            " (--healthz-port) 99999999 must be between 1 and 65535, inclusive, invalid"
            ' configuration: option "x" specified for enforceNodeAllocatable'
            " (--enforce-node-allocatable)], path: &x",
            "configuration",
            "healthzPort",
            "invalid configuration: healthzPort (--healthz-port) 99999999 must be between 1 and"
            " 65535, inclusive",
        ),
        # behind a prefix that no table has
        (
            'failed to run Kubelet: a prefix of 1.40: unknown policy: "x"',
            "configuration",
            POLICIES,
            'unknown policy: "x"',
        ),
        # an error of the kernel decides over the class around it
        (
            "failed to run Kubelet: could not create the checkpoint: unable to load client CA file"
            " /a: write /var/lib/a: no space left on device",
            "disk",
            "",
            "unable to load client CA file /a: write /var/lib/a: no space left on device",
        ),
        ("command failed: failed to run Kubelet: unknown flag: --x", "configuration", "%s", ""),
        # Go writes the names of a cgroup as a list (kubernetes-sigs/kind#2440)
        (
            'failed to run Kubelet: invalid configuration: cgroup-root ["kubelet"] doesn\'t exist',
            "configuration",
            "cgroupRoot cgroupsPerQOS",
            'cgroup-root ["kubelet"]',
        ),
        # what a file holds is not known where it cannot be read
        (
            "failed to run Kubelet: could not save checkpoint: open /var/lib/kubelet/a: permission"
            " denied",
            "disk",
            "",
            "permission denied",
        ),
    ],
)
def test_known_texts(text: str, meaning: str, key: str, inner: str) -> None:
    reading = message_form.read(text, "kubelet")
    assert reading is not None
    assert reading.meaning == meaning
    if inner:
        assert reading.key == key
        assert inner in reading.text


@pytest.mark.parametrize(
    "text",
    [
        "failed to run Kubelet: what nobody knows",
        "failed to run Kubelet: context deadline exceeded",
        "start cpu manager error: x",
        "validate service connection: x",
        "",
        'failed to run Kubelet: pod "unknown flag: --x" is strange',
        'failed to run Kubelet: pod ": unknown flag: --x',
        'failed to run Kubelet: a strange "failed to run Kubelet: unknown flag: --x"',
    ],
)
def test_texts_that_tell_no_class(text: str) -> None:
    assert message_form.read(text, "kubelet") is None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("failed to open database: open /var/lib/etcd/member/snap/db: something", "state_file"),
        ("failed to open database", "state_file"),
        ("failed to open WAL: wal: crc mismatch", "state_file"),
        (
            "discovery failed: open /etc/kubernetes/pki/etcd/server.crt: permission denied",
            "credential",
        ),
        # etcd-io/etcd#11949, tests/cases/001
        (
            "recovering backend from snapshot error: failed to find database snapshot file (snap:"
            " snapshot file doesn't exist)",
            "state_file",
        ),
    ],
)
def test_texts_of_etcd(text: str, meaning: str) -> None:
    reading = message_form.read(text, "etcd")
    assert reading is not None
    assert reading.meaning == meaning


def test_a_text_of_another_component_is_not_read() -> None:
    assert message_form.read('unknown policy: "static"', "kube-proxy") is None


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("Error creating leases: error creating storage factory: context deadline exceeded", True),
        ("Error creating leases: error creating storage factory: no such prefix", False),
    ],
)
def test_what_took_too_long_tells_little(text: str, weak: bool) -> None:
    reading = message_form.read(text, "kube-apiserver")
    assert reading is not None
    assert reading.weak is weak


HOSTILE = (
    *('"', '\\"', "[", "]", ": ", "[a, ", '["x", ', 'a: "', "a: b", " ", "x", "3", '"3" ', "%v "),
    *('desc = "', "/", "/a ", "no space left on device: ", "write /a: no space left on device "),
    *("failed to run Kubelet: ", "invalid configuration: ", "error: [", "dial tcp a: ", "İ", "é"),
    *("invalid configuration: option ", "[invalid configuration: %s (%s) ", ", ", "\n", "\0"),
    *(
        "Failed to start ContainerManager: [",
        "start cpu manager error: [x, ",
        "x509",
        "(",
        "lookup ",
    ),
)


@pytest.mark.parametrize("component", ["kubelet", "kube-apiserver", "etcd", "containerd"])
@pytest.mark.parametrize("part", HOSTILE)
def test_no_text_takes_long(part: str, component: str) -> None:
    """The table is read before: it is read once in a run."""
    message_form.read("x", component)
    for text in (part * (SIZE // len(part)), f"[{part * (SIZE // len(part))}]"):
        seconds = []
        for suffix in ("", "a", "b"):
            message_form.read.cache_clear()
            begin = time.process_time()
            message_form.read(suffix + text, component)
            seconds.append(time.process_time() - begin)
        assert min(seconds) < SECONDS


def test_the_forms_of_a_kubelet_have_one_class_each() -> None:
    """Whatever stands in a form that no other error decides, its class is that of the table."""
    for row in tables.forms("kubelet"):
        reading = message_form.read(row.form.replace("%", "x"), "kubelet")
        assert reading is None or reading.meaning
