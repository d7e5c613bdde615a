# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of the loop are asked, what is written, and what the task's result holds."""

from __future__ import annotations

import json

import pytest
from ansible_collections.kubemend.remediation.plugins.action.cluster_evidence_info import ActionModule
from ansible_collections.kubemend.remediation.plugins.module_utils import kubeconfig
from ansible_collections.kubemend.remediation.plugins.plugin_utils import evidence
from ansible_collections.kubemend.remediation.plugins.plugin_utils.node_action import NodeAction

PEMS = {name: f"-----BEGIN CERTIFICATE-----\n{name}AAAA\n-----END CERTIFICATE-----\n" for name in ("AAAA", "BBBB")}
KEYS = {name: evidence.cluster_key(pem) for name, pem in PEMS.items()}


class Asked(ActionModule):
    """The action without a connection: `clusters` says to which cluster each host belongs, None where the API is down."""

    def __init__(self, folder, clusters):
        self.folder, self.clusters, self.asked = folder, clusters, []

    def ask(self, host, **args):
        self._task = type("Task", (), {"args": {"evidence_dir": str(self.folder), **args}})
        args = {"evidence_dir": str(self.folder), "skip_clusters": [], **args}
        status, reason, answer = self._ask(host, {"skip_clusters": args["skip_clusters"]}, {})
        document = self.finish(evidence.envelope(host, status, reason, answer), args)
        if args["evidence_dir"]:
            evidence.write(document, args["evidence_dir"], self.SUFFIX)
        return document


@pytest.fixture
def action(tmp_path, monkeypatch):
    def node(self, host, params, task_vars):
        self.asked.append(host)
        cluster = self.clusters[host]
        if cluster is None:
            return "ok", "", {"status": "error", "reason": "connection refused", "collectors": {}, "ca": None}
        if KEYS[cluster] in params["skip_clusters"]:
            return "ok", "", {"status": "skipped", "reason": "", "collectors": {}, "ca": {"pem": PEMS[cluster]}}
        return "ok", "", {"status": "ok", "collectors": {"server": {"status": "ok"}}, "ca": {"pem": PEMS[cluster]}}

    monkeypatch.setattr(NodeAction, "_ask", node)
    return lambda clusters: Asked(tmp_path, clusters)


def written(folder):
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.cluster.json"))}


def test_a_host_of_whatever_name_is_no_answer_of_the_api(action, tmp_path):
    evidence.write({**evidence.envelope("m1.cluster", "ok", "", {}), "cluster_key": KEYS["AAAA"]}, str(tmp_path))
    assert action({"m1.cluster": "AAAA"}).ask("m1.cluster")["status"] == "ok"


def test_the_first_host_of_each_cluster_answers(action, tmp_path):
    clusters = {"a1": "AAAA", "a2": "AAAA", "b1": "BBBB", "b2": "BBBB"}
    asking = action(clusters)
    assert [asking.ask(host)["status"] for host in clusters] == ["ok", "skipped", "ok", "skipped"]
    assert {name: document["cluster_key"] for name, document in written(tmp_path).items()} == {
        "a1.cluster.json": KEYS["AAAA"], "b1.cluster.json": KEYS["BBBB"]}


def test_where_no_api_answers_every_host_is_asked_and_says_so(action, tmp_path):
    asking = action({"a1": None, "a2": "AAAA", "a3": "AAAA"})
    assert [asking.ask(host)["status"] for host in ("a1", "a2", "a3")] == ["error", "ok", "skipped"]
    assert set(written(tmp_path)) == {"a1.cluster.json", "a2.cluster.json"}
    assert written(tmp_path)["a1.cluster.json"]["reason"] == "connection refused"


def test_a_host_whose_cluster_is_known_and_answered_is_not_asked(action, tmp_path):
    evidence.write({**evidence.envelope("a2", "ok", ""), "cluster_key": KEYS["AAAA"]}, tmp_path)
    asking = action({"a1": "AAAA", "a2": "AAAA"})
    asking.ask("a1")
    assert asking.ask("a2")["status"] == "skipped" and asking.asked == ["a1"]


def test_a_host_that_did_not_answer_is_not_asked_again(action, tmp_path):
    evidence.write(evidence.envelope("a1", "unreachable", "timed out"), tmp_path)
    asking = action({"a1": "AAAA"})
    document = asking.ask("a1")
    assert (document["status"], document["reason"], asking.asked) == ("unreachable", "timed out", [])
    assert written(tmp_path)["a1.cluster.json"]["kind"] == "cluster"


def test_a_file_that_is_no_evidence_is_no_answer(action, tmp_path):
    (tmp_path / "a1.cluster.json").write_text("{")
    (tmp_path / "a2.json").write_text("[]")
    assert action({"a2": "AAAA"}).ask("a2")["status"] == "ok"


def test_a_document_is_evidence_and_holds_no_certificate_of_its_own(action, tmp_path):
    document = action({"a1": "AAAA"}).ask("a1")
    assert evidence.validate(document) and "ca" not in document and document["kind"] == "cluster"


@pytest.mark.parametrize("pem", [PEMS["AAAA"], PEMS["AAAA"] + PEMS["BBBB"], "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", "", None])
def test_node_and_controller_work_out_the_same_key(pem):
    assert kubeconfig.cluster_key(pem) == evidence.cluster_key(pem)
