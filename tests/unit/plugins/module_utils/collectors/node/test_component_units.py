# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_units: which units it finds, and when it reads their journal.

The texts are of systemd 252, of the lab's etcd and scheduler as units.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_units,
    unit_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    systemd,
)

ETCD = """\
Id=etcd.service
LoadState=loaded
ActiveState=activating
SubState=auto-restart
UnitFileState=enabled
Result=exit-code
MainPID=0
NRestarts=6
ExecMainStatus=1
Type=notify
FragmentPath=/etc/systemd/system/etcd.service
ExecStart={ path=/usr/local/bin/etcd ; argv[]=/usr/local/bin/etcd --name m1 ; ignore_errors=no }
EnvironmentFiles=/etc/etcd.env (ignore_errors=no)
WantedBy=multi-user.target
InactiveEnterTimestampMonotonic=0
InactiveExitTimestampMonotonic=525477253
ExecMainStartTimestampMonotonic=525477253
"""
BACKUP = """\
Id=etcd-backup.service
LoadState=loaded
ActiveState=inactive
SubState=dead
Type=simple
ExecStart={ path=/usr/local/bin/etcd-backup.sh ; argv[]=/usr/local/bin/etcd-backup.sh ; x=y }
"""
JOURNAL = """\
2026-11-25T13:02:16+0000 m1 systemd[1]: etcd.service: Scheduled restart job, \
restart counter is at 6.
2026-11-25T13:02:11+0000 m1 systemd[1]: etcd.service: Failed with result 'exit-code'.
2026-11-25T13:02:11+0000 m1 systemd[1]: etcd.service: Main process exited, code=exited, \
status=1/FAILURE
2026-11-25T13:02:11+0000 m1 etcd[77]: {"level":"fatal","msg":"discovery failed"}
"""


class System:
    """Answers of systemctl and journalctl, and what was asked."""

    def __init__(self, monkeypatch, show):
        self.asked, self.show, self.problem = [], show, None
        monkeypatch.setattr(command, "run", self.run)
        monkeypatch.setattr(systemd, "_told", {})
        monkeypatch.setattr(systemd, "_states", {})

    def run(self, argv, seconds=5, limit=0):
        self.asked.append(argv)
        if argv[0] == "journalctl":
            if self.problem:
                raise command.CommandError(self.problem)
            return JOURNAL
        return "enabled\n" if argv[1] == "is-enabled" else self.show

    def journals(self):
        return [argv for argv in self.asked if argv[0] == "journalctl"]


@pytest.fixture
def system(monkeypatch):
    monkeypatch.setattr(
        component_units,
        "candidates",
        lambda dummy: ["etcd.service", "etcd-backup.service", "kube-scheduler.service"],
    )
    return System(monkeypatch, f"{ETCD}\n{BACKUP}")


def collected(processes=()):
    return component_units.collect(base.Context({}, [], {"instances": {"processes": processes}}))


def test_a_unit_of_a_component_that_does_not_stay_up(system):
    (found,) = collected()["units"]
    assert (found["name"], found["component"], found["result"]) == (
        "etcd.service",
        "etcd",
        "exit-code",
    )
    assert (found["n_restarts"], found["exec_main_status"], found["unit_file_state"]) == (
        6,
        1,
        "enabled",
    )
    assert found["environment_files"] == ["/etc/etcd.env"]
    assert found["wanted_by"] == ["multi-user.target"]
    assert found["argv"] == ["/usr/local/bin/etcd", "--name", "m1"]
    assert found["ended_at"] is None
    assert found["started_at"] > 0
    assert [line.partition("]: ")[0].rpartition(" ")[2] for line in found["lines"]] == [
        "etcd[77",
        "systemd[1",
        "systemd[1",
        "systemd[1",
    ]
    assert all("systemd[1]" in line for line in found["said"])
    assert "restart counter" in found["said"][-1]
    assert ["_PID=1" in argv for argv in system.journals()] == [True, False]


