# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of etcd: down, lost, removed, listed twice, learners, releases and damaged data."""

from __future__ import annotations

import pytest

from tests.unit.support.etcd_evidence import (
    disconnect,
    end,
    found,
    hang,
    local,
    metrics,
    settle,
    verdicts,
)
from tests.unit.support.refused_writes import lost, stopped

CODES = ("KM142", "KM145", "KM146", "KM147", "KM148", "KM149", "KM150")
GHOST = {"id": "9", "name": "", "peer_urls": ["https://10.9.9.9:2380"], "client_urls": []}


def listed(world, *members):
    for name in ("m1", "m2", "m3"):
        data = world.data(name, "etcd")
        data["members"] = [*data["members"], *(dict(member) for member in members)]


def test_a_healthy_etcd_is_clear(world):
    settle(world)
    for name in ("m1", "m2", "m3"):
        world.documents[name]["collectors"]["component_end"] = {"status": "absent", "data": None}
    assert verdicts(world, *CODES) == dict.fromkeys(CODES, "clear")


def test_a_member_that_ended_leaves_no_margin(world):
    settle(world)
    end(world, "3")
    (finding,) = found(world, "KM145", "KM147")
    assert (finding.code, finding.severity) == ("KM145", "critical")
    assert "m3" in finding.summary
    assert "m2" in finding.summary  # which sees no connection to it
    assert "One more failure" in finding.summary


def test_of_five_members_one_may_fail(world):
    settle(world)
    others = [
        {"id": id_, "name": f"m{id_}", "peer_urls": [f"https://10.0.0.{id_}:2380"]}
        for id_ in ("4", "5")
    ]
    listed(world, *others)
    for name in ("m1", "m2", "m3"):
        metrics(world, name)["peers"] += [{"id": "4", "active": True}, {"id": "5", "active": True}]
    end(world, "3")
    (finding,) = found(world, "KM145")
    assert finding.severity == "warning"
    assert "1 more may fail" in finding.summary


def test_a_connection_of_another_member_is_enough(world):
    settle(world)
    for peer in metrics(world, "m1")["peers"]:
        peer["active"] = False
    assert verdicts(world, "KM145") == {"KM145": "clear"}


def test_a_member_that_answers_on_its_host_is_up(world):
    settle(world)
    disconnect(world, "3")
    assert verdicts(world, "KM145") == {"KM145": "clear"}


@pytest.mark.parametrize(
    ("state", "verdict"), [("T", "present"), ("S", "unknown"), (None, "unknown")]
)
def test_a_member_that_says_nothing_is_not_up_because_others_are_connected(world, state, verdict):
    """Connections of a stopped process stay open."""
    settle(world)
    hang(world, "3", state)
    result = world.judge(faults={"KM145"})
    assert [row.verdict for row in result.verdicts] == [verdict]
    for hit in result.findings:
        assert "m3 of etcd is down" in hit.summary
        assert "is stopped" in hit.summary


def test_a_member_that_answers_late_at_one_address_is_up(world):
    """What it says at the other shows that it works."""
    settle(world)
    hang(world, "3", "S")
    row = local("3")
    world.documents["m3"]["collectors"]["etcd"]["data"]["local"] = row
    assert [row.verdict for row in world.judge(faults={"KM145"}).verdicts] == ["clear"]


def test_a_process_that_has_just_started_has_no_connections_yet(world):
    settle(world)
    end(world, "3")
    world.data("m3", "instances")["processes"].append(
        {"component": "etcd", "pid": 80, "argv": ["etcd"], "host_network": True, "static": True}
    )
    for name in ("m1", "m2"):
        world.data(name, "etcd")["local"]["uptime_s"] = 20.0
    assert verdicts(world, "KM145")["KM145"] == "unknown"


def test_a_host_that_is_silent_is_judged_by_the_connections_of_the_others(world):
    settle(world)
    world.silence("m3")
    assert verdicts(world, "KM145")["KM145"] == "clear"
    disconnect(world, "3")
    assert verdicts(world, "KM145")["KM145"] == "present"


