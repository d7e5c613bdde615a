# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroup drivers of kubelet and runtime: which are known, and which lines set them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import runtime_cgroup
from tests.unit.support.cri_evidence import CONFIG, TABLE, cri, kubelet_driver

OTHER = "plugins.io.containerd.cri.v1.runtime.containerd.runtimes.runc.options"


@pytest.mark.parametrize(
    ("kubelet", "version", "runtime", "told", "drivers"),
    [
        ("systemd", "v1.30.1", True, None, ("systemd", "systemd")),
        ("systemd", "v1.30.1", False, None, ("systemd", "cgroupfs")),
        (None, "v1.30.1", True, None, ("cgroupfs", "systemd")),
        # a kubelet that asks has the driver of its runtime
        ("systemd", "v1.31.0", False, "cgroupfs", ("cgroupfs", "cgroupfs")),
        ("systemd", "v1.30.1", True, "cgroupfs", ("systemd", "cgroupfs")),
        ("systemd", "?", True, "cgroupfs", None),
        ("systemd", "v1.30.1", None, None, None),
    ],
)
def test_both_as_they_are_now(world, kubelet, version, runtime, told, drivers):
    cri(world, driver=told)["config"]["systemd_cgroup"] = runtime
    kubelet_driver(world, kubelet, version=version)
    found = runtime_cgroup.drivers(world.documents["w1"])
    assert (found and (found.kubelet, found.runtime)) == drivers


@pytest.mark.parametrize(
    ("version", "told", "roots", "drivers"),
    [
        ("v1.36.3", "cgroupfs", ["kubepods.slice"], ("systemd", "cgroupfs", "kubepods.slice")),
        ("v1.36.3", "systemd", ["kubepods"], ("cgroupfs", "systemd", "kubepods")),
        # a plain audit does not ask each kubelet for its version
        ("?", "systemd", ["kubepods"], ("cgroupfs", "systemd", "kubepods")),
        ("v1.36.3", "systemd", ["kubepods.slice"], ("systemd", "systemd", "")),
        # both since the boot: which one is the present is not known
        ("v1.36.3", "systemd", ["kubepods.slice", "kubepods"], ("systemd", "systemd", "")),
        ("v1.36.3", "systemd", [], ("systemd", "systemd", "")),
        ("v1.36.3", "systemd", ["../kubepods", "else"], ("systemd", "systemd", "")),
        # an older kubelet has its own setting, whatever its runtime tells
        ("v1.30.1", "systemd", ["kubepods"], ("systemd", "systemd", "")),
    ],
)
def test_a_kubelet_that_asked_before_its_runtime_changed(world, version, told, roots, drivers):
    cri(world, driver=told)
    kubelet_driver(world, "systemd", version=version)
    world.data("w1", "pinning")["pod_cgroups"] = roots
    found = runtime_cgroup.drivers(world.documents["w1"])
    assert (found.kubelet, found.runtime, found.root) == drivers


@pytest.mark.parametrize(
    ("name", "release", "version", "roots", "drivers"),
    [
        # a runtime that tells its driver, of which the audit got no answer
        ("containerd", "v2.1.6", "v1.34.3", [], ("systemd", "systemd")),
        ("containerd", "v2.1.6", "v1.34.3", ["kubepods"], ("cgroupfs", "systemd")),
        ("cri-o", "1.34.0", "v1.34.3", [], ("systemd", "systemd")),
        ("containerd", "v2.1.6", "v1.30.1", [], ("cgroupfs", "systemd")),
        ("containerd", "v2.1.6", "?", [], ("cgroupfs", "systemd")),
        ("containerd", "v1.7.28", "v1.34.3", [], ("cgroupfs", "systemd")),
        ("else", "9.0", "v1.34.3", [], ("cgroupfs", "systemd")),
    ],
)
def test_a_runtime_whose_answer_is_missing(world, name, release, version, roots, drivers):
    cri(world, name=name, version=release)
    kubelet_driver(world, None, version=version)
    world.data("w1", "pinning")["pod_cgroups"] = roots
    found = runtime_cgroup.drivers(world.documents["w1"])
    assert (found.kubelet, found.runtime) == drivers


def test_without_an_answer_nothing_is_known(world):
    assert runtime_cgroup.drivers(world.documents["w1"]) is None
    cri(world, config=None)
    assert runtime_cgroup.drivers(world.documents["w1"]) is None


def test_a_kubelet_that_does_not_run_has_no_driver_now(world):
    cri(world)
    world.data("w1", "kubelet")["process"] = None
    assert runtime_cgroup.drivers(world.documents["w1"]) is None


@pytest.mark.parametrize(
    ("version", "table", "words"),
    [
        (2, TABLE, ""),
        (3, OTHER, ""),
        (3, TABLE, "a table that version 3 of the configuration does not read"),
        (2, OTHER, "a table that version 2 of the configuration does not read"),
        (1, TABLE, "a file with a line version = 2 above all tables"),
        (None, TABLE, "a file with a line version = 2 above all tables"),
        (None, "plugins.cri.containerd.runtimes.runc.options", ""),
        (3, "somewhere", ""),
    ],
)
def test_a_table_of_another_version_is_named(world, version, table, words):
    line = {"line": 12, "table": table, "key": "SystemdCgroup", "value": "true"}
    cri(world, files=[{"path": CONFIG, "version": version, "error": None, "lines": [line]}])
    (proof,) = runtime_cgroup.places(world.documents["w1"], "w1")
    assert (proof.path, proof.line) == (CONFIG, 12)
    assert proof.text.endswith(words or "SystemdCgroup = true")
    clause = runtime_cgroup.unread(world.documents["w1"])
    assert clause.endswith(words)
    assert bool(clause) == bool(words)


def test_no_line_is_told_too(world):
    cri(world)
    (proof,) = runtime_cgroup.places(world.documents["w1"], "w1")
    assert proof.text == "no line with SystemdCgroup: the default is false"
    cri(world, files=[{"path": CONFIG, "version": None, "error": "missing", "lines": []}])
    (proof,) = runtime_cgroup.places(world.documents["w1"], "w1")
    assert proof.text == "missing"
