# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files that a running kubelet cannot read again: KM707. Tables."""

from __future__ import annotations

import pytest

from tests.unit.plugins.plugin_utils.conftest import file_record

MAIN, KUBEADM = "/var/lib/kubelet/config.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf"
GOOD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\n"


def judged(world):
    """Return (the verdict of w1, its findings)."""
    result = world.judge(faults={"KM707"})
    verdicts = {item.host: item.verdict for item in result.verdicts}
    return verdicts.get("w1", "not judged"), [one for one in result.findings if one.host == "w1"]


def configured(world, text=GOOD, **more):
    world.data("w1", "kubelet")["config"] = file_record(
        "config.yaml", text, **{"path": MAIN, **more}
    )


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("110", "0x6e"),
        GOOD.replace("110", "null"),
        GOOD + "cpuManagerPolicy: static\nnoSuchKey: 1\n",
    ],
)
def test_files_that_it_reads(world, text):
    configured(world, text)
    assert judged(world) == ("clear", [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GOOD.replace("110", "many"), 3),
        (GOOD.replace("KubeletConfiguration", "Pod"), 2),
        (GOOD.replace("kubelet.config.k8s.io/v1beta1", "v1"), 2),
        (GOOD + "evictionHard: {a: b\n", None),
        (GOOD + "\tx: 1\n", None),
        ("maxPods: 110\n", None),
        ("", None),
    ],
)
def test_files_that_it_does_not_read(world, text, line):
    configured(world, text)
    verdict, (found,) = judged(world)
    assert (verdict, found.component, found.severity) == ("present", "kubelet", "critical")
    assert found.evidence[0].path == MAIN
    assert found.evidence[0].line == line


@pytest.mark.parametrize(
    ("path", "word", "is_kubeadm"),
    [
        (MAIN, KUBEADM, True),
        ("/etc/kubernetes/kubelet-config.yaml", KUBEADM, False),  # kubespray
        ("/etc/kubernetes/kubelet.conf.d/10-x.conf", KUBEADM, False),
        (MAIN, "--kubeconfig=/var/lib/kubelet/kubeconfig", False),  # kOps, or made by hand
        ("/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/00-x.conf", "--root-dir=/x", False),
    ],
)
def test_what_writes_the_former_file_again(world, path, word, is_kubeadm):
    configured(world, "", path=path)
    world.data("w1", "kubelet")["process"]["argv"] = ["kubelet", word, f"--config={path}"]
    (found,) = judged(world)[1]
    assert ("kubeadm upgrade node phase kubelet-config" in found.remedy) == is_kubeadm
    assert ("with the installer that wrote it" in found.remedy) != is_kubeadm


def test_a_file_that_is_gone(world):
    configured(world, None, error="missing")
    assert judged(world)[0] == "present"


def test_a_drop_in_that_is_no_yaml(world):
    configured(world)
    world.data("w1", "kubelet")["config_dropins"] = [file_record("10-x.conf", GOOD + "\tx: 1\n")]
    assert judged(world)[0] == "present"


@pytest.mark.parametrize("error", ["denied", "Input/output error"])
def test_a_file_that_could_not_be_read(world, error):
    configured(world, None, error=error)
    assert judged(world) == ("unknown", [])


def test_a_file_that_is_longer_than_what_is_sent(world):
    configured(world, None, truncated=True)
    assert judged(world) == ("unknown", [])


def test_a_drop_in_needs_no_kind(world):
    configured(world)
    world.data("w1", "kubelet")["config_dropins"] = [file_record("10-x.conf", "maxPods: 20\n")]
    assert judged(world) == ("clear", [])


def test_a_kubelet_that_does_not_run_is_judged_by_its_end(world):
    configured(world, "")
    world.data("w1", "kubelet")["process"] = None
    assert judged(world) == ("not_applicable", [])


def test_a_kubelet_without_a_file(world):
    assert judged(world) == ("not_applicable", [])


def test_a_host_without_the_evidence(world):
    world.documents["w1"]["collectors"]["kubelet"] = {"status": "denied", "data": None}
    assert judged(world) == ("unknown", [])
