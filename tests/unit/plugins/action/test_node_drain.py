# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of a drain.

What is asked of the node, again while it is at work, and what the task comes to.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.drain_answer import DRAINED
from tests.unit.support.facts import facts

# Plays ssh: each question gets the next answer, and is kept.
PLAYBOOK_FIXTURES = {"ran"}
SSH = r"""#!/bin/bash
for word in "$@"; do case $word in h-*) host=$word ;; esac; done
[ "$host" = h-lost ] && {
  cat >/dev/null; echo "Connection to lost closed by remote host." >&2; exit 255
}
n=$(ls %(folder)s | grep -c "sent.$host.")
cat > %(folder)s/sent.$host.$n
mark=$(grep -ao 'KUBEMEND-[0-9a-f]*' %(folder)s/sent.$host.$n | tail -1)
printf '\n%%s %%s\n' "$mark" "$(sed -n "$((n + 1))p" %(folder)s/answers.$host)"
"""
PLAY = """
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - kubemend.remediation.node_drain:
        name: w1
        state: "{{ item.state | default('drained') }}"
        drain_timeout: "{{ item.seconds | default(900) }}"
        allow: [fenced]
      delegate_to: "{{ item.host }}"
      loop: [{host: drained}, {host: blocked}, {host: lost}, {host: back, state: uncordoned}, \
{host: liar}, {host: drained, seconds: 0}, {host: refused}]
      register: done
      ignore_errors: true
    - ansible.builtin.copy:
        content: "{{ done.results | to_json }}"
        dest: "{{ folder }}/results.json"
"""
ANSWERS = {
    "drained": [
        {**DRAINED, "state": "at_work", "reason": "w1: 12 pods left"},
        {**DRAINED, "state": "at_work", "reason": "w1: 12 pods left"},
        DRAINED,
    ],
    "blocked": [{**DRAINED, "state": "failed", "reason": "n/web: PodDisruptionBudget\nn/web"}],
    "refused": [
        {
            **DRAINED,
            "state": "refused",
            "changed": False,
            "reason": "nothing was evicted, w1 is not drained: n/a; kubemend_allow: [fenced]",
        }
    ],
    "liar": [{"state": "{{ 1 }}"}],
    "back": [{**DRAINED, "changed": False, "reason": "w1 was not cordoned any more"}],
    "asked": [{**DRAINED, "state": "skipped", "reason": "check mode: x"}],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("drain")
    (folder / "ssh").write_text(SSH % {"folder": folder})
    (folder / "ssh").chmod(0o755)
    for name, answers in ANSWERS.items():
        (folder / f"answers.h-{name}").write_text(
            "".join(json.dumps(answer) + "\n" for answer in answers)
        )
    hosts = {
        name: {
            "ansible_host": f"h-{name}",
            "ansible_connection": "ssh",
            "ansible_ssh_executable": str(folder / "ssh"),
        }
        for name in [*ANSWERS, "lost"]
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
    }
    environment.update(
        HOME=str(folder), ANSIBLE_LOCAL_TEMP=str(folder / "tmp"), ANSIBLE_PIPELINING="1"
    )
    environment["ANSIBLE_COLLECTIONS_PATH"] = next(
        path for path in sys.path if Path(path, "ansible_collections", "kubemend").is_dir()
    )

    def play(text: str, *options: str) -> str:
        (folder / "play.yml").write_text(text)
        command = [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "-i",
            str(folder / "inventory.json"),
            str(folder / "play.yml"),
            "-e",
            f"folder={folder}",
        ]
        done = subprocess.run(
            [*command, *options],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    output = play(PLAY)
    results = json.loads((folder / "results.json").read_text())
    play(
        re.sub(r"loop: .*", "loop: [{host: asked}]", PLAY).replace(
            "copy:", "copy:\n        mode: '0600'"
        ),
        "--check",
        "-v",
    )
    return {"results": results, "folder": folder, "output": output}


@pytest.mark.parametrize(
    ("index", "failed", "changed", "said"),
    [
        (0, False, True, "w1 is drained"),
        (1, True, True, "n/web: PodDisruptionBudget n/web"),
        (2, True, True, "closed by remote host"),
        (3, False, False, "not cordoned any more"),
        (4, True, True, "names no state"),
        (5, True, False, "must be 1 or more"),
    ],
)
def test_what_becomes_of_it(
    ran: dict[str, Any], index: int, failed: bool, changed: bool, said: str
) -> None:
    found = ran["results"][index]
    assert (bool(found.get("failed")), found["changed"]) == (failed, changed), found
    assert said in found.get("reason", "") + found.get("msg", ""), found


def test_a_refusal_is_said_once_and_by_the_names_of_the_options(ran: dict[str, Any]) -> None:
    facts(ran["results"][1]["msg"], "w1", "n/web: PodDisruptionBudget n/web")
    assert (
        ran["results"][6]["msg"] == "nothing was evicted, w1 is not drained: n/a; allow: [fenced]"
    )
    assert not ran["results"][6]["changed"]


def test_it_is_asked_again_while_it_is_at_work_and_progress_is_told_once(
    ran: dict[str, Any],
) -> None:
    sent = [
        path.read_bytes()[:3000].decode("ascii", "replace")
        for path in sorted(ran["folder"].glob("sent.h-drained.*"))
    ]
    assert len(sent) == 3
    assert len({re.search(r"'run_id': '([^']+)'", text).group(1) for text in sent}) == 1
    assert ran["output"].count("w1: 12 pods left") == 1
    for said in (
        "'patience': 10",
        "'held': True",
        "'allow': ['fenced']",
        "'max_unavailable': 1",
        "'check': False",
        "'lock': None",
        "'node': 'w1'",
    ):
        assert said in sent[0], sent[0][:1500]


def test_check_mode_asks_too(ran: dict[str, Any]) -> None:
    sent = (ran["folder"] / "sent.h-asked.0").read_bytes()[:3000].decode("ascii", "replace")
    assert "'check': True" in sent
    assert "'patience': None" in sent
