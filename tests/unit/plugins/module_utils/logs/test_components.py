# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of a node: files of every format and age, and every bound."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    components as log_components,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import procfs
from tests.unit.support.facts import facts_of_each
from tests.unit.support.fake_logs import UID, Node, a_node, cri, texts, when


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from a_node(monkeypatch)


def test_a_static_pod(node: Node) -> None:
    path = node.log(
        "0.log",
        cri(node.now - 200, "old") + cri(node.now - 50.5, "one") + cri(node.now - 40, "two"),
    )
    found = node.read()
    assert found["lines"] == [
        {
            "time": pytest.approx(node.now - 50.5, abs=2e-6),
            "component": "kube-scheduler",
            "source": str(path),
            "text": "one",
        },
        {
            "time": pytest.approx(node.now - 40, abs=2e-6),
            "component": "kube-scheduler",
            "source": str(path),
            "text": "two",
        },
    ]
    assert found["sources"] == [
        {
            "component": "kube-scheduler",
            "source": str(path),
            "status": "ok",
            "lines_seen": 2,
            "lines_kept": 2,
            "truncated": False,
            "notes": [],
        }
    ]
    assert (found["status"], found["reason"], found["seconds_back"]) == ("ok", "", 100.0)
    assert node.now <= found["clock_begin"] <= found["clock"] <= time.time()
    assert (
        json.loads(
            log_components.collect({"components": ["kube-scheduler"], "seconds_back": 100.0})
        )["lines"]
        == found["lines"]
    )


def test_since_when_everything_runs(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The youngest of a component's static pods counts; a process of another cluster does not."""
    groups = {7: "static", 8: "static", 9: "nested", 10: None}
    monkeypatch.setattr(
        procfs,
        "of_interest",
        lambda: [
            (7, "kube-scheduler"),
            (8, "kube-scheduler"),
            (9, "kube-scheduler"),
            (10, "kubelet"),
            (11, "kubelet"),
        ],
    )
    monkeypatch.setattr(
        procfs, "argv", lambda pid: ["x"] if pid in groups else Path("/nowhere").stat()
    )
    monkeypatch.setattr(procfs, "cgroup", lambda text: {"static": text == "static"})
    monkeypatch.setattr(
        log_components.files, "text", lambda path: groups[int(path.split("/")[2])] or ""
    )
    monkeypatch.setattr(procfs, "started_at", lambda pid: 1000.0 + pid)
    assert node.read(components=["kube-scheduler", "kubelet"])["started"] == {
        "host": 1001.0,
        "kube-scheduler": 1008.0,
        "kubelet": 1010.0,
    }
    assert node.read(components=["kube-apiserver"])["started"] == {"host": 1001.0}


def test_only_files_of_the_window_and_oldest_first(node: Node) -> None:
    node.log(
        "3.log.20260101-000000.gz", cri(node.now - 90, "a") + cri(node.now - 89, "b, its be", "P")
    )
    node.log(
        "3.log.20260102-000000",
        cri(node.now - 88, "ginning", "P")
        + cri(node.now - 87, " and end")
        + cri(node.now - 80, "c"),
    )
    node.log("3.log", cri(node.now - 70, "d") + cri(node.now - 60, "cut off", "P"))
    node.log("2.log", cri(node.now - 99, "of a file that did not change since"), age=150)
    node.log("3.log.20260102-000000.tmp", cri(node.now - 80, "c"))
    node.log("notes.txt", cri(node.now - 80, "no log"))
    found = node.read()
    assert texts(found) == ["a", "b, its beginning and end", "c", "d", "cut off"]
    assert [source["source"].rpartition("/")[2] for source in found["sources"]] == [
        "3.log.20260101-000000.gz",
        "3.log.20260102-000000",
        "3.log",
    ]
    assert [source["lines_kept"] for source in found["sources"]] == [1, 2, 2]


def test_docker_writes_elsewhere(node: Node) -> None:
    real = node.folder / "abc-json.log"
    real.write_text(
        "".join(
            json.dumps({"log": text, "stream": "stderr", "time": when(node.now - 10)}) + "\n"
            for text in ("one, ", "two\n", "three\n")
        )
    )
    path = node.log("0.log", "")
    path.unlink()
    path.symlink_to(real)
    assert texts(node.read()) == ["one, two", "three"]
    real.unlink()
    found = node.read()
    assert found["sources"][0]["status"] == "absent"
    assert found["lines"] == []


def test_which_lines(node: Node) -> None:
    node.log(
        "0.log",
        "".join(cri(node.now - 10, text) for text in ("pod uid-1", "pod uid-2", "error 7", "else")),
    )
    assert texts(node.read(needles=["uid-1"])) == ["pod uid-1"]
    assert texts(node.read(match="error [0-9]")) == ["error 7"]
    both = node.read(needles=["uid-2"], match="^e")
    assert texts(both) == ["pod uid-2", "error 7", "else"]
    assert (both["sources"][0]["lines_seen"], both["sources"][0]["lines_kept"]) == (4, 3)


def test_secrets_stay(node: Node) -> None:
    node.log(
        "0.log",
        cri(node.now - 10, 'token="abc" Authorization: Bearer def')
        + cri(node.now - 10, "-----BEGIN PRIVATE KEY-----")
        + cri(node.now - 10, "MIIabc")
        + cri(node.now - 10, "-----END PRIVATE KEY-----"),
    )
    assert texts(node.read()) == [
        'token="***" Authorization: Bearer ***',
        "-----BEGIN PRIVATE KEY-----",
        "******",
        "-----END PRIVATE KEY-----",
    ]
    assert texts(node.read(needles=["MIIabc"])) == ["******"], (
        "the key's first line is not asked for, and counts nevertheless"
    )


def test_a_secret_at_the_cut(node: Node) -> None:
    node.log("0.log", cri(node.now - 10, "x" * 95 + "https://user:" + "p" * 50 + "@proxy"))
    assert texts(node.read(max_line=120)) == [
        "x" * 95
        + "https://user:"
        + "*" * 12
        + "… [44 more bytes]".replace("44", str(95 + 13 + 50 + 6 - 120))
    ]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"match": "("}, "match is no regular expression"),
        ({"components": ["etcd"]}, "There is no component etcd"),
        ({"seconds_back": 0.0}, "seconds_back"),
        ({"seconds_back": float("nan")}, "seconds_back"),
        ({"needles": ["a", ""]}, "empty needle"),
        ({"max_bytes": 0}, "max_bytes must lie"),
        ({"max_line": 1 << 20}, "max_line must lie"),
    ],
)
def test_refused_before_anything_is_read(
    node: Node, monkeypatch: pytest.MonkeyPatch, params: dict, sentence: str
) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("something was read"))
    found = log_components.read({"components": ["kube-scheduler"], **params})
    assert found["status"] == "error"
    assert sentence in found["reason"]
    assert found["reason"].endswith(".")
    assert found["sources"] == found["lines"] == []


