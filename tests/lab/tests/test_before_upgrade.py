# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that this release takes and the next one refuses, of which before_upgrade names each.

They run in the kubelet, the API server and the scheduler, so this release does take them. What
stands in a manifest alone counts only where kubeadm does not write it anew. The real kubelet of the
next release refuses exactly what is named of a kubelet. That all components of it refuse what the
table says is shown by test_next_release.py.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
import yaml

from tests.lab.cluster import gobuild
from tests.lab.cluster.clusters import Cluster
from tests.lab.incidents import scheduler_config_file
from tests.lab.support import next_kubelet
from tests.lab.support.repairing import NEW, OLD, RELEASES, UNDRAWN, codes, own, possible
from tests.lab.support.static_pod import API_SERVER, SCHEDULER, manifest, set_flag, wait_flag

# Of every release: a budget that lets no pod go.
BUDGET = {("KM728", "default/alone", None): {"default/alone"}}
KUBELET_CONFIG, KUBELET_FLAGS = "/var/lib/kubelet/config.yaml", "/etc/default/kubelet"
CHECKPOINTS = "/var/lib/kubelet/checkpoints"


@dataclass(frozen=True)
class Planted:
    """What one release takes and the next one refuses.

    kubelet, gates: of w1; server: in kubeadm's record and in the manifest of m1; scheduler: only in
    the manifest of m1
    found: by code, component and host the names in the finding; then those without kubeadm's record
    """

    kubelet: str
    gates: dict[str, bool]
    server: dict[str, str]
    scheduler: dict[str, str]
    found: dict[tuple, set] = field(default_factory=dict)
    in_record: dict[tuple, set] = field(default_factory=dict)
    in_manifests: dict[tuple, set] = field(default_factory=dict)


PLANTED = {
    OLD: Planted(
        f"--bootstrap-checkpoint-path={CHECKPOINTS}",
        {"EvenPodsSpread": False, "ResourceLimitsPriorityFunction": False, "SCTPSupport": True},
        {
            "feature-gates": "DynamicAuditing=true",
            "runtime-config": "auditregistration.k8s.io/v1alpha1=true",
            "audit-dynamic-configuration": "true",
        },
        {"feature-gates": "ResourceLimitsPriorityFunction=false"},
        {
            ("KM720", "kubelet", "w1"): {"--bootstrap-checkpoint-path"},
            ("KM721", "kubelet", "w1"): {"EvenPodsSpread", "ResourceLimitsPriorityFunction"},
            ("KM723", SCHEDULER, "m1"): {"v1alpha2"},
        },
        {
            ("KM720", API_SERVER, None): {"--audit-dynamic-configuration"},
            ("KM721", API_SERVER, None): {"DynamicAuditing"},
            ("KM722", API_SERVER, None): {"auditregistration.k8s.io"},
        },
        {
            ("KM720", API_SERVER, "m1"): {"--audit-dynamic-configuration"},
            ("KM721", API_SERVER, "m1"): {"DynamicAuditing"},
            ("KM721", SCHEDULER, "m1"): {"ResourceLimitsPriorityFunction"},
            ("KM722", API_SERVER, "m1"): {"auditregistration.k8s.io"},
        },
    ),
    NEW: Planted(
        "--log-cadvisor-usage=false",
        {"PLEGOnDemandRelist": False, "SidecarContainers": True, "InPlacePodVerticalScaling": True},
        {
            "feature-gates": "BtreeWatchCache=true",
            "enable-admission-plugins": "NodeRestriction,PodGroupWorkloadExists",
        },
        {"feature-gates": "SchedulerQueueingHints=true"},
        {
            ("KM720", "kubelet", "w1"): {"--log-cadvisor-usage"},
            ("KM721", "kubelet", "w1"): {"PLEGOnDemandRelist", "SidecarContainers"},
        },
        {
            ("KM721", API_SERVER, None): {"BtreeWatchCache"},
            ("KM722", API_SERVER, None): {"PodGroupWorkloadExists"},
            ("KM723", "kubeadm", None): {"v1beta3"},
        },
        {
            ("KM721", API_SERVER, "m1"): {"BtreeWatchCache"},
            ("KM721", SCHEDULER, "m1"): {"SchedulerQueueingHints"},
            ("KM722", API_SERVER, "m1"): {"PodGroupWorkloadExists"},
        },
    ),
}

