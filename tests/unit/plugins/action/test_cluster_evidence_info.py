# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of the loop are asked, what is written, and what the task's result holds."""

from __future__ import annotations

import json
import os
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.action import cluster_evidence_info
from ansible_collections.kubemend.remediation.plugins.action.cluster_evidence_info import (
    ActionModule,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import session
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    console,
    run_files,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.node_action import (
    NodeAction,
)
from tests.unit.support.facts import facts_of_each

PEMS = {
    name: f"-----BEGIN CERTIFICATE-----\n{name}AAAA\n-----END CERTIFICATE-----\n"
    for name in ("AAAA", "BBBB")
}
KEYS = {name: evidence_document.cluster_key(pem) for name, pem in PEMS.items()}


class Asked(ActionModule):
    """The action without a connection.

    `clusters` says to which cluster each host belongs, None where the API is down.
    """

    def __init__(self, folder, clusters):
        self.folder, self.clusters, self.asked, self.limits = folder, clusters, [], {}

    def ask(self, host, **args):
        self._task = type("Task", (), {"args": {"evidence_dir": str(self.folder), **args}})
        args = {"evidence_dir": str(self.folder), "skip_clusters": [], **args}
        params = {"skip_clusters": args["skip_clusters"], "request_timeout": 15}
        status, reason, answer = self._ask(host, params, {})
        document = self.finish(evidence_document.envelope(host, status, reason, answer), args)
        if args["evidence_dir"]:
            evidence_document.write(document, args["evidence_dir"], self.SUFFIX)
        return document


@pytest.fixture
def action(tmp_path, monkeypatch):
    def node(self, host, params, task_vars):
        self.asked.append(host)
        self.limits[host] = params["request_timeout"]
        cluster = self.clusters[host]
        if cluster is None:
            return (
                "ok",
                "",
                {"status": "error", "reason": "connection refused", "collectors": {}, "ca": None},
            )
        if KEYS[cluster] in params["skip_clusters"]:
            return (
                "ok",
                "",
                {"status": "skipped", "reason": "", "collectors": {}, "ca": {"pem": PEMS[cluster]}},
            )
        return (
            "ok",
            "",
            {
                "status": "ok",
                "collectors": {"server": {"status": "ok"}},
                "ca": {"pem": PEMS[cluster]},
            },
        )

    monkeypatch.setattr(NodeAction, "_ask", node)
    return lambda clusters: Asked(tmp_path, clusters)


def written(folder):
    return {
        path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.cluster.json"))
    }


def test_a_host_of_whatever_name_is_no_answer_of_the_api(action, tmp_path):
    evidence_document.write(
        {**evidence_document.envelope("m1.cluster", "ok", "", {}), "cluster_key": KEYS["AAAA"]},
        str(tmp_path),
    )
    assert action({"m1.cluster": "AAAA"}).ask("m1.cluster")["status"] == "ok"


def test_the_first_host_of_each_cluster_answers(action, tmp_path):
    clusters = {"a1": "AAAA", "a2": "AAAA", "b1": "BBBB", "b2": "BBBB"}
    asking = action(clusters)
    assert [asking.ask(host)["status"] for host in clusters] == ["ok", "skipped", "ok", "skipped"]
    assert {name: document["cluster_key"] for name, document in written(tmp_path).items()} == {
        "a1.cluster.json": KEYS["AAAA"],
        "b1.cluster.json": KEYS["BBBB"],
    }


def test_where_no_api_answers_every_host_is_asked_and_says_so(action, tmp_path):
    asking = action({"a1": None, "a2": "AAAA", "a3": "AAAA"})
    assert [asking.ask(host)["status"] for host in ("a1", "a2", "a3")] == ["error", "ok", "skipped"]
    assert set(written(tmp_path)) == {"a1.cluster.json", "a2.cluster.json"}
    assert written(tmp_path)["a1.cluster.json"]["reason"] == "connection refused"


def test_a_host_whose_cluster_is_known_and_answered_is_not_asked(action, tmp_path):
    evidence_document.write(
        {**evidence_document.envelope("a2", "ok", ""), "cluster_key": KEYS["AAAA"]}, tmp_path
    )
    asking = action({"a1": "AAAA", "a2": "AAAA"})
    asking.ask("a1")
    assert asking.ask("a2")["status"] == "skipped"
    assert asking.asked == ["a1"]


def test_a_host_that_did_not_answer_is_not_asked_again(action, tmp_path):
    evidence_document.write(evidence_document.envelope("a1", "unreachable", "timed out"), tmp_path)
    asking = action({"a1": "AAAA"})
    document = asking.ask("a1")
    assert (document["status"], document["reason"], asking.asked) == (
        "unreachable",
        "timed out",
        [],
    )
    assert written(tmp_path)["a1.cluster.json"]["kind"] == "cluster"


def test_a_file_that_is_no_evidence_is_no_answer(action, tmp_path):
    (tmp_path / "a1.cluster.json").write_text("{")
    (tmp_path / "a2.json").write_text("[]")
    assert action({"a2": "AAAA"}).ask("a2")["status"] == "ok"


def with_server(folder, host, cluster="AAAA", **probes):
    """Write the evidence of a host with one API server: {probe: (status, failed checks)}."""
    server = {
        name: {"status": status, "failed": list(failed)}
        for name, (status, failed) in {"livez": (200, ()), "version": (200, ()), **probes}.items()
    }
    collector = {
        "status": "ok",
        "truncated": False,
        "source": None,
        "duration_ms": 1,
        "error": None,
        "data": {"servers": [{"pid": 1, "address": "127.0.0.1", "port": 6443, **server}]},
    }
    document = evidence_document.envelope(host, "ok", "", {"collectors": {"api_server": collector}})
    evidence_document.write({**document, "cluster_key": KEYS[cluster]}, folder)


@pytest.mark.parametrize(
    ("probes", "limit"),
    [
        ({"readyz": (200, ())}, 15),
        ({"readyz": (403, ())}, 15),
        ({"readyz": (500, ("informer-sync",))}, 4),
        ({"readyz": (None, ()), "livez": (None, ()), "version": (None, ())}, 4),
        (None, 15),
    ],
    ids=["ready", "not told", "not ready", "silent", "no evidence"],
)
def test_an_api_server_that_is_not_ready_is_waited_for_less(action, tmp_path, probes, limit):
    if probes:
        with_server(tmp_path, "a1", **probes)
    asking = action({"a1": "AAAA"})
    asking.ask("a1")
    assert asking.limits == {"a1": limit}


@pytest.mark.parametrize("probe", ["readyz", "livez"])
def test_an_api_server_without_etcd_is_not_asked(action, tmp_path, probe):
    with_server(tmp_path, "a1", **{"readyz": (None, ()), probe: (500, ("ping", "etcd"))})
    asking = action({"a1": "AAAA"})
    assert asking.ask("a1")["status"] == "error"
    assert asking.asked == []


SILENT = {"readyz": (None, ()), "livez": (None, ()), "version": (None, ())}


def in_vain(folder, host, spent):
    """Let a host have asked its API for so many milliseconds without an answer."""
    failed = evidence_document.envelope(host, "error", "timed out", {"duration_ms": spent})
    evidence_document.write({**failed, "kind": "cluster"}, folder, ".cluster.json")


@pytest.mark.parametrize(
    ("spent", "asked"), [(5001, ["a3"]), (4999, ["a2", "a3"])], ids=["used up", "time is left"]
)
def test_hosts_that_are_not_ready_wait_a_limited_time_together(action, tmp_path, spent, asked):
    """A host whose API server is ready is asked in any case."""
    with_server(tmp_path, "a1", **SILENT)
    with_server(tmp_path, "a2", **SILENT)
    with_server(tmp_path, "a3", readyz=(200, ()))
    in_vain(tmp_path, "a1", spent)
    asking = action({"a2": None, "a3": "AAAA"})
    asking.ask("a2")
    assert asking.ask("a3")["status"] == "ok"
    assert asking.asked == asked


def test_the_seconds_of_one_cluster_are_not_those_of_another(action, tmp_path):
    for host, cluster in (("a1", "AAAA"), ("a2", "AAAA"), ("b1", "BBBB")):
        with_server(tmp_path, host, cluster, **SILENT)
    in_vain(tmp_path, "a1", 60000)
    asking = action({"a2": "AAAA", "b1": "BBBB"})
    assert [asking.ask(host)["status"] for host in ("a2", "b1")] == ["error", "ok"]
    assert asking.asked == ["b1"]


def test_a_document_is_evidence_and_holds_no_certificate_of_its_own(action, tmp_path):
    document = action({"a1": "AAAA"}).ask("a1")
    assert evidence_document.validate(document)
    assert "ca" not in document
    assert document["kind"] == "cluster"


@pytest.mark.parametrize(
    "pem",
    [
        PEMS["AAAA"],
        PEMS["AAAA"] + PEMS["BBBB"],
        "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n",
        "",
        None,
    ],
)
def test_node_and_controller_work_out_the_same_key(pem):
    assert session.cluster_key(pem) == evidence_document.cluster_key(pem)


# -- waiting for what a repair recovered

TAINT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
GONE, BACK, CLEAN = (
    {"name": "w1", "ready": "Unknown", "taints": [TAINT]},
    {"name": "w1", "ready": "True", "taints": [TAINT]},
    {"name": "w1", "ready": "True", "taints": [{"key": "caf", "effect": "NoExecute"}]},
)
DOWN = None


@pytest.fixture
def waits(tmp_path, monkeypatch):
    """(how it ended, how often the API was asked, what was printed) of one host of the loop.

    Answers: of the API, the last one for ever.
    """

    def run(answers, state="done", ago=0.0, patient=False, remedy="start_kubelet", ssh="ok"):
        one = Step("w1-start", "w1", "KM502", remedy, 2, "kubelet.service", node="w1")
        (tmp_path / "plan.json").write_text(run_files.plan_text("r", {}, [one]))
        (tmp_path / "steps.jsonl").write_text(json.dumps({"id": one.id, "state": state}) + "\n")
        at = time.time() - ago
        os.utime(tmp_path / "steps.jsonl", (at, at))
        asked, told, clock = [], [], [time.time()]

        def node(self, host, params, task_vars):
            assert params == {"collectors": ["nodes"], "timeout": 30, "skip_clusters": []}
            item = answers[min(len(asked), len(answers) - 1)]
            asked.append(host)
            if ssh != "ok":
                return ssh, "no route to host", {}
            nodes = {"status": "ok", "data": {"items": [item]}}
            return (
                "ok",
                "",
                (
                    {"status": "error", "collectors": {}}
                    if item is DOWN
                    else {"status": "ok", "collectors": {"nodes": nodes}}
                ),
            )

        monkeypatch.setattr(NodeAction, "_ask", node)
        monkeypatch.setattr(console, "tell", told.append)
        monkeypatch.setattr(cluster_evidence_info.time, "time", lambda: clock[0])
        monkeypatch.setattr(cluster_evidence_info.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(
            cluster_evidence_info.time,
            "sleep",
            lambda seconds: clock.__setitem__(0, clock[0] + seconds),
        )
        params = {
            "collectors": ["nodes"],
            "timeout": 30,
            "skip_clusters": [],
            "settle": str(tmp_path),
            "patient": patient,
            "terminal": True,
        }
        found = Asked(tmp_path, {})._ask("m1", params, {})
        return found[0], len(asked), told

    return run


def test_a_repair_is_over_when_the_node_is_ready_and_the_controllers_taints_are_gone(waits):
    status, asked, told = waits([GONE, GONE, BACK, CLEAN])
    assert (status, asked) == ("ok", 4)
    facts_of_each(
        (line.partition(": ")[2] for line in told),
        ("120 s", "w1", "Ready is Unknown", "node.kubernetes.io/unreachable:NoExecute"),
        ("116 s", "w1", "node.kubernetes.io/unreachable:NoExecute"),
        ("6 s", "w1"),
    )
    assert "Ready" in told[-1]


def test_who_is_ready_already_is_not_waited_for(waits):
    assert waits([CLEAN]) == ("ok", 1, [])


@pytest.mark.parametrize("more", [{"state": "failed"}, {"remedy": "enable_kubelet"}])
def test_where_nothing_was_brought_back_nobody_is_asked(waits, more):
    assert waits([GONE], **more) == ("skipped", 0, [])


def test_it_is_waited_for_two_minutes_after_the_last_step_and_no_longer(waits):
    assert waits([GONE])[:2] == ("ok", 61)
    assert waits([GONE], ago=110.0)[:2] == ("ok", 6)
    assert waits([GONE], ago=500.0)[:2] == ("ok", 1)
    # a file server whose clock is an hour ahead
    assert waits([GONE], ago=-3600.0)[:2] == ("ok", 61)


def test_an_api_that_is_down_is_waited_for_by_the_last_host_of_the_loop(waits):
    assert waits([DOWN, DOWN, CLEAN])[:2] == ("ok", 1)
    status, asked, told = waits([DOWN, GONE, DOWN, CLEAN], patient=True)
    assert (status, asked) == ("ok", 4)
    assert "the API does not answer yet" in told[0]
    assert "Ready again" in told[-1]


def test_an_api_server_that_stays_away_is_not_waited_for_beside_one_that_answered(waits):
    assert waits([CLEAN])[:2] == ("ok", 1)
    assert waits([DOWN], patient=True)[:2] == ("ok", 1)


def test_another_cluster_s_api_is_nobody_s_answer(waits, tmp_path):
    assert waits([{"name": "other", "ready": "True", "taints": []}])[:2] == ("ok", 1)
    assert not (tmp_path / "api.answered").exists()
    assert waits([DOWN, CLEAN], patient=True)[:2] == ("ok", 2)


def test_a_host_that_cannot_be_reached_is_not_waited_for(waits):
    assert waits([GONE], patient=True, ssh="unreachable")[:2] == ("unreachable", 1)


@pytest.mark.parametrize("name", ["plan.json", "steps.jsonl"])
def test_without_the_files_of_a_run_nobody_is_asked(waits, tmp_path, name):
    waits([CLEAN])
    (tmp_path / name).unlink()
    assert cluster_evidence_info._recovered(str(tmp_path))[0] == frozenset()
