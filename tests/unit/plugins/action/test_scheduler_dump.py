# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture of pods_stay_pending by its own playbook.

What it comes to, and that nothing which fails in it fails the run.
"""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import settings
from tests.unit.plugins.plugin_utils.capture.test_scheduler import struck
from tests.unit.plugins.plugin_utils.conftest import World
from tests.unit.plugins.plugin_utils.models.scheduling.test_cache_dump import of_1_14

PLAYBOOKS = Path(settings.__file__).parents[3] / "playbooks"
RUN = "20261121T090000Z-1a2b3c"
NODES = ("m1", "m2", "m3", "w1")
# Plays ssh: answers each question of the flow with what the test put into a file of its name.
SSH = r"""#!/bin/bash
text=$(cat | tr -d '\0')
mark=$(grep -ao 'KUBEMEND-[0-9a-f]*' <<< "$text" | tail -1)
for word in module_utils.changes.cluster_lock:run module_utils.capture.scheduler_dump:run \
  module_utils.capture.level_window:run module_utils.logs.components:collect; do
  grep -aqF "$word" <<< "$text" && entry=${word%:*} && entry=${entry##*.}
done
state=$(grep -aoE "'state': '(ready|dumped|raised|restored|acquired|released)'" <<< "$text" \
  | tail -1 | cut -d"'" -f4)
echo "$entry $state" >> FOLDER/asked
given=$(grep -aoE "'(timeout|kubeconfig|kubectl)': [^,}]*" <<< "$text" | sort | tr '\n' ' ')
echo "$entry $state $given" >> FOLDER/given
[ -f "FOLDER/$entry-$state" ] || exit 255
printf '\n%s %s\n' "$mark" "$(sed "s/\"NOW\"/$(date +%s.%N)/g" "FOLDER/$entry-$state")"
"""
LOCK = {
    "held": True,
    "changed": True,
    "lock": {"run_id": RUN, "controller": {}, "remaining": 900},
    "message": "",
    "working": None,
}
SPACE = {"folders": [{"path": "/var/log/pods", "free_bytes": 2**33, "free_inodes": 10**6}]}


@pytest.fixture
def capture(operator):
    """Run the tasks of the capture on recorded evidence; what the hosts answer may be changed.

    The document that it leaves, and what was asked.
    """
    incident = struck(World())
    for document in (*incident.documents.values(), incident.api):
        name = (
            f"{document['host']}.cluster.json"
            if document.get("kind") == "cluster"
            else f"{document['host']}.json"
        )
        operator.write(
            f"report/evidence/{name}",
            json.dumps({"tool_version": "0.1.0", "duration_ms": 0, **document}),
        )
    now = time.time()
    lines = [
        {"time": now, "component": "kube-scheduler", "source": "s", "text": text}
        for text in of_1_14(*NODES)
    ]
    answers = {
        "cluster_lock-acquired": LOCK,
        "cluster_lock-released": {**LOCK, "held": False},
        "scheduler_dump-dumped": {"sent": True, "reason": ""},
        "scheduler_dump-ready": {"process": "ok", "level": "offered", "reason": "", "space": SPACE},
        "level_window-raised": {
            "targets": [{"real": "level:kube-scheduler", "state": "raised", "reason": ""}],
            "error": None,
        },
        "level_window-restored": {
            "targets": [{"real": "level:kube-scheduler", "state": "restored", "reason": ""}],
            "error": None,
        },
        "components-": {
            "clock_begin": "NOW",
            "clock": "NOW",
            "seconds_back": 60.0,
            "started": {},
            "lines": lines,
            "sources": [
                {
                    "component": "kube-scheduler",
                    "source": "s",
                    "status": "ok",
                    "lines_seen": 1,
                    "lines_kept": 1,
                    "truncated": False,
                    "notes": [],
                }
            ],
        },
    }

    def run(consent="go", variables=None, **changed):
        for name, answer in {**answers, **changed}.items():
            if answer is not None:
                operator.write(name, json.dumps(answer))
        operator.write("ssh", SSH.replace("FOLDER", str(operator.folder))).chmod(0o755)
        operator.write(
            "hosts.ini",
            "".join(
                f"{name} ansible_connection=ssh ansible_ssh_executable={operator.folder}/ssh\n"
                for name in ("m1", "m2", "m3")
            ),
        )
        state = {
            "report_dir": str(operator.folder / "report"),
            "run_id": RUN,
            "control_plane_hosts": ["m1", "m2", "m3"],
            "settings": {"capture": consent, "capture_level": 4, "capture_seconds": 1},
        }
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {"kubemend_become": False, "_kubemend_run": state, **(variables or {})},
            "tasks": [
                {
                    "ansible.builtin.include_tasks": str(
                        PLAYBOOKS / "tasks" / "scheduler_capture.yml"
                    ),
                    "run_once": True,
                }
            ],
        }
        done = operator.run(
            str(operator.write("play.yml", yaml.safe_dump([play]))),
            inventory="hosts.ini",
            env={"ANSIBLE_PIPELINING": "1"},
        )
        assert done.rc == 0, done.output  # whatever becomes of it
        asked = operator.folder / "asked"
        return (
            json.loads(
                (operator.folder / "report" / "capture" / "scheduler.json").read_text(
                    encoding="utf-8"
                )
            ),
            asked.read_text(encoding="utf-8").splitlines() if asked.exists() else [],
        )

    return run


def test_the_whole_capture(capture, operator):
    document, asked = capture()
    (found,) = document["results"]
    assert (found["host"], found["verdict"], document["notes"]) == ("m1", "snapshot_short", [])
    assert found["level"] == {
        "former": 0,
        "level": 4,
        "raised": True,
        "restored": True,
        "reason": "",
    }
    assert found["dump"]["taken"]
    assert asked == [
        *["cluster_lock acquired"] * 3,
        "scheduler_dump ready",
        "level_window raised",
        "scheduler_dump dumped",
        "components ",
        "level_window restored",
        *["cluster_lock released"] * 3,
    ]
    files = {name: Path(path) for name, path in found["files"].items()}
    assert set(files) == {"lines", "dump"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files.values())
    assert files["dump"].read_text(encoding="utf-8").splitlines() == [
        line.rstrip("\n") for line in of_1_14(*NODES)
    ]


def test_every_question_has_the_operators_time_and_his_way_to_the_api(capture, operator):
    """The look at the nodes of the API before the signal too: without it nothing is sent."""
    capture(
        variables={
            "kubemend_timeout": 77,
            "kubemend_kubeconfig": "/root/mine.conf",
            "kubemend_kubectl": "/opt/kubectl",
        }
    )
    given = [
        line
        for line in (operator.folder / "given").read_text(encoding="utf-8").splitlines()
        if line.startswith("scheduler_dump ")
    ]
    assert [line.split(" ", 2)[1:] for line in given] == [
        [state, f"'kubeconfig': '/root/mine.conf' 'kubectl': '/opt/kubectl' 'timeout': {seconds} "]
        for state, seconds in (("ready", 77), ("dumped", 107))
    ]


@pytest.mark.parametrize(
    ("consent", "why"), [("check", "check mode"), ("observe", "it needs -e kubemend_max_risk=1")]
)
def test_without_consent_it_says_what_it_would_do(capture, consent, why):
    document, asked = capture(consent)
    assert asked == []
    assert document["results"] == []
    assert len(document["notes"]) == 1
    assert why in document["notes"][0]
    assert "of m1 0 -> 4 for 1 s" in document["notes"][0]
    assert "SIGUSR2 to it (pid 1" in document["notes"][0]


NOT_IT = "nothing was sent: pid 100 is another process"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "unreachable"),
        ({"process": NOT_IT, "level": "refused", "reason": NOT_IT, "space": SPACE}, NOT_IT),
        (
            {
                "process": "ok",
                "level": "offered",
                "reason": "",
                "space": {"folders": [{"path": "/var/log/pods", "free_bytes": 2**20}]},
            },
            "1 MiB free",
        ),
    ],
)
def test_nothing_is_sent_to_a_process_that_is_not_proven_or_where_the_disk_is_full(
    capture, answer, why
):
    document, asked = capture(**{"scheduler_dump-ready": answer})
    (found,) = document["results"]
    assert "scheduler_dump dumped" not in asked
    assert "level_window raised" not in asked
    assert asked[-3:] == ["cluster_lock released"] * 3
    assert why in found["dump"]["reason"] or (answer is None and found["dump"]["reason"])
    # somebody else's dump is as good
    assert found["level"]["reason"]
    assert found["verdict"] == "snapshot_short"


def test_where_the_level_needs_a_restart_the_dump_is_taken_alone(capture):
    document, asked = capture(
        **{
            "scheduler_dump-ready": {
                "process": "ok",
                "level": "absent",
                "reason": "it runs without profiling",
                "space": SPACE,
            }
        }
    )
    (found,) = document["results"]
    assert "level_window raised" not in asked
    assert "scheduler_dump dumped" in asked
    assert found["verdict"] == "snapshot_short"
    assert found["level"]["reason"] == "it runs without profiling"


def test_a_cluster_that_another_run_holds_is_left_alone(capture):
    other = {
        "held": False,
        "changed": False,
        "message": "held",
        "working": None,
        "lock": {"run_id": "20261121T080000Z-aaaaaa", "controller": {}, "remaining": 500},
    }
    document, asked = capture(**{"cluster_lock-acquired": other})
    (found,) = document["results"]
    assert "scheduler_dump dumped" not in asked
    assert "level_window raised" not in asked
    assert found["dump"]["reason"]
    assert not found["level"]["raised"]
    (note,) = document["notes"]
    assert note.startswith("kubemend_capture: it was not finished: ")
    assert "20261121T080000Z-aaaaaa" in note
    assert "items failed" not in note


def test_what_the_failed_task_said_is_no_template(capture):
    other = {
        "held": False,
        "changed": False,
        "message": "held",
        "working": None,
        "lock": {"run_id": "{{ 6 * 7 }}", "controller": {}, "remaining": 500},
    }
    document, _asked = capture(**{"cluster_lock-acquired": other})
    assert len(document["notes"]) == 1
    assert "42" not in document["notes"][0]


def test_a_level_that_stays_raised_is_a_note_and_so_is_a_log_that_cannot_be_read(capture):
    failed = {
        "targets": [{"real": "level:kube-scheduler", "state": "failed", "reason": "no answer"}],
        "error": None,
    }
    document, asked = capture(**{"level_window-restored": failed, "components-": None})
    assert asked[-4] == "level_window restored"
    assert "NOT PUT BACK: no answer" in document["notes"][-1]
    assert document["results"][0]["verdict"] == "unknown"
    assert len(document["notes"]) == 2


def test_evidence_that_cannot_be_read_is_a_note(capture, operator):
    operator.write("report/evidence/m1.json", "{")
    document, asked = capture()
    assert asked == []
    assert document["results"] == []
    assert document["notes"]


# By the playbooks themselves.


def test_a_playbook_of_another_symptom_says_that_it_means_nothing(operator):
    operator.write("hosts.ini", "m1 ansible_host=127.0.0.1 ansible_port=1 ansible_connection=ssh\n")
    done = operator.run("audit", "-e", "kubemend_capture=true", inventory="hosts.ini")
    assert done.rc == 0
    assert any("kubemend_capture has no effect here" in note for note in done.report()["notices"])


def test_hosts_that_do_not_answer_are_no_failed_capture(operator):
    operator.write("hosts.ini", "m1 ansible_host=127.0.0.1 ansible_port=1 ansible_connection=ssh\n")
    done = operator.run("pods_stay_pending", "-e", "kubemend_capture=true", inventory="hosts.ini")
    report = done.report()
    assert done.rc == 0
    assert "scheduler_captures" not in report
    assert any(
        note.startswith("kubemend_capture: nothing is captured") for note in report["notices"]
    ), report["notices"]


def test_a_level_that_logs_bodies_is_refused(operator):
    operator.write("hosts.ini", "m1 ansible_host=127.0.0.1 ansible_port=1 ansible_connection=ssh\n")
    done = operator.run(
        "pods_stay_pending",
        "-e",
        "kubemend_capture=true",
        "-e",
        "kubemend_capture_level=8",
        inventory="hosts.ini",
    )
    assert done.rc == 2
    assert "may log the bodies of requests" in done.words
