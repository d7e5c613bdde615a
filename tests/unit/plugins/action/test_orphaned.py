# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook is killed in a loop over hosts.

Ansible's worker has a session of its own, and would go on with them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    outcome as capture_outcome,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Plan, Target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    revert as run_revert,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    run_files,
)
from tests.unit.plugins.plugin_utils.run import test_revert
from tests.unit.support.waiting import until

RUN, FORMER, HOSTS = "20261121T090000Z-1a2b3c", test_revert.OLD, ("w1", "w2")
# Whatever the first host is asked for goes well: nothing but the controller's end keeps anybody
# from the second one.
ANSWER = {
    "targets": [],
    "paths": [test_revert.file("restored", "result")],
    "components": [],
    "state": "done",
    "reason": "",
    "changed": True,
}
# Plays ssh: says which worker asks whom, and answers once the controller is gone.
SSH = """#!/bin/bash
for word in "$@"; do case $word in h-*) host=$word ;; esac; done
cat > sent.$host; echo $PPID > asked.$host
for _ in {1..6000}; do [ -e gone ] && break; sleep 0.1; done
printf '\\n%%s %%s\\n' "$(grep -ao 'KUBEMEND-[0-9a-f]*' sent.$host | tail -1)" '%s'
"""
PLAYBOOK_FIXTURES = {"asked"}
PLAY = """
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - kubemend.remediation.%s
      delegate_to: "{{ item }}"
      loop: [w1, w2]
      ignore_errors: true
"""


def _works(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def _wait(what) -> None:
    until(what, 300, 0.1)


@pytest.fixture
def asked(tmp_path):
    """Run a task over both hosts, kill ansible-playbook at the first; return who was asked."""
    for host in HOSTS:
        run_cluster_lock.note(str(tmp_path), run_cluster_lock.Held(host, None, "ok", True, RUN))

    def run(task):
        (tmp_path / "ssh").write_text(SSH % json.dumps(ANSWER))
        (tmp_path / "ssh").chmod(0o755)
        (tmp_path / "play.yml").write_text(PLAY % task)
        (tmp_path / "hosts.yml").write_text(
            "all: {{hosts: {{{}}}}}".format(
                ", ".join(
                    f"{name}: {{ansible_host: h-{name}, ansible_connection: ssh,"
                    f" ansible_ssh_executable: {tmp_path}/ssh}}"
                    for name in HOSTS
                )
            )
        )
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")
        }
        environment.update(
            HOME=str(tmp_path), ANSIBLE_LOCAL_TEMP=str(tmp_path / "tmp"), ANSIBLE_PIPELINING="1"
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
            "hosts.yml",
            "play.yml",
            "-e",
            f"folder={tmp_path}",
        ]
        first = tmp_path / "asked.h-w1"
        with (
            (tmp_path / "output").open("w", encoding="utf-8") as output,
            subprocess.Popen(
                command,
                cwd=tmp_path,
                start_new_session=True,
                stdout=output,
                stderr=output,
                env=environment,
            ) as playbook,
        ):
            _wait(
                lambda: (
                    (first.exists() and first.read_text().strip()) or playbook.poll() is not None
                )
            )
            playbook.kill()
        (tmp_path / "gone").touch()
        assert first.exists(), (tmp_path / "output").read_text()
        worker = int(first.read_text())
        _wait(lambda: not _works(worker))
        assert not _works(worker)
        return [host for host in HOSTS if (tmp_path / f"asked.h-{host}").exists()]

    return run


@pytest.mark.parametrize(("state", "hosts"), [("raised", ["w1"]), ("restored", ["w1", "w2"])])
def test_it_raises_nothing_more_and_still_puts_back(asked, tmp_path, state, hosts):
    targets = tuple(
        Target(host, host, "kubelet", f"level:kubelet/{host}", 0, 4, host) for host in HOSTS
    )
    capture_outcome.write(
        str(tmp_path),
        capture_outcome.PLAN,
        capture_plan.dumped(Plan(RUN, 60, 4, ("kubelet",), targets)),
    )
    assert (
        asked(f'log_level: {{state: {state}, report_dir: "{{{{ folder }}}}", run_id: {RUN}}}')
        == hosts
    )
    if state == "raised":
        assert (
            "ansible-playbook was ended"
            in capture_outcome.noted(str(tmp_path), "w2", capture_outcome.RAISED).problem
        )


def test_it_reverts_nothing_more(asked, tmp_path):
    """The files of the next host come back when they are requested again."""
    for host in HOSTS:
        answer = {"runs": [test_revert.run(FORMER, test_revert.file())]}
        run_revert.write(
            str(tmp_path), host, run_revert.LISTED, {"status": "ok", "reason": "", "answer": answer}
        )
    assert asked(
        f'revert_run: {{state: reverted, report_dir: "{{{{ folder }}}}", run_id: {RUN}, reverts:'
        f" {FORMER}, hosts: [w1, w2]}}"
    ) == ["w1"]
    assert [(one.host, one.state) for one in run_revert.outcomes(str(tmp_path), HOSTS)] == [
        ("w1", "done")
    ]


def test_it_repairs_nothing_more(asked, tmp_path):
    """Only the step that was under way is noted.

    The folder may be another run's by then.
    """
    steps = [
        Step(
            f"01-{host}",
            host,
            "KM101",
            "edit_manifest",
            2,
            "x",
            "kube-scheduler",
            allowed=True,
            expect={"restart": "kubelet"},
        )
        for host in HOSTS
    ]
    (tmp_path / "plan.json").write_text(run_files.plan_text(RUN, {}, steps))
    assert asked('apply_step: {id: "01-{{ item }}", report_dir: "{{ folder }}"}') == ["w1"]
    assert [(step["id"], step["state"]) for step in run_files.read_steps(str(tmp_path))] == [
        ("01-w1", "done")
    ]
