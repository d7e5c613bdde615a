# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of each situation: what would be done, in which order, or why not."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    cluster,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    result as model_result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    control_plane,
    maintenance,
)
from tests.unit.support.election_plan import MANAGER, SCHEDULER, break_election, cordon, planned
from tests.unit.support.run_leftovers import cordon_worker


def test_nothing_to_do(world):
    assert planned(world) == ()


def test_without_consent_the_plan_says_what_would_cover_it(world):
    break_election(world, "m2")
    steps = planned(world)
    assert [(step.host, step.component, step.allowed) for step in steps] == [
        ("m2", MANAGER, False),
        ("m2", SCHEDULER, False),
    ]
    assert all(
        step.blocked_by == "risk 2 needs -e kubemend_max_risk=2" and plan.only_risk(step)
        for step in steps
    )
    assert "-    - --leader-elect=false\n+    - --leader-elect=true" in steps[0].diff


def test_two_masters_in_order_and_the_controller_manager_first(world):
    break_election(world, "m3")
    break_election(world, "m2", SCHEDULER)
    steps = planned(world, max_risk=2)
    assert [(step.id, step.allowed) for step in steps] == [
        ("01-m2-kube-scheduler-edit-manifest", True),
        ("02-m3-kube-controller-manager-edit-manifest", True),
        ("03-m3-kube-scheduler-edit-manifest", True),
    ]
    assert steps[0].change["kind"] == "splice"
    assert steps[0].expect["restart"] == "kubelet"
    assert steps[0].guard["api_servers"] == [f"10.0.0.{n}:6443" for n in (1, 2, 3)]


def test_a_hosts_evidence_is_read_once_however_many_findings_it_has(world):
    for host in ("m1", "m2", "m3"):
        break_election(world, host)
    documents, asked = copy.deepcopy(world.documents), []
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])

    def document_of(host):
        asked.append(host)
        return documents[host]

    steps = plan.plan(
        result.findings,
        found,
        document_of,
        plan.Consent(2),
        {**control_plane.REMEDIES, **maintenance.REMEDIES},
        fault_engine.KEY_DIGITS,
    )
    assert len(steps) == 6
    assert sorted(asked) == ["m1", "m2", "m3"]
    assert [step.id for step in steps] == [step.id for step in planned(world, max_risk=2)]


def test_a_dead_kubelet_comes_first(world):
    break_election(world, "m2", MANAGER)
    world.data("m2", "kubelet").update(process=None, unit={"active_state": "failed"})
    steps = [step for step in planned(world, max_risk=2) if step.component == MANAGER]
    assert not steps[0].allowed
    assert "repair the kubelet of m2 first" in steps[0].blocked_by


def test_nothing_is_restarted_by_a_kubelet_that_nothing_shows_to_be_well(world):
    """The node would refuse it too."""
    break_election(world, "m2")
    world.data("m2", "kubelet")["healthz"] = {
        "url": None,
        "status": None,
        "body": None,
        "error": "switched off",
    }
    steps = planned(world, max_risk=2)
    assert not steps[0].allowed
    assert "healthz is switched off (healthzPort: 0)" in steps[0].blocked_by
    # it is not ill
    assert "give the kubelet of m2 another healthzPort" in steps[0].blocked_by
    assert "mend" not in steps[0].blocked_by


def test_nothing_is_edited_while_no_api_server_answers(world):
    break_election(world, "m2", MANAGER)
    world.api.update(status="error", reason="connection refused", collectors={})
    assert [step.allowed for step in planned(world, max_risk=3, allow=["api_down"])] == [False]


def test_a_master_that_somebody_took_out_is_touched_only_where_that_is_allowed(world):
    scheduler_with_config(world)
    break_election(world, "m3", MANAGER)
    world.manifest("m2", MANAGER, "--leader-elect=true", "--v=2")
    cordon(world, "m2"), cordon(world, "m3")
    steps = planned(world, max_risk=2)
    assert {(step.remedy, step.host, step.allowed) for step in steps} >= {
        ("edit_config", "m2", False),
        ("edit_manifest", "m3", False),
    }
    assert all(
        f"another client cordoned {step.host}; allow it with -e kubemend_allow=fenced"
        in step.blocked_by
        for step in steps
    )
    assert all(step.allowed for step in planned(world, max_risk=2, allow=["fenced"]))
    cordon(world, "m2", {"held": False}), cordon(world, "m3", {"held": False})  # a run of ours did
    assert all(step.allowed for step in planned(world, max_risk=2))