def test_no_quorum_has_a_finding_with_the_way_back_and_no_step(world):
    lost(world, "m2", "m3")
    stopped(world)
    by_code = {item.code: item for item in found(world, "KM115", "KM145", "KM146")}
    assert set(by_code) == {"KM115", "KM146"}
    assert by_code["KM115"].because == ("KM146",)
    assert "Remove no member" in by_code["KM146"].remedy
    assert by_code["KM146"].risk == 0


def test_a_voter_whose_machine_has_no_etcd_any_more_is_named(world):
    settle(world)
    disconnect(world, "3")
    for name in ("m1", "m2"):
        world.data(name, "etcd")["local"] = None
    members = list(world.data("m1", "etcd")["members"])
    lost(world, "m2", "m3")
    stopped(world)
    world.data("m1", "etcd")["members"] = members
    world.data("m3", "instances")["processes"].clear()
    world.documents["m3"]["collectors"]["etcd"] = {"status": "absent", "data": None}
    world.documents["m3"]["collectors"]["manifests"] = {"status": "absent", "data": None}
    (finding,) = found(world, "KM146")
    assert "member m3: no process of it runs" in finding.summary


def test_an_election_is_no_lost_quorum(world):
    settle(world, leader="0")
    assert verdicts(world, "KM146") == {"KM146": "clear"}


def test_a_member_that_never_started_counts_for_the_quorum(world):
    settle(world)
    listed(world, GHOST)
    by_code = {item.code: item for item in found(world, "KM145", "KM147")}
    assert by_code["KM147"].severity == "critical"
    assert "never started" in by_code["KM147"].summary
    assert "$E member remove 9" in by_code["KM147"].remedy
    assert by_code["KM145"].because == ("KM147",)


def test_a_member_whose_node_was_deleted_is_named_with_its_id(world):
    settle(world)
    end(world, "3")
    items = world.data("api", "nodes")["items"]
    items[:] = [item for item in items if item["name"] != "m3"]
    finding = next(item for item in found(world, "KM147"))
    assert "m3" in finding.summary
    assert "Node of m3 was deleted" in finding.summary
    assert "$E member remove 3" in finding.remedy


def test_a_member_that_is_only_down_is_not_to_be_removed(world):
    settle(world)
    end(world, "3")
    assert verdicts(world, "KM147") == {"KM147": "clear"}


def test_where_the_api_is_silent_nobody_is_called_removed(world):
    settle(world)
    end(world, "3")
    world.api["collectors"]["nodes"] = {"status": "error", "data": None}
    assert verdicts(world, "KM147") == {"KM147": "unknown"}


def by_ids_alone(world, removed):
    """Let the list of members be unanswered, as of k3s with etcd 3.5, whose gateway is off."""
    settle(world)
    for name in ("m1", "m2", "m3"):
        world.data(name, "etcd").update(members=[], status=None, alarms=None)
    if removed != "3":
        for name in ("m1", "m2", "m3"):
            metrics(world, name)["peers"].append({"id": removed, "active": False})
    else:
        end(world, "3")


def test_the_ids_of_metrics_stand_for_a_list_that_is_not_answered(world):
    by_ids_alone(world, "29")
    by_code = {item.code: item for item in found(world, "KM145", "KM147")}
    assert "1d" in by_code["KM147"].summary  # as etcdctl and the logs write it
    assert by_code["KM145"].because == ("KM147",)


def test_an_id_may_be_that_of_a_master_without_etcd(world):
    by_ids_alone(world, "3")
    assert verdicts(world, "KM145", "KM147") == {"KM145": "present", "KM147": "clear"}
    items = world.data("api", "nodes")["items"]
    items[:] = [item for item in items if item["name"] != "m3"]
    finding = next(item for item in found(world, "KM147"))
    assert "m3" in finding.summary


def test_two_members_of_one_place(world):
    settle(world)
    listed(world, {**GHOST, "id": "10", "peer_urls": ["https://10.0.0.3:2380"]})
    finding = next(item for item in found(world, "KM147") if "one place" in item.summary)
    assert "https://10.0.0.3:2380" in finding.summary


