# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM720 to KM723: what the next release refuses of flags, gates, plugins and versions."""

from __future__ import annotations

import pytest

from tests.unit.support.upgrade import judge, kubeadm, kubelet_words, server, verdicts


def test_a_flag_that_the_kubelet_loses(world):
    server(world, "v1.23.5")
    kubelet_words(world, "w1", "--network-plugin=cni", "--config=/var/lib/kubelet/config.yaml")
    (finding,) = judge(world, "KM720").findings
    assert (finding.host, finding.component, finding.severity) == ("w1", "kubelet", "critical")
    assert "--network-plugin is gone since 1.24" in finding.summary
    assert [proof.text for proof in finding.evidence] == ["--network-plugin=cni"]


BEFORE = "before the upgrade"


@pytest.mark.parametrize(
    "word",
    [
        "--network-plugin=cni",
        "--network-plugin-mtu=1400",
        "--non-masquerade-cidr=10.0.0.0/8",
        "--cni-bin-dir=/opt/bin",
        "--cni-cache-dir=/c",
        "--cni-conf-dir=/d",
        "--docker-endpoint=unix:///run/d.sock",
    ],
)
def test_a_flag_that_dockershim_uses_stays_until_the_new_kubelet(world, word):
    server(world, "v1.23.5")
    kubelet_words(world, "w1", word)
    (finding,) = judge(world, "KM720").findings
    name = word.partition("=")[0]
    assert f"leave {name} as long as the kubelet is of 1.23 or older" in finding.remedy
    assert "KM724" in finding.remedy
    assert BEFORE not in finding.remedy
    assert finding.remedy.index("install the new kubelet") < finding.remedy.index("take these")


def test_the_runtime_of_an_old_kubelet_stays_and_other_flags_go(world):
    server(world, "v1.23.5")
    kubelet_words(world, "w1", "--container-runtime=remote", "--docker-root=/x")
    (finding,) = judge(world, "KM720", upgrade_to=(1, 27)).findings
    assert "leave --container-runtime as" in finding.remedy
    assert "take the others out before the upgrade" in finding.remedy
    kubelet_words(world, "w1", "--docker-root=/x")
    (finding,) = judge(world, "KM720").findings
    assert "leave" not in finding.remedy
    assert BEFORE in finding.remedy


@pytest.mark.parametrize(
    ("version", "stays"),
    [("v1.23.17", True), ("v1.24.0", False), ("v1.26.9", False), (None, True)],
)
def test_the_runtime_of_a_kubelet_without_dockershim_goes_before_the_upgrade(world, version, stays):
    server(world, "v1.26.9")
    for node in world.data("api", "nodes")["items"]:
        if node["name"] == "w1":
            node["kubelet_version"] = version
    kubelet_words(world, "w1", "--container-runtime=remote")
    (finding,) = judge(world, "KM720").findings
    assert ("leave --container-runtime" in finding.remedy) is stays
    assert ("drain the node" in finding.remedy) is stays
    assert (BEFORE in finding.remedy) is not stays


@pytest.mark.parametrize(
    ("version", "release", "several"),
    [("v1.23.5", (1, 24), False), ("v1.19.5", (1, 24), True), ("v1.22.5", (1, 24), True)],
)
def test_a_setting_of_a_later_step_is_not_taken_out_now(world, version, release, several):
    server(world, version)
    kubeadm(world, "v1beta3", "apiServer", {"insecure-port": "0"})
    (finding,) = judge(world, "KM720", upgrade_to=release).findings
    assert ("this upgrade has several steps" in finding.remedy) is several


def test_it_stays_for_a_release_that_has_it(world):
    server(world, "v1.22.5")
    kubelet_words(world, "w1", "--network-plugin=cni")
    assert verdicts(world, "KM720") == ["clear"]
    assert verdicts(world, "KM720", upgrade_to=(1, 24)) == ["present"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('KUBELET_KUBEADM_ARGS="--network-plugin=cni --v=2"\n', 1),
        ("# KUBELET_EXTRA_ARGS=--docker-root=/x\nKUBELET_EXTRA_ARGS=--network-plugin=cni", 2),
        ('KUBELET_ARGS="--v=2 \\\n--network-plugin=cni \\\n"\n', 2),
        ("export A='--network-plugin cni'", 1),
    ],
)
def test_the_file_of_a_flag_is_the_proof_in_place_of_the_process(world, text, line):
    server(world, "v1.23.5")
    kubelet_words(world, "w1", "--network-plugin=cni")
    path = "/var/lib/kubelet/kubeadm-flags.env"
    unit = world.data("w1", "kubelet")["unit"]
    unit["environment_files"] = [{"path": path, "kind": "file", "text": text}]
    (finding,) = judge(world, "KM720").findings
    assert [(proof.kind, proof.path, proof.line) for proof in finding.evidence] == [
        ("file", path, line)
    ]


def test_kubeadm_takes_some_flags_out_of_its_own_file(world):
    server(world, "v1.34.1")
    words = "--pod-infra-container-image=registry.k8s.io/pause:3.10"
    kubelet_words(world, "w1", words)
    unit = world.data("w1", "kubelet")["unit"]
    unit["environment_files"] = [
        {"path": "/var/lib/kubelet/kubeadm-flags.env", "text": f'KUBELET_KUBEADM_ARGS="{words}"'}
    ]
    assert verdicts(world, "KM720") == ["clear"]
    unit["environment_files"][0]["path"] = "/etc/default/kubelet"
    assert verdicts(world, "KM720") == ["present"]