@pytest.mark.parametrize(
    ("marker", "name"),
    [
        ("/etc/rancher/rke2", "RKE2"),
        ("/var/cache/nodeup", "kOps"),
        ("/etc/machine-config-daemon", "OpenShift"),
        ("/var/snap/microk8s", "microk8s"),
    ],
)
def test_files_of_another_tool_are_not_edited(world, marker, name):
    break_election(world, "m2", MANAGER)
    world.documents["m2"]["collectors"]["installer"] = {"status": "ok", "data": {"paths": [marker]}}
    step = planned(world, max_risk=3)[0]
    assert not step.allowed
    assert step.blocked_by.startswith(f"{name} owns these files")


def test_kubespray_is_repaired_and_its_inventory_named(world):
    break_election(world, "m2", MANAGER)
    world.documents["m2"]["collectors"]["installer"] = {
        "status": "ok",
        "data": {"paths": ["/etc/kubernetes/kubelet.env"]},
    }
    step = planned(world, max_risk=2)[0]
    assert step.allowed
    assert "kube_kubeadm_controller_extra_args" in step.note
    assert step.shown()["note"] == step.note


def test_the_owner_is_named_before_anything_else_that_stands_in_the_way(world):
    """k3s has no static pods.

    The place to change is its own configuration, not "where it is defined".
    """
    break_election(world, "m2", MANAGER)
    world.data("m2", "manifests")["files"] = []
    world.data("m2", "kubelet")["process"] = {
        "pid": 1,
        "exe": "/var/lib/rancher/k3s/data/0/bin/k3s",
        "argv": ["k3s", "server"],
    }
    steps = planned(world, max_risk=3)
    assert steps
    assert all("/etc/rancher/k3s/config.yaml" in (step.blocked_by or "") for step in steps)


def test_an_edit_that_is_not_safe_is_refused_with_its_reason(world):
    break_election(world, "m2", MANAGER)
    record = next(
        item for item in world.data("m2", "manifests")["files"] if MANAGER in item["name"]
    )
    record["text"] = (
        record["text"]
        .replace("  - command:\n", "  - command: &again\n")
        .replace("spec:\n", "spec:\n  x: *again\n")
    )
    record["text"] = record["text"].replace("spec:\n  x: *again\n", "spec:\n") + "x: *again\n"
    record["size"] = len(record["text"])
    step = planned(world, max_risk=2)[0]
    assert not step.allowed
    assert "line" in step.blocked_by


CONFIG = "kind: KubeSchedulerConfiguration\nleaderElection:\n  leaderElect: false   # why\n"


def scheduler_with_config(world, **more):
    record = {
        "path": "/etc/kubernetes/s.yaml",
        "host_path": "/etc/kubernetes/s.yaml",
        "text": CONFIG,
        "size": len(CONFIG),
        "sha256": "1" * 64,
        "masked": [],
        "mtime": 1.0,
        **more,
    }
    world.manifest("m2", SCHEDULER, "--config=/etc/kubernetes/s.yaml")
    world.run("m2", SCHEDULER, "--config=/etc/kubernetes/s.yaml", elect=False, config=record)


def test_configuration_file_is_edited_and_the_scheduler_restarted(world):
    scheduler_with_config(world)
    step = planned(world, max_risk=2)[0]
    assert (step.allowed, step.remedy, step.expect["restart"]) == (True, "edit_config", "signal")
    assert step.guard["manifest"] == "/etc/kubernetes/manifests/kube-scheduler.yaml"
    assert "+  leaderElect: true   # why" in step.diff


def test_somebody_elses_pending_change_is_not_loaded(world):
    scheduler_with_config(world, mtime=1_900_000_000.0)
    assert "pending_changes" in planned(world, max_risk=2)[0].blocked_by
    assert planned(world, max_risk=2, allow=["pending_changes"])[0].allowed


def test_lost_redundancy_is_said_and_holds_nothing_up(world):
    break_election(world, "m2", MANAGER)
    assert planned(world, max_risk=2)[0].note == ""
    data = world.data("m3", "instances")
    data["processes"] = [
        item for item in data["processes"] if item["component"] not in ("etcd", "kube-apiserver")
    ]
    world.silence("m1")
    step = planned(world, max_risk=2)[0]
    assert step.allowed
    assert (
        "m1 does not answer, etcd of m3 does not run, kube-apiserver of m3 does not run"
        in step.note
    )