def test_max_bytes(node: Node) -> None:
    node.log(
        "0.log.20260101-000000",
        "".join(cri(node.now - 50 + index / 100, f'{index:03d} ü"\\\x01') for index in range(500)),
    )
    node.log("0.log", cri(node.now - 1, "last"))
    found = node.read(max_bytes=20000)
    assert 50 < len(found["lines"]) < 400
    assert texts(found)[0].startswith("000")
    assert "last" not in texts(found)
    assert len(json.dumps(found["lines"])) <= 20000
    assert [(source["truncated"], source["status"]) for source in found["sources"]] == [
        (True, "ok"),
        (True, "ok"),
    ]
    assert "max_bytes is used up, the last line is of 2" in found["sources"][0]["notes"][-1]
    assert found["sources"][0]["lines_kept"] == len(found["lines"])


def test_components_share_max_bytes(node: Node) -> None:
    for component in ("kube-scheduler", "kube-controller-manager"):
        node.log(
            "0.log",
            "".join(cri(node.now - 50 + index / 100, f"{index}") for index in range(500)),
            component,
        )
    node.log("0.log", cri(node.now - 30, "a little"), "kube-apiserver")
    found = node.read(
        "kube-scheduler", "kube-controller-manager", "kube-apiserver", max_bytes=40000
    )
    kept = {source["component"]: source["lines_kept"] for source in found["sources"]}
    assert kept["kube-apiserver"] == 1
    assert 40 < kept["kube-scheduler"] < 300
    assert abs(kept["kube-scheduler"] - kept["kube-controller-manager"]) < 15, (
        "the longer name costs a little more"
    )
    assert sum(kept.values()) == len(found["lines"])
    assert len(json.dumps(found["lines"])) <= 40000
    assert all(
        source["truncated"] == (source["component"] != "kube-apiserver")
        for source in found["sources"]
    )
    assert found["lines"] == sorted(found["lines"], key=lambda line: line["time"])


