# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of a step and of the lock.

A stand-in for ssh gives a node's answers, in one run of ansible-playbook.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.action import apply_step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_files,
)
from tests.unit.support.facts import facts

RUN, OTHER = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
DONE = {
    "state": "done",
    "reason": "",
    "changed": True,
    "seconds": 3.5,
    "seen": {"pid": 7, "elect": True, "exe": "{{ x }}"},
    "journal": "r/001-x",
    "notes": [],
}
LOCK = {"run_id": RUN, "controller": {}, "remaining": 60}
# Plays ssh: whatever is sent is kept, and the answer is the file of the host's name.
SSH = r"""#!/bin/bash
command="${@: -1}"
for word in "$@"; do case $word in h-*) host=$word ;; esac; done
[ "$host" = h-lost ] && {
  cat >/dev/null; echo "Connection to lost closed by remote host." >&2; exit 255
}
cat >> %(folder)s/sent.$host
mark=$(printf '%%s' "$(head -c 4000 %(folder)s/sent.$host)" \
  | grep -o 'KUBEMEND-[0-9a-f]*' | head -1)
mark=$(grep -ao 'KUBEMEND-[0-9a-f]*' %(folder)s/sent.$host | tail -1)
printf '\n%%s %%s\n' "$mark" "$(cat %(folder)s/answer.$host)"
"""
PLAY = f"""
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - kubemend.remediation.cluster_lock:
        report_dir: "{{{{ folder }}}}/lock"
        run_id: "{RUN}"
        take: "{{{{ item.take | default(omit) }}}}"
      delegate_to: "{{{{ item.host }}}}"
      loop: [{{host: held}}, {{host: other}}, {{host: lost}}]
      register: locks
    - kubemend.remediation.cluster_lock:
        report_dir: "{{{{ folder }}}}/lock"
        run_id: "{RUN}"
        state: decided
      register: decided
      ignore_errors: true
    - kubemend.remediation.cluster_lock:
        report_dir: "{{{{ folder }}}}/lock"
        run_id: "{RUN}"
        state: released
      delegate_to: "{{{{ item }}}}"
      loop: [held, lost]
      register: released
    - kubemend.remediation.apply_step:
        id: "{{{{ item.id | default('01-x') }}}}"
        report_dir: "{{{{ folder }}}}/{{{{ item.case }}}}"
      delegate_to: "{{{{ item.host }}}}"
      loop: "{{{{ cases }}}}"
      register: applied
      ignore_errors: true
    - ansible.builtin.copy:
        content: "{{{{ {{'locks': locks, 'released': released.results, 'decided': decided,
          'applied': applied.results}} | to_json }}}}"
        dest: "{{{{ folder }}}}/results.json"
"""
PLAYBOOK_FIXTURES = {"ran"}
CASES = [
    {"case": "good", "host": "done"},
    {"case": "good", "host": "done"},
    {"case": "good", "host": "rolled", "id": "02-x"},
    {"case": "good", "host": "done", "id": "03-x"},
    {"case": "lost", "host": "lost"},
    {"case": "lost", "host": "done", "id": "03-x"},
    {"case": "liar", "host": "liar"},
    {"case": "free", "host": "done"},
    {"case": "elsewhere", "host": "done", "id": "02-x"},
    {"case": "begun", "host": "done"},
    {"case": "denied", "host": "done", "id": "04-x"},
    {"case": "none", "host": "done"},
    {"case": "cut", "host": "done"},
    {"case": "unknown", "host": "done", "id": "09-x"},
]


