# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the hosts' own services put levels back, and what ends a capture that restarts one host after the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from pathlib import Path

import pytest
from ansible_collections.kubemend.remediation.plugins.action import log_level
from ansible_collections.kubemend.remediation.plugins.plugin_utils import capture, capturing, locking
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import Plan, Target

STEP = {"id": "raise-kubelet"}


def target(host, step=None):
    return Target(host, host, "kubelet", f"level:kubelet/{host}", 0, 4, host, step=step)


def plan(*targets):
    return Plan("20261121T090000Z-1a2b3c", 60, 4, ("kubelet",), targets)


def test_without_a_restart_the_time_is_that_of_the_capture():
    made = plan(target("m1"), target("m2"), target("m3"))
    assert [log_level._seconds(made, host) for host in made.raising] == [80, 70, 60]


def test_when_everything_is_back_by_itself():
    assert log_level._back_at(plan(target("m1"), target("m2"))) == 80
    assert log_level._back_at(plan(target("m1"), target("w1", STEP), target("w2", STEP))) == 10 + 45 + 45 + 60 + 60 + 75


@pytest.mark.parametrize("raising", [5, 15, 45])
def test_by_a_restart_the_controller_is_first_and_one_host_comes_after_the_other(raising):
    """Whatever each takes to be raised, up to what is reckoned with: no service begins before the lines are read, no two at once."""
    made = plan(target("m1"), *(target(f"w{number}", STEP) for number in range(6)))
    hosts = made.raising[1:]
    due = [raising * (index + 1) + log_level._seconds(made, host) for index, host in enumerate(hosts)]
    over = raising * len(hosts) + made.seconds
    assert min(due) >= over + log_level.READING and all(later - sooner >= 30 for sooner, later in zip(due, due[1:]))


@pytest.mark.parametrize(("status", "state", "halted"), [("ok", "raised", False), ("ok", "refused", False), ("ok", "unsure", True),
                                                         ("unreachable", None, True)])
def test_what_did_not_come_back_ends_it(tmp_path, status, state, halted):
    made = plan(target("w1", STEP), target("w2", STEP))
    answer = {"targets": [{"real": "level:kubelet/w1", "state": state, "reason": ""}]} if state else {}
    capturing.note(str(tmp_path), "w1", capturing.RAISED, status, "" if status == "ok" else "timed out", answer)
    assert (log_level._halted(str(tmp_path), made, "w2") is not None) is halted and log_level._halted(str(tmp_path), made, "w1") is None


def test_nor_is_anything_restarted_after_a_host_that_was_never_asked(tmp_path):
    made = plan(target("w1", STEP), target("w2", STEP), target("w3"))
    assert log_level._halted(str(tmp_path), made, "w2") is not None
    assert log_level._halted(str(tmp_path), plan(target("w1"), target("w2", STEP)), "w2") is None


# Plays ssh: says that it was asked, and takes its time.
SSH = """#!/bin/bash
for word in "$@"; do case $word in h-*) host=$word ;; esac; done
cat > %(folder)s/sent.$host; touch %(folder)s/asked.$host; sleep 3
printf '\\n%%s {"targets": []}\\n' "$(grep -ao 'KUBEMEND-[0-9a-f]*' %(folder)s/sent.$host | tail -1)"
"""
PLAY = """
- hosts: localhost
  gather_facts: false
  connection: local
  tasks:
    - kubemend.remediation.log_level: {state: "{{ state }}", report_dir: "{{ folder }}", run_id: 20261121T090000Z-1a2b3c}
      delegate_to: "{{ item }}"
      loop: [w1, w2]
      ignore_errors: true
"""


@pytest.mark.parametrize(("state", "goes_on"), [("raised", False), ("restored", True)])
def test_a_controller_that_is_killed_raises_nothing_more_and_still_puts_back(tmp_path, state, goes_on):
    """Ansible's worker has a session of its own, and would go on with the hosts of its loop."""
    (tmp_path / "ssh").write_text(SSH % {"folder": tmp_path})
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "hosts.yml").write_text("all: {hosts: {%s}}" % ", ".join(
        f"{name}: {{ansible_host: h-{name}, ansible_connection: ssh, ansible_ssh_executable: {tmp_path}/ssh}}" for name in ("w1", "w2")))
    capturing.write(str(tmp_path), capturing.PLAN, capture.dumped(plan(target("w1"), target("w2"))))
    for host in ("w1", "w2"):
        locking.note(str(tmp_path), locking.Held(host, None, "ok", True, "20261121T090000Z-1a2b3c"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment.update(HOME=str(tmp_path), ANSIBLE_LOCAL_TEMP=str(tmp_path / "tmp"), ANSIBLE_PIPELINING="1")
    environment["ANSIBLE_COLLECTIONS_PATH"] = next(path for path in sys.path if Path(path, "ansible_collections", "kubemend").is_dir())
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml", "-e", f"folder={tmp_path}", "-e", f"state={state}"]
    with open(tmp_path / "output", "w", encoding="utf-8") as output:
        playbook = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stdout=output, stderr=output, env=environment)
    end = time.monotonic() + 60
    while not (tmp_path / "asked.h-w1").exists() and playbook.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(playbook.pid, signal.SIGKILL)
    playbook.wait()
    end = time.monotonic() + 15
    while not (tmp_path / "capture" / f"w2.{state}.json").exists() and not (tmp_path / "asked.h-w2").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert (tmp_path / "asked.h-w1").exists(), (tmp_path / "output").read_text()
    assert (tmp_path / "asked.h-w2").exists() is goes_on
    if not goes_on:
        assert "ansible-playbook was ended" in capturing.noted(str(tmp_path), "w2", capturing.RAISED).problem
