# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When hosts restore levels themselves, how a serial capture ends, when it waits."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.action import log_level
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    outcome as capture_outcome,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Plan, Target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    settings,
)

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
    assert (
        log_level._back_at(plan(target("m1"), target("w1", STEP), target("w2", STEP)))
        == 10 + 45 + 45 + 60 + 60 + 75
    )


@pytest.mark.parametrize("raising", [5, 15, 45])
def test_by_a_restart_the_controller_is_first_and_one_host_comes_after_the_other(raising):
    """Whatever each takes to be raised, up to what is reckoned with.

    No service begins before the lines are read, no two at once.
    """
    made = plan(target("m1"), *(target(f"w{number}", STEP) for number in range(6)))
    hosts = made.raising[1:]
    due = [
        raising * (index + 1) + log_level._seconds(made, host) for index, host in enumerate(hosts)
    ]
    over = raising * len(hosts) + made.seconds
    assert min(due) >= over + log_level.READING
    assert all(later - sooner >= 30 for sooner, later in itertools.pairwise(due))


@pytest.mark.parametrize(
    ("status", "state", "halted"),
    [
        ("ok", "raised", False),
        ("ok", "refused", False),
        ("ok", "unsure", True),
        ("unreachable", None, True),
    ],
)
def test_what_did_not_come_back_ends_it(tmp_path, status, state, halted):
    made = plan(target("w1", STEP), target("w2", STEP))
    answer = (
        {"targets": [{"real": "level:kubelet/w1", "state": state, "reason": ""}]} if state else {}
    )
    capture_outcome.note(
        str(tmp_path),
        "w1",
        capture_outcome.RAISED,
        status,
        "" if status == "ok" else "timed out",
        answer,
    )
    assert (log_level._halted(str(tmp_path), made, "w2") is not None) is halted
    assert log_level._halted(str(tmp_path), made, "w1") is None


def test_nor_is_anything_restarted_after_a_host_that_was_never_asked(tmp_path):
    made = plan(target("w1", STEP), target("w2", STEP), target("w3"))
    assert log_level._halted(str(tmp_path), made, "w2") is not None
    assert log_level._halted(str(tmp_path), plan(target("w1"), target("w2", STEP)), "w2") is None


# Plays ssh: h-lost hangs up, the others say that this became of their level.
SSH = r"""#!/bin/bash
for word in "$@"; do case $word in h-*) host=$word ;; esac; done
mark=$(grep -ao 'KUBEMEND-[0-9a-f]*' | tail -1)
[ "$host" = h-lost ] && exit 255
printf '\n%s {"targets": [{"real": "level:kubelet/%s", "state": "%s", "reason": ""}]}\n' \
  "$mark" "${host#h-}" "${host#h-}"
"""
WINDOWS = {
    ("raised",): True,
    ("refused",): False,
    ("unsure",): True,
    ("lost",): True,
    ("refused", "raised"): True,
    (): True,
}


def test_the_window_is_waited_for_unless_every_level_was_refused(operator):
    """The playbook waits for the window by its own tasks.

    A level whose host did not answer may be raised. If no level has to be raised, the lines that
    are logged anyway are captured for that time.
    """
    tasks = yaml.safe_load(
        (Path(settings.__file__).parents[3] / "playbooks" / "tasks" / "capture.yml").read_text(
            encoding="utf-8"
        )
    )
    block = next(task for task in tasks if task["name"] == "Capture")["block"]
    both, cases = (
        [task for task in block if task["name"] in ("Raise the levels", "Wait while they log")],
        [],
    )
    for hosts in WINDOWS:
        folder = operator.folder / "-".join(("case", *hosts))
        folder.mkdir()
        made = plan(*map(target, hosts))
        capture_outcome.write(str(folder), capture_outcome.PLAN, capture_plan.dumped(made))
        run_cluster_lock.note(
            str(folder), run_cluster_lock.Held("m1", None, "ok", True, made.run_id)
        )
        cases.append(
            {
                "block": both,
                "vars": {
                    "_kubemend_run": {"report_dir": str(folder), "run_id": made.run_id},
                    "_kubemend_levels": {"hosts": list(hosts), "seconds": 1},
                },
            }
        )
    operator.write("ssh", SSH).chmod(0o755)
    operator.write(
        "hosts.ini",
        "".join(
            f"{name} ansible_host=h-{name} ansible_connection=ssh"
            f" ansible_ssh_executable={operator.folder}/ssh\n"
            for name in ("raised", "refused", "unsure", "lost")
        ),
    )
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"kubemend_become": False},
        "tasks": cases,
    }
    done = operator.run(
        str(operator.write("play.yml", yaml.safe_dump([play]))),
        inventory="hosts.ini",
        env={"ANSIBLE_PIPELINING": "1"},
    )
    waited = [
        "Pausing for 1 seconds" in part
        for part in done.stdout.split("TASK [Wait while they log]")[1:]
    ]
    assert done.rc == 0, done.output
    assert dict(zip(WINDOWS, waited, strict=True)) == WINDOWS, done.output
