# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector failed_units: which units it takes, and where it has no answer."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    failed_units,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command

# As systemd 219, 245 and 252 print them.
LISTS = (
    "iscsid.service loaded failed failed Open-iSCSI\nfwupd.service loaded failed failed x\n",
    "iscsid.service   loaded failed     failed       Open-iSCSI\nfwupd.service loaded failed x",
    "● iscsid.service loaded failed failed Open-iSCSI\n● fwupd.service loaded failed failed x\n",
)
BLOCK = {
    "Id": ["iscsid.service"],
    "LoadState": ["loaded"],
    "ActiveState": ["failed"],
    "SubState": ["failed"],
    "Result": ["exit-code"],
    "ExecMainStatus": ["7"],
    "NRestarts": ["0"],
    "Type": ["simple"],
    "InactiveEnterTimestampMonotonic": ["5000000"],
}
JOURNAL = (
    "2026-11-24T12:00:02+0000 w1 systemd[1]: iscsid.service: Failed with result 'exit-code'.\n"
    "2026-11-24T12:00:01+0000 w1 iscsid[77]: Could not read token=abcdefghijklmnopqrstuvwxyz01\n"
)


@pytest.fixture
def machine(monkeypatch):
    blocks = {"iscsid.service": BLOCK}
    answers = {"list": LISTS[0], "journal": JOURNAL, "blocks": blocks}

    def run(argv, seconds=5, limit=0):
        answer = answers["journal" if argv[0] == "journalctl" else "list"]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(
        failed_units.systemd, "show", lambda names, properties, seconds: answers["blocks"]
    )
    return answers


def collect():
    return failed_units.collect(base.Context({}, [], {}))


@pytest.mark.parametrize("text", LISTS)
def test_units_that_failed(machine, text):
    machine["list"] = text
    data = collect()
    (row,) = data["units"]
    assert (data["failed"], row["name"], row["result"]) == (2, "iscsid.service", "exit-code")
    assert (row["exec_main_status"], row["type"], len(row["lines"])) == (7, "simple", 2)
    assert row["ended_at"] is not None
    assert "abcdefghijklmnop" not in str(row)


def test_a_machine_on_which_nothing_failed(machine):
    silent = command.Silent("systemctl: it said nothing")
    machine["list"] = silent
    assert collect() == {"failed": 0, "units": []}
    silent.complaint = "System has not been booted with systemd"
    with pytest.raises(base.Absent):
        collect()


@pytest.mark.parametrize("silent", ["list-units", "show"])
def test_a_systemd_that_does_not_answer_in_time_is_no_machine_without_units(
    machine, monkeypatch, silent
):
    late = command.Late("systemctl did not end within 3 s")

    def show(_names, _properties, _seconds):
        raise late

    if silent == "show":
        monkeypatch.setattr(failed_units.systemd, "show", show)
    else:
        machine["list"] = late
    with pytest.raises(base.Failed):
        collect()


def test_a_journal_that_cannot_be_read(machine):
    machine["journal"] = command.CommandError("journalctl did not end")
    (row,) = collect()["units"]
    assert (row["lines"], row["error"]) == ([], "journalctl did not end")


def test_no_more_units_than_a_few(machine, monkeypatch):
    monkeypatch.setattr(failed_units, "MAX_UNITS", 0)
    assert collect() == {"failed": 2, "units": []}


PLUGIN = {
    **BLOCK,
    "Id": ["nvidia-k8s-device-plugin.service"],
    "ActiveState": ["inactive"],
    "UnitFileState": ["enabled"],
    "BindsTo": ["kubelet.service"],
    "Requires": ["kubelet.service system.slice sysinit.target"],
}


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({}, 1),
        ({"UnitFileState": ["disabled"]}, 0),
        ({"InactiveEnterTimestampMonotonic": ["0"]}, 0),
        ({"Type": ["oneshot"]}, 0),
    ],
)
def test_a_device_plugin_that_was_stopped(machine, change, count):
    machine["list"] = "nvidia-k8s-device-plugin.service loaded inactive dead Plugin\n"
    machine["blocks"] = {"nvidia-k8s-device-plugin.service": {**PLUGIN, **change}}
    data = collect()
    assert (data["failed"], len(data["units"])) == (0, count)
    assert [row["bound_to"] for row in data["units"]] == [["kubelet.service"]] * count


def test_what_the_states_of_a_unit_say():
    text = """\
a.service loaded failed failed failed
b.service loaded activating auto-restart b
c.service not-found inactive dead failed
● d.service masked inactive dead d
x-device-plugin.service loaded inactive dead x
y-device-plugin.service loaded failed failed y
device-plugin.slice loaded inactive dead z
"""
    failed = ["a.service", "b.service", "y-device-plugin.service"]
    assert failed_units.units(text) == (failed, ["x-device-plugin.service"])
    assert failed_units.units("") == ([], [])


def test_where_no_unit_counts_nothing_more_is_asked(machine, monkeypatch):
    def show(_names, _properties, _seconds):
        raise AssertionError("systemctl show without a unit shows all of them")

    monkeypatch.setattr(failed_units.systemd, "show", show)
    machine["list"] = "a.service loaded inactive dead a\n"
    assert collect() == {"failed": 0, "units": []}


def test_no_more_names_than_a_few(monkeypatch):
    monkeypatch.setattr(failed_units, "MAX_LISTED", 2)
    rows = [f"{number}.service loaded failed failed x" for number in range(5)]
    rows += [f"{number}-device-plugin.service loaded inactive dead x" for number in range(5)]
    assert [len(names) for names in failed_units.units("\n".join(rows))] == [2, 2]