# The release after OLD. NEW has a kubelet of the release before it on w1, whose next one is NEW's.
NEXT, FORMER = "v1.19.16", "v1.35.4"
OF_FORMER = Planted(
    "--log-cadvisor-usage=false",
    {
        "HonorPVReclaimPolicy": True,
        "MemoryManager": True,
        "KubeletPSI": False,
        "UserNamespacesSupport": False,
        "ProcMountType": False,  # 1.35 does not start with it and without UserNamespacesSupport
        "NodeLogQuery": True,
        "SidecarContainers": True,
    },
    {},
    {},
    {
        ("KM721", "kubelet", "w1"): {
            "HonorPVReclaimPolicy",
            "MemoryManager",
            "KubeletPSI",
            "UserNamespacesSupport",
            "ProcMountType",
        },
        # The API server has that release already.
        ("KM726", API_SERVER, None): {"no upgrade"},
    },
)


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 1, 1, "short", name=f"{request.param}-upgrade")) as found:
        yield found


def of_workloads(cluster) -> None:
    """Run one pod that its budget keeps for good, and two of which one may go."""
    version = "v1beta1" if cluster.k8s == OLD else "v1"
    work = {"name": "work", "image": cluster.state["pause"], "imagePullPolicy": "Never"}
    items = []
    for name, replicas in (("alone", 1), ("pair", 2)):
        labels = {"app": name}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [work]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
        budget = {"minAvailable": 1, "selector": {"matchLabels": labels}}
        rows = (
            ("apps/v1", "Deployment", spec),
            (f"policy/{version}", "PodDisruptionBudget", budget),
        )
        items += [
            {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": content}
            for group, kind, content in rows
        ]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(listed))


def wait_counted(cluster) -> None:
    """Wait until all pods run and the budgets have counted them."""
    path = "jsonpath={.items[*].status.currentHealthy}"
    cluster.wait(
        lambda: cluster.kubectl("get", "pdb", "-o", path).stdout.split() == [b"1", b"2"],
        120,
        "the budgets to count their pods",
    )


def of_kubelet(cluster, planted: Planted) -> None:
    """Give the kubelet of w1 a flag and feature gates, and wait until it runs with them."""
    settings = yaml.safe_load(cluster.read("w1", KUBELET_CONFIG))
    settings["featureGates"] = planted.gates
    cluster.write("w1", KUBELET_CONFIG, yaml.safe_dump(settings))
    cluster.write("w1", KUBELET_FLAGS, f"KUBELET_EXTRA_ARGS={planted.kubelet}\n")
    cluster.exec("w1", ["mkdir", "-p", CHECKPOINTS])
    cluster.exec("w1", ["systemctl", "restart", "kubelet"])
    health = ["curl", "-s", "http://127.0.0.1:10248/healthz"]
    cluster.wait(
        lambda: cluster.exec("w1", health, check=False).stdout == b"ok", 120, "the kubelet of w1"
    )
    argv = cluster.exec("w1", "tr '\\0' '\\n' </proc/$(pidof kubelet)/cmdline").stdout.decode()
    assert planted.kubelet in argv.splitlines()


def of_manifests(cluster, planted: Planted) -> None:
    """Give the API server and the scheduler of m1 flags, and wait until they run with them."""
    for component, flags in ((API_SERVER, planted.server), (SCHEDULER, planted.scheduler)):
        text = cluster.read("m1", manifest(component)).decode()
        if component == SCHEDULER and cluster.k8s == OLD:
            path = scheduler_config_file.CONFIG
            config = scheduler_config_file.config_text(cluster.k8s)
            cluster.write("m1", path, config.replace("false", "true"), mode="600")
            text = scheduler_config_file.use_config(text)
        for flag, value in flags.items():
            text = set_flag(text, flag, value)
        cluster.write("m1", manifest(component), text)
        for flag, value in flags.items():
            wait_flag(cluster, "m1", component, f"--{flag}={value}")
        cluster.wait_healthy()


