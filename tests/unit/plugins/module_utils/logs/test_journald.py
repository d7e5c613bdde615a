# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's logs: journald by a stand-in for journalctl."""

import time
from collections.abc import Iterator

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    journald,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    kubelet_process,
)
from tests.unit.support.facts import facts, facts_of_each
from tests.unit.support.fake_logs import Node, a_node, cri, texts


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from a_node(monkeypatch)


def test_journald(node: Node) -> None:
    node.journal(
        "window",
        (node.now - 95, "one"),
        (node.now - 101, "too old"),
        (node.now - 5, [116, 119, 111, 255]),
    )
    node.journal("oldest", (node.now - 9000, "x"))
    found = node.read("kubelet")
    assert texts(found) == ["one", "two\ufffd"]
    assert {line["source"] for line in found["lines"]} == {"kubelet.service"}
    assert found["sources"] == [
        {
            "component": "kubelet",
            "source": "kubelet.service",
            "status": "ok",
            "lines_seen": 2,
            "lines_kept": 2,
            "truncated": False,
            "notes": [],
        }
    ]
    asked = (node.folder / "asked").read_text().splitlines()
    assert asked[0].startswith("--output=json --all --no-pager --unit=kubelet.service --since=@")


def test_rate_limit(node: Node) -> None:
    node.journal("window", (node.now - 9, "one"))
    node.journal(
        "dropped",
        (node.now - 8, "Suppressed 120 messages from kubelet.service"),
        (node.now - 7, "Suppressed 3 messages from /system.slice/kubelet.service"),
        (node.now - 7, "Suppressed 7 messages from containerd.service"),
        (node.now - 7000, "Suppressed 9 messages from kubelet.service"),
    )
    facts_of_each(
        node.read("kubelet")["sources"][0]["notes"], ("123 messages", "kubelet.service", "rate")
    )


def test_all_of_it_was_suppressed(node: Node) -> None:
    node.journal("any", (node.now - 9000, "long ago"))
    node.journal("dropped", (node.now - 8, "Suppressed 120 messages from kubelet.service"))
    source = node.read("kubelet")["sources"][0]
    assert source["status"] == "ok"
    assert "suppressed 120 messages" in source["notes"][1]


def test_journald_begins_after_the_kubelet(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.journal("window", (node.now - 9, "one"))
    node.journal("oldest", (node.now - 50, "x"))
    here = kubelet_process.here
    for started, count in ((node.now - 70, 1), (node.now - 50, 0)):
        monkeypatch.setattr(
            kubelet_process,
            "here",
            lambda processes, started=started: ({"started_at": started}, *here(processes)[1:]),
        )
        notes = node.read("kubelet")["sources"][0]["notes"]
        assert len(notes) == count
        assert all("journald holds nothing before" in note for note in notes)


@pytest.mark.parametrize(
    ("files", "code", "status", "note"),
    [
        ({}, 0, "absent", "journald holds nothing of kubelet.service"),
        (
            {"any": '{"__REALTIME_TIMESTAMP":"1","MESSAGE":"x"}'},
            0,
            "ok",
            "nothing was written within the window",
        ),
        (
            {"complaint": "No journal files were opened due to insufficient permissions."},
            1,
            "denied",
            "shows this user nothing",
        ),
        ({"complaint": "Failed to open the journal"}, 1, "error", "Failed to open the journal"),
        ({}, 127, "absent", "there is no journalctl"),
    ],
)
def test_journald_without_an_entry(
    node: Node, files: dict, code: int, status: str, note: str
) -> None:
    for name, text in files.items():
        (node.folder / name).write_text(text + "\n")
    (node.folder / "code").write_text(str(code))
    source = node.read("kubelet")["sources"][0]
    assert source["status"] == status
    assert note in source["notes"][0]


def test_a_question_that_journalctl_answers_too_late_is_open(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.journal("any", (node.now - 9000, "long ago"))
    (node.folder / "slow").write_text("5")
    monkeypatch.setattr(journald, "QUIET_LIMIT", 0.2)
    source = node.read("kubelet")["sources"][0]
    assert source["status"] == "timeout"
    facts(source["notes"][0], "journalctl", "0.2 s", "kubelet.service")
    node.journal("window", (node.now - 9, "one"))
    source = node.read("kubelet")["sources"][0]
    assert (source["status"], source["lines_seen"]) == ("ok", 1)
    facts_of_each(source["notes"], ("0.2 s", "since when"), ("0.2 s", "suppressed"))


def test_no_unit(node: Node) -> None:
    node.units("not-found")
    source = node.read("kubelet")["sources"][0]
    assert (source["status"], source["source"]) == ("absent", "journald")
    assert not (node.folder / "asked").exists()


def test_journalctl_that_hangs_costs_only_itself(node: Node) -> None:
    node.journal("window", (node.now - 9, "one"))
    (node.folder / "sleep").write_text("600")
    node.log("0.log", cri(node.now - 10, "x"))
    begin = time.monotonic()
    found = node.read("kubelet", "kube-scheduler", timeout=8)
    assert time.monotonic() - begin < 100
    assert texts(found) == ["x", "one"]
    assert [(source["status"], source["lines_kept"]) for source in found["sources"]] == [
        ("timeout", 1),
        ("ok", 1),
    ]
    assert "the time ended" in found["sources"][0]["notes"][0]
