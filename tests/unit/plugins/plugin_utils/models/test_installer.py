# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose files they are.

The kubelet that runs decides, and leftovers in folders only where it says nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import installer

SCHEDULER, MANAGER = "kube-scheduler", "kube-controller-manager"
# exe, unit and command line of the kubelet, as each of these installers starts it.
KUBEADM = (
    "/usr/bin/kubelet",
    "kubelet.service",
    [
        "/usr/bin/kubelet",
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
        "--container-runtime-endpoint=unix:///run/containerd/containerd.sock",
    ],
)
KUBESPRAY = (
    "/usr/local/bin/kubelet",
    "kubelet.service",
    [
        "/usr/local/bin/kubelet",
        "--v=2",
        "--node-ip=10.0.0.2",
        "--hostname-override=m2",
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--config=/etc/kubernetes/kubelet-config.yaml",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--container-runtime-endpoint=unix:///var/run/containerd/containerd.sock",
    ],
)
RKE2 = (
    "/var/lib/rancher/rke2/data/v1.30.1-rke2r1-0a1b2c3d4e5f/bin/kubelet",
    "rke2-server.service",
    [
        "kubelet",
        "--volume-plugin-dir=/var/lib/kubelet/volumeplugins",
        "--kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
        "--pod-manifest-path=/var/lib/rancher/rke2/agent/pod-manifests",
    ],
)
RKE2_ELSEWHERE = (
    "/data/rke2/data/v1/bin/kubelet",
    "rke2-agent.service",
    ["kubelet", "--kubeconfig=/data/rke2/agent/kubelet.kubeconfig"],
)
K3S = (
    "/var/lib/rancher/k3s/data/0123456789abcdef/bin/k3s",
    "k3s.service",
    ["/usr/local/bin/k3s", "server"],
)
K3S_AGENT = ("/data/current/bin/k3s", "k3s-agent.service", ["/usr/local/bin/k3s", "agent"])
KOPS = (
    "/usr/local/bin/kubelet",
    "kubelet.service",
    [
        "/usr/local/bin/kubelet",
        "--config=/var/lib/kubelet/kubelet.conf",
        "--kubeconfig=/var/lib/kubelet/kubeconfig",
        "--hostname-override=i-0123",
        "--v=2",
    ],
)
OPENSHIFT = (
    "/usr/bin/kubelet",
    "kubelet.service",
    [
        "/usr/bin/kubelet",
        "--config=/etc/kubernetes/kubelet.conf",
        "--bootstrap-kubeconfig=/etc/kubernetes/kubeconfig",
        "--kubeconfig=/var/lib/kubelet/kubeconfig",
        "--container-runtime-endpoint=/var/run/crio/crio.sock",
        "--node-labels=node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master,node"
        ".openshift.io/os_id=rhel",
    ],
)
MICROK8S = (
    "/snap/microk8s/6876/kubelite",
    "snap.microk8s.daemon-kubelite.service",
    [
        "/snap/microk8s/6876/kubelite",
        "--scheduler-args-file=/var/snap/microk8s/6876/args/kube-scheduler",
        "--kubelet-args-file=/var/snap/microk8s/6876/args/kubelet",
    ],
)
BY_HAND = (
    "/opt/kubernetes/kubelet",
    "my-kubelet.service",
    ["/opt/kubernetes/kubelet", "--kubeconfig", "/opt/kubernetes/kubelet.kubeconfig"],
)
LEFTOVERS = [
    "/etc/rancher/k3s",
    "/var/lib/rancher/rke2",
    "/var/cache/nodeup",
    "/var/snap/microk8s",
    "/etc/machine-config-daemon",
]


def document(kubelet=None, paths=(), running=True):
    found = None
    if kubelet:
        exe, unit, argv = kubelet
        found = {
            "process": {"pid": 7, "exe": exe, "argv": argv} if running else None,
            "unit": {"name": unit},
            "argv": argv,
        }
    return {
        "collectors": {
            "kubelet": {"status": "ok" if found else "absent", "data": found},
            "installer": {"status": "ok", "data": {"paths": list(paths), "kubelet_exe": None}},
        }
    }