def test_hosts_that_limit_leaves_out_are_not_lost_and_nothing_is_done_on_them(world):
    break_election(world, "m2", MANAGER)
    world.silence("m1", "not_asked")
    assert planned(world, max_risk=2)[0].note == ""
    text = (
        "apiVersion: kubeadm.k8s.io/v1beta3\ncontrollerManager:\n  extraArgs:\n    leader-elect:"
        ' "false"\n'
    )
    world.api["collectors"]["kubeadm_config"] = {
        "status": "ok",
        "data": {
            "text": text,
            "masked": [],
            "sha256": "0" * 64,
            "size": len(text),
            "resource_version": "1",
        },
    }
    step = next(item for item in planned(world, max_risk=2) if item.remedy == "kubeadm_config")
    assert step.host == "m1"
    assert not step.allowed
    assert "--limit leaves out" in step.blocked_by


NEWER, OLDER = {"mtime": 1_900_000_000.0}, {"mtime": 1.0}


@pytest.mark.parametrize(
    ("arguments", "more", "said"),
    [
        (
            (),
            {"given": [{"path": "/etc/kubernetes/scheduler.conf", **NEWER}]},
            "/etc/kubernetes/scheduler.conf is newer than the process",
        ),
        (
            (),
            {"given": [{"path": "/a.crt", "replaced": True, **OLDER}]},
            "/a.crt was replaced after the process started",
        ),
        (
            (),
            {"exe": "/usr/local/bin/kube-scheduler (deleted)"},
            "its program /usr/local/bin/kube-scheduler was replaced",
        ),
        (("--v=4",), {}, "--v is '4' in the manifest and not set in the process"),
        ((), {"given": [{"path": "/etc/kubernetes/scheduler.conf", **OLDER}]}, None),
    ],
)
def test_what_a_restart_would_load_besides(world, arguments, more, said):
    world.manifest("m2", SCHEDULER, "--leader-elect=false", *arguments)
    world.run("m2", SCHEDULER, "--leader-elect=false", elect=False, **more)
    step = next(step for step in planned(world, max_risk=2) if step.remedy == "edit_manifest")
    assert step.allowed is (said is None)
    assert said is None or (
        said in step.blocked_by and "kubemend_allow: [pending_changes]" in step.blocked_by
    )
    assert all(
        one.allowed
        for one in planned(world, max_risk=2, allow=["pending_changes"])
        if one.remedy == "edit_manifest"
    )
    # the node looks again
    assert step.expect["words"][-1] == (arguments or ("--leader-elect=false",))[-1]


def test_process_only_is_restarted_when_the_kubelet_has_the_right_manifest(world):
    config = {
        "path": "/s.yaml",
        "host_path": "/s.yaml",
        "text": CONFIG.replace("false", "true"),
        "mtime": 1.0,
    }
    world.manifest("m2", SCHEDULER, "--config=/s.yaml")
    world.run("m2", SCHEDULER, "--config=/s.yaml", elect=False, config=config)
    step = planned(world, max_risk=2)[0]
    assert (step.code, step.remedy, step.allowed) == ("KM102", "restart", True)


def test_process_only_with_an_older_manifest_is_the_kubelets_affair(world):
    world.run("m2", SCHEDULER, "--leader-elect=false", elect=False)
    step = next(step for step in planned(world, max_risk=2) if step.code == "KM102")
    assert not step.allowed
    assert "kubelet" in step.blocked_by


def backup(world, name, *arguments):
    files = world.data("m2", "manifests")["files"]
    right = next(item for item in files if item["name"] == f"{SCHEDULER}.yaml")
    text = right["text"].replace(
        "    - --leader-elect=true\n", "".join(f"    - {item}\n" for item in arguments)
    )
    files.append(
        {
            **right,
            "path": f"/etc/kubernetes/manifests/{name}",
            "name": name,
            "text": text,
            "sha256": "2" * 64,
        }
    )


