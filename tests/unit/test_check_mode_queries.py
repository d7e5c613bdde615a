# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""remediate and a role in check mode, against hosts that answer with recorded evidence.

They are asked what would refuse their steps, and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

RECORDED = Path(__file__).parents[1] / "fixtures" / "recorded" / "v1.18.4-two-leaders" / "evidence"
# Plays ssh: the host's recorded evidence to who collects it, and the answers of this test to who
# applies a step.
SSH = """#!{python}
import json, re, sys
host = next(word[2:] for word in sys.argv if re.fullmatch("h-[a-z0-9]+", word))
sent = sys.stdin.buffer.read().decode("ascii", "replace")
mark = re.search("KUBEMEND-[0-9a-f]{{32}}", sent).group()
entry = re.search(r"module_utils\\.([a-z_.]+:[a-z_]+)", sent).group(1)
print("%s %s" % (host, entry), file=open("{folder}/sent", "a"))
if entry.startswith("steps.executor"):
    checks = "'check': True" in sent and "'lock': None" in sent
    print("check" if checks else "for real", file=open("{folder}/sent", "a"))
    if "silent" in open("{folder}/answer").read():
        sys.exit(255)
    text = open("{folder}/answer").read()
else:
    kind = ".cluster" if "collectors.cluster" in entry else ""
    text = json.dumps(json.load(open("{recorded}/%s%s.json" % (host, kind))))
print("\\n%s %s" % (mark, text))
"""
PLAN = ["01-m2-kube-controller-manager-edit-manifest", "02-m2-kube-scheduler-edit-manifest"]
ANSWER = {
    "state": "skipped",
    "reason": "check mode: nothing was changed",
    "changed": False,
    "seconds": 0.1,
    "seen": {},
    "journal": None,
    "notes": [],
}
REFUSED = {
    **ANSWER,
    "state": "refused",
    "reason": "the kubelet of m2 is not healthy: repair it first",
}
ROLE = "- hosts: all\n  gather_facts: false\n  roles: [kubemend.remediation.leader_election]\n"


@pytest.fixture
def ask(operator: Any) -> Any:
    (operator.folder / "ssh").write_text(
        SSH.format(python=sys.executable, folder=operator.folder, recorded=RECORDED)
    )
    (operator.folder / "ssh").chmod(0o755)
    said = (
        "kubemend_become=false ansible_connection=ssh ansible_python_interpreter=/usr/bin/python3"
        " ansible_ssh_executable=" + str(operator.folder / "ssh")
    )
    hosts = {name: f"{name} ansible_host=h-{name} {said}" for name in ("m1", "m2", "m3", "w1")}
    operator.write(
        "hosts.ini",
        "\n".join(
            [
                "[kube_control_plane]",
                hosts["m1"],
                hosts["m2"],
                hosts["m3"],
                "[kube_node]",
                hosts["w1"],
                "",
            ]
        ),
    )

    def run(answer: Any, *args: str, playbook: str = "remediate") -> Any:
        operator.write("answer", answer if isinstance(answer, str) else json.dumps(answer))
        risk = ("-e", "kubemend_max_risk=2") if playbook == "remediate" else ()
        done = operator.run(
            playbook,
            *risk,
            "--check",
            *args,
            inventory="hosts.ini",
            env={"ANSIBLE_PIPELINING": "1"},
        )
        done.sent = (operator.folder / "sent").read_text().splitlines()
        return done

    return run


@pytest.mark.parametrize("playbook", ["remediate", "role.yml"])
def test_what_nothing_refuses_ends_well_and_is_reported_once(
    ask: Any, operator: Any, playbook: str
) -> None:
    operator.write("role.yml", ROLE)
    done = ask(
        ANSWER, playbook=playbook if playbook == "remediate" else str(operator.folder / playbook)
    )
    assert done.rc == 0, done.output
    assert [line for line in done.sent if line in ("check", "for real")] == ["check", "check"]
    report = done.report()
    assert [step["id"] for step in report["plan"] if step["allowed"]] == PLAN
    assert (
        report["mode"],
        report["exit_code"],
        report["steps"],
    ) == ("plan", 0, [])
    assert "Check mode asked the hosts of 2 steps what would refuse them now" in done.words
    assert "Check mode predicts" not in done.words
    assert done.words.count("kubemend: 4 hosts") == 1
    assert ": to do" not in done.words
    assert done.words.count("will be done") == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (REFUSED, "the kubelet of m2 is not healthy: repair it first"),
        ("silent", "m2 could not be asked:"),
        ({"state": "{{ 1 }}"}, "names no state"),
    ],
)
def test_a_refusal_of_the_host_ends_the_check_as_it_would_the_repair(
    ask: Any, answer: Any, why: str
) -> None:
    done = ask(answer)
    report = done.report()
    kind = "failed" if "names" in why else "refused"
    assert done.rc == 2, done.output
    assert (report["exit_code"], report["exit_reason"]) == (2, kind), done.output
    assert [(step["id"], step["state"]) for step in report["steps"]] == [
        (name, kind) for name in PLAN
    ]
    assert all(why in step["reason"] for step in report["steps"])
    assert (
        f"step {PLAN[0]} on m2 would {'fail' if kind == 'failed' else 'be refused'}: " in done.words
    )
    assert why in done.words
    assert "for real" not in done.sent


def test_without_consent_nobody_is_asked(ask: Any) -> None:
    done = ask(REFUSED, "-e", "kubemend_max_risk=0")
    assert done.rc == 0, done.output
    assert not any("apply_step" in line for line in done.sent), done.output
