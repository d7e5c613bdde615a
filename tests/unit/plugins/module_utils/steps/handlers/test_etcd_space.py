# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of etcd freed: a snapshot, a compaction, members defragmented, the alarm taken back."""

import hashlib
import os
import stat
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    etcd_client,
    executor,
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import etcd_space
from tests.unit.support import fake_etcd

RUN = "20261127T101010Z-abcdef"
MIB = fake_etcd.MIB


def says(text, *stated):
    assert [word for word in stated if word not in text] == [], text


@pytest.fixture
def node(tmp_path, monkeypatch):
    with fake_etcd.made(tmp_path, monkeypatch) as made:
        yield made


def work(node, step, check=False):
    return executor.work(
        {"run_id": RUN, "root": str(node.root), "lock": None, "check": check, "step": step}
    )


def recover(node, run_id="20261127T111111Z-abcdef"):
    step = {"id": "00-recover", "host": "m1", "remedy": "recover", "code": ["KM902"]}
    params = {"run_id": run_id, "root": str(node.root), "lock": None, "check": False}
    return executor.work({**params, "step": {**step, "change": None, "expect": {}}})


def snapshots(node):
    folder = node.root / etcd_space.FOLDER
    return sorted(folder.iterdir()) if folder.exists() else []


def test_the_snapshot_is_what_the_member_has_and_only_root_can_read_it(node):
    answer = work(node, node.step("etcd_snapshot"))
    assert answer["state"] == "done", answer
    (path,) = snapshots(node)
    data = path.read_bytes()
    assert data[:-32] == node.member.image
    assert data[-32:] == hashlib.sha256(node.member.image).digest()
    assert answer["seen"]["path"] == str(path)
    assert answer["seen"]["bytes"] == len(data)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert node.cluster.done == []


@pytest.mark.parametrize(
    "stream",
    [
        b'{"result":{"blob":"AAAA"}}\n',
        b'{"error":{"message":"gone"}}\n',
        b"<html>\n",
        b'{"result":{"blob":"!"}}\n',
        b'{"result":7}\n',
        b"",
        b"x" * (5 * MIB),
    ],
)
def test_a_snapshot_that_is_not_whole_is_none(node, stream):
    node.cluster.refusals["/maintenance/snapshot"] = (200, stream)
    answer = work(node, node.step("etcd_snapshot"))
    assert answer["state"] == "failed", answer
    assert "no snapshot" in answer["reason"]
    assert snapshots(node) == []


def test_a_snapshot_that_does_not_end_is_cut(node, monkeypatch):
    monkeypatch.setattr(etcd_space.etcd_guards, "RESERVE", 0)
    node.member.size = 1000
    assert "larger than the database" in work(node, node.step("etcd_snapshot"))["reason"]
    assert snapshots(node) == []


def test_old_snapshots_are_removed_behind_a_new_one(node):
    folder = node.root / etcd_space.FOLDER
    assert work(node, node.step("etcd_snapshot"))["state"] == "done"
    (fresh,) = snapshots(node)
    for name, age in (("old.db", 8), (".old.db.tmp", 8), ("young.db", 6), ("notes", 9)):
        (folder / name).write_text("x")
        os.utime(folder / name, (0, time.time() - age * 24 * 3600))
    step = node.step("etcd_snapshot")
    assert work(node, {**step, "id": "02-m1-etcd-snapshot"})["state"] == "done"
    assert [path.name for path in snapshots(node)] == sorted((fresh.name, "young.db", "notes"))


def test_the_history_is_dropped_up_to_the_present_revision(node):
    answer = work(node, node.step("etcd_compact"))
    assert answer["state"] == "done", answer
    assert node.cluster.done == [("compact", "50")]
    assert answer["seen"]["revision"] == 50


def test_a_history_that_is_gone_is_no_failure(node):
    node.cluster.compacted = 50
    assert work(node, node.step("etcd_compact"))["state"] == "done"
    assert node.cluster.done == []


