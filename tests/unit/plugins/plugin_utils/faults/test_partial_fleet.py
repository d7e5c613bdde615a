# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet audited in slices, each into a folder of its own.

Judged together they say what one run says.

200 hosts of two clusters, made of recorded ones: the masters are as they were, of the worker there
are many, each with its name, its machine and its Node.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import UPGRADE

RECORDED = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
CLUSTERS = {"old": ("v1.18.4-two-leaders", 97), "new": ("v1.36.3-kubelet-stopped", 99)}
GROUPS = {True: ["kube_control_plane"], False: ["kube_node"]}


def renamed(document: dict, number: int) -> dict:
    """Return the document of worker `number`: w1's, by another name and of another machine."""
    text = re.sub(r"\bw1\b", f"w{number}", json.dumps(document))
    machine = document["collectors"]["system"]["data"]["machine_id"]
    return json.loads(
        text.replace(machine, hashlib.sha256(f"{machine} {number}".encode()).hexdigest()[:32])
    )


def with_nodes(document: dict, number: int) -> dict:
    """Return the cluster's evidence, with a Node for each worker."""
    found = copy.deepcopy(document)
    nodes = found["collectors"]["nodes"]["data"]["items"]
    (worker,) = [one for one in nodes if one["name"] == "w1"]
    for one in range(2, number + 1):
        row = json.loads(re.sub(r"\bw1\b", f"w{one}", json.dumps(worker)))
        for key in ("machine_id", "system_uuid"):
            row[key] = hashlib.sha256(f"{worker[key]} {one}".encode()).hexdigest()[:32]
        nodes.append({**row, "uid": f"{worker['uid']}-{one}"})
    return found


def fleet() -> list[dict]:
    """Return every document of the fleet, hosts named after their cluster."""
    found = []
    for name, (case, workers) in CLUSTERS.items():
        for path in sorted((RECORDED / case / "evidence").iterdir()):
            document = json.loads(path.read_text(encoding="utf-8"))
            several = (
                [with_nodes(document, workers)]
                if path.name.endswith(".cluster.json")
                else (
                    [renamed(document, one) for one in range(1, workers + 1)]
                    if document["host"] == "w1"
                    else [document]
                )
            )
            found += [{**one, "host": f"{name}-{one['host']}"} for one in several]
    return found


def suffix(document: dict) -> str:
    return ".cluster.json" if document.get("kind") == "cluster" else ".json"


def sliced(documents: list[dict], count: int, base: Path, limited: bool) -> list[Path]:
    """Return the slices, with every count-th host in one, as AWX makes them.

    limited: with --limit a slice knows of the hosts that it leaves out
    """
    hosts = sorted({one["host"] for one in documents})
    slices = [base / str(number) for number in range(count)]
    for number, folder in enumerate(slices):
        folder.mkdir(parents=True)
        mine = set(hosts[number::count])
        for document in documents:
            if document["host"] in mine:
                evidence_document.write(document, folder, suffix(document))
            elif limited and suffix(document) == ".json":
                evidence_document.write_stub(
                    folder, document["host"], document["groups"], document.get("address")
                )
    return slices


@pytest.fixture(scope="module")
def documents():
    found = fleet()
    assert len([one for one in found if one.get("kind") != "cluster"]) == 200
    return found


@pytest.fixture(scope="module")
def whole(documents, tmp_path_factory):
    return fault_engine.evaluate(
        evidence_sources.stream(sliced(documents, 1, tmp_path_factory.mktemp("whole"), False)),
        deep=True,
    )


def test_the_fleet_has_what_was_recorded(whole):
    """Two leaders in one cluster, and every worker of the other with its kubelet stopped."""
    assert len(whole.clusters) == 2
    assert {item.host for item in whole.findings if item.code == "KM101"} == {"old-m2"}
    assert len({item.host for item in whole.findings if item.code == "KM502"}) == 99


@pytest.mark.parametrize(("count", "limited"), [(2, True), (8, False)])
def test_slices_merge_to_the_verdicts_of_one_run(documents, whole, count, limited, tmp_path):
    merged = fault_engine.evaluate(
        evidence_sources.stream(sliced(documents, count, tmp_path, limited)), deep=True
    )
    assert merged == whole


def test_a_slice_alone_says_of_its_hosts_what_all_say_and_nothing_of_whole_clusters(
    documents, whole, tmp_path
):
    """A master that is in another slice would else be one that was forgotten (KM112)."""
    for folder in sliced(documents, 8, tmp_path, False):
        alone = fault_engine.evaluate(evidence_sources.stream([folder]), deep=True, part=True)
        hosts = {row.host for row in alone.hosts}
        mine = [
            item
            for item in whole.verdicts
            if item.host in hosts and fault_engine.CATALOGUE[item.code].cluster is None
        ]
        assert {(item.code, item.host, item.component, item.verdict) for item in mine} <= {
            (item.code, item.host, item.component, item.verdict) for item in alone.verdicts
        }
        assert {item.code for item in alone.verdicts} | {item.code for item in alone.findings} <= {
            code for code, fault in fault_engine.CATALOGUE.items() if fault.cluster is None
        }
        assert {item.code for item in alone.not_judged if item.reason == "slice"} == {
            code
            for code, fault in fault_engine.CATALOGUE.items()
            if fault.cluster and fault.tier != UPGRADE
        }


def test_a_slice_that_was_run_again_counts_as_it_was_the_last_time(documents, whole, tmp_path):
    """The unreachable host of one attempt has answered in another."""
    slices = sliced(documents, 2, tmp_path, False)
    (lost,) = [one for one in documents if one["host"] == "new-m1" and one.get("kind") != "cluster"]
    again = tmp_path / "again"
    again.mkdir()
    evidence_document.write(
        {**lost, "status": "unreachable", "reason": "no route to host", "collectors": {}}, again
    )
    assert fault_engine.evaluate(evidence_sources.stream([*slices, again]), deep=True) == whole
    assert fault_engine.evaluate(evidence_sources.stream([again]), deep=True) != whole
