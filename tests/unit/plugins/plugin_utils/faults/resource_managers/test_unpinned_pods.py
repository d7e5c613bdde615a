# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM312 and KM313: the policy that kubeadm would write, and pods without CPUs of their own."""

from __future__ import annotations

import functools
import json
import stat

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    workload_patch,
)
from tests.unit.support.facts import facts, facts_of_each
from tests.unit.support.unpinned_pods import (
    FILE,
    configure_kubelets,
    container,
    find,
    item,
    pod,
)


@pytest.fixture
def nodes(world):
    return functools.partial(configure_kubelets, world)


def verdict(world, code):
    rows = [one for one in world.judge(deep=True).verdicts if one.code == code]
    return rows[0].verdict if rows else None


def test_a_running_pod_and_its_template_are_one_finding(nodes):
    (found,) = find(nodes(w1=("static", "static")), item(), pod(), pod("d-77-y"))
    assert (found.severity, found.host, found.node, found.component) == (
        "warning",
        "w1",
        "w1",
        "Deployment n/d",
    )
    assert [(proof.kind, proof.object) for proof in found.evidence] == [
        ("api", "Deployment n/d"),
        ("api", "Pod n/d-77-x"),
        ("api", "Pod n/d-77-y"),
    ]
    lacks = ("init container init", "no limits.cpu", "no limits.memory")
    facts_of_each(
        (proof.text for proof in found.evidence),
        lacks,
        ("Burstable", "w1", *lacks),
        ("Burstable", "w1", *lacks),
    )
    facts(found.summary, "container app", "whole CPUs", "1", "gets none")
    assert found.node == "w1"
    assert found.command.startswith(
        'kubectl -n n patch deployment d --type=strategic -p \'{"spec":'
    )
    assert "give as requests and limits" in found.remedy


def test_only_pods_of_nodes_with_the_static_policy_are_judged(nodes):
    world = nodes(w1=("none", "none"), m1=("static", "static"))
    assert find(world, pod(owner=None)) == []
    assert verdict(world, "KM313") == "clear"
    (found,) = find(world, item(), pod())
    assert (found.severity, found.host, len(found.evidence)) == ("info", None, 1)
    facts(found.summary, "container app", "whole CPUs", "1", "would get none", "static policy")


def test_without_such_a_node_it_does_not_apply(nodes):
    world = nodes(w1=("none", "none"))
    assert find(world, item(), pod()) == []
    assert verdict(world, "KM313") == "not_applicable"


@pytest.mark.parametrize(
    ("flag", "present"),
    [("--cpu-manager-policy=none", False), ("--cpu-manager-policy=static", True)],
)
def test_a_flag_has_the_last_word(nodes, flag, present):
    world = nodes(w1=("none" if present else "static", None, flag))
    assert bool(find(world, pod())) is present


def test_a_host_whose_policy_nobody_knows_keeps_it_unknown_but_not_from_being_present(nodes):
    world = nodes(w1=("static", "static"))
    world.silence("m2")
    assert not find(world)
    assert verdict(world, "KM313") == "unknown"
    assert find(world, pod())
    assert verdict(world, "KM313") == "present"
    world = nodes(m1=("none", "none"))
    world.data("m1", "kubelet")["config"] = {"path": FILE, "error": "denied"}
    assert not find(world)
    assert verdict(world, "KM313") == "unknown"


def test_a_pod_on_a_node_that_the_run_does_not_know_keeps_it_unknown(nodes):
    world = nodes(w1=("static", "static"))
    assert not find(world, pod(node="w9"))
    assert verdict(world, "KM313") is None
    assert {one.reason for one in world.judge(deep=True).not_judged if one.code == "KM313"} == {
        "limit"
    }


def test_a_list_that_was_cut_is_no_proof_of_absence(nodes):
    world = nodes(w1=("static", "static"))
    assert not find(world, truncated=True)
    assert verdict(world, "KM313") == "unknown"


def test_it_is_deep(nodes):
    world = nodes(w1=("static", "static"))
    find(world, pod())
    result = world.judge()
    assert not [one for one in result.findings if one.code == "KM313"]
    assert ("KM313", "tier") in {(one.code, one.reason) for one in result.not_judged}
    del world.api["collectors"]["pinnable"]
    assert {one.reason for one in world.judge(deep=True).not_judged if one.code == "KM313"} == {
        "tier"
    }


