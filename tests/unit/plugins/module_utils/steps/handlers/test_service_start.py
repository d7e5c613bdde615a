# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet enabled and started on its node: guarded, journalled, proven, taken back.

Systemctl is a program that keeps its state in a file.
"""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import kubelet
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    revert_plan,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    kubelet_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    service_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import cri

RUN, NEXT, LAST = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f", "20261121T110000Z-7a8b9c"
UNIT = "kubelet.service"
SYSTEMCTL = """#!/bin/sh
cd {folder} || exit 9
asked="$*"
for word; do case $word in -*) ;; *) words="$words $word" ;; esac; done
set -- $words
case $1 in is-enabled | show) ;; *) echo "$asked" >>asked ;; esac
for name in load active sub result enabled pid starts does ends; do read -r "$name" <$name; done
case $1 in
is-enabled) echo "$enabled" ;;
show)
    for last; do :; done
    printf '%s\\n' "Id=$last" LoadState=$load ActiveState=$active SubState=$sub \\
        UnitFileState=$enabled Result=$result MainPID=$pid
    [ $active$ends != activeTrue ] || echo $((pid + 1)) >pid ;;
start)
    if [ $starts = True ]; then echo running >sub; echo success >result
        echo 4000000 >pid; echo active >active; fi ;;
enable | disable)
    if [ $does = True ]; then echo ${{1}}d >enabled; echo "Created symlink." >&2; fi ;;
