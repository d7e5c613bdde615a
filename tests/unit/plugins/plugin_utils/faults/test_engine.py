# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging, situation by situation.

Exactly which faults are present, where, and what is unknown for want of whom.
"""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import evaluate

SCHEDULER, MANAGER = "kube-scheduler", "kube-controller-manager"
ELECTION = ("KM101", "KM102", "KM103", "KM104", "KM105")


def present(result):
    return {(finding.code, finding.host, finding.component) for finding in result.findings}


def verdicts(result, code):
    return {
        (item.host or item.component): item.verdict for item in result.verdicts if item.code == code
    }


def missing_hosts(result, code):
    return {
        item.host for verdict in result.verdicts if verdict.code == code for item in verdict.missing
    }


def test_healthy_cluster_has_no_finding_and_no_unknown(world):
    result = world.judge(deep=True)
    assert present(result) == set()
    assert {item.verdict for item in result.verdicts} <= {"clear", "not_applicable"}
    assert result.not_judged == ()
    assert [row.role for row in result.hosts] == ["control_plane"] * 3 + ["worker"]


@pytest.mark.parametrize("component", [SCHEDULER, MANAGER])
def test_disabled_in_file_and_process(world, component):
    world.manifest("m2", component, "--leader-elect=false")
    world.run("m2", component, "--leader-elect=false", elect=False)
    result = world.judge()
    assert present(result) == {("KM101", "m2", component)}
    proof = result.findings[0].evidence[0]
    assert (proof.path, proof.line) == (f"/etc/kubernetes/manifests/{component}.yaml", 10)
    assert "--leader-elect=true" in result.findings[0].remedy


def test_disabled_in_process_only(world):
    world.run("m2", SCHEDULER, "--leader-elect=false", elect=False)
    assert ("KM102", "m2", SCHEDULER) in present(world.judge())
    assert "KM101" not in {code for code, _host, _component in present(world.judge())}


def test_disabled_in_file_only_while_the_kubelet_is_dead(world):
    world.manifest("m2", SCHEDULER, "--leader-elect=false", mtime=1_800_000_000.0 - 5)
    world.data("m2", "kubelet").update(process=None, unit={"active_state": "inactive"})
    result = world.judge()
    assert present(result) == {
        ("KM103", "m2", SCHEDULER),
        ("KM108", "m2", SCHEDULER),
        ("KM502", "m2", "kubelet"),
    }
    assert "inactive" in next(item.summary for item in result.findings if item.code == "KM108")


def test_a_change_of_seconds_ago_is_unknown_not_a_fault(world):
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4", mtime=1_800_000_000.0 - 5)
    result = world.judge()
    assert verdicts(result, "KM108")["m2"] == "unknown"
    world.manifest("m2", SCHEDULER, "--leader-elect=true", "--v=4", mtime=1_800_000_000.0 - 500)
    assert ("KM108", "m2", SCHEDULER) in present(world.judge())


def test_scheduler_configuration_file(world):
    config = {
        "path": "/etc/kubernetes/s.yaml",
        "host_path": "/etc/kubernetes/s.yaml",
        "text": "kind: KubeSchedulerConfiguration\nleaderElection:\n  leaderElect: false\n",
    }
    world.manifest("m2", SCHEDULER, "--config=/etc/kubernetes/s.yaml")
    world.run("m2", SCHEDULER, "--config=/etc/kubernetes/s.yaml", elect=False, config=config)
    result = world.judge()
    assert present(result) == {("KM104", "m2", SCHEDULER)}
    assert (result.findings[0].evidence[0].path, result.findings[0].evidence[0].line) == (
        "/etc/kubernetes/s.yaml",
        3,
    )


@pytest.mark.parametrize("word", ["no", "off", "No", "n"])
def test_a_configuration_file_says_no_in_every_way_that_yaml_has(world, word):
    config = {
        "path": "/s.yaml",
        "host_path": "/s.yaml",
        "text": f"leaderElection:\n  leaderElect: {word}\n",
    }
    world.manifest("m2", SCHEDULER, "--config=/s.yaml")
    for elect in (False, None):  # with its answer, and by its files alone
        world.run("m2", SCHEDULER, "--config=/s.yaml", elect=elect, config=config)
        result = world.judge()
        assert present(result) == {("KM104", "m2", SCHEDULER)}
        assert result.findings[0].evidence[0].text == f"leaderElect: {word}"


@pytest.mark.parametrize(
    ("word", "verdict"),
    [("nope", "unknown"), ("0", "unknown"), ("null", "clear"), ("Yes", "clear")],
)
def test_what_is_no_boolean_is_not_taken_for_silence(world, word, verdict):
    config = {
        "path": "/s.yaml",
        "host_path": "/s.yaml",
        "text": f"leaderElection: {{leaderElect: {word}}}\n",
    }
    world.manifest("m2", SCHEDULER, "--config=/s.yaml")
    world.run("m2", SCHEDULER, "--config=/s.yaml", elect=None, config=config)
    assert verdicts(world.judge(), "KM104")[SCHEDULER] == verdict


def test_no_restart_of_an_old_process_whose_file_would_end_the_next(world):
    config = {
        "path": "/s.yaml",
        "host_path": "/s.yaml",
        "text": "leaderElection: {leaderElect: nope}\n",
    }
    world.manifest("m2", SCHEDULER, "--config=/s.yaml")
    world.run("m2", SCHEDULER, "--config=/s.yaml", elect=False, config=config)
    assert present(world.judge()) == {("KM104", "m2", SCHEDULER)}


@pytest.mark.parametrize(
    ("version", "elect", "verdict"),
    [
        ("v1.18.4", "--leader-elect=true", "present"),  # up to 1.22 the file alone counts
        ("v1.30.1", "--leader-elect=true", "clear"),  # from 1.23 on the flag overrides the file
        ("v1.30.1", "--v=2", "present"),  # no explicit flag: the file counts
    ],
)
def test_flag_against_file_depends_on_the_version(world, version, elect, verdict):
    config = {
        "path": "/s.yaml",
        "host_path": "/s.yaml",
        "text": "leaderElection: {leaderElect: false}\n",
    }
    world.manifest("m2", SCHEDULER, "--config=/s.yaml", elect)
    world.run("m2", SCHEDULER, "--config=/s.yaml", elect, elect=None, config=config)
    world.data("m2", "component_http")["components"][-1]["metrics"]["git_version"] = version
    assert verdicts(world.judge(), "KM104")[SCHEDULER] == verdict


@pytest.mark.parametrize(
    "argument", ["--leader-elect=no", "--leader-elect=fAlse", '--leader-elect="false"']
)
def test_value_that_does_not_parse(world, argument):
    world.manifest("m2", MANAGER, f"'{argument}'")
    world.data("m2", "instances")["processes"] = []
    assert present(world.judge()) == {
        ("KM105", "m2", MANAGER),
        ("KM114", "m2", MANAGER),
        ("KM114", "m2", SCHEDULER),
    }


def test_single_instance_needs_no_election(single):
    single.manifest("m1", MANAGER, "--leader-elect=false")
    single.run("m1", MANAGER, "--leader-elect=false", elect=False)
    single.data("m1", "etcd")["members"] = single.data("m1", "etcd")["members"][:1]
    result = single.judge()
    assert present(result) == set()
    assert verdicts(result, "KM101")[MANAGER] == "not_applicable"


def test_unreachable_master_that_may_be_the_wrong_one(world):
    world.silence("m2")
    result = world.judge()
    assert present(result) == {("KM901", "m2", None)}
    assert verdicts(result, "KM101") == {SCHEDULER: "unknown", MANAGER: "unknown"}
    assert missing_hosts(result, "KM101") == {"m2"}


def test_unreachable_master_hides_nothing_that_another_proves(world):
    world.silence("m3")
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = world.judge()
    assert present(result) == {("KM901", "m3", None), ("KM101", "m2", MANAGER)}
    assert verdicts(result, "KM101") == {SCHEDULER: "unknown", MANAGER: "present"}


def test_unreachable_worker_leaves_the_control_plane_clear(world):
    world.silence("w1")
    result = world.judge()
    assert present(result) == {("KM901", "w1", None)}
    assert set(verdicts(result, "KM101").values()) == {"clear"}


def test_master_that_is_no_host_of_the_inventory(world):
    del world.documents["m3"]
    result = world.judge()
    assert present(result) == {("KM112", None, None)}
    assert result.findings[0].node == "m3"
    assert verdicts(result, "KM101")[MANAGER] == "unknown"
    assert missing_hosts(result, "KM101") == {"m3"}


def test_a_silent_host_of_another_name_may_be_the_stranger(world):
    """An inventory may call a master otherwise than its Node is called.

    Silent, it is known by its address or not at all.
    """
    document = world.documents.pop("m3")
    world.documents["master-three"] = {**document, "host": "master-three"}
    world.silence("master-three")
    assert present(world.judge()) == {("KM901", "master-three", None)}
    assert verdicts(world.judge(), "KM112") == {None: "unknown"}
    world.documents["master-three"]["address"] = "10.0.0.3"
    assert verdicts(world.judge(), "KM112") == {None: "clear"}
    assert missing_hosts(world.judge(), "KM101") == {"master-three"}


def test_limit_to_a_worker_judges_nothing_of_the_masters(world):
    for host in ("m1", "m2", "m3"):
        world.silence(host, "not_asked")
    result = world.judge()
    assert present(result) == set()
    assert set(ELECTION) <= {item.code for item in result.not_judged}
    assert {item.verdict for item in result.verdicts} <= {"clear", "not_applicable"}


def test_limit_to_the_wrong_master_still_proves_it(world):
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    for host in ("m1", "m3", "w1"):
        world.silence(host, "not_asked")
    assert present(world.judge()) == {("KM101", "m2", MANAGER)}


def test_api_down_leaves_node_evidence_judged(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = world.judge()
    assert present(result) == {("KM101", "m2", MANAGER)}
    assert set(verdicts(result, "KM113").values()) == {"unknown"}


def test_broken_manifest(world):
    world.data("m2", "manifests")["files"][0]["text"] = "apiVersion: v1\nkind: Pod\n  bad: [\n"
    result = world.judge()
    assert present(result) == {("KM107", "m2", SCHEDULER)}
    assert result.findings[0].evidence[0].line == 3


def test_backup_beside_the_manifest(world):
    files = world.data("m2", "manifests")["files"]
    files.append({**files[0], "path": files[0]["path"] + ".bak", "name": files[0]["name"] + ".bak"})
    assert present(world.judge()) == {("KM109", "m2", SCHEDULER)}


@pytest.mark.parametrize(("second", "twice"), [("haproxy", True), ("keepalived", False)])
def test_two_files_of_another_static_pod(world, second, twice):
    """What stands before the API servers flaps just so; two pods in two files are none of this."""
    files = world.data("m2", "manifests")["files"]
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: kube-system}\nspec:"
        " {containers: [{name: a, image: b, command: [a]}]}\n"
    )
    for name, pod in (("haproxy.yaml", "haproxy"), ("haproxy.yaml.bak", second)):
        files.append(
            {
                **files[0],
                "path": "/etc/kubernetes/manifests/" + name,
                "name": name,
                "text": text % pod,
                "masked": [],
            }
        )
    result = world.judge()
    assert present(result) == ({("KM109", "m2", None)} if twice else set())
    if twice:
        (found,) = result.findings
        assert (
            found.severity,
            found.risk,
            [proof.path.rpartition("/")[2] for proof in found.evidence],
        ) == ("warning", 0, ["haproxy.yaml", "haproxy.yaml.bak"])
        assert (
            "2 manifests of the pod kube-system/haproxy in the static pod folder" in found.summary
        )


def test_foreign_controller_manager_in_an_ordinary_pod(world):
    nested = "-----BEGIN CERTIFICATE-----\nMIIBnested\n-----END CERTIFICATE-----\n"
    world.data("w1", "instances") or world.documents["w1"]["collectors"].update(
        instances={"status": "ok", "data": {"processes": []}}
    )
    foreign = dict(
        world.data("m1", "instances")["processes"][1],
        pid=7,
        static=False,
        pod_uid="6c1b4b1c-0000-4000-8000-000000000000",
        argv=[MANAGER, "--leader-elect=false"],
        authority={"pem": nested},
    )
    world.data("w1", "instances")["processes"].append(foreign)
    result = world.judge()
    assert present(result) == set()
    assert set(verdicts(result, "KM101").values()) == {"clear"}


def test_the_same_pod_in_this_cluster_is_a_second_leader(world):
    world.documents["w1"]["collectors"]["instances"] = {
        "status": "ok",
        "data": {
            "processes": [
                dict(
                    world.data("m1", "instances")["processes"][1],
                    pid=7,
                    static=False,
                    pod_uid="6c1b4b1c-0000-4000-8000-000000000000",
                    argv=[MANAGER, "--leader-elect=false"],
                )
            ]
        },
    }
    assert ("KM101", "w1", MANAGER) in present(world.judge())


def test_locks_that_do_not_overlap(world):
    world.data("m2", "component_http")["components"][0]["configz"]["leader_election"][
        "resourceLock"
    ] = "endpoints"
    assert present(world.judge()) == {("KM106", "m2", SCHEDULER)}
    for lock in ("endpointsleases", "leases"):
        world.data("m2", "component_http")["components"][0]["configz"]["leader_election"][
            "resourceLock"
        ] = lock
        assert present(world.judge()) == set()


def test_a_scheduler_of_another_name_is_another_duty(world):
    answer = world.data("m2", "component_http")["components"][0]["configz"]["leader_election"]
    answer["resourceName"] = "batch"
    assert {code for code, _host, _component in present(world.judge())} == {"KM106"}
    world.run(
        "m2",
        SCHEDULER,
        "--config=/b.yaml",
        elect=True,
        config={
            "path": "/b.yaml",
            "text": "profiles:\n- schedulerName: batch\nleaderElection: {resourceName: batch}\n",
        },
    )
    world.data("m2", "component_http")["components"][-1]["configz"]["leader_election"][
        "resourceName"
    ] = "batch"
    world.manifest("m2", SCHEDULER, "--config=/b.yaml")
    assert present(world.judge()) == set()


BATCH = {
    "pid": 900,
    "static": False,
    "pod_uid": "6c1b4b1c-0000-4000-8000-000000000000",
    "started_at": 1_799_999_000.0,
    "component": SCHEDULER,
    "argv": [SCHEDULER, "--config=/b.yaml"],
    "kubeconfig": {"text": None},
    "host_network": True,
    "unit": None,
}


def batch(world, host="m1", name="batch", **more):
    text = f"profiles:\n- schedulerName: {name}\nleaderElection: {{leaderElect: false}}\n"
    running = {
        **BATCH,
        "authority": world.data("m1", "kubelet")["ca"],
        "config": {"path": "/b.yaml", "text": text},
        **more,
    }
    world.data(host, "instances")["processes"].append(running)


@pytest.mark.parametrize("authority", [{}, {"authority": None}])
def test_a_second_scheduler_that_is_alone_needs_no_election(world, authority):
    """As the documentation of Kubernetes has it.

    An ordinary pod of the cluster, its own schedulerName, election off.
    """
    batch(world, **authority)
    assert present(world.judge()) == set()
    assert set(verdicts(world.judge(), "KM101").values()) == {"clear"}


def test_two_of_them_do_need_it(world):
    batch(world)
    batch(world, "m2", pid=901)
    assert present(world.judge()) == {("KM104", "m1", SCHEDULER), ("KM104", "m2", SCHEDULER)}


def test_an_ordinary_pod_that_takes_the_usual_name_is_a_second_leader(world):
    batch(world, name="default-scheduler")
    assert present(world.judge()) == {("KM104", "m1", SCHEDULER)}


@pytest.mark.parametrize(
    "text",
    [
        'controllerManager:\n  extraArgs:\n    leader-elect: "false"\n',
        'controllerManager:\n  extraArgs:\n  - name: leader-elect\n    value: "false"\n',
    ],
)
def test_kubeadm_config_in_both_forms(world, text):
    world.api["collectors"]["kubeadm_config"] = {"status": "ok", "data": {"text": text}}
    result = world.judge()
    assert present(result) == {("KM110", None, MANAGER)}
    assert "kubeadm-config" in result.findings[0].remedy


def test_api_servers_with_different_stores(world):
    world.data("api", "locks")["servers"][1]["kube_system_uid"] = "another"
    assert present(world.judge()) == {("KM111", None, None)}


def test_members_with_different_etcd_clusters(world):
    world.data("m3", "etcd")["cluster_id"] = "99"
    assert present(world.judge()) == {("KM111", None, None)}


def job(*creations, deleted=(), pods=()):
    events = [
        {
            "reason": "SuccessfulCreate",
            "message": f"Created pod: {name}",
            "first": f"2027-01-15T08:00:{at:02}Z",
            "last": None,
            "count": 1,
            "pod": name,
        }
        for name, at in creations
    ]
    events += [
        {
            "reason": "SuccessfulDelete",
            "message": f"Deleted pod: {name}",
            "first": "2027-01-15T08:00:50Z",
            "last": None,
            "count": 1,
            "pod": name,
        }
        for name in deleted
    ]
    return {
        "namespace": "default",
        "name": "j",
        "uid": "u",
        "completions": 1,
        "parallelism": 1,
        "events": events,
        "pods": list(pods),
    }


def pod(name, created, ended=None):
    stamp = "2027-01-15T08:00:{:02}Z".format
    return {
        "name": name,
        "uid": name,
        "created": stamp(created),
        "deletion_requested": None,
        "phase": "Failed" if ended else "Running",
        "finished_at": stamp(ended) if ended is not None else None,
    }


@pytest.mark.parametrize(
    ("item", "found"),
    [
        # two within a second
        (job(("a", 1), ("b", 1)), True),
        # one of them deleted again
        (job(("a", 1), ("b", 2), deleted=("b",)), True),
        (job(("a", 1)), False),
        # a retry, much later
        (job(("a", 1), ("b", 40)), False),
        # the first had failed
        (job(("a", 1), ("b", 3), pods=(pod("a", 1, ended=2), pod("b", 3))), False),
        # in the same second, whatever their names
        (job(("b", 1), ("a", 1), pods=(pod("b", 1, ended=1), pod("a", 1))), False),
        (
            job(
                ("b", 1), ("a", 1), ("c", 1), pods=(pod("b", 1, ended=1), pod("a", 1), pod("c", 1))
            ),
            True,
        ),
        # the first still runs
        (job(("a", 1), ("b", 3), pods=(pod("a", 1), pod("b", 3))), True),
        # somebody else took the first away
        (job(("a", 1), ("b", 3), pods=(pod("b", 3),)), False),
        # the Job controller itself did
        (job(("a", 1), ("b", 3), deleted=("a",), pods=(pod("b", 3),)), True),
    ],
)
def test_surplus_pods_of_a_job(world, item, found):
    world.data("api", "jobs")["items"] = [item]
    assert (("KM113", None, None) in present(world.judge())) is found


def test_a_list_of_jobs_that_was_cut_proves_no_absence(world):
    world.api["collectors"]["jobs"]["truncated"] = True
    assert set(verdicts(world.judge(), "KM113").values()) == {"unknown"}


def test_surplus_pods_name_the_fault_that_makes_them(world):
    world.data("api", "jobs")["items"] = [job(("a", 1), ("b", 1))]
    for component in (SCHEDULER, MANAGER):
        assert next(item for item in world.judge().findings if item.code == "KM113").because == ()
        world.manifest("m2", component, "--leader-elect=false")
        world.run("m2", component, "--leader-elect=false", elect=False)
    assert next(item for item in world.judge().findings if item.code == "KM113").because == (
        "KM101",
    )


def test_keys_with_one_kube_system_uid_are_one_cluster(world):
    world.documents["m3"]["cluster_key"] = "beef" + "0" * 60
    other = {**world.api, "host": "m3", "cluster_key": "beef" + "0" * 60}
    result = evaluate([*world.documents.values(), world.api, other])
    assert len(result.clusters) == 1
    assert present(result) == set()


def test_two_clusters_in_one_inventory_are_judged_apart(world):
    other = [
        {
            **copy.deepcopy(document),
            "host": f"other-{document['host']}",
            "cluster_key": "beef" + "0" * 60,
        }
        for document in world.documents.values()
    ]
    api = {
        **world.api,
        "host": "other-m1",
        "cluster_key": "beef" + "0" * 60,
        "collectors": {
            **world.api["collectors"],
            "server": {"status": "ok", "data": {"kube_system_uid": "second"}},
        },
    }
    world.manifest("m2", MANAGER, "--leader-elect=false")
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = evaluate([*world.documents.values(), world.api, *other, api])
    assert {(item.code, item.host) for item in result.findings} == {("KM101", "m2")}
    assert len(result.clusters) == 2


@pytest.mark.parametrize(
    ("journal", "verdict"),
    [
        ({"pending": [], "unproven": [], "busy": False}, "clear"),
        (
            {
                "pending": [
                    {"run_id": "r", "what": "edit_manifest: /a", "state": "before", "path": "/a"}
                ],
                "busy": False,
            },
            "present",
        ),
        (
            {
                "pending": [
                    {"run_id": "r", "what": "edit_manifest: /a", "state": "after", "path": "/a"}
                ],
                "busy": True,
            },
            "unknown",
        ),
        (
            {"unproven": [{"run_id": "r", "step": "01-x", "path": "/a", "running": False}]},
            "present",
        ),
        # it may still be rolled back
        ({"unproven": [{"run_id": "r", "step": "01-x", "path": "/a", "running": True}]}, "unknown"),
        (
            {
                "down": [
                    {
                        "run_id": "r",
                        "step": "01-x",
                        "component": SCHEDULER,
                        "path": "/a",
                        "reason": "component down",
                    }
                ]
            },
            "present",
        ),
        (None, "not_applicable"),
    ],
)
def test_interrupted_change(world, journal, verdict):
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok" if journal else "absent",
        "data": journal,
    }
    assert verdicts(world.judge(), "KM902")["m2"] == verdict


def test_all_that_was_left_open_is_one_finding_that_tells_each(world):
    """One repair ends it: the component that does not run must not hide behind a file."""
    world.documents["m2"]["collectors"]["journal"] = {
        "status": "ok",
        "data": {
            "pending": [
                {"run_id": "r", "what": "edit_manifest: /a", "state": "before", "path": "/a"}
            ],
            "down": [
                {
                    "run_id": "q",
                    "step": "01-x",
                    "component": SCHEDULER,
                    "path": "/b",
                    "reason": "component down",
                }
            ],
        },
    }
    (found,) = [item for item in world.judge().findings if item.code == "KM902"]
    assert found.summary == "a change of run r was interrupted, and 1 more is left open"
    assert [(proof.path, proof.text) for proof in found.evidence] == [
        ("/a", "edit_manifest: /a: the file is as before the change"),
        ("/b", "component down"),
    ]


def test_nobody_answers(world):
    for host in world.documents:
        world.silence(host)
    world.api = None
    result = world.judge()
    assert {item.code for item in result.findings} == {"KM901"}
    assert set(verdicts(result, "KM101").values()) == {"unknown"}


def test_without_root_the_command_line_still_proves_it(world):
    for document in world.documents.values():
        document["cluster_key"] = document["node"] = None
        for name in ("kubelet", "manifests", "etcd"):
            document["collectors"][name] = {"status": "denied", "data": None}
    world.api = None
    world.run("m2", MANAGER, "--leader-elect=false", elect=False)
    result = world.judge()
    assert ("KM101", "m2", MANAGER) in present(result)
    assert verdicts(result, "KM103")[MANAGER] == "unknown"


def test_only_the_codes_asked_for_are_judged(world):
    result = world.judge(faults=frozenset({"KM113"}))
    assert {item.code for item in result.verdicts} == {"KM113"}