def test_an_etcd_that_is_no_member_any_more(world):
    settle(world)
    for name in ("m1", "m2"):
        data = world.data(name, "etcd")
        data["members"] = [row for row in data["members"] if row["id"] != "3"]
    world.data("m3", "etcd").update(members=[], cluster_id=None)
    (finding,) = found(world, "KM147")
    assert (finding.host, finding.severity) == ("m3", "critical")


@pytest.mark.parametrize(("uptime", "severity"), [(30.0, None), (601.0, "warning"), (None, "info")])
def test_a_learner(world, uptime, severity):
    settle(world)
    for name in ("m1", "m2", "m3"):
        world.data(name, "etcd")["members"][2]["learner"] = True
    world.data("m3", "etcd")["local"]["uptime_s"] = uptime
    findings = found(world, "KM148")
    assert [item.severity for item in findings] == [severity] * bool(severity)


@pytest.mark.parametrize(
    ("process", "severity", "because", "words"),
    [
        (None, "warning", ("KM502",), "the kubelet of its machine does not run"),
        ({"pid": 1, "argv": ["kubelet"], "started_at": 1.7e9}, "info", (), "a join may be under"),
    ],
)
def test_a_learner_that_has_never_started(world, process, severity, because, words):
    settle(world)
    for name in ("m1", "m2", "m3"):
        world.data(name, "etcd")["members"][2].update(learner=True, name="", client_urls=[])
    world.documents["m3"]["collectors"]["etcd"] = {"status": "absent", "data": None}
    world.data("m3", "kubelet")["process"] = process
    (finding,) = found(world, "KM148")
    assert (finding.severity, finding.because) == (severity, because)
    assert f"has never started (https://10.0.0.3:2380): {words}" in finding.summary


@pytest.mark.parametrize(
    ("versions", "severity", "word"),
    [
        (("3.6.4", "3.6.4", "3.6.4"), None, ""),
        (("3.5.26", "3.5.26", "3.5.26"), None, ""),
        (("3.4.30", "3.4.30", "3.4.30"), None, ""),
        (("3.6.4", "3.6.5", "3.6.4"), "info", "patch"),
        (("3.5.12", "3.5.12", "3.5.12"), "info", "3.5.26"),
        (("3.5.26", "3.6.4", "3.5.26"), "warning", "minor"),
        (("3.5.1", "3.5.26", "3.5.26"), "warning", "lose data"),
        (("unknown", "unknown", "unknown"), None, ""),
    ],
)
def test_releases(world, versions, severity, word):
    settle(world)
    for name, version in zip(("m1", "m2", "m3"), versions, strict=True):
        metrics(world, name)["version"] = version
    findings = found(world, "KM149")
    assert [item.severity for item in findings] == [severity] * bool(severity)
    assert all(word in item.summary for item in findings)


def damage(world, host, line):
    world.documents[host]["collectors"]["component_end"] = {
        "status": "ok",
        "data": {
            "components": [
                {
                    "component": "etcd",
                    "running": False,
                    "path": f"/var/log/pods/kube-system_etcd-{host}_1/etcd/4.log",
                    "lines": [line],
                }
            ]
        },
    }


LINE = (
    '{"level":"panic","ts":"2027-01-15T07:58:00.000Z","caller":"etcdserver/server.go:454",'
    '"msg":"failed to recover v3 backend from snapshot","error":"failed to find database snapshot'
    " file (snap: snapshot file doesn't exist)\"}"
)


def test_a_damaged_member_gets_its_data_from_the_others(world):
    settle(world)
    end(world, "3")
    damage(world, "m3", LINE)
    by_code = {item.code: item for item in found(world, "KM145", "KM150")}
    assert (by_code["KM150"].host, by_code["KM150"].severity) == ("m3", "critical")
    assert "snapshot file doesn't exist" in by_code["KM150"].summary
    assert "$E member remove 3" in by_code["KM150"].remedy
    assert by_code["KM145"].because == ("KM150",)


def test_where_all_are_damaged_a_snapshot_is_restored(world):
    settle(world)
    for id_ in ("1", "2", "3"):
        end(world, id_)
        damage(world, f"m{id_}", LINE)
    findings = found(world, "KM150")
    assert [item.host for item in findings] == ["m1", "m2", "m3"]
    assert all("snapshot restore" in item.remedy for item in findings)
    assert all("member remove" not in item.remedy for item in findings)