def test_a_compaction_that_etcd_refuses_fails(node):
    node.cluster.refusals["/kv/compaction"] = (400, {"message": "etcdserver: too many requests"})
    answer = work(node, node.step("etcd_compact"))
    assert answer["state"] == "failed"
    says(answer["reason"], "too many requests", "only history")


def test_a_follower_is_defragmented(node):
    node.run_on(1)
    node.member.used = MIB
    answer = work(node, node.step("etcd_defragment"))
    assert answer["state"] == "done", answer
    assert node.cluster.done == [("defragment", "12")]
    assert (answer["seen"]["before"], answer["seen"]["after"]) == (17 * MIB, MIB)
    assert answer["seen"]["leader"] is None


def test_the_leader_gives_the_leadership_to_the_member_that_is_furthest(node):
    node.cluster.members[2].index = 101
    answer = work(node, node.step("etcd_defragment"))
    assert answer["state"] == "done", answer
    assert node.cluster.done == [("lead", "13"), ("defragment", "11")]
    assert answer["seen"]["leader"] == "m3"


def test_a_leadership_that_nothing_takes_stops_it(node, monkeypatch):
    node.cluster.refusals["/maintenance/transfer-leadership"] = (200, {})
    answer = work(node, node.step("etcd_defragment"))
    assert answer["state"] == "failed"
    assert "takes over" in answer["reason"]
    assert node.cluster.done == []


def test_a_member_that_stays_behind_fails_the_step(node, monkeypatch):
    def lag(*_args):
        node.cluster.members[0].index -= 5000
        return 200, {}

    monkeypatch.setattr(node.cluster, "_defragment", lag)
    answer = work(node, node.step("etcd_defragment"))
    assert answer["state"] == "failed"
    assert "behind" in answer["reason"]


def test_a_member_that_does_not_come_back_is_named(node, monkeypatch):
    def end(member, _asked):
        member.up = False
        return 500, {"message": "gone"}

    monkeypatch.setattr(node.cluster, "_defragment", end)
    answer = work(node, node.step("etcd_defragment"))
    assert answer["state"] == "failed"
    says(answer["reason"], "does not answer now", "no other member")


@pytest.mark.parametrize(("waits", "state"), [(True, "done"), (False, "failed")])
def test_a_member_that_the_kubelet_restarts_meanwhile_is_defragmented_again(
    node, monkeypatch, waits, state
):
    defragment = node.cluster._defragment

    def end(*_args):
        monkeypatch.setattr(node.cluster, "_defragment", defragment)
        return 503, {"message": "connection refused"}

    monkeypatch.setattr(node.cluster, "_defragment", end)
    answer = work(node, node.step("etcd_defragment", waits=waits))
    assert answer["state"] == state, answer
    assert ("defragment", "11") in node.cluster.done or not waits


def test_a_member_that_lost_its_room_meanwhile_is_not_defragmented_again(node, monkeypatch):
    asked = []

    def end(*_args):
        asked.append(1)
        monkeypatch.setattr(etcd_space.etcd_guards, "free_bytes", lambda _path: 0)
        return 503, {"message": "connection refused"}

    monkeypatch.setattr(node.cluster, "_defragment", end)
    answer = work(node, node.step("etcd_defragment", waits=True))
    assert answer["state"] != "done", answer
    says(answer["reason"], "has 0.0 MiB left", "make room there first")
    assert len(asked) == 1


def test_a_defragmentation_that_etcd_refuses_is_not_repeated(node, monkeypatch):
    asked = []

    def refuse(*_args):
        asked.append(1)
        return 400, {"message": "etcdserver: permission denied"}

    monkeypatch.setattr(node.cluster, "_defragment", refuse)
    answer = work(node, node.step("etcd_defragment", waits=True))
    assert answer["state"] == "failed"
    says(answer["reason"], "permission denied")
    assert len(asked) == 1


def shrink(node):
    for member in node.cluster.members:
        member.size = member.used = MIB