esac
"""


class Unit:
    """What a systemctl of /bin/sh remembers of a unit, a file each.

    A hundred of these start in the time of one that needs Python.
    """

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "asked").touch()

    def set(self, **changes):
        for name, value in changes.items():
            (self.folder / name).write_text(f"{value}\n")

    def get(self, name):
        text = (self.folder / name).read_text()
        if name == "asked":
            return text.splitlines()
        text = text.strip()
        return (
            text == "True" if text in ("True", "False") else int(text) if text.isdecimal() else text
        )


class Node:
    """A unit that is loaded, disabled and inactive, and what else a kubelet is."""

    def __init__(self, path, monkeypatch):
        self.root, self.unit = str(path / "kubemend"), Unit(path / "unit")
        self.set(
            load="loaded",
            active="inactive",
            sub="dead",
            result="success",
            enabled="disabled",
            pid=0,
            starts=True,
            does=True,
            ends=False,
        )
        (path / "bin").mkdir()
        (path / "bin" / "systemctl").write_text(
            SYSTEMCTL.format(folder=shlex.quote(str(self.unit.folder)))
        )
        (path / "bin" / "systemctl").chmod(0o755)
        monkeypatch.setenv("PATH", str(path / "bin"), prepend=":")
        self.healthz, self.beside = (
            {
                "url": "http://127.0.0.1:10248/healthz",
                "status": 200,
                "error": None,
            },
            None,
        )
        monkeypatch.setattr(kubelet, "collect", lambda context: {"healthz": self.healthz})
        found = SimpleNamespace(
            pid=None,
            argv=[],
            evidence={"unit": {"name": UNIT}, "argv": ["kubelet", "--fail-swap-on=false"]},
        )
        monkeypatch.setattr(
            kubelet_restart,
            "look",
            lambda host: SimpleNamespace(**{**vars(found), "pid": self.beside}),
        )
        for name, value in (("STABLE", 0.2), ("PAUSE", 0.01), ("START_SECONDS", 60)):
            monkeypatch.setattr(service_start, name, value)

    def set(self, **changes):
        self.unit.set(**changes)

    def get(self, name):
        return self.unit.get(name)

    def step(self, remedy, **more):
        return {
            "id": "01-" + remedy,
            "host": "w1",
            "remedy": remedy,
            "code": ["KM501"],
            "target": UNIT,
            "guard": {"allow": []},
            "expect": {"component": "kubelet"},
            "change": {
                "kind": remedy,
                "path": service_start.path_of(UNIT),
                "unit": UNIT,
                "former": "disabled",
                **more,
            },
        }

    def do(self, remedy, run_id=RUN, check=False, **more):
        return step_executor.work(
            {
                "run_id": run_id,
                "root": self.root,
                "lock": None,
                "check": check,
                "step": self.step(remedy, **more),
            }
        )

    def enable(self, **more):
        return self.do("enable_kubelet", **more)

    def start(self, **more):
        return self.do("start_kubelet", **more)

    def recover(self):
        return step_executor.work(
            {
                "run_id": NEXT,
                "root": self.root,
                "lock": None,
                "step": {"id": "recover", "host": "w1", "remedy": "recover", "expect": {}},
            }
        )

    def forget(self, remedy, entry=False):
        """Recover as if the program had been killed before it wrote how the step ended.

        entry: whether it was also killed before the commit of its change
        """
        folder = Path(self.root) / "journal" / RUN
        path = folder / f"proof-01-{remedy}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "state": "awaited", "by": {}}))
        for one in folder.glob("001-*.end.json") if entry else ():
            one.unlink()
        return self.recover()

    def take_back(self, reverts=RUN, run_id=NEXT):
        return revert_run.reverted(
            {"run_id": run_id, "reverts": reverts, "root": self.root, "lock": None}
        )


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_enabled_without_a_reload_and_started(node):
    answer = node.enable()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert answer["seen"]["enabled"] == ["disabled", "enabled"]
    assert node.get("enabled") == "enabled"
    assert node.get("active") == "inactive"
    assert node.get("asked") == ["enable --no-reload " + UNIT]
    answer = node.start()
    assert (answer["state"], answer["reason"], answer["seen"]["pid"]) == ("done", "", 4000000)
    assert node.get("asked")[1:] == ["start --no-block " + UNIT]


@pytest.mark.parametrize(
    ("facts", "starts"),
    [
        ({}, True),
        ({"checks": [{"text": "ConditionPathExists=/gone", "met": False}]}, True),
        (
            {
                "active_state": "inactive",
                "checks": [
                    {
                        "text": "ConditionPathExists=/gone",
                        "assert": False,
                        "trigger": False,
                        "met": False,
                    }
                ],
            },
            False,
        ),
    ],
)
def test_no_start_that_systemd_would_refuse(node, monkeypatch, facts, starts):
    monkeypatch.setattr(service_start.unit_start, "every", lambda names: [facts])
    answer = node.start()
    assert (answer["state"] == "done") is starts
    assert bool(node.get("asked")) is starts
    assert starts or "ConditionPathExists=/gone" in answer["reason"]


def test_a_systemd_that_does_not_say_what_it_refuses_is_asked_to_start(node, monkeypatch):
    def silent(names):
        raise service_start.command.CommandError("systemctl: it said nothing")

    monkeypatch.setattr(service_start.unit_start, "every", silent)
    assert node.start()["state"] == "done"


def test_check_mode_asks_for_nothing(node):
    assert {node.enable(check=True)["state"], node.start(check=True)["state"]} == {"skipped"}
    assert node.get("asked") == []


@pytest.mark.parametrize(
    ("changes", "remedy", "said"),
    [
        (
            {"enabled": "masked", "load": "masked"},
            "enable_kubelet",
            "masked, which was done on purpose",
        ),
        (
            {"enabled": "masked", "load": "masked"},
            "start_kubelet",
            "masked, which was done on purpose",
        ),
        # systemd has not read its files since
        ({"enabled": "masked"}, "start_kubelet", "masked, which was done on purpose"),
        ({"enabled": "masked-runtime"}, "start_kubelet", "masked, which was done on purpose"),
        ({"load": "masked"}, "start_kubelet", "masked, which was done on purpose"),
        (
            {"enabled": "static"},
            "enable_kubelet",
            "the evidence is old: kubelet.service of w1 is static, not disabled",
        ),
        ({"enabled": "enabled-runtime"}, "enable_kubelet", "is enabled-runtime, not disabled"),
        (
            {"active": "activating", "sub": "auto-restart"},
            "start_kubelet",
            "the evidence is old: the kubelet of w1 is activating (auto-restart), not stopped",
        ),
        ({"active": "deactivating", "sub": "stop-sigterm"}, "start_kubelet", "is deactivating"),
        ({"load": "not-found"}, "start_kubelet", "there is no unit kubelet.service"),
    ],
)
def test_what_is_not_as_the_plan_saw_it_is_refused(node, changes, remedy, said):
    node.set(**changes)
    answer = node.do(remedy)
    assert (answer["state"], answer["changed"]) == ("refused", False)
    assert said in answer["reason"]
    assert node.get("asked") == []


@pytest.mark.parametrize(
    "name", ["sshd.service", "snap.microk8s.daemon-kubelite.service", "kubelet.service --now", None]
)
def test_no_other_unit_is_touched(node, name):
    assert [
        node.do(remedy, unit=name)["state"] for remedy in ("enable_kubelet", "start_kubelet")
    ] == ["refused"] * 2
    assert node.get("asked") == []


@pytest.mark.parametrize("former", ["static", "linked", "masked", None])
def test_it_is_enabled_only_from_where_disable_leads_back(node, former):
    node.set(enabled=former or "")
    assert node.enable(former=former)["state"] == "refused"
    assert node.get("asked") == []


def test_what_somebody_did_meanwhile_is_done(node):
    node.set(enabled="enabled", active="active", sub="running", pid=7)
    assert [(answer["state"], answer["reason"]) for answer in (node.enable(), node.start())] == [
        ("done", "it is enabled already"),
        ("done", "it runs already"),
    ]
    assert node.get("asked") == []
    assert journal.read_run(RUN, node.root) == []


def test_a_kubelet_beside_the_unit_is_in_the_way(node):
    node.beside = 4711
    answer = node.start()
    assert answer["state"] == "refused"
    assert "next to its unit (pid 4711)" in answer["reason"]
    assert node.get("asked") == []


def test_swap_is_in_the_way_unless_it_is_allowed(node, monkeypatch):
    monkeypatch.setattr(
        kubelet_restart.files,
        "text",
        lambda path, *dummy: "Filename\n/swap file 1 0 -2\n" if path == "/proc/swaps" else None,
    )
    look = kubelet_restart.look
    assert node.start()["state"] == "done"  # its unit says --fail-swap-on=false
    node.set(active="inactive")
    told = {"unit": {"name": UNIT}, "argv": ["kubelet"]}
    monkeypatch.setattr(
        kubelet_restart,
        "look",
        lambda host: SimpleNamespace(**{**vars(look(host)), "evidence": told}),
    )
    answer = node.start(run_id=NEXT)
    assert answer["state"] == "refused"
    assert "swap is on (/swap)" in answer["reason"]


def test_systemd_that_does_not_enable_it_has_changed_nothing(node):
    node.set(does=False)
    answer = node.enable()
    assert (answer["state"], answer["changed"]) == (
        "refused",
        False,
    )
    assert "is disabled still" in answer["reason"]
    assert [item["end"]["result"] for item in journal.read_run(RUN, node.root)] == ["not_done"]
    node.set(does=True)
    assert node.enable(run_id=NEXT)["state"] == "done"


def test_what_gave_up_is_given_its_starts_back(node):
    node.set(active="failed", result="start-limit-hit")
    assert node.start()["state"] == "done"
    assert node.get("asked") == [
        "reset-failed " + UNIT,
        "start --no-block " + UNIT,
    ]


@pytest.mark.parametrize(
    ("changes", "healthz", "said"),
    [
        ({"starts": False}, None, "kubelet.service is inactive"),
        ({"ends": True}, None, "it ended again 3 times"),
        (
            {},
            {"url": "u", "status": None, "error": "refused"},
            "its healthz does not answer 200 yet (refused)",
        ),
        ({}, {"url": "u", "status": 500, "error": None}, "HTTP 500"),
    ],
)
def test_what_does_not_come_up_is_said_and_left_to_systemd(
    node, monkeypatch, changes, healthz, said
):
    if not changes.get("ends"):
        monkeypatch.setattr(service_start, "START_SECONDS", 2)
    node.set(**changes)
    node.healthz = healthz or node.healthz
    answer = node.start()
    assert (answer["state"], answer["changed"]) == ("failed", True)
    assert answer["reason"].startswith("component down: the kubelet of w1 was started")
    assert said in answer["reason"]
    assert "journalctl -u kubelet.service" in answer["reason"]
    assert "stop" not in " ".join(node.get("asked"))


def test_healthz_that_is_switched_off_proves_nothing_either_way(node):
    node.healthz = {"url": None, "status": None, "error": "switched off"}
    assert node.start()["state"] == "done"


def test_a_revert_disables_it_and_stops_nothing(node):
    node.enable()
    node.start()
    (planned,) = revert_plan.plan_revert(RUN, node.root)
    assert (planned["path"], planned["state"]) == ("enablement of kubelet.service", "restore")
    done = node.take_back()
    assert done["error"] is None
    assert [one["result"] for one in done["paths"]] == ["restored"]
    assert done["components"] == []
    assert (node.get("enabled"), node.get("active")) == ("disabled", "active")
    assert node.get("asked")[-1] == "disable --no-reload " + UNIT
    assert [one["result"] for one in node.take_back(run_id=LAST)["paths"]] == ["already"]
    assert [one["result"] for one in node.take_back(NEXT, LAST)["paths"]] == ["restored"]
    assert node.get("enabled") == "enabled"


def test_a_revert_leaves_what_somebody_else_made_of_it(node):
    node.enable()
    node.set(enabled="masked")
    (one,) = node.take_back()["paths"]
    assert one["result"] == "refused"
    assert node.get("enabled") == "masked"
    assert node.get("asked") == ["enable --no-reload " + UNIT]


@pytest.mark.parametrize(
    ("enabled", "state", "result", "reason"),
    [
        ("enabled", "proven", "committed", "kubelet.service is enabled"),
        ("disabled", "not_done", "not_done", "kubelet.service is disabled"),
        ("static", "not_done", "superseded", "kubelet.service is static"),
    ],
)
def test_an_interrupted_enable_is_found_and_ended(node, enabled, state, result, reason):
    node.enable()
    node.set(enabled=enabled)
    answer = node.forget("enable_kubelet", entry=True)
    assert answer["state"] == "done", answer
    assert reason in answer["reason"], answer
    assert step_record.read(RUN, "01-enable_kubelet", node.root)["state"] == state
    assert journal.read_run(RUN, node.root)[0]["end"]["result"] == result
    assert node.get("asked") == ["enable --no-reload " + UNIT]  # nothing is done anew


@pytest.mark.parametrize(
    ("changes", "state", "ended"),
    [
        ({}, "done", "proven"),
        ({"active": "inactive"}, "done", "not_done"),
        ({"active": "failed"}, "done", "not_done"),
        ({"ends": True}, "failed", "failed"),
    ],
)
def test_an_interrupted_start_is_ended(node, changes, state, ended):
    node.start()
    node.set(**changes)
    answer = node.forget("start_kubelet")
    assert answer["state"] == state
    assert step_record.read(RUN, "01-start_kubelet", node.root)["state"] == ended
    assert answer["changed"] == (ended == "proven"), "nothing was done, so that nothing changed"


def test_what_nobody_can_tell_stays_open(node):
    node.enable()
    node.set(load="not-found", active="inactive")
    answer = node.forget("enable_kubelet", entry=True)
    assert answer["state"] == "failed"
    assert "still open" in answer["reason"]
    assert step_record.read(RUN, "01-enable_kubelet", node.root)["state"] == "awaited"
    assert journal.open_entries(node.root)
    node.set(load="loaded")
    assert node.recover()["state"] == "done"
    assert journal.open_entries(node.root) == []


def test_a_step_is_not_begun_twice(node):
    node.enable()
    node.set(enabled="disabled")
    assert node.enable()["state"] == "done"
    assert node.get("enabled") == "disabled"


def test_another_runs_lock_keeps_it_out(node):
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    answer = node.enable()
    assert answer["state"] == "refused"
    assert node.get("asked") == []


def test_every_digest_is_of_what_is_enabled_says(node):
    node.enable()
    (item,) = journal.read_run(RUN, node.root)
    assert (item["intent"]["sha256_before"], item["intent"]["sha256_after"]) == (
        storage.digest(b"disabled\n"),
        storage.digest(b"enabled\n"),
    )
    assert journal.former_bytes(item, node.root) == b"disabled\n"
    assert item["intent"]["real"] == "unit:kubelet.service"


# -- a runtime
# --------------------------------------------------------------------------------------------------

CONTAINERD = "containerd.service"


@pytest.fixture
def runtime(node, monkeypatch):
    """Give the same machinery for containerd.

    The answers of its socket, one after another, the last again and again.
    """
    node.said, node.paths = [None], []

    def connect(path, dummy_seconds):
        node.paths.append(path)
        return node.said.pop(0) if len(node.said) > 1 else node.said[0]

    monkeypatch.setattr(cri, "connect", connect)
    argv = ["kubelet", "--container-runtime-endpoint=unix:///run/containerd/containerd.sock"]
    monkeypatch.setattr(
        kubelet,
        "collect",
        lambda context: {
            "argv": argv,
            "config": None,
            "config_dropins": [],
            "healthz": {"url": "u", "status": None},
        },
    )
    return node


def test_a_runtime_is_enabled_and_started_whatever_the_kubelet_says(runtime):
    runtime.beside = 4711  # its kubelet runs, and is not well
    answer = runtime.do("enable_runtime", unit=CONTAINERD)
    assert (answer["state"], answer["reason"], runtime.get("enabled")) == ("done", "", "enabled")
    answer = runtime.do("start_runtime", unit=CONTAINERD)
    assert (answer["state"], answer["reason"], answer["seen"]["pid"]) == ("done", "", 4000000)
    assert runtime.get("asked") == [
        "enable --no-reload " + CONTAINERD,
        "start --no-block " + CONTAINERD,
    ]
    assert set(runtime.paths) == {"/run/containerd/containerd.sock"}
    assert step_record.read(RUN, "01-start_runtime", runtime.root)["component"] == "containerd"


def test_a_runtime_is_proven_by_its_socket(runtime, monkeypatch):
    runtime.said = ["Connection refused"] * 3 + [None]
    assert runtime.do("start_runtime", unit=CONTAINERD)["state"] == "done"
    assert len(runtime.paths) > 4
    runtime.set(active="inactive")
    runtime.said = ["Connection refused"]
    monkeypatch.setattr(service_start, "START_SECONDS", 1)
    answer = runtime.do("start_runtime", run_id=NEXT, unit=CONTAINERD)
    assert (answer["state"], answer["changed"]) == ("failed", True)
    assert answer["reason"].startswith(
        "component down: the containerd of w1 was started and is not well:"
        " /run/containerd/containerd.sock takes no connection"
    )


def test_a_runtime_that_runs_is_not_started_again(runtime):
    runtime.set(active="active", sub="running", pid=7)
    answer = runtime.do("start_runtime", unit=CONTAINERD)
    assert (answer["state"], answer["reason"], runtime.get("asked")) == (
        "done",
        "it runs already",
        [],
    )


@pytest.mark.parametrize(
    ("changes", "unit", "remedy", "said"),
    [
        (
            {"enabled": "masked", "load": "masked"},
            CONTAINERD,
            "start_runtime",
            "masked, which was done on purpose",
        ),
        (
            {"active": "activating", "sub": "auto-restart"},
            CONTAINERD,
            "start_runtime",
            "the evidence is old: the containerd of w1 is activating",
        ),
        ({}, "sshd.service", "start_runtime", "is no unit of a kubelet or a runtime"),
        ({}, UNIT, "start_runtime", "no unit for a step of the kind start_runtime"),
        ({}, CONTAINERD, "start_kubelet", "no unit for a step of the kind start_kubelet"),
        ({}, CONTAINERD, "enable_kubelet", "no unit for a step of the kind"),
    ],
)
def test_what_a_runtimes_step_refuses(runtime, changes, unit, remedy, said):
    runtime.set(**changes)
    answer = runtime.do(remedy, unit=unit)
    assert (answer["state"], answer["changed"]) == ("refused", False)
    assert said in answer["reason"]
    assert runtime.get("asked") == []


def test_an_interrupted_start_of_a_runtime_is_ended_and_a_revert_disables_it(runtime):
    runtime.do("enable_runtime", unit=CONTAINERD)
    runtime.do("start_runtime", unit=CONTAINERD)
    answer = runtime.forget("start_runtime")
    assert answer["state"] == "done"
    assert "its containerd runs (pid 4000000)" in answer["reason"]
    answer = runtime.forget("enable_runtime", entry=True)
    assert answer["state"] == "done"
    assert "containerd.service is enabled" in answer["reason"]
    assert [one["result"] for one in runtime.take_back(run_id=LAST)["paths"]] == ["restored"]
    assert (runtime.get("enabled"), runtime.get("active"), runtime.get("asked")[-1]) == (
        "disabled",
        "active",
        "disable --no-reload " + CONTAINERD,
    )
