# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods and templates leave the node.

They are those that look meant for pinning and get none, in few words.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pinnable,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.fake_client import PATHS, WorkloadClient

ONE = {"cpu": "1", "memory": "64Mi"}


def container(name="app", limits=None, requests=None, **more):
    resources = {
        key: value
        for key, value in (("limits", limits), ("requests", requests))
        if value is not None
    }
    return dict({"name": name, "resources": resources}, **more)


def spec(*init, app=None, **more):
    return dict(
        {
            "containers": [container(limits=ONE)] if app is None else app,
            "initContainers": list(init),
        },
        **more,
    )


def pod(name, given, owner=None, node="w1", qos="Burstable", labels=None, **meta):
    owners = (
        [
            {
                "kind": owner[0],
                "name": owner[1],
                "apiVersion": owner[2] if len(owner) > 2 else "apps/v1",
                "controller": True,
            }
        ]
        if owner
        else []
    )
    return "/api/v1/pods", {
        "metadata": dict(
            {
                "namespace": "n",
                "name": name,
                "uid": "u-" + name,
                "ownerReferences": owners,
                "labels": labels or {},
            },
            **meta,
        ),
        "spec": dict(given, nodeName=node),
        "status": {"phase": "Running", "qosClass": qos},
    }


def workload(kind, name, given, of_pods=None, **meta):
    body = {"template": {"metadata": {"labels": of_pods or {}}, "spec": given}}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": body}}
    return kind, {
        "metadata": dict({"namespace": "n", "name": name, "uid": "u-" + name}, **meta),
        "spec": body,
    }


def collect(*objects, expected=None, **more):
    return pinnable.collect(
        WorkloadClient(*objects, **more), expected, lambda error: error.status == "timeout"
    )


def names(*objects, **more):
    return [(item["kind"], item["name"]) for item in collect(*objects, **more)[0]["items"]]