def test_one_that_runs_costs_no_journal(system, monkeypatch):
    # long ago, however young this machine is
    monkeypatch.setattr(unit_start, "moment", lambda dummy: 1000.0)
    system.show = ETCD.replace("activating", "active").replace("auto-restart", "running")
    (found,) = collected()["units"]
    assert (found["lines"], found["said"]) == ([], [])
    assert system.journals() == []


def test_a_journal_that_does_not_answer_is_told(system):
    system.problem = "journalctl: no answer"
    (found,) = collected()["units"]
    assert (found["lines"], found["said"]) == ([], [])
    assert found["journal_error"] == "journalctl: no answer"


@pytest.mark.parametrize("show", [BACKUP, ETCD.replace("notify", "oneshot"), "Id=x.service\n"])
def test_without_such_a_unit_it_is_absent(system, show):
    system.show = show
    with pytest.raises(base.Absent):
        collected()


def test_units_are_known_by_their_files_and_by_processes(tmp_path):
    for name in ("etcd.service", "etcd@.service", "k3s.service", "nginx.service", "etcd.conf"):
        (tmp_path / name).write_text("")
    running = [
        {"unit": "my-scheduler.service"},
        {"unit": "docker.service", "container_id": "a"},
        {"unit": "kubelet.service", "pod_uid": "b"},
        {"unit": None},
    ]
    found = component_units.candidates(running, (str(tmp_path), str(tmp_path / "none")))
    assert found == ["etcd.service", "k3s.service", "my-scheduler.service"]


@pytest.mark.parametrize(
    ("name", "argv", "component"),
    [
        ("etcd-events.service", ["/usr/local/bin/etcd"], "etcd"),
        ("api.service", ["/opt/bin/kube-apiserver", "--v=2"], "kube-apiserver"),
        ("s.service", ["/usr/bin/hyperkube", "kube-scheduler"], "kube-scheduler"),
        ("etcd-member.service", ["/usr/lib/coreos/etcd-wrapper"], "etcd"),
        ("etcd.service", ["/usr/bin/docker", "run", "etcd"], "etcd"),
        ("k3s.service", ["/usr/local/bin/k3s", "server"], "k3s"),
        ("k0sworker.service", ["/usr/local/bin/k0s", "worker"], "k0s"),
        ("etcd-defrag.service", ["/usr/local/bin/etcdctl", "defrag"], None),
        ("other.service", [], None),
    ],
)
def test_what_a_unit_runs(name, argv, component):
    assert component_units.component_of(name, argv) == component


NOW = 1795375430.0
UP = {"active_state": "active", "n_restarts": 0, "started_at": NOW - 5, "begun_at": NOW - 5}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, False),
        ({"n_restarts": 3}, True),
        ({"n_restarts": None}, True),
        ({"n_restarts": 3, "started_at": NOW - 4000}, False),
        ({"n_restarts": 3, "started_at": None}, False),
        ({"active_state": "failed"}, True),
        ({"active_state": "activating"}, True),
        ({"active_state": "inactive"}, True),
        ({"active_state": "inactive", "begun_at": None}, False),
        # it starts its components itself
        ({"component": "k0s", "started_at": NOW - 4000}, True),
        ({"component": "k0s", "active_state": "inactive", "begun_at": None}, False),
    ],
)
def test_when_a_journal_is_read(changes, wanted):
    assert component_units.is_relevant(dict(UP, **changes), NOW) is wanted


def test_one_that_does_not_run_is_examined_before_its_start(monkeypatch):
    asked = []
    monkeypatch.setattr(
        unit_start, "every", lambda names, dummy: asked.extend(names) or [{"name": names[0]}]
    )
    units = [{"name": "etcd.service", "active_state": "failed"}, {"name": "k.service"}]
    units[1]["active_state"] = "active"
    unit_start.collect(base.Context({}, [], {"component_units": {"units": units}}))
    assert asked == ["etcd.service"]