def test_a_file_that_is_no_log(node: Node) -> None:
    node.log("0.log", "root:x:0:0:root:/root:/bin/sh\n" + cri(node.now - 1, "a line"))
    found = node.read()
    assert texts(found) == ["a line"]
    assert "1 line has no format that is known" in found["sources"][0]["notes"]


def test_a_pipe_does_not_block(node: Node) -> None:
    path = node.log("0.log", "")
    path.unlink()
    os.mkfifo(path)
    found = node.read()
    assert found["sources"][0]["status"] == "error"
    assert "no regular file" in found["sources"][0]["notes"][0]


def test_a_packed_file_that_was_cut(node: Node) -> None:
    path = node.log(
        "0.log.20260101-000000.gz",
        "".join(cri(node.now - 50, f"{index} {os.urandom(20).hex()}") for index in range(20000)),
    )
    path.write_bytes(path.read_bytes()[:-1000])
    node.log("0.log", cri(node.now - 1, "after it"))
    found = node.read(match="^(9|after)", max_bytes=4000000)
    assert found["sources"][0]["status"] == "error"
    assert found["sources"][0]["lines_kept"] > 5
    assert found["sources"][1]["status"] == "ok"
    assert texts(found)[-1] == "after it"


def test_no_static_pod(node: Node) -> None:
    node.log("0.log", cri(node.now - 10, "x"), "kube-apiserver")
    shutil.copytree(
        node.pods / f"kube-system_kube-apiserver-m1_{UID}",
        node.pods / f"kube-system_kube-scheduler-check-m1_{UID}",
    )
    found = node.read()
    (source,) = found["sources"]
    assert source["status"] == "absent"
    facts_of_each(source["notes"], ("static pod",))
    shutil.rmtree(node.pods)
    assert node.read()["sources"][0]["status"] == "absent"


def test_nothing_within_the_window(node: Node) -> None:
    node.log("0.log", cri(node.now - 500, "x"), age=490)
    source = node.read()["sources"][0]
    assert source["status"] == "ok"
    facts_of_each(source["notes"], ("window",))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
@pytest.mark.parametrize("what", ["file", "folder", "root"])
def test_denied(node: Node, what: str) -> None:
    path = node.log("0.log", cri(node.now - 10, "x"))
    {"file": path, "folder": path.parent, "root": node.pods}[what].chmod(0)
    os.seteuid(65534)
    try:
        found = node.read()
    finally:
        os.seteuid(0)
    assert [source["status"] for source in found["sources"]] == ["denied"]
    assert found["lines"] == []


def test_rotation_that_lost_the_beginning(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.log("0.log", cri(node.now - 50, "x"))
    monkeypatch.setattr(procfs, "argv", lambda pid: ["kube-scheduler"])
    monkeypatch.setattr(procfs, "of_interest", lambda: [(os.getpid(), "kube-scheduler")])
    monkeypatch.setattr(procfs, "cgroup", lambda text: {"pod_uid": UID, "unit": None})
    monkeypatch.setattr(procfs, "started_at", lambda pid: node.now - 5000)
    assert "rotation took it" in node.read()["sources"][0]["notes"][0]
    monkeypatch.setattr(procfs, "cgroup", lambda text: {"pod_uid": "f" * 32, "unit": None})
    assert "within the window" in node.read()["sources"][0]["notes"][0], (
        "another pod's process says nothing of this log"
    )


def test_the_kubelet_says_where(node: Node) -> None:
    """PodLogsDir of KubeletConfiguration, since 1.29; a drop-in wins."""
    node.log("0.log", cri(node.now - 10, "elsewhere"))
    (node.folder / "config.yaml").write_text(
        "kind: KubeletConfiguration\npodLogsDir: /var/log/none\n"
    )
    start = (
        "ExecStart={ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet"
        f" --config={node.folder}/config.yaml --config-dir={node.folder}/d ; }}\n"
    )
    (node.folder / "units").write_text(
        "Id=kubelet.service\nLoadState=loaded\nActiveState=inactive\nMainPID=0\n" + start
    )
    assert node.read()["sources"][0]["notes"] == ["there is no /var/log/none"]
    (node.folder / "d").mkdir()
    (node.folder / "d" / "10.conf").write_text(f"podLogsDir: {node.pods}\n")
    assert texts(node.read()) == ["elsewhere"]