def test_a_file_that_kubespray_writes_again_is_only_told(world):
    server(world, "v1.23.5")
    kubelet_words(world, "w1", "--network-plugin=cni")
    text = 'KUBELET_ARGS="--network-plugin=cni"'
    files = [{"path": "/etc/kubernetes/kubelet.env", "text": text}]
    world.data("w1", "kubelet")["unit"]["environment_files"] = files
    (finding,) = judge(world, "KM720").findings
    assert finding.severity == "info"
    assert "kubelet_custom_flags" in finding.remedy


def test_feature_gates_of_the_file_and_of_the_command_line(world):
    server(world, "v1.35.1")
    kubelet_words(world, "m1", "--feature-gates=MemoryManager=true")
    world.data("w1", "kubelet")["config"] = {
        "path": "/var/lib/kubelet/config.yaml",
        "text": "kind: A\nfeatureGates:\n  KubeletPSI: false\n  ImageVolume: true\n",
    }
    first, second = judge(world, "KM721").findings
    assert (first.host, second.host) == ("m1", "w1")
    assert "MemoryManager is gone since 1.36" in first.summary
    assert "KubeletPSI is locked since 1.36, and set to false" in second.summary
    assert "ImageVolume" not in second.summary
    assert [(proof.path, proof.line) for proof in second.evidence] == [
        ("/var/lib/kubelet/config.yaml", 3)
    ]


@pytest.mark.parametrize("version", ["v1beta3", "v1beta4"])
def test_arguments_of_kubeadm_are_read_in_both_forms(world, version):
    server(world, "v1.24.3")
    kubeadm(world, version, "apiServer", {"enable-admission-plugins": "PodSecurityPolicy"})
    (finding,) = judge(world, "KM722").findings
    assert (finding.host, finding.component) == (None, "kube-apiserver")
    assert "admission plugin PodSecurityPolicy is gone since 1.25" in finding.summary
    assert finding.evidence[0].object == "ConfigMap kube-system/kubeadm-config"


def test_manifests_count_only_where_kubeadm_does_not_write_them_anew(world):
    server(world, "v1.23.5")
    world.manifest("m1", "kube-scheduler", "--leader-elect=true", "--port=0", version="v1.23.5")
    (finding,) = judge(world, "KM720").findings
    assert (finding.host, finding.component) == ("m1", "kube-scheduler")
    assert finding.evidence[0].path == "/etc/kubernetes/manifests/kube-scheduler.yaml"
    kubeadm(world, "v1beta3", "scheduler", {})
    assert verdicts(world, "KM720") == ["clear"]


def test_what_rke2_starts_is_its_own_and_its_file_is_the_operators(world):
    server(world, "v1.23.5+rke2r1")
    kubelet_words(world, "w1", "--network-plugin=cni")
    kubelet = world.data("w1", "kubelet")
    kubelet["unit"]["name"] = "rke2-agent.service"
    kubelet["distribution"] = {"program": "rke2", "files": []}
    assert verdicts(world, "KM720") == ["clear"]
    setting = {"line": 3, "key": "kubelet-arg", "value": "network-plugin=cni"}
    kubelet["distribution"]["files"] = [
        {"path": "/etc/rancher/rke2/config.yaml", "settings": [setting]}
    ]
    (finding,) = judge(world, "KM720").findings
    assert [(proof.path, proof.line) for proof in finding.evidence] == [
        ("/etc/rancher/rke2/config.yaml", 3)
    ]


def test_versions_of_the_schedulers_file_and_of_kubeadms_record(world):
    server(world, "v1.28.5")
    kubeadm(world, "v1beta3", "scheduler", {})
    running = world.data("m1", "instances")["processes"]
    scheduler = next(row for row in running if row["component"] == "kube-scheduler")
    text = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta3\n"
    scheduler["config"] = {
        "path": "/c.yaml",
        "host_path": "/etc/kubernetes/scheduler.yaml",
        "text": text,
    }
    (finding,) = judge(world, "KM723").findings
    assert (finding.host, finding.component, finding.severity) == (
        *("m1", "kube-scheduler"),
        "critical",
    )
    assert (finding.evidence[0].path, finding.evidence[0].line) == (
        "/etc/kubernetes/scheduler.yaml",
        2,
    )
    findings = judge(world, "KM723", upgrade_to=(1, 37)).findings
    assert {(row.component, row.severity) for row in findings} == {
        ("kube-scheduler", "critical"),
        ("kubeadm", "warning"),
    }


def test_a_kubelet_whose_settings_are_not_known_is_not_clear(world):
    server(world, "v1.23.5")
    world.data("w1", "kubelet")["config"] = {"path": "/c", "text": None, "error": "denied"}
    assert verdicts(world, "KM720") == ["unknown"]
    assert verdicts(world, "KM722") == ["clear"]
    world.silence("w1")
    assert verdicts(world, "KM721") == ["unknown"]


def test_a_record_of_kubeadm_that_does_not_parse_is_not_clear(world):
    server(world, "v1.23.5")
    record = {"status": "ok", "data": {"text": "apiServer: {"}}
    world.api["collectors"]["kubeadm_config"] = record
    assert verdicts(world, "KM722") == ["unknown"]


def test_an_audit_judges_the_present_alone(world):
    codes = {verdict.code for verdict in world.judge(deep=True).verdicts}
    codes |= {item.code for item in world.judge().not_judged}
    assert "KM101" in codes
    assert not {code for code in codes if code.startswith("KM72")}