def test_owners_are_told_apart(nodes):
    found = find(
        nodes(w1=("static", "static")),
        pod(),
        pod("b", owner=None),
        pod("j-1", owner=("Job", "j")),
        pod("s", owner=("Node", "w1")),
    )
    assert {one.component for one in found} == {
        "Deployment n/d",
        "Pod n/b",
        "Job n/j",
        "Pod n/s",
    }
    assert len({one.id for one in found}) == 4


def test_what_the_operator_expects_is_named_with_the_reason(nodes):
    world = nodes(w1=("static", "static"))
    alone = [container(cpu="1500m")]
    (found,) = find(world, pod(owner=None, expected=True, qos="Guaranteed", containers=alone))
    facts(found.summary, "kubemend_expect_pinning", "gets none")
    assert found.node == "w1"
    facts(found.evidence[0].text, "Guaranteed", "w1", "container app", "limits.cpu 1500m", "whole")
    (found,) = find(world, item(expected=True, containers=[container(cpu=None, memory=None)]))
    assert found.severity == "info"
    assert "no limits.cpu, no limits.memory" in found.evidence[0].text
    assert found.command is None


def test_the_action_writes_them_for_their_owner_only(nodes, operator):
    world = nodes(w1=("static", "static"))
    find(world, item(), pod())
    for name, document in {**world.documents, "m1.cluster": world.api}.items():
        operator.write(
            f"evidence/{name}.json",
            json.dumps({**document, "duration_ms": 0, "tool_version": "0.1.0"}),
        )
    others = operator.write("report/patches/old.yaml", "")
    done = operator.run(
        "replay", "-e", "kubemend_evidence=evidence", "-e", "kubemend_deep=true", inventory=None
    )
    assert done.rc == 0, done.output
    path = operator.folder / "report" / "patches" / "n-deployment-d.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert others.exists()
    (finding,) = [one for one in done.report()["findings"] if one["code"] == "KM313"]
    assert finding["command"] in done.stdout  # in one line, to be copied
    # A run that has none takes away what the former wrote, and nothing of anybody else.
    operator.write("report/patches/kept.yaml", path.read_text(encoding="utf-8"))
    done = operator.run("replay", "-e", "kubemend_evidence=evidence", inventory=None)
    assert done.rc == 0, done.output
    assert sorted(one.name for one in path.parent.iterdir()) == ["kept.yaml", "old.yaml"]


CONFIG = "kind: KubeletConfiguration\ncpuManagerPolicy: static\n"


def kubeadm(world, text=CONFIG, name="kubelet-config", **record):
    world.api["collectors"]["kubelet_configs"] = {
        "status": "ok",
        "data": {"items": [{"name": name, "text": text, "masked": []}]},
        **record,
    }
    return [one for one in world.judge().findings if one.code == "KM312"]


@pytest.mark.parametrize(
    ("text", "state", "proof"),
    [
        (CONFIG, "none", (2, "cpuManagerPolicy: static")),
        (CONFIG, "static", None),
        (CONFIG, None, None),
        ("kind: KubeletConfiguration\n", "none", None),
        ("kind: KubeletConfiguration\n", "static", (None, "no cpuManagerPolicy, so none")),
        ("cpuManagerPolicy: none\n", "static", (1, "cpuManagerPolicy: none")),
        ('cpuManagerPolicy: ""\n', "none", None),
        ("# cpuManagerPolicy: static\n", "none", None),
    ],
)
def test_the_policy_that_kubeadm_would_write(nodes, text, state, proof):
    world = nodes(w1=("static" if state == "static" else "none", state))
    found = kubeadm(world, text)
    assert verdict(world, "KM312") == ("present" if proof else "clear")
    if proof:
        config, node = found[0].evidence
        assert (config.object, config.path, config.line, config.text) == (
            "ConfigMap kube-system/kubelet-config",
            "kubelet",
            *proof,
        )
        assert (node.host, node.path, node.text) == (
            "w1",
            "/var/lib/kubelet/cpu_manager_state",
            f"policyName: {state}",
        )
        assert f"cpuManagerPolicy: {state} of w1" in found[0].remedy
        assert found[0].component == "kubelet-config"