def _plan(folder: Path, hosts: dict[str, str]) -> None:
    folder.mkdir()
    steps = [
        Step(
            identity,
            host,
            "KM101",
            "edit_manifest",
            2,
            "x",
            "kube-scheduler",
            cluster="a",
            allowed=identity != "04-x",
            blocked_by="risk 2 needs consent" if identity == "04-x" else None,
            expect={"restart": "kubelet"},
        )
        for identity, host in hosts.items()
    ]
    (folder / "plan.json").write_text(run_files.plan_text(RUN, {}, steps))
    if folder.name != "free":
        run_cluster_lock.note(str(folder), run_cluster_lock.Held("m1", "a", "ok", True, RUN))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("steps")
    (folder / "ssh").write_text(SSH % {"folder": folder})
    (folder / "ssh").chmod(0o755)
    answers = {
        "done": DONE,
        "rolled": {**DONE, "state": "rolled_back", "reason": "it\nwas not proven"},
        "liar": {"state": "{{ 1 }}", "changed": "x"},
        "held": {"held": True, "changed": True, "lock": LOCK, "message": ""},
        "other": {
            "held": False,
            "changed": False,
            "lock": {**LOCK, "run_id": OTHER, "controller": {"machine_id": "c" * 32, "pid": 42}},
            "message": "x",
        },
    }
    for name, answer in answers.items():
        (folder / f"answer.h-{name}").write_text(json.dumps(answer))
    hosts = {
        name: {
            "ansible_host": f"h-{name}",
            "ansible_connection": "ssh",
            "ansible_ssh_executable": str(folder / "ssh"),
        }
        for name in [*answers, "lost"]
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (folder / "lock").mkdir()
    for case in {one["case"]: None for one in CASES}:
        host = "lost" if case == "lost" else "liar" if case == "liar" else "done"
        if case != "none":
            _plan(folder / case, {"01-x": host, "02-x": "rolled", "03-x": "done", "04-x": "done"})
    (folder / "begun" / "step.begun").write_text("00-x\n")
    (folder / "cut" / "steps.jsonl").write_text('{"id": "00-x", "sta')
    (folder / "play.yml").write_text(PLAY)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
    }
    environment.update(
        HOME=str(folder), ANSIBLE_LOCAL_TEMP=str(folder / "tmp"), ANSIBLE_PIPELINING="1"
    )
    environment["ANSIBLE_COLLECTIONS_PATH"] = next(
        path for path in sys.path if Path(path, "ansible_collections", "kubemend").is_dir()
    )
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        str(folder / "inventory.json"),
        str(folder / "play.yml"),
        "-e",
        json.dumps({"folder": str(folder), "cases": CASES}),
    ]
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    real = (folder / "sent.h-done").read_bytes()
    check = subprocess.run(
        [*command, "--check"],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    return {
        **json.loads((folder / "results.json").read_text()),
        "folder": folder,
        "output": done.stdout + done.stderr,
        "check": check.stdout,
        "real": real,
        "looked": (folder / "sent.h-done").read_bytes()[len(real) :],
    }


def test_a_node_that_does_not_answer_was_not_unlocked(ran: dict[str, Any]) -> None:
    held, lost = ran["released"]
    assert not held.get("skipped")
    assert lost["skipped"]
    assert not lost.get("failed")
    assert f"The lock of run {RUN} on lost was not given back" in " ".join(ran["output"].split())


EXPECTED = [
    ("done", ""),
    ("refused", "done already"),
    ("rolled_back", "it was not proven"),
    ("refused", "before it is refused"),
    ("failed", "the node may still be finishing it"),
    ("refused", "before it is failed"),
    ("failed", "names no state"),
    ("refused", "no control-plane node was asked"),
    ("refused", "for rolled, not for done"),
    ("refused", "00-x was begun before it and never ended"),
    ("refused", "risk 2 needs consent"),
    ("refused", "cannot be read"),
    ("refused", "cannot be read"),
    ("refused", "has no step 09-x"),
]


@pytest.mark.parametrize("index", range(len(CASES)))
def test_what_becomes_of_a_step(ran: dict[str, Any], index: int) -> None:
    state, reason = EXPECTED[index]
    if CASES[index] == {"case": "good", "host": "rolled", "id": "02-x"}:
        state, reason = "refused", "before it is refused"  # the second attempt at 01-x was not done
    found = ran["applied"][index]
    assert (found["state"], bool(found.get("failed"))) == (
        state,
        state != "done",
    ), found
    assert reason in found["reason"], found
    assert found["id"] == CASES[index].get("id", "01-x")
    assert set(found) <= {
        "changed",
        "host",
        "id",
        "state",
        "reason",
        "failed",
        "msg",
        "item",
        "ansible_loop_var",
        "_ansible_no_log",
        "_ansible_item_label",
        "_ansible_delegated_vars",
        "_ansible_ignore_errors",
        "_ansible_item_result",
        "invocation",
        "exception",
    }


def test_what_takes_long_says_so_first_and_what_its_interruption_leaves(
    ran: dict[str, Any],
) -> None:
    said, lines = " ".join(ran["output"].split()), ran["output"].splitlines()
    (where,) = (
        number for number, line in enumerate(lines) if line.startswith("kubemend: 01-x: done ")
    )
    assert max(map(len, lines[where : where + 3])) <= 79
    assert lines[where + 1].startswith("  ")
    facts(" ".join(lines[where : where + 3]), "01-x", "done", "743 s", "Ctrl-C", "done")
    # nothing is sent there
    assert "01-x: none" not in said
    assert "kubemend: 03-x" not in said
    assert "kubemend: 04-x" not in said
    drain = apply_step.begun(
        Step("02-d", "m1", "KM301", "drain", 3, "pods of w1", node="w1", cluster="a"), 960
    )
    facts(drain, "02-d", "m1", "w1", "960 s", "Ctrl-C", "m1", "w1")
    assert "cordoned" in drain
    assert "\x1b" not in apply_step.begun(
        Step("\x1b", "m\x1b", "KM301", "drain", 3, "", node="\x1b[2J", cluster="a"), 1
    )


def test_every_step_leaves_a_line(ran: dict[str, Any]) -> None:
    lines = [
        json.loads(line)
        for line in (ran["folder"] / "good" / "steps.jsonl").read_text().splitlines()
    ]
    assert [line["state"] for line in lines] == ["done", "refused", "refused", "refused"]
    assert lines[0]["seen"] == {"pid": 7, "elect": True}
    assert lines[0]["journal"] == "r/001-x"
    assert lines[0]["seconds"] == 3.5
    assert (ran["folder"] / "good" / "steps.jsonl").stat().st_mode & 0o777 == 0o600
    assert not list(ran["folder"].glob("good/step.begun"))


def test_what_travels(ran: dict[str, Any]) -> None:
    sent = ran["real"].split(b"\n", 3)[1].decode("ascii")
    # 900 and what the step may take
    assert RUN in sent
    assert "'component': 'kube-scheduler'" in sent
    assert "'seconds': 1643" in sent
    assert sent.count("'id': '01-x'") >= 1
    assert ran["real"].count(b"_mark, _entry") == 1


def test_locks(ran: dict[str, Any]) -> None:
    found = {one["host"]: one for one in ran["locks"]["results"]}
    assert {name: (one["held"], one["by"], one["status"]) for name, one in found.items()} == {
        "held": (True, RUN, "ok"),
        "other": (False, OTHER, "ok"),
        "lost": (False, None, "unreachable"),
    }
    assert ran["decided"]["failed"]
    assert ran["decided"]["exit_reason"] == "locked"
    assert ran["decided"]["msg"].startswith(
        f"run {OTHER} holds the cluster (other; controller {'c' * 32}, process 42; for 60 s more)"
    )
    assert {one.host for one in run_cluster_lock.noted(str(ran["folder"] / "lock"))} == {
        "held",
        "other",
        "lost",
    }


def test_check_mode_only_asks_and_leaves_no_line_of_a_step(ran: dict[str, Any]) -> None:
    """Finished, forbidden, foreign and unknown steps are passed over."""
    assert "skipping: [localhost" in ran["check"]
    heads = [
        line.decode("ascii")
        for line in ran["looked"].splitlines()
        if line.startswith(b"_mark, _entry")
    ]
    assert heads
    assert all("'check': True" in head and "'lock': None" in head for head in heads)
    assert not (ran["folder"] / "denied" / "looks.jsonl").exists()
    assert not (ran["folder"] / "unknown" / "looks.jsonl").exists()
    said = run_files.read_looks(str(ran["folder"] / "good"))
    assert {name: (one["state"], one["host"]) for name, one in said.items()} == {
        "01-x": ("failed", "done"),
        "02-x": ("failed", "rolled"),
    }
    # these answer that they are done
    assert "does not answer as a node in check mode does" in said["02-x"]["reason"]
    assert run_files.read_looks(str(ran["folder"] / "lost"))["01-x"]["reason"].startswith(
        "lost could not be asked: "
    )
    assert (ran["folder"] / "good" / "looks.jsonl").stat().st_mode & 0o777 == 0o600
    assert len((ran["folder"] / "good" / "steps.jsonl").read_text().splitlines()) == 4
    assert document.file_name("m1") == "m1.json"


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        (None, 0),
        ({"kind": "drain", "node": "w1"}, 0),
        ({"kind": "drain", "node": "w1", "ready_seconds": 40}, 40),
    ],
)
def test_a_node_that_may_take_its_time_is_given_it_in_check_mode_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, seconds: int
) -> None:
    """A drain after a start of the kubelet waits for the node to be ready before it answers."""
    asked: list[Any] = []
    action = apply_step.ActionModule.__new__(apply_step.ActionModule)
    monkeypatch.setattr(
        action,
        "_ask",
        lambda host, params, task_vars: (
            asked.append(params["timeout"]) or ("ok", "", {**DONE, "state": "skipped"})
        ),
    )
    step = Step("01-d", "m1", "KM301", "drain", 3, "w1", cluster="a", allowed=True, change=change)
    (tmp_path / "plan.json").write_text(run_files.plan_text(RUN, {}, [step]))
    assert (
        action._look(str(tmp_path), "01-d", "m1", {"kubeconfig": None, "kubectl": None}, {})[
            "state"
        ]
        == "skipped"
    )
    assert asked == [apply_step.step_times.CHECK_MODE + seconds]