def test_the_alarm_is_taken_back_of_each_member_that_raised_it(node):
    shrink(node)
    node.cluster.alarms.append({"memberID": "13", "alarm": "NOSPACE"})
    answer = work(node, node.step("etcd_alarm"))
    assert answer["state"] == "done", answer
    assert node.cluster.done == [("disarm", "12"), ("disarm", "13")]
    assert node.cluster.alarms == []
    assert (answer["seen"]["renewed"], answer["seen"]["leases"]) == (2, 2)


def test_the_alarm_stays_while_a_database_is_full(node):
    shrink(node)
    node.cluster.members[2].size = 13 * MIB
    answer = work(node, node.step("etcd_alarm"))
    assert answer["state"] == "refused", answer
    says(answer["reason"], "m3", "13.0 MiB of 16.0 MiB", "--quota-backend-bytes", "events 900")
    assert node.cluster.done == []


def test_a_quota_that_nothing_tells_keeps_the_alarm(node):
    shrink(node)
    node.cluster.members[2].quota = 0
    step = node.step("etcd_alarm", quotas={})
    assert "is not known" in work(node, step)["reason"]
    step = node.step("etcd_alarm", quotas={"13": 0})
    assert work(node, {**step, "id": "02"})["state"] == "done"


def test_a_lease_that_is_never_renewed_is_no_proof(node):
    shrink(node)
    node.cluster.renewals = False
    answer = work(node, node.step("etcd_alarm"))
    assert answer["state"] == "failed"
    says(answer["reason"], "none of 2 leases", "KM525")


@pytest.mark.parametrize("prefix", ["registry", "/registry/", "//registry"])
def test_leases_are_found_below_a_prefix_of_any_form(node, prefix):
    shrink(node)
    answer = work(node, node.step("etcd_alarm", prefix=prefix))
    assert answer["state"] == "done", answer
    assert (answer["seen"]["renewed"], answer["seen"]["leases"]) == (2, 2)


def test_a_cluster_without_leases_is_not_said_to_renew_them(node):
    shrink(node)
    node.cluster.leases = ()
    answer = work(node, node.step("etcd_alarm"))
    assert (answer["state"], answer["seen"]["leases"]) == ("done", 0), answer
    says(answer["reason"], "no lease", "below /registry/leases", "no renewal could be seen")


def test_a_prefix_below_which_nothing_is_kept_proves_nothing(node):
    shrink(node)
    answer = work(node, node.step("etcd_alarm", prefix="/other"))
    assert answer["state"] == "failed", answer
    says(answer["reason"], "nothing below /other,", "--etcd-prefix", "kubectl get nodes)")
    assert node.cluster.alarms == []


def test_one_answer_that_etcd_owes_is_asked_for_again(node, monkeypatch):
    shrink(node)
    # The first question comes before the alarm is taken back.
    failures = [None, etcd_client.EtcdError("timed out"), etcd_client.EtcdError("no leader")]
    leases = etcd_space._leases

    def late(client, prefix):
        error = failures.pop(0) if failures else None
        if error:
            raise error
        return leases(client, prefix)

    monkeypatch.setattr(etcd_space, "_leases", late)
    assert work(node, node.step("etcd_alarm"))["state"] == "done"


def test_an_etcd_that_never_answers_again_ends_the_wait_for_leases(node, monkeypatch):
    shrink(node)
    leases, asked = etcd_space._leases, []

    def silent(client, prefix):
        asked.append(1)
        if len(asked) == 1:
            return leases(client, prefix)
        if len(asked) > 2 * etcd_space.RENEWED:
            pytest.fail("it is asked without an end")
        raise etcd_client.EtcdError("timed out")

    monkeypatch.setattr(etcd_space, "_leases", silent)
    answer = work(node, node.step("etcd_alarm"))
    assert answer["state"] == "failed"
    says(answer["reason"], "timed out")
    assert len(asked) > etcd_space.REST


def test_leases_are_left_to_the_steps_that_load_certificates(node):
    """No API server may serve before: it is not waited for."""
    shrink(node)
    node.cluster.renewals = False
    answer = work(node, node.step("etcd_alarm", loads_follow=True))
    assert answer["state"] == "done", answer
    assert node.cluster.alarms == []
    assert "leases" not in answer["seen"]