FUTURE = (
    '{"level":"warn","msg":"failed hash kv request","requested-revision":51842389,'
    '"error":"etcdserver: mvcc: required revision is a future revision"}'
)


@pytest.mark.parametrize(("release", "is_broken"), [("3.5.1", True), ("3.5.9", False)])
def test_a_member_whose_revision_others_do_not_have(world, release, is_broken):
    settle(world)
    for name in ("m1", "m2", "m3"):
        metrics(world, name)["version"] = release
    entry = {"count": 4, "minutes": 2, "first": 1.8e9 - 300, "last": 1.8e9, "line": FUTURE}
    rows = [{"component": "etcd", "source": "/log", "entries": [entry]}]
    data = {"read_at": 1.8e9, "components": rows}
    world.documents["m1"]["collectors"]["repeated_errors"] = {"status": "ok", "data": data}
    (one,) = found(world, "KM142")
    assert (one.severity, one.component) == ("warning", "etcd")
    assert "51842389" in one.summary
    assert (f"m1 {release}" in one.summary) is is_broken
    assert "raftAppliedIndex" in one.remedy
    assert [ref.text for ref in one.evidence] == [FUTURE]


def unit(world, *flags, state="active"):
    """Let systemd run the etcd of m3."""
    row = {"name": "etcd.service", "component": "etcd", "active_state": state}
    data = {"units": [{**row, "argv": ["/usr/local/bin/etcd", "--name=m3", *flags]}]}
    world.documents["m3"]["collectors"]["component_units"] = {"status": "ok", "data": data}


def unstarted(world):
    """Let m3 be added, and its own etcd be of another cluster."""
    settle(world)
    for name in ("m1", "m2"):
        world.data(name, "etcd")["members"][2].update(name="", client_urls=[])
    end(world, "3")


@pytest.mark.parametrize(
    ("flags", "state", "is_told"),
    [
        (["--initial-cluster-state=new"], "active", True),
        (["--initial-cluster-state", "new"], "activating", True),
        (["--initial-cluster-state=existing"], "active", False),
        ([], "active", False),
        (["--initial-cluster-state=new"], "inactive", False),
    ],
)
def test_a_new_member_that_is_told_to_begin_a_cluster(world, flags, state, is_told):
    unstarted(world)
    unit(world, *flags, state=state)
    (finding,) = found(world, "KM147")
    assert ("etcd.service starts it with --initial-cluster-state=new" in finding.summary) is is_told
    assert ("--initial-cluster-state=existing" in finding.remedy) is is_told
    assert ("etcd.service" in str(finding.evidence)) is is_told


def test_a_unit_that_runs_is_no_missing_process(world):
    unstarted(world)
    for name in ("m1", "m2"):  # no witness
        world.data(name, "etcd")["local"] = None
    unit(world)
    (finding,) = found(world, "KM147")
    assert "etcd.service of its host runs without joining" in finding.summary
    assert "no process" not in finding.summary


@pytest.mark.parametrize(
    ("name", "state", "because"),
    [
        ("k3s.service", "inactive", ("KM502",)),
        ("k3s.service", "active", ()),
        ("rke2-server.service", "inactive", ()),
        ("kubelet.service", "inactive", ()),
    ],
)
def test_an_etcd_within_a_k3s_that_does_not_run(world, name, state, because):
    settle(world)
    end(world, "3")
    unit_of = world.data("m3", "kubelet")["unit"]
    unit_of |= {"name": name, "active_state": state, "start_words": []}
    (finding,) = found(world, "KM145")
    assert finding.because == because


def test_members_of_which_one_is_no_stopped_k3s(world):
    settle(world)
    for id_ in ("2", "3"):
        end(world, id_)
    world.data("m3", "kubelet")["unit"] |= {
        "name": "k3s.service",
        "active_state": "inactive",
        "start_words": [],
    }
    assert all(finding.because == () for finding in found(world, "KM145"))