BAD = spec(container("init"))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (spec(), False),
        (spec(container("init", {"cpu": "100m", "memory": "1Mi"})), False),
        (BAD, True),
        # memory of an init container
        (spec(container("init", {"cpu": "1"})), True),
        (
            spec(
                container(
                    "side", {"cpu": "1", "memory": "1Gi"}, {"cpu": "500m"}, restartPolicy="Always"
                )
            ),
            True,
        ),
        # the same, otherwise written
        (spec(app=[container(limits=ONE, requests={"cpu": "1000m", "memory": "65536Ki"})]), False),
        # memory of the app itself
        (spec(app=[container(limits={"cpu": "2"})]), True),
        (
            spec(
                app=[
                    container(
                        limits={"cpu": "2", "memory": "2Gi"}, requests={"cpu": "2", "memory": "1Gi"}
                    )
                ]
            ),
            True,
        ),
        (spec(app=[container(limits=ONE), container("other")]), True),
        # a limit of 0 is none
        (
            spec(app=[container(limits=ONE), container("other", {"cpu": "0", "memory": "1Mi"})]),
            True,
        ),
        # normal, and no fault
        (spec(app=[container(requests={"cpu": "1"})]), False),
        (spec(app=[container(limits={"cpu": "1500m"})]), False),
        (spec(app=[container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "1"})]), False),
        # only init containers ask for whole CPUs
        (spec(container("init", {"cpu": "2"}), app=[container()]), False),
        ({"containers": [{"name": "app"}]}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("kind", sorted(PATHS))
def test_what_looks_meant_for_pinning(kind, given, kept):
    assert names(workload(kind, "a", given)) == ([(kind, "a")] if kept else [])
    assert names(pod("a", given, qos=None)) == ([("Pod", "a")] if kept else [])


def test_the_class_that_the_api_server_worked_out_counts():
    assert names(pod("a", BAD, qos="Guaranteed"), pod("b", spec(), qos="Burstable")) == [
        ("Pod", "b")
    ]


def test_the_pod_as_a_whole_may_have_resources():
    whole = dict(spec(), resources={"limits": ONE, "requests": {"memory": "32Mi"}})
    data, _dummy = collect(
        workload("Deployment", "d", dict(BAD, resources={"limits": ONE})),
        pod("a", whole),
        pod("b", whole, qos="Guaranteed"),
    )
    (item,) = data["items"]
    assert item["name"] == "a"
    assert item["pod_level"] == {
        "cpu_request": None,
        "cpu_limit": "1",
        "memory_request": "32Mi",
        "memory_limit": "64Mi",
    }


def test_what_is_kept():
    data, cut = collect(
        workload("Deployment", "d", BAD),
        pod(
            "d-77-x",
            spec(container("init"), container("proxy", restartPolicy="Always")),
            ("ReplicaSet", "d-77"),
            labels={"pod-template-hash": "77"},
        ),
    )
    template, found = data["items"]
    app = {
        "name": "app",
        "kind": "app",
        "cpu_request": None,
        "cpu_limit": "1",
        "memory_request": None,
        "memory_limit": "64Mi",
    }
    none = dict(app, name="init", kind="init", cpu_limit=None, memory_limit=None)
    assert len(template.pop("resources")) == 64
    assert template == {
        "kind": "Deployment",
        "api_version": "apps/v1",
        "namespace": "n",
        "name": "d",
        "uid": "u-d",
        "node": None,
        "phase": None,
        "qos": None,
        "owner": None,
        "manager": None,
        "expected": False,
        "pod_level": None,
        "containers": [app, none],
    }
    assert found == dict(
        template,
        kind="Pod",
        api_version="v1",
        name="d-77-x",
        uid="u-d-77-x",
        node="w1",
        phase="Running",
        qos="Burstable",
        alike=1,
        owner={"kind": "Deployment", "api_version": "apps/v1", "name": "d"},
        containers=[
            dict(app, injected=False),
            dict(none, injected=False),
            dict(none, name="proxy", kind="sidecar", injected=True),
        ],
    )
    assert not cut


def meta_of(kind, name, **more):
    return {
        "metadata": dict(
            {
                "ownerReferences": [
                    {"kind": kind, "name": name, "apiVersion": "x/v1", "controller": True}
                ]
            },
            **more,
        )
    }


@pytest.mark.parametrize(
    ("owner", "labels", "single", "found"),
    [
        (None, {}, {}, None),
        (("StatefulSet", "s"), {}, {}, ("StatefulSet", "s")),
        (("Node", "w1", "v1"), {}, {}, ("Node", "w1")),
        (("ReplicaSet", "d-77"), {"pod-template-hash": "77"}, {}, ("Deployment", "d")),
        # there is no Deployment e
        (("ReplicaSet", "e-77"), {"pod-template-hash": "77"}, {}, ("ReplicaSet", "e-77")),
        (
            ("ReplicaSet", "r-9"),
            {},
            {"/apis/apps/v1/namespaces/n/replicasets/r-9": meta_of("Rollout", "r")},
            ("Rollout", "r"),
        ),
        (
            ("Job", "c-1"),
            {},
            {"/apis/batch/v1/namespaces/n/jobs/c-1": meta_of("CronJob", "c")},
            ("CronJob", "c"),
        ),
        (("Job", "j"), {}, {"/apis/batch/v1/namespaces/n/jobs/j": {"metadata": {}}}, ("Job", "j")),
        (("Job", "gone"), {}, {}, ("Job", "gone")),
    ],
)
def test_the_topmost_owner(owner, labels, single, found):
    data, _dummy = collect(
        workload("Deployment", "d", spec()), pod("p", BAD, owner, labels=labels), single=single
    )
    said = data["items"][0]["owner"]
    assert (said and (said["kind"], said["name"])) == found


def test_owners_are_asked_for_once():
    api = WorkloadClient(
        *(pod(f"p{number}", BAD, ("Job", "j"), node=f"w{number}") for number in range(5))
    )
    pinnable.collect(api, None, lambda error: False)
    assert len([path for path in api.asked if path.endswith("/jobs/j")]) == 1


@pytest.mark.parametrize(
    ("meta", "tool", "name"),
    [
        (
            {
                "annotations": {"meta.helm.sh/release-name": "shop"},
                "labels": {"app.kubernetes.io/managed-by": "Helm"},
            },
            "Helm",
            "shop",
        ),
        (
            {
                "annotations": {
                    "argocd.argoproj.io/tracking-id": "shop:apps/Deployment:n/d",
                    "meta.helm.sh/release-name": "x",
                }
            },
            "Argo CD",
            "shop",
        ),
        ({"labels": {"argocd.argoproj.io/instance": "shop"}}, "Argo CD", "shop"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}, "Flux (Kustomization)", "apps"),
        (
            {
                "labels": {
                    "helm.toolkit.fluxcd.io/name": "apps",
                    "app.kubernetes.io/managed-by": "Helm",
                }
            },
            "Flux (HelmRelease)",
            "apps",
        ),
        (
            {
                "labels": {
                    "app.kubernetes.io/managed-by": "operator",
                    "app.kubernetes.io/instance": "i",
                }
            },
            "operator",
            "i",
        ),
        (meta_of("Database", "main")["metadata"], "Database", "main"),
    ],
)
def test_who_would_undo_a_patch(meta, tool, name):
    data, _dummy = collect(
        workload("Deployment", "d", BAD, **meta),
        pod("p", BAD, ("ReplicaSet", "d-77"), labels={"pod-template-hash": "77"}),
    )
    assert [item["manager"] for item in data["items"]] == [{"tool": tool, "name": name}] * 2


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"labels": {"app.kubernetes.io/managed-by": "kubectl"}},
        {"labels": None, "annotations": None},
    ],
)
def test_nobody_would(meta):
    assert collect(workload("Deployment", "d", BAD, **meta))[0]["items"][0]["manager"] is None