def test_an_alarm_that_is_raised_again_at_once_is_no_success(node, monkeypatch):
    shrink(node)
    monkeypatch.setattr(
        node.cluster, "_alarm", lambda *_args: (200, {"alarms": node.cluster.alarms})
    )
    answer = work(node, node.step("etcd_alarm"))
    assert answer["state"] == "failed"
    assert "raised again" in answer["reason"]


def test_a_write_that_is_refused_is_no_success(node):
    shrink(node)
    node.cluster.refusals["/lease/grant"] = (429, {"message": "database space exceeded"})
    answer = work(node, node.step("etcd_alarm"))
    assert answer["state"] == "failed"
    assert "space exceeded" in answer["reason"]


@pytest.mark.parametrize("kind", step_kinds.ETCD_KINDS[:3])
def test_an_etcd_that_accepts_writes_again_is_left_alone(node, kind):
    node.cluster.alarms = []
    answer = work(node, node.step(kind))
    assert answer["state"] == "refused"
    assert "plan again" in answer["reason"]
    assert node.cluster.done == []


def test_an_alarm_that_is_gone_is_verified_all_the_same(node):
    shrink(node)
    node.cluster.alarms = []
    assert work(node, node.step("etcd_alarm"))["state"] == "done"
    assert node.cluster.done == []


@pytest.mark.parametrize("kind", ["etcd_snapshot", "etcd_defragment"])
def test_an_etcd_that_serves_is_changed_where_the_plan_says_so(node, kind):
    node.cluster.alarms = []
    assert work(node, node.step(kind, alarm=False))["state"] == "done"


@pytest.mark.parametrize("kind", step_kinds.ETCD_KINDS)
def test_check_mode_changes_nothing(node, kind):
    shrink(node)
    answer = work(node, node.step(kind), check=True)
    assert answer["state"] == "skipped", answer
    assert node.cluster.done == []
    assert not node.root.exists()


def test_a_second_time_the_same_step_is_not_done(node):
    step = node.step("etcd_compact")
    assert work(node, step)["state"] == "done"
    node.cluster.revision = 60
    assert work(node, step)["state"] == "done"
    assert node.cluster.done == [("compact", "50")]


@pytest.mark.parametrize("kind", step_kinds.ETCD_KINDS)
def test_each_kind_has_its_handler_and_a_time(kind):
    assert registry.handler_of(kind) is not None
    assert step_kinds.kind_of(kind).seconds


def record(node, kind, monkeypatch):
    """Leave a record of a step that was killed."""
    handler = type(registry.handler_of(kind))
    with monkeypatch.context() as patched:
        patched.setattr(handler, "perform", lambda *_args: (None, None, {}))
        work(node, node.step(kind))


def test_a_snapshot_that_was_killed_leaves_nothing(node, monkeypatch):
    record(node, "etcd_snapshot", monkeypatch)
    folder = node.root / etcd_space.FOLDER
    folder.mkdir()
    (folder / f".{RUN}-m1.db.tmp").write_text("half")
    assert recover(node)["state"] == "done"
    assert snapshots(node) == []


def test_an_alarm_that_cannot_be_looked_at_stays_open(node, monkeypatch):
    shrink(node)
    record(node, "etcd_alarm", monkeypatch)
    node.member.up = False
    answer = recover(node)
    assert answer["state"] == "failed"
    assert "not known" in answer["reason"]
    node.member.up = True
    node.cluster.alarms = []
    answer = recover(node, "20261127T121212Z-abcdef")
    assert answer["state"] == "done"
    assert "is gone" in answer["reason"]


def test_a_member_that_was_killed_while_it_was_defragmented_is_waited_for(node, monkeypatch):
    record(node, "etcd_defragment", monkeypatch)
    node.member.up = False
    answer = recover(node)
    assert answer["state"] == "failed"
    assert "does not answer" in answer["reason"]