@pytest.mark.parametrize(
    "paths",
    [
        [],
        ["/etc/kubernetes/kubelet.env", "/etc/kubernetes/kubelet-config.yaml"],
        ["/var/lib/kubelet/kubeadm-flags.env"],
    ],
    ids=["bare", "after kubespray", "after kubeadm"],
)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
@pytest.mark.parametrize(
    ("kubelet", "name", "place"),
    [
        (RKE2, "RKE2", "/etc/rancher/rke2/config.yaml"),
        (RKE2_ELSEWHERE, "RKE2", "/etc/rancher/rke2/config.yaml"),
        (K3S, "k3s", "/etc/rancher/k3s/config.yaml"),
        (K3S_AGENT, "k3s", "/etc/rancher/k3s/config.yaml"),
        (KOPS, "kOps", "the cluster's spec"),
        (OPENSHIFT, "OpenShift", "its operators"),
        (MICROK8S, "microk8s", "/var/snap/microk8s/current/args"),
    ],
)
def test_the_kubelet_of_another_tool_is_known_whatever_a_former_installer_left(
    kubelet, name, place, running, paths
):
    said = installer.foreign(document(kubelet, paths, running))
    assert said is not None
    assert said.startswith(f"{name} owns these files")
    assert place in said
    assert installer.note(document(kubelet, paths, running), "edit_manifest", MANAGER) == ""


@pytest.mark.parametrize("kubelet", [KUBEADM, KUBESPRAY], ids=["kubeadm", "kubespray"])
@pytest.mark.parametrize("leftover", [[], *([one] for one in LEFTOVERS), LEFTOVERS])
def test_what_others_left_beside_a_running_kubeadm_or_kubespray_kubelet_owns_nothing(
    kubelet, leftover
):
    assert installer.foreign(document(kubelet, leftover)) is None


@pytest.mark.parametrize(
    ("leftover", "name"),
    list(zip(LEFTOVERS, ["k3s", "RKE2", "kOps", "microk8s", "OpenShift"], strict=False)),
)
def test_folders_count_where_no_kubelet_says_more(leftover, name):
    for said in (
        installer.foreign(document(None, [leftover])),
        installer.foreign(document(BY_HAND, [leftover])),
    ):
        assert said is not None
        assert said.startswith(name)
    assert installer.foreign(document(None, [leftover, "/etc/kubernetes/kubelet.env"])) is None


def test_a_cluster_built_by_hand_belongs_to_nobody_else():
    assert installer.foreign(document(BY_HAND)) is None


def test_kubesprays_variable_is_named_with_its_value():
    sprayed = document(KUBESPRAY)
    assert 'leader-elect: "true" there in kube_kubeadm_controller_extra_args' in installer.note(
        sprayed, "edit_manifest", MANAGER
    )
    assert 'leader-elect: "true" there in kube_kubeadm_scheduler_extra_args' in installer.note(
        sprayed, "edit_manifest", SCHEDULER
    )
    assert "leaderElect: true there in kube_scheduler_leader_elect_extra_opts" in installer.note(
        sprayed, "edit_config", SCHEDULER
    )
    for remedy in ("restart", "move_out", "recover"):
        assert installer.note(sprayed, remedy, SCHEDULER) == ""


@pytest.mark.parametrize(
    ("case", "sprayed"),
    [
        ("v1.36.3-kubespray-scheduler-config-file", True),
        ("v1.36.3-healthy", False),
        ("v1.18.4-healthy", False),
    ],
)
def test_hosts_of_real_clusters(case, sprayed):
    folder = Path(__file__).resolve().parents[4] / "fixtures" / "recorded" / case / "evidence"
    recorded = json.loads((folder / "m2.json").read_text(encoding="utf-8"))
    assert installer.foreign(recorded) is None
    assert bool(installer.note(recorded, "edit_config", SCHEDULER)) is sprayed


def test_a_kubeadm_host_that_kubespray_left_files_on_is_not_kubesprays():
    left = ["/etc/kubernetes/kubelet.env", "/etc/kubernetes/kubelet-config.yaml"]
    assert installer.note(document(KUBEADM, left), "edit_manifest", MANAGER) == ""
    assert installer.note(document(None, left), "edit_manifest", MANAGER) != ""


def test_a_step_of_no_host_goes_by_what_the_hosts_of_its_cluster_have():
    left = ["/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.env"]
    assert "kube_kubeadm_scheduler_extra_args" in installer.note(
        {}, "kubeadm_config", SCHEDULER, left
    )
    assert installer.note({}, "kubeadm_config", SCHEDULER, left[:1]) == ""