def test_pods_that_are_alike_are_counted():
    owner = ("DaemonSet", "d")
    data, _dummy = collect(
        pod("a", BAD, owner),
        pod("b", BAD, owner),
        pod("b", BAD, owner),
        pod("c", BAD, owner, node="w2"),
        pod("d", BAD),
        pod("e", BAD),
    )
    assert [(item["name"], item["alike"]) for item in data["items"]] == [
        ("a", 2),
        ("c", 1),
        ("d", 1),
        ("e", 1),
    ]


def test_pods_that_go_are_left_out():
    assert not names(pod("a", BAD, deletionTimestamp="2027-01-15T08:00:00Z"))


def test_a_template_whose_pods_turn_out_well_is_no_suspect():
    """A LimitRange gave the init container its limits."""
    objects = workload("Deployment", "d", BAD), workload("StatefulSet", "s", BAD)
    well = [
        pod(
            "d-77-x",
            spec(),
            ("ReplicaSet", "d-77"),
            labels={"pod-template-hash": "77"},
            qos="Guaranteed",
        ),
        pod("s-0", spec(), ("StatefulSet", "s"), qos="Guaranteed"),
    ]
    assert names(*objects, *well) == []
    assert names(*objects, *well, pod("s-1", BAD, ("StatefulSet", "s"))) == [
        ("Pod", "s-1"),
        ("StatefulSet", "s"),
    ]


FRACTION = [container(limits={"cpu": "1500m", "memory": "1Gi"})]


@pytest.mark.parametrize(
    ("given", "qos", "kept"),
    [
        (spec(), "Guaranteed", False),
        (spec(app=FRACTION), "Guaranteed", True),
        (spec(app=[container(requests={"cpu": "1"})]), "Burstable", True),
        (spec(app=[container()]), "BestEffort", True),
        (BAD, "Burstable", True),
        # an init container's CPUs do not outlive it
        (spec(container("init", ONE), app=FRACTION), "Guaranteed", True),
    ],
)
def test_what_the_operator_expects_to_be_pinned_is_told_whatever_its_shape(given, qos, kept):
    expected, other = {"pin": "yes"}, {"pin": "no"}
    objects = [
        pod("a", given, qos=qos, labels=expected),
        workload("Deployment", "d", given, of_pods=expected),
    ]
    data, _dummy = collect(*objects, expected="pin in (yes)")
    assert [(item["kind"], item["expected"]) for item in data["items"]] == (
        [("Deployment", True), ("Pod", True)] if kept else []
    )
    if given is not BAD:
        assert not names(
            pod("a", given, qos=qos, labels=other),
            workload("Deployment", "d", given, of_pods=other),
            expected="pin in (yes)",
        )


def test_cronjobs_of_old_releases():
    item = workload("CronJob", "c", BAD)[1]
    assert names(("/apis/batch/v1beta1/cronjobs", item), absent=(PATHS["CronJob"],)) == [
        ("CronJob", "c")
    ]
    with pytest.raises(ApiError):
        collect(absent=(PATHS["DaemonSet"],))


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        (PATHS["StatefulSet"], [("Deployment", "d")]),
        ("/api/v1/pods", [("Deployment", "d"), ("StatefulSet", "s")]),
    ],
)
def test_what_was_read_until_the_time_limit_counts(path, kept):
    objects = [workload("Deployment", "d", BAD), workload("StatefulSet", "s", BAD), pod("p", BAD)]
    data, cut = collect(*objects, fail={path: 0})
    assert cut
    assert [(item["kind"], item["name"]) for item in data["items"]] == kept
    with pytest.raises(ApiError):
        pinnable.collect(WorkloadClient(*objects, fail={path: 0}), None, lambda error: False)


def test_too_many_are_cut():
    many = [pod(f"p{number}", BAD) for number in range(pinnable.MAX_ITEMS + 1)]
    data, cut = collect(*many)
    assert cut
    assert len(data["items"]) == pinnable.MAX_ITEMS
    many = [workload("Deployment", f"d{number}", BAD) for number in range(pinnable.MAX_ITEMS + 1)]
    data, cut = collect(*many)
    assert cut
    assert len(data["items"]) == pinnable.MAX_ITEMS