@pytest.mark.parametrize(
    "name",
    [
        f"{SCHEDULER}.yaml{end}"
        for end in (".bak", "~", ".orig", ".20260102", ".123.2026-01-02@03:04:05~")
    ],
)
def test_a_backup_is_moved_out(world, name):
    backup(world, name, "--leader-elect=true", "--v=9")
    step = planned(world, max_risk=2)[0]
    assert (step.remedy, step.allowed, step.change["kind"]) == ("move_out", True, "move_out")
    assert step.target.endswith(name)


def test_no_file_of_a_pod_that_is_no_component_is_moved(world):
    files = world.data("m2", "manifests")["files"]
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: haproxy}\nspec: {containers: [{name: a, image:"
        " b, command: [a]}]}\n"
    )
    for name in ("haproxy.yaml", "haproxy.yaml.bak"):
        files.append(
            {
                **files[0],
                "path": "/etc/kubernetes/manifests/" + name,
                "name": name,
                "text": text,
                "masked": [],
            }
        )
    assert [item.code for item in world.judge().findings] == ["KM109"]
    assert planned(world, max_risk=3) == ()


def test_of_two_files_that_may_both_be_right_none_is_moved(world):
    backup(world, "scheduler-2.yaml", "--leader-elect=true", "--v=9")
    assert not planned(world, max_risk=2)[0].allowed
    world.data("m2", "manifests")["files"].pop()
    # the running one could be either
    backup(world, f"{SCHEDULER}.yaml.bak", "--leader-elect=true")
    step = planned(world, max_risk=2)[0]
    assert not step.allowed
    assert (
        "have the same arguments, so that which of them runs cannot be determined"
        in step.blocked_by
    )


def test_kubeadm_config_is_risk_1_and_comes_last(world):
    text = (
        "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nscheduler:\n  extraArgs:\n"
        '    leader-elect: "false"\n'
    )
    world.api["collectors"]["kubeadm_config"] = {
        "status": "ok",
        "data": {"text": text, "resource_version": "7"},
    }
    break_election(world, "m2", SCHEDULER)
    steps = planned(world, max_risk=1)
    assert [(step.remedy, step.allowed) for step in steps] == [
        ("edit_manifest", False),
        ("kubeadm_config", True),
    ]
    assert '+    leader-elect: "true"' in steps[1].diff
    assert steps[1].change["resource_version"] == "7"
    assert steps[1].change["real"] == "configmap:kube-system/kubeadm-config#ClusterConfiguration"
    assert steps[1].host == world.api["host"]


def test_kubeadm_config_that_is_wrong_twice_is_one_step(world):
    text = (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\ncontrollerManager:\n "
        ' extraArgs:\n  - name: leader-elect\n    value: "false"\nscheduler:\n  extraArgs:\n  -'
        ' {name: leader-elect, value: "no"}\n'
    )
    world.api["collectors"]["kubeadm_config"] = {
        "status": "ok",
        "data": {"text": text, "resource_version": "7"},
    }
    (step,) = planned(world, max_risk=1)
    assert step.component is None
    assert [splice[2:] for splice in step.change["splices"]] == [
        ["ImZhbHNlIg==", "InRydWUi"],
        ["Im5vIg==", "InRydWUi"],
    ]
    assert step.diff.count('"true"') == 2


def test_our_cordon_that_was_left_behind_goes_last_of_what_lies_in_the_api(world):
    break_election(world, "m2", SCHEDULER)
    cordon_worker(world)
    steps = planned(world, 2)
    assert [(step.code, step.remedy, step.allowed) for step in steps] == [
        ("KM101", "edit_manifest", True),
        ("KM903", "uncordon", True),
    ]
    assert steps[1].change["node"] == "w1"
    assert steps[1].risk == 1
    assert steps[1].node == "w1"
    result = fault_engine.evaluate_clusters([*world.documents.values(), world.api])[0]
    finding = next(item for item in result.findings if item.code == "KM903")
    assert (finding.host, finding.severity) == (
        "w1",
        "warning",
    )
    assert "w1 is still cordoned by run 20261121T090000Z-1a2b3c" in finding.summary


def test_all_that_stands_in_the_way_is_told_at_once(world):
    """An operator who removes the first obstacle would meet the second at the next try."""
    scheduler_with_config(world, mtime=1_900_000_000.0)
    world.api.update(status="error", reason="connection refused", collectors={})
    step = planned(world, max_risk=3)[0]
    assert step.blocked_by.startswith("no API server answers (connection refused)"), step.blocked_by
    assert "; besides, " in step.blocked_by, step.blocked_by
    assert "kubemend_allow: [pending_changes]" in step.blocked_by
    assert plan.all_of(None, "a", "", "b", "a") == "a; besides, b"
    assert plan.all_of(None, "") is None


def test_no_probe_of_a_cluster_in_which_nothing_is_repaired():
    """Another cluster's repair is nothing to prove there."""
    clusters = [cluster.Cluster(key, []) for key in ("a", "b")]
    risks = {"a": 1, "b": 3}

    def step(of, name):
        return plan.Step(
            f"{of}-{name}",
            "m1",
            "KM101",
            name,
            risks[of] if name == "edit_manifest" else 1,
            f"{name} of {of}",
        )

    found = [
        model_result.Finding("KM101", "critical", key, "m1", SCHEDULER, "off") for key in risks
    ]
    steps = plan.plan(
        found,
        clusters,
        lambda host: {},
        plan.Consent(1, frozenset()),
        {"KM101": lambda scene: step(scene.finding.cluster, "edit_manifest")},
        1,
        lambda of: step(of.key, plan.PROBE),
    )
    assert [(one.cluster, one.remedy, one.allowed) for one in steps] == [
        ("a", "edit_manifest", True),
        ("a", plan.PROBE, True),
        ("b", "edit_manifest", False),
        ("b", plan.PROBE, False),
    ]
    assert "nothing to prove" in steps[-1].blocked_by


@pytest.mark.parametrize(
    ("repair", "risk", "allowed"),
    [
        ("switch_swap_off", 1, True),
        ("switch_swap_off", 3, False),
        ("keep_swap_off", 1, False),
    ],
)
def test_a_step_that_needs_a_repair_goes_behind_it_only(repair, risk, allowed):
    """A repair that counts from the next boot, or that is not allowed, repairs nothing now."""
    kinds = {"switch_swap_off": step_kinds.SWAP_OFF, "keep_swap_off": step_kinds.SWAP_PERSISTENCE}
    steps = {
        "KM504": plan.Step("a", "w1", "KM504", kinds[repair], risk, "swap", "a"),
        "KM502": plan.Step(
            "b", "w1", "KM502", step_kinds.START_KUBELET, 1, "unit", "b", needs=("KM504",)
        ),
    }
    found = [model_result.Finding(code, "critical", "a", "w1", "a", "off") for code in steps]
    remedies = {code: (lambda scene: steps[scene.finding.code]) for code in steps}
    planned_steps = plan.plan(
        found,
        [cluster.Cluster("a", [])],
        lambda host: {},
        plan.Consent(1, frozenset()),
        remedies,
        1,
    )
    assert [step.remedy for step in planned_steps] == [kinds[repair], step_kinds.START_KUBELET]
    assert planned_steps[1].allowed is allowed


@pytest.mark.parametrize(
    ("names", "settled"),
    [
        ([], True),
        ([f"{SCHEDULER}.yaml.bak"], True),
        (["second.yaml"], False),
        ([f"{SCHEDULER}.yaml.bak", "second.yaml"], False),
    ],
)
def test_no_edit_beside_another_manifest_that_is_no_backup(world, names, settled):
    """Whichever of them the kubelet takes, an edit of one is no cure.

    A backup is moved out by a step of its own.
    """
    break_election(world, "m2", SCHEDULER)
    for name in names:
        backup(world, name)
    (step,) = [one for one in planned(world, max_risk=2) if one.remedy == "edit_manifest"]
    assert step.allowed is settled, step
    assert settled or "second.yaml holds a manifest of the same component" in step.blocked_by


def test_hosts_of_a_plan_come_as_people_count():
    """w2 is before w10, in the numbers of the steps too."""
    found = [
        model_result.Finding("KM504", "critical", "a", f"w{n}", None, "on") for n in (10, 300, 2)
    ]

    def remedy(scene):
        host = scene.finding.host
        return plan.Step(host, host, "KM504", step_kinds.SWAP_OFF, 1, "swap", host)

    steps = plan.plan(
        found, [cluster.Cluster("a", [])], lambda host: {}, plan.Consent(1), {"KM504": remedy}, 1
    )
    assert [step.host for step in steps] == ["w2", "w10", "w300"]
    assert [step.id[:2] for step in steps] == ["01", "02", "03"]
