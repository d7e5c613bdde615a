# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders, runs and bundles of evidence put together: of each host the best that there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)


def document(**more: Any) -> dict[str, Any]:
    return {
        "schema": evidence_document.SCHEMA,
        "host": "m1",
        "status": "ok",
        "collected_at": "2026-11-21T09:00:00Z",
        "collectors": {},
        **more,
    }


def test_all_of_a_folder_whatever_its_hosts_are_called(tmp_path: Path) -> None:
    for host in ("../../etc/passwd", ".hidden", "m1"):
        evidence_document.write(document(host=host), tmp_path / "evidence")
    assert sorted(one["host"] for one in evidence_sources.stream([tmp_path])) == [
        "../../etc/passwd",
        ".hidden",
        "m1",
    ]


@pytest.mark.parametrize("text", ["{", "", "[]", "{}", '{"schema": "kubemend.evidence/9"}', "\x00"])
def test_a_file_that_is_no_evidence_costs_its_host(tmp_path: Path, text: str) -> None:
    evidence_document.write(document(), tmp_path)
    (tmp_path / "w%2F1.json").write_text(text)
    (tmp_path / "m2.cluster.json").write_text(text)
    notices: list[str] = []
    found = {
        (one["host"], one.get("kind")): one for one in evidence_sources.stream([tmp_path], notices)
    }
    assert {place: one["status"] for place, one in found.items()} == {
        ("m1", None): "ok",
        ("w/1", None): "error",
        ("m2", "cluster"): "error",
    }
    reason = found["w/1", None]["reason"]
    assert reason.startswith(f"{evidence_sources.BROKEN}: w%2F1.json: ")
    assert [
        str(tmp_path / name) in line
        for name, line in zip(("m2.cluster.json", "w%2F1.json"), notices, strict=True)
    ] == [True, True]
    assert evidence_sources.finder([tmp_path])("w/1")["status"] == "error"


def test_a_broken_file_counts_less_than_any_answer_and_more_than_none(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        evidence_document.write(document(host="m2"), tmp_path / folder)
    (tmp_path / "a" / "m1.json").write_text("{")
    for status, expected in (("unreachable", "unreachable"), ("ok", "ok"), ("not_asked", "error")):
        evidence_document.write(document(status=status), tmp_path / "b")
        assert {
            one["host"]: one["status"]
            for one in evidence_sources.stream([tmp_path / "a", tmp_path / "b"])
        }["m1"] == expected


def test_where_no_file_is_evidence_the_first_is_named(tmp_path: Path) -> None:
    for name in ("m1.json", "m2.json"):
        (tmp_path / name).write_text("{")
    with pytest.raises(evidence_document.EvidenceError, match=r"m1.json: no JSON"):
        list(evidence_sources.stream([tmp_path]))


def test_folders_are_merged(tmp_path: Path) -> None:
    def put(folder: str, host: str, status: str, hour: int) -> None:
        evidence_document.write(
            document(
                host=host, status=status, collected_at=f"2026-11-21T{hour:02}:00:00Z", reason=folder
            ),
            tmp_path / folder,
        )

    (
        put("a/evidence", "m1", "ok", 1),
        put("b", "m1", "unreachable", 2),
        put("c", "m1", "not_asked", 3),
    )
    put("a/evidence", "m2", "unreachable", 1), put("b", "m2", "not_asked", 2)
    put("a/evidence", "m3", "ok", 1), put("b", "m3", "ok", 2)
    put("b", "m4", "error", 1), put("c", "m4", "unreachable", 4)
    found = {
        one["host"]: one["reason"]
        for one in evidence_sources.stream([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    }
    assert found == {"m1": "a/evidence", "m2": "a/evidence", "m3": "b", "m4": "b"}


def test_a_plan_looks_through_the_folders_once_and_reads_a_file_that_is_alone_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in ("m1", "m2"):
        evidence_document.write(document(host=host), tmp_path / "a")
    evidence_document.write(
        document(host="m2", collected_at="2026-11-22T00:00:00Z", reason="later"), tmp_path / "b"
    )
    listed, read = [], []
    sources, reader = evidence_sources._sources, evidence_sources.read
    monkeypatch.setattr(
        evidence_sources, "_sources", lambda paths: (listed.append(1), sources(paths))[1]
    )
    monkeypatch.setattr(
        evidence_sources, "read", lambda path: (read.append(path.name), reader(path))[1]
    )
    find = evidence_sources.finder([tmp_path / "a", tmp_path / "b"])
    assert (find("m1")["host"], find("m2")["reason"], find("m3")) == ("m1", "later", {})
    assert listed == [1]
    assert read.count("m1.json") == 1


def test_cluster_and_node_evidence_of_one_host_are_two(tmp_path: Path) -> None:
    evidence_document.write(document(), tmp_path)
    evidence_document.write(document(kind="cluster"), tmp_path, ".cluster.json")
    assert [one.get("kind") for one in evidence_sources.stream([tmp_path])] == ["cluster", None]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(evidence_document.EvidenceError, match="no evidence"):
        list(evidence_sources.stream([tmp_path]))
    with pytest.raises(evidence_document.EvidenceError, match="no such folder"):
        list(evidence_sources.stream([tmp_path / "x"]))
