# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real audit of nodes that lie, beside one that does not.

Nothing is executed, nothing hangs, nothing grows, nothing else is written.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import installer
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from tests import schemas
from tests.unit.conftest import COLLECTIONS
from tests.unit.support import alone, fake_lying_node

PLAYBOOK_FIXTURES = {"run"}
LIMIT = 30
FORKS = 6
MASTERS = ("keys", "words", "flood", "types", "module")
# What a worker of Ansible may grow by, and what it and its parent are before: of all that runs at
# once, by their share of each page.
LARGEST = 640 * 1024 * 1024
TOGETHER = 2000 * 1024 * 1024
# whichever comes first; a machine with much to do reads slowly
ENDLESS = "too large|no answer within"


class Watched:
    """A process with all its descendants: the most that one held, and all at once, in bytes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.largest, self.together = process, 0, 0
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            held = [self._share(pid) for pid in self._family()]
            self.largest, self.together = max([self.largest, *held]), max(self.together, sum(held))
            time.sleep(0.1)

    def _family(self) -> list[int]:
        found, waiting = [], [self.process.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            try:
                for path in Path(f"/proc/{pid}/task").glob("*/children"):
                    waiting += [int(word) for word in path.read_text().split()]
            except OSError:
                pass  # it has ended
        return found

    def _share(self, pid: int) -> int:
        try:
            line = next(
                line
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                if line.startswith("Pss:")
            )
        except (OSError, StopIteration):
            return 0
        return int(line.split()[1]) * 1024


def inventory(folder: Path, liars: tuple[str, ...]) -> Path:
    ssh = folder / "ssh"
    ssh.write_text(
        f"#!/bin/sh\nKUBEMEND_PWNED={folder}/pwned exec {sys.executable} {fake_lying_node.__file__}"
        ' "$@"\n'
    )
    ssh.chmod(0o755)
    hosts = {
        name: {
            "ansible_host": name,
            "ansible_connection": "ssh",
            "ansible_ssh_executable": str(ssh),
        }
        for name in liars
    }
    here = {"ansible_connection": "local", "ansible_python_interpreter": alone.interpreter(folder)}
    groups = {
        "kube_control_plane": {"hosts": {name: hosts[name] for name in liars if name in MASTERS}},
        "kube_node": {
            "hosts": {"here": here, **{name: hosts[name] for name in liars if name not in MASTERS}}
        },
    }
    path = folder / "inventory.json"
    path.write_text(
        json.dumps(
            {
                "all": {
                    "children": groups,
                    "vars": {"kubemend_become": False, "kubemend_timeout": LIMIT},
                }
            }
        )
    )
    return path


def audited(folder: Path, liars: tuple[str, ...], *arguments: str) -> dict[str, Any]:
    (folder / "home").mkdir(parents=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    clean.update(
        HOME=str(folder / "home"),
        ANSIBLE_FORKS=str(FORKS),
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS),
        PYTHONPATH="",
        ANSIBLE_LOCAL_TEMP=str(folder / "local"),
        ANSIBLE_HOST_KEY_CHECKING="0",
        TMPDIR=str(folder / "tmp"),
        LC_ALL="C.UTF-8",
        COLUMNS="160",
    )
    (folder / "tmp").mkdir()
    begin = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "kubemend.remediation.audit",
        "-i",
        str(inventory(folder, liars)),
        "-e",
        f"kubemend_report_dir={folder}/report",
        "-e",
        '{"kubemend_report_formats": ["terminal", "json", "html", "junit", "prometheus", "sarif"]}',
        *arguments,
    ]
    with (
        (folder / "out").open("wb") as out,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder / "home",
            env=clean,
        ) as process,
    ):
        watched = Watched(process)
        try:
            rc = process.wait(timeout=1500)
        finally:
            process.kill()
    written = sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()
    )
    return {
        "rc": rc,
        "seconds": time.monotonic() - begin,
        "out": (folder / "out").read_bytes(),
        "watched": watched,
        "folder": folder,
        "written": written,
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return audited(tmp_path_factory.mktemp("lies") / "all", tuple(fake_lying_node.LIES))


def report(run: dict[str, Any]) -> dict[str, Any]:
    return schemas.checked(
        "report", json.loads((run["folder"] / "report" / "report.json").read_text())
    )


def test_the_audit_ends_as_usual(run: dict[str, Any]) -> None:
    assert run["rc"] == 0, run["out"][-3000:]
    hosts = {row["host"]: row for row in report(run)["hosts"]}
    assert set(hosts) == {"here", *fake_lying_node.LIES}
    assert hosts["here"]["status"] == "ok"


def test_the_honest_host_is_judged_as_if_it_were_alone(run: dict[str, Any]) -> None:
    """The same evidence is judged again: this machine may change until a second audit of it.

    It is no node, so that the run itself judges little of it. With a trace of a node it has all.
    """
    if any(os.path.lexists(path) for path in installer.TRACES):
        pytest.skip("this machine has something of Kubernetes")
    folder = run["folder"] / "report" / "evidence"
    documents = [evidence_document.read(path) for path in sorted(folder.glob("*.json"))]
    honest = next(one for one in documents if one["host"] == "here")
    told = {
        item["code"]: item["verdict"] for item in report(run)["verdicts"] if item["host"] == "here"
    }
    assert told == verdicts_of_here([honest])
    honest["collectors"]["installer"]["data"]["traces"] = ["/var/lib/kubelet"]
    alone = verdicts_of_here([honest])
    assert len(alone) > 20
    assert verdicts_of_here(documents) == alone


def verdicts_of_here(documents: list[dict[str, Any]]) -> dict[str, str]:
    """Judge these documents, and give the verdicts of faults of a node for the honest host."""
    nodes = {code for code, fault in fault_engine.CATALOGUE.items() if fault.node} | {"KM905"}
    return {
        one.code: one.verdict
        for one in fault_engine.evaluate(documents).verdicts
        if one.host == "here" and one.code in nodes
    }


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("flood", ENDLESS),
        ("flood-stderr", ENDLESS),
        ("gigabyte", ENDLESS),
        ("bomb", "too large"),
        ("hang", "no answer within"),
        ("drip", "no answer within"),
        ("deep", "no JSON"),
        ("deep-enough", "nested"),
        ("types", "no evidence"),
        ("records", "no evidence"),
        ("digits", "no JSON"),
        ("bytes", "no JSON"),
        ("text", "no JSON"),
        ("list", "no JSON object"),
        ("failed", "lookup"),
        ("python", "no Python 3.6"),
        ("numbers", "no JSON"),
        ("infinite", "a number"),
    ],
)
def test_a_lie_that_is_seen_is_an_error_of_its_host(
    run: dict[str, Any], host: str, reason: str
) -> None:
    row = next(row for row in report(run)["hosts"] if row["host"] == host)
    assert row["status"] in ("error", "unreachable"), row
    assert re.search(reason, row["reason"]), row


def test_what_is_only_large_or_odd_is_evidence(run: dict[str, Any]) -> None:
    rows = {row["host"]: row for row in report(run)["hosts"]}
    assert rows["large"]["status"] == "ok"
    assert (run["folder"] / "report" / "evidence" / "large.json").stat().st_size > 10_000_000
    assert rows["statuses"]["status"] == "ok"  # not the node's to say
    assert rows["words"]["status"] == "error"
    assert rows["keys"]["node"] is None


def test_nothing_was_executed_or_templated(run: dict[str, Any]) -> None:
    assert not [name for name in run["written"] if "pwned" in name], run["written"]
    assert not Path("/etc/cron.d/pwned").exists()
    assert b"012345678" not in run["out"]


def test_nothing_was_written_but_in_the_runs_folder(run: dict[str, Any]) -> None:
    ours = [name for name in run["written"] if not name.startswith(("report/", "local/"))]
    own = [name for name in ours if name != alone.NAME]
    assert {name for name in own if not name.startswith(("home/.ansible", "tmp/"))} == {
        "inventory.json",
        "out",
        "ssh",
    }, ours
    assert not [name for name in ours if name.startswith("tmp/")]
    there = {
        Path(name).name
        for name in run["written"]
        if name.startswith("report/evidence/") and not name.endswith(".cluster.json")
    }
    assert there == {f"{name}.json" for name in ("here", *fake_lying_node.LIES)}


def test_what_was_written_is_for_its_owner_only(run: dict[str, Any]) -> None:
    for path in [run["folder"] / "report", *(run["folder"] / "report").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_no_control_character_reaches_the_terminal_or_a_report(run: dict[str, Any]) -> None:
    for data in (
        run["out"],
        *(
            (run["folder"] / "report" / name).read_bytes()
            for name in ("report.txt", "report.html", "junit.xml", "report.json")
        ),
    ):
        text = data.decode("utf-8")
        assert not {
            char
            for char in text
            if char not in "\n\t" and (ord(char) < 32 or 127 <= ord(char) < 160)
        }
        assert not set("\u202e\u200f\u2028") & set(text)
    assert "<script>alert" not in (run["folder"] / "report" / "report.html").read_text()


def test_only_the_controller_says_whose_evidence_it_is(run: dict[str, Any]) -> None:
    for path in (run["folder"] / "report" / "evidence").glob("*.json"):
        document = json.loads(path.read_text())
        cluster = path.name.endswith(".cluster.json")
        assert document["host"] == path.name.split(".")[0]
        assert document["schema"] == "kubemend.evidence/1"
        assert document.get("kind") == ("cluster" if cluster else None), path
        assert document["host"] != "keys" or (document["node"], document["cluster_key"]) == (
            None,
            None,
        )
    assert "here" not in {row["node"] for row in report(run)["hosts"] if row["host"] != "here"}


def test_time_and_memory(run: dict[str, Any]) -> None:
    figures = (
        f"{run['seconds']:.0f} s, largest {run['watched'].largest >> 20} MiB, together"
        f" {run['watched'].together >> 20} MiB"
    )
    print(figures)
    assert run["seconds"] < 1200, figures
    assert 0 < run["watched"].largest < LARGEST, figures
    assert run["watched"].together < TOGETHER, figures