@pytest.mark.parametrize("change", ["flag", "drop-in", "other file"])
def test_where_kubeadms_file_has_not_the_last_word_it_does_no_harm(nodes, change):
    world = nodes(w1=("none", "none", *(["--cpu-manager-policy=none"] if change == "flag" else [])))
    kubelet = world.data("w1", "kubelet")
    if change == "drop-in":
        kubelet["config_dropins"] = [
            {"path": "/etc/kubernetes/kubelet.conf.d/50.conf", "text": "cpuManagerPolicy: none\n"}
        ]
    if change == "other file":
        kubelet["config"]["path"] = "/etc/kubernetes/kubelet-config.yaml"
    assert not kubeadm(world)
    assert verdict(world, "KM312") == "not_applicable"


def test_evidence_that_the_comparison_needs(nodes):
    world = nodes(w1=("static", "static"), m1=("none", "none"))
    world.api["collectors"]["kubelet_configs"] = {"status": "absent", "data": None}
    assert verdict(world, "KM312") == "not_applicable"
    world.api["collectors"]["kubelet_configs"] = {"status": "denied", "data": None}
    assert verdict(world, "KM312") == "unknown"
    assert not kubeadm(world, "a: [\n")
    assert verdict(world, "KM312") == "unknown"
    world.documents["m1"]["collectors"]["pinning"] = {"status": "timeout", "data": None}
    assert not kubeadm(world)
    assert verdict(world, "KM312") == "unknown"
    world.silence("m1")
    assert not kubeadm(world)
    assert verdict(world, "KM312") == "unknown"
    world = nodes(w1=("none", "none"))
    assert kubeadm(world)
    assert verdict(world, "KM312") == "present"
    world.data("w1", "kubelet")["config_dropins"] = [
        {"path": "/etc/kubernetes/kubelet.conf.d/50.conf", "text": None, "error": "denied"}
    ]
    assert not kubeadm(world)
    assert verdict(world, "KM312") == "unknown"


# kubemend_patch_workloads: the patch as a step.
DIGEST = "a" * 64


def planned(world, *items, wish=True):
    find(world, *items)
    documents = world.documents
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api], deep=True)
    consent = plan.Consent(3, wishes=frozenset([plan.PATCH] if wish else []))
    return plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        consent,
        workload_patch.REMEDIES,
        fault_engine.KEY_DIGITS,
    )


def test_what_is_selected_is_patched_where_that_is_asked_for(nodes):
    world = nodes(w1=("static", "static"))
    (step,) = planned(world, item(expected=True, resources=DIGEST), pod(expected=True))
    assert (step.remedy, step.risk, step.allowed, step.target, step.host) == (
        "patch_workload",
        3,
        True,
        "Deployment n/d",
        "m1",
    )
    assert (step.change["real"], step.change["sha256"]) == (
        "workload:/apis/apps/v1/namespaces/n/deployments/d",
        DIGEST,
    )
    assert step.change["resources"] == {
        "initContainers": {"init": {"cpu": "1", "memory": "64Mi"}},
        "containers": {"app": {"cpu": "1", "memory": "64Mi"}},
    } or step.change["resources"] == {"initContainers": {"init": {"cpu": "1", "memory": "64Mi"}}}
    assert '"initContainers"' in step.diff
    assert (
        planned(world, item(expected=True, resources=DIGEST), pod(expected=True), wish=False) == ()
    )
    assert planned(world, item(resources=DIGEST), pod()) == ()  # the selector does not name it


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (
            {"manager": {"tool": "Argo CD", "name": "shop"}, "resources": DIGEST},
            "Argo CD shop owns Deployment n/d",
        ),
        ({}, "collect it again"),
        ({"resources": DIGEST, "name": "d/../x"}, "collect it again"),
    ],
)
def test_what_is_not_patched_says_why(nodes, more, word):
    (step,) = planned(nodes(w1=("static", "static")), item(expected=True, **more))
    assert not step.allowed
    assert word in step.blocked_by


def test_a_job_is_not_patched(nodes):
    (step,) = planned(nodes(w1=("static", "static")), pod(owner=("Job", "j"), expected=True))
    assert not step.allowed
    assert "a Job cannot be changed, so create it again" in step.blocked_by
