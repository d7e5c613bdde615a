# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leader election that is off, does not parse, or takes other locks: KM101 to KM106."""

from __future__ import annotations

import pytest

from tests.unit.support.verdicts import MANAGER, SCHEDULER, missing_hosts, present, verdicts


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


@pytest.mark.parametrize(
    ("more", "summary", "place"),
    [
        ({"unit": "kcm.service"}, "leader election is off (started by unit kcm.service)", "unit"),
        ({}, "leader election is off", "the script or the tool that starts it"),
    ],
)
def test_who_starts_a_process_without_a_manifest_is_named_where_it_is_known(
    world, more, summary, place
):
    process = world.data("m1", "instances")["processes"][1]
    outside = {"static": False, "pod_uid": None, "argv": [MANAGER, "--leader-elect=false"]}
    data = {"processes": [{**process, **outside, "pid": 7, **more}]}
    world.documents["w1"]["collectors"]["instances"] = {"status": "ok", "data": data}
    result = world.judge(faults={"KM101"})
    summaries = {finding.summary: finding.remedy for finding in result.findings}
    assert place in summaries[summary]


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
    running = world.data("m2", "instances")["processes"]
    running[:] = [row for row in running if row["component"] not in (MANAGER, SCHEDULER)]
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


@pytest.mark.parametrize("code", ["KM101", "KM110"])
def test_a_silent_single_instance_is_no_proof_that_there_is_no_other(single, code):
    single.silence("m1")
    single.api["collectors"] = {
        name: {"status": "error", "data": None} for name in single.api["collectors"]
    }
    found = verdicts(single.judge(), code)
    assert found
    assert set(found.values()) == {"unknown"}


def test_unreachable_master_that_may_be_the_wrong_one(world):
    world.silence("m2")
    result = world.judge()
    assert present(result) == {("KM901", "m2", None)}
    assert verdicts(result, "KM101") == {SCHEDULER: "unknown", MANAGER: "unknown"}
    assert missing_hosts(result, "KM101") == {"m2"}


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
                    argv=[
                        MANAGER,
                        "--leader-elect=false",
                        "--cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt",
                        "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
                    ],
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
    """The scheduler is the one of the documentation of Kubernetes.

    It is an ordinary pod of the cluster with its own schedulerName and election off.
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