def as_maps(settings: dict) -> None:
    """Turn the lists of extraArgs into the maps of v1beta3."""
    if "extraArgs" in settings:
        settings["extraArgs"] = {row["name"]: row["value"] for row in settings["extraArgs"]}
    for part in settings.values():
        if isinstance(part, dict) and part is not settings.get("extraArgs"):
            as_maps(part)


def of_record(cluster, planted: Planted) -> None:
    """Give kubeadm's record the flags of the API server; in NEW also an older version of itself."""
    where = ("-n", "kube-system", "configmap", "kubeadm-config")
    record = cluster.kubectl("get", *where, "-o", "json").stdout
    settings = yaml.safe_load(json.loads(record)["data"]["ClusterConfiguration"])
    if cluster.k8s != OLD:
        settings["apiVersion"] = "kubeadm.k8s.io/v1beta3"
        as_maps(settings)
    settings.setdefault("apiServer", {})["extraArgs"] = planted.server
    patch = json.dumps({"data": {"ClusterConfiguration": yaml.safe_dump(settings)}})
    cluster.kubectl("patch", *where, "--type=merge", "-p", patch)


def agree(report, expected: dict[tuple, set]) -> None:
    """Require these findings and no other, each with these names and no other."""
    found = {
        (item["code"], item["component"], item["host"]): item["summary"]
        for item in report["findings"]
    }
    assert set(found) == set(expected), json.dumps(report["findings"], indent=1)
    for key, names in expected.items():
        clauses = found[key].partition(": ")[2].split("; ")
        assert len(clauses) == len(names), found[key]
        assert all(any(name in clause for clause in clauses) for name in names), found[key]


@UNDRAWN
def test_what_the_next_release_refuses_is_named_and_nothing_else(cluster, play):
    planted = PLANTED[cluster.k8s]
    done, report = play(name="before_upgrade")
    assert (done.returncode, codes(report)) == (0, set()), done.stdout[-4000:]

    of_workloads(cluster)
    of_kubelet(cluster, planted)
    of_manifests(cluster, planted)
    of_record(cluster, planted)
    wait_counted(cluster)
    done, report = play("-e", "kubemend_fail_on=critical", name="before_upgrade")
    agree(report, {**BUDGET, **planted.found, **planted.in_record})
    assert (done.returncode, report["steps"]) == (2, [])

    # Another installer than kubeadm leaves the manifests as they are.
    cluster.kubectl("-n", "kube-system", "delete", "configmap", "kubeadm-config")
    done, report = play("-e", "kubemend_fail_on=critical", name="before_upgrade")
    agree(report, {**BUDGET, **planted.found, **planted.in_manifests})
    assert (done.returncode, report["steps"]) == (2, [])


def of_kubelet_named(found: dict[tuple, set]) -> set:
    """Return which flags and gates of the kubelet of w1 are among the findings."""
    return {
        name
        for (_code, component, host), names in found.items()
        for name in names
        if (component, host) == ("kubelet", "w1")
    }


def of_former(cluster, play) -> None:
    """Give w1 a kubelet of the release before NEW, of which before_upgrade names what NEW lacks."""
    cluster.exec("w1", ["systemctl", "stop", "kubelet"])
    data = (gobuild.components(FORMER) / "kubelet").read_bytes()
    cluster.write("w1", "/usr/bin/kubelet", data)
    of_kubelet(cluster, OF_FORMER)
    cluster.wait_healthy()
    target = ("-e", f"kubemend_upgrade_to={NEW.removeprefix('v').rpartition('.')[0]}")
    done, report = play(*target, name="before_upgrade")
    kubelets = [item for item in report["findings"] if item["code"] != "KM728"]
    agree({"findings": kubelets}, OF_FORMER.found)
    assert (done.returncode, report["steps"]) == (0, [])


@UNDRAWN
def test_the_real_kubelet_of_the_next_release_refuses_exactly_what_is_named(cluster, play):
    if cluster.k8s == OLD:
        planted, following = PLANTED[OLD], NEXT
        of_kubelet(cluster, planted)
    else:
        planted, following = OF_FORMER, NEW
        of_former(cluster, play)
    assert next_kubelet.refused(cluster, "w1", following) == of_kubelet_named(planted.found)
