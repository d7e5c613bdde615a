# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that stay Pending for each of the reasons, all at once on a real cluster: told apart.

Where there is no finding, the report has a sentence.
"""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from tests.lab.cluster import paths
from tests.lab.support import gpu, jobs
from tests.lab.support.incident import by_name
from tests.lab.support.repairing import broken
from tests.lab.support.report import findings
from tests.lab.support.static_pod import API_SERVER, away

WAITED = 300  # what the playbook waits for before it takes a pod's waiting for a fault
GATES_SINCE = (1, 26)
FULL, GONE = "lab-full", "lab-no-such-node"
CODES = {
    "hungry": "KM210",
    "gizmo": "KM210",
    "rare": "KM210",
    "nowhere": "KM211",
    "spread": "KM212",
    "port-2": "KM213",
    "full": "KM214",
    "claim": "KM215",
    "cordoned": "KM216",
    "unready": "KM217",
    "lonely": "KM218",
    "gated": "KM219",
    "named": "KM220",
    "silent": "KM220",
    "quota": "KM221",
    "account": "KM222",
    "limits": "KM223",
    "volume": "KM224",
    "nobody": "KM204",
    "tainted": "KM513",
}
# What each finding names beside the pod.
NODES = {
    "hungry": "w1",
    "gizmo": "w1",
    "rare": "w1",
    "port-2": "w1",
    "cordoned": "m2",
    "unready": "m3",
    "lonely": "m1",
    "silent": "m3",
    "named": GONE,
    "tainted": "m1",
    "full": FULL,
    "spread": "w1",
    "volume": "w1",
}


def pod(cluster, name, node, ports=(), resources=None, **spec):
    """Return a pod of its own that requests one node, and tolerates that this is a master.

    What its name has after -of- is not in its label.
    """
    if node:
        spec = {"nodeSelector": {"kubernetes.io/hostname": node}, **spec}
    made = jobs.pod_spec(cluster, **{"tolerations": jobs.MASTERS_TOLERATED, **spec})
    made["containers"][0].update(
        resources=resources or {},
        ports=[{"containerPort": port, "hostPort": port} for port in ports],
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"lab": name.partition("-of-")[0]}},
        "spec": made,
    }


def workload(cluster, name, kind="Deployment", resources=None, **spec):
    made = {**jobs.pod_spec(cluster, **spec), "restartPolicy": "Always"}
    made["containers"][0].update(resources=resources or {})
    more = {"replicas": 1} if kind == "Deployment" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            **more,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": made},
        },
    }


def claiming(name, **claim):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Mi"}},
            **claim,
        },
    }


def uses(name):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def pods(cluster, namespace):
    """Return one pod for each reason that a scheduler gives."""
    rack = [
        {
            "maxSkew": 1,
            "topologyKey": "lab/rack",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"lab": "spread"}},
        }
    ]
    # Of both racks only m1, which a pod without the toleration cannot have, has fewer of them. 1.18
    # passes over a label that no node has.
    racks = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {
                                "key": "kubernetes.io/hostname",
                                "operator": "In",
                                "values": ["m1", "w1"],
                            }
                        ]
                    }
                ]
            }
        }
    }
    # Of a pod that tolerates nothing and asks for what no node has: the masters' taint is not the
    # cause.
    not_full = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [FULL]}
                        ]
                    }
                ]
            }
        }
    }
    elsewhere = {
        "required": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}
                    ]
                }
            ]
        }
    }
    made = [
        pod(cluster, "hungry", "w1", resources={"requests": {"cpu": "1000"}}),
        pod(cluster, "gizmo", "w1", resources={"limits": {"lab.example/gizmo": "1"}}),
        pod(
            cluster,
            "rare",
            None,
            resources={"limits": {"lab.example/rare": "1"}},
            affinity=not_full,
            tolerations=[],
        ),
        pod(cluster, "nowhere", None, nodeSelector={"lab/nowhere": "true"}),
        pod(
            cluster,
            "spread",
            None,
            topologySpreadConstraints=rack,
            affinity=racks,
            tolerations=[{"key": "lab/mine", "operator": "Exists"}],
        ),
        pod(cluster, "port-2", "w1", [18888]),
        pod(cluster, "full", FULL),
        pod(cluster, "cordoned", "m2"),
        pod(cluster, "unready", "m3"),
        pod(cluster, "tainted", "m1"),
        pod(cluster, "nobody", "w1", schedulerName="lab-nobody"),
        pod(cluster, "claim", "w1", **uses("unbound")),
        pod(cluster, "silent", None, nodeName="m3", tolerations=[{"operator": "Exists"}]),
        pod(cluster, "volume", "w1", **uses("far")),
        claiming("unbound", selector={"matchLabels": {"lab": "nothing"}}),
        claiming("far", volumeName=f"{namespace}-far"),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-far"},
            "spec": {
                "capacity": {"storage": "1Mi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp"},
                "nodeAffinity": elsewhere,
                "claimRef": {"namespace": namespace, "name": "far"},
            },
        },
        workload(
            cluster,
            "lonely",
            "DaemonSet",
            nodeSelector={"lab/daemon": "yes"},
            tolerations=jobs.MASTERS_TOLERATED,
        ),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "account"},
            "spec": {"template": {"spec": jobs.pod_spec(cluster, serviceAccountName="lab-nobody")}},
        },
    ]
    if paths.version_tuple(cluster.k8s) >= GATES_SINCE:
        made.append(pod(cluster, "gated", "w1", schedulingGates=[{"name": "lab.example/wait"}]))
    return made


BEAT, NAMED = "lab-beat", "lab-named"


@contextlib.contextmanager
def looping(cluster, unit, item, seconds, command):
    """Run a unit on m1 that applies this object again and again, with NOW as the time."""
    kubectl = (
        "kubectl --kubeconfig=/etc/kubernetes/admin.conf"
        f" --server=https://{cluster.node('m1').ip}:6443"
    )
    files = f"/root/{unit}.json", f"/root/{unit}.sh"
    cluster.write("m1", files[0], json.dumps(item))
    cluster.write(
        "m1",
        files[1],
        f'while sleep {seconds}; do sed "s/NOW/$(date -u +%Y-%m-%dT%H:%M:%SZ)/" {files[0]} |'
        f" {kubectl} {command} -f -; done\n",
    )
    try:
        cluster.exec("m1", ["systemd-run", f"--unit={unit}", "/bin/sh", files[1]])
        yield
    finally:
        cluster.exec(
            "m1",
            f"systemctl stop {unit} 2>/dev/null; systemctl reset-failed {unit} 2>/dev/null; rm -f"
            f" {' '.join(files)}",
            check=False,
        )


@contextlib.contextmanager
def full_node(cluster):
    """Create a Node without a machine that may have no pod, and a unit that says it is Ready."""
    has, now = (
        {"cpu": "4", "memory": "4Gi", "pods": "0"},
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Lab",
        "lastTransitionTime": now,
        "lastHeartbeatTime": "NOW",
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": FULL, "labels": {"kubernetes.io/hostname": FULL}},
        "status": {"capacity": has, "allocatable": has, "conditions": [ready]},
    }
    cluster.kubectl(
        "create", "--validate=false", "-f", "-", input=json.dumps(node).replace("NOW", now)
    )
    try:
        with looping(cluster, BEAT, node, 2, f"replace --raw /api/v1/nodes/{FULL}/status"):
            yield
    finally:
        cluster.kubectl("delete", "node", FULL, "--ignore-not-found", check=False)


@contextlib.contextmanager
def spoilt(cluster, namespace):
    """Taint m1, cordon m2, stop the kubelet of m3, and yield the namespaces of the test.

    Two of the namespaces refuse pods.
    """
    spaces = [namespace, f"{namespace}-quota", f"{namespace}-limits"]
    try:
        for name in spaces:
            jobs.create_namespace(cluster, name)
        cluster.kubectl("label", "node", "m1", "w1", "lab/daemon=yes")
        cluster.kubectl("taint", "node", "m1", "lab/mine=x:NoSchedule")
        cluster.kubectl("cordon", "m2")
        cluster.kubectl("label", "node", "w1", "lab/rack=a")
        cluster.kubectl("label", "node", "m1", "lab/rack=b")
        gpu.create(
            cluster,
            namespace,
            pod(cluster, "port-1", "w1", [18888]),
            pod(cluster, "spread-of-w1", "w1"),
        )
        for name in ("port-1", "spread-of-w1"):
            gpu.wait_running(cluster, namespace, name)
        cluster.exec("m3", ["systemctl", "stop", "kubelet"])
        with full_node(cluster):
            yield spaces
    finally:
        cluster.exec("m3", ["systemctl", "start", "kubelet"])
        cluster.kubectl("uncordon", "m2", check=False)
        cluster.kubectl("taint", "node", "m1", "lab/mine-", check=False)
        cluster.kubectl("label", "node", "m1", "w1", "lab/daemon-", "lab/rack-", check=False)
        for name in spaces:
            jobs.remove(cluster, name)
        cluster.kubectl(
            "delete",
            "persistentvolume",
            f"{namespace}-far",
            "--ignore-not-found",
            "--wait=false",
            check=False,
        )
        cluster.wait_healthy()


def refusing(cluster, spaces):
    """Namespaces in which no pod of a Deployment can be made."""
    _main, quota, limits = spaces
    gpu.create(
        cluster,
        quota,
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none"},
            "spec": {"hard": {"pods": "0"}},
        },
    )
    gpu.create(
        cluster,
        limits,
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "small"},
            "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
        },
    )
    greedy = {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    for master in cluster.of_role("master"):  # each API server learns of both by a watch
        for space, resources in ((quota, None), (limits, greedy)):
            cluster.wait(
                lambda node=master, space=space, resources=resources: refused(
                    cluster, node, space, pod(cluster, "tried", None, resources=resources)
                ),
                120,
                f"{master.name} to refuse pods of {space}",
            )
    gpu.create(cluster, quota, workload(cluster, "quota"))
    gpu.create(cluster, limits, workload(cluster, "limits", resources=greedy))
    for space in spaces:  # of a Job, and of both Deployments
        cluster.wait(
            lambda space=space: (
                b"FailedCreate"
                in cluster.kubectl(
                    "-n", space, "get", "events", "-o", "jsonpath={.items[*].reason}"
                ).stdout
            ),
            180,
            f"a pod of {space} not to be made",
        )


def refused(cluster, node, space, item):
    """Return whether that API server would not take it."""
    return cluster.kubectl(
        "-n",
        space,
        "create",
        "--dry-run=server",
        "--validate=false",
        "-f",
        "-",
        input=json.dumps(item),
        check=False,
        node=node,
    ).returncode


def looked_at(cluster, namespace, name):
    """Return whether a scheduler has said that it finds no node for it."""
    conditions = (
        next(one for one in gpu.pods(cluster, namespace) if one["metadata"]["name"] == name)[
            "status"
        ].get("conditions")
        or ()
    )
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)


def ready(cluster, name):
    path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
    return cluster.kubectl("get", "node", name, "-o", path).stdout == b"True"


def said(found):
    """Return all the words of a finding."""
    return " ".join(
        [found["summary"], *(f"{proof['object']} {proof['text']}" for proof in found["evidence"])]
    )


def of(report, code, name):
    """Return the findings of this code that name this pod or workload."""
    return [
        said(one)
        for one in report["findings"]
        if one["code"] == code and name in said(one).replace("/", " ").replace(",", " ").split()
    ]


def test_each_reason_is_told_apart(cluster, play):
    namespace = jobs.new_namespace()
    with spoilt(cluster, namespace) as spaces:
        cluster.wait(lambda: not ready(cluster, "m3"), 240, "m3 to be not ready")
        cluster.wait(lambda: ready(cluster, FULL), 180, f"{FULL} to be ready")
        gpu.create(cluster, namespace, *pods(cluster, namespace))
        refusing(cluster, spaces)
        for name in ("cordoned", "hungry", "rare", "spread", "tainted", "volume"):
            cluster.wait(
                lambda name=name: looked_at(cluster, namespace, name),
                180,
                f"the scheduler to look at {name}",
            )
        begun = time.monotonic()
        # Whoever names a pod need not wait.
        for name, node in (("cordoned", "m2"), ("hungry", "w1")):
            done, report = play("-e", f"kubemend_pod={namespace}/{name}", name="pods_stay_pending")
            assert done.returncode == 0, done.stdout[-4000:]
            assert f"pod {namespace}/{name} is Pending, without a node" in " ".join(
                done.stdout.split()
            ), done.stdout[-4000:]
            (found,) = of(report, CODES[name], name)
            assert node in found.replace(",", " ").split(), found
            assert not of(report, "KM211", "nowhere"), found
        time.sleep(max(0.0, begun + WAITED + 25 - time.monotonic()))
        cluster.wait(lambda: ready(cluster, FULL), 120, f"{FULL} to be ready still")
        # Within a minute it is collected as garbage.
        named = pod(cluster, "named", None, nodeName=GONE)
        with looping(cluster, NAMED, named, 2, f"-n {namespace} create --validate=false"):
            cluster.wait(
                lambda: [
                    one
                    for one in gpu.pods(cluster, namespace)
                    if one["metadata"]["name"] == "named"
                ],
                60,
                f"a pod that names {GONE}",
            )
            done, report = play(name="pods_stay_pending")
        print(done.stdout)
        expected = {
            name: code
            for name, code in CODES.items()
            if name != "gated" or paths.version_tuple(cluster.k8s) >= GATES_SINCE
        }
        told = {
            name: sorted(
                {one["code"] for one in report["findings"] if of(report, one["code"], name)}
                - {"KM513", "KM514", "KM512"}
            )
            for name in expected
            if name != "tainted"
        }
        assert told == {name: [code] for name, code in expected.items() if name != "tainted"}, (
            done.stdout[-9000:]
        )
        for name, node in NODES.items():
            (found,) = of(report, CODES[name], name)
            assert node in found.replace(",", " ").replace(":", " ").replace(")", " ").split(), (
                name,
                found,
            )
        assert not of(report, "KM513", "rare"), done.stdout[-9000:]
        assert all(
            "because no node offers what is requested (" in of(report, "KM210", name)[0]
            for name in ("rare", "gizmo")
        ), done.stdout[-9000:]
        assert (
            "because no node is large enough for what is requested (cpu: 1000 of 4 at most)"
            in of(report, "KM210", "hungry")[0]
        )
        assert {"KM210", "KM216", "KM220"} <= {
            one["code"] for one in report["findings"] if one["severity"] == "warning"
        }


@pytest.fixture
def narrow(cluster):
    """Yield a kubeconfig on each master of a user without rights."""
    path = "/root/lab-narrow.conf"
    for node in cluster.of_role("master"):
        text = cluster.read(node, "/etc/kubernetes/admin.conf").decode()
        cluster.write(
            node, path, text.replace("  user:\n", "  user:\n    as: lab-narrow\n", 1), mode="600"
        )
    yield path
    for node in cluster.of_role("master"):
        cluster.exec(node, ["rm", "-f", path])


def test_one_sentence_where_there_is_nothing_to_tell(cluster, play, narrow):
    cluster.wait(
        lambda: b"Pending" not in cluster.kubectl("get", "pods", "-A").stdout,
        240,
        "no pod to be Pending",
    )

    def line(*arguments):
        done, report = play(*arguments, name="pods_stay_pending")
        return done.returncode, report["exit_reason"], " ".join(done.stdout.split())

    code, reason, text = line()
    assert (code, reason) == (0, "ok"), text
    assert text.count("note: no pod is Pending") == 1, text
    code, reason, text = line("-e", "kubemend_pod=default/lab-not-there")
    assert (code, reason) == (
        2,
        "input",
    ), text
    assert (
        "kubemend_pod names a pod that does not exist: the API knows no pod default/lab-not-there"
        in text
    ), text
    code, reason, text = line("-e", "kubemend_pod=kube-system/kube-apiserver-m1")
    assert code == 0, text
    assert (
        "pod kube-system/kube-apiserver-m1 is not Pending: its phase is Running, on node m1" in text
    ), text
    code, reason, text = line("-e", f"kubemend_kubeconfig={narrow}")
    assert code == 0, text
    assert "RBAC is too narrow: lab-narrow" in text, text
    assert "lacks the right to list pods at the cluster scope" in text, text


def test_with_all_schedulers_down_nobody_has_a_node(cluster, play):
    """One manifest gone, one broken, one without its image.

    Told of each, by the symptom and by the whole audit; nothing is planned.
    """
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    try:
        with broken(cluster, "no-scheduler", target="m1"):
            gpu.create(cluster, namespace, pod(cluster, "forsaken", None))
            done, report = play(name="pods_stay_pending")
            found, ends = sorted(findings(report), key=lambda one: one["code"], reverse=True)
            assert (ends["code"], ends["host"], ends["component"], found["because"]) == (
                "KM114",
                "m3",
                "kube-scheduler",
                ["KM114"],
            ), report["findings"]
            assert "but it does not start: " in ends["summary"], ends
            assert "kube-scheduler" in ends["evidence"][-1]["text"], ends
            assert (done.returncode, found["code"], found["component"], found["severity"]) == (
                0,
                "KM203",
                "kube-scheduler",
                "critical",
            ), done.stdout[-4000:]
            assert (
                "it runs on no host that answered; m1: it has no manifest; m2: its manifest does"
                " not parse (" in found["summary"]
            ), found
            assert found["summary"].endswith(
                "; m3: its manifest is there, and its container does not start or does not stay up"
            ), found
            manifests = [
                (proof["host"], proof["path"])
                for proof in found["evidence"]
                if proof["kind"] == "file"
            ]
            assert manifests == [
                (name, "/etc/kubernetes/manifests/kube-scheduler.yaml")
                for name in ("m1", "m2", "m3")
            ], found
            assert report["plan"] == []
            assert "until one leads, every new pod stays Pending" in found["remedy"]
            assert "1 heard of no scheduler" in " ".join(done.stdout.split()), done.stdout[-4000:]
            done, report = play(
                "-e", f"kubemend_pod={namespace}/forsaken", name="pods_stay_pending"
            )
            assert f"pod {namespace}/forsaken is Pending, without a node" in " ".join(
                done.stdout.split()
            ), done.stdout[-4000:]
            assert {one["code"] for one in findings(report)} == {"KM203", "KM114"}
            done, report = play(name="audit")
            told = {(one["code"], one["host"], one["component"]) for one in findings(report)}
            assert told == by_name("no-scheduler").expect(cluster, "m1"), done.stdout[-4000:]
            (forsaken,) = gpu.pods(cluster, namespace)
            assert not forsaken["spec"].get("nodeName"), forsaken["status"]
            assert not forsaken["status"].get("conditions"), forsaken["status"]
        gpu.wait_running(cluster, namespace, "forsaken")
    finally:
        jobs.remove(cluster, namespace)


def test_schedulers_that_run_and_do_not_renew_their_lock(cluster, play):
    """The schedulers run, and report themselves healthy.

    Their lock is not renewed, which shows that none of them leads.
    """
    namespace = jobs.new_namespace()
    jobs.create_namespace(cluster, namespace)
    try:
        with broken(cluster, "scheduler-out-of-reach", target="m1"):
            gpu.create(cluster, namespace, pod(cluster, "forsaken", None))
            done, report = play(name="pods_stay_pending")
            (found,) = findings(report)
            assert (done.returncode, found["code"], found["component"], found["severity"]) == (
                0,
                "KM203",
                "kube-scheduler",
                "critical",
            ), done.stdout[-4000:]
            assert found["summary"].endswith(
                ": it runs on m1, m2, m3 and does not renew its lock"
            ), found
            assert "an API server that it cannot reach" in found["remedy"], found
            assert report["plan"] == [], found
            assert "1 heard of no scheduler" in " ".join(done.stdout.split()), done.stdout[-4000:]
            done, report = play(name="audit")
            told = {(one["code"], one["host"], one["component"]) for one in findings(report)}
            assert told == by_name("scheduler-out-of-reach").expect(cluster, "m1"), done.stdout[
                -4000:
            ]
        gpu.wait_running(cluster, namespace, "forsaken")
    finally:
        jobs.remove(cluster, namespace)


def test_one_sentence_where_no_api_server_runs(cluster, play):
    masters = [node.name for node in cluster.of_role("master")]
    try:
        with away(cluster, masters, API_SERVER):
            done, report = play(name="pods_stay_pending")
            text = " ".join(done.stdout.split())
            assert (done.returncode, report["exit_reason"], report["plan"]) == (0, "ok", []), text
            # A component that cannot renew its lock exits, on a slow machine before the audit.
            assert {one["code"] for one in report["findings"]} <= {"KM114"}, text
            assert text.count("note: the API does not answer (") == 1, text
            assert "which pods stay Pending is not known before it does" in text, text
            done, report = play(
                "-e", "kubemend_pod=default/lab-not-there", name="pods_stay_pending"
            )
            assert (done.returncode, report["exit_reason"]) == (
                0,
                "ok",
            ), done.stdout
            assert "note: the API does not answer (" in " ".join(done.stdout.split()), done.stdout
    finally:
        # the kubelet's start forgets the back-off of what crashed while no API answered
        for name in masters:
            cluster.exec(name, ["systemctl", "restart", "kubelet"])
        cluster.wait_healthy()
