# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector unit_start: what systemd checks before a start.

The texts are of systemd 252, as it printed them, and of 219.
"""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import unit_start
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    start_refusal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    systemd,
)

SHOW = """\
Result=exit-code
ExecMainStatus=200
WorkingDirectory=/nope
Id=kubelet.service
LoadState=loaded
ActiveState=failed
SubState=failed
ConditionResult=yes
ConditionTimestampMonotonic=525477253
AssertResult=no
AssertTimestampMonotonic=0
InactiveEnterTimestampMonotonic=525477230
LoadError=
Requires=system.slice lab.service
After=lab.service
"""
OTHER = """\
Id=lab.service
LoadState=loaded
ActiveState=failed
SubState=failed
Result=exit-code
ExecMainStatus=1

Id=system.slice
LoadState=loaded
ActiveState=active
"""
JOURNAL = """\
2026-11-25T13:02:11+0000 w1 kubelet[7]: Failed at step CHDIR spawning /usr/bin/fake: \
it is no word of systemd's
2026-11-25T13:02:11+0000 w1 systemd[1]: kubelet.service: Main process exited, code=exited, \
status=200/CHDIR
2026-11-25T13:02:11+0000 w1 (kubelet)[185]: kubelet.service: Failed at step CHDIR spawning \
/usr/bin/kubelet: No such file or directory
2026-11-25T13:02:10+0000 w1 systemd[4711]: Failed at step CHDIR spawning /usr/bin/kubelet: \
No such file or directory
"""


class System:
    """Answers of systemctl, busctl and journalctl, and what was asked."""

    def __init__(self, monkeypatch):
        self.asked, self.bus, self.show = (
            [],
            {"Conditions": "a(sbbsi) 0\n", "Asserts": "a(sbbsi) 0\n"},
            SHOW,
        )
        monkeypatch.setattr(command, "run", self.run)
        monkeypatch.setattr(systemd, "_told", {})

    def run(self, argv, seconds=5, limit=0):
        self.asked.append(argv)
        assert 0 < seconds <= 10
        if argv[0] == "busctl":
            text = self.bus.get(argv[-1])
            if text is None:
                raise command.CommandError("busctl: it said nothing")
            return text
        if argv[0] == "journalctl":
            return JOURNAL
        return self.show if "kubelet.service" in argv else OTHER


@pytest.fixture
def system(monkeypatch):
    return System(monkeypatch)


def test_what_systemd_says_of_a_unit_and_of_one_that_it_needs(system):
    (found,) = unit_start.every(["kubelet.service"])
    assert (found["name"], found["result"], found["exec_main_status"], found["manual_start"]) == (
        "kubelet.service",
        "exit-code",
        200,
        True,
    )
    assert (found["condition_result"], found["assert_result"]) == (True, None)
    assert found["ended_at"] > 0
    assert found["checks_from"] == "busctl"
    assert found["paths"] == [
        {
            "setting": "WorkingDirectory",
            "name": "/nope",
            "state": "missing",
            "changed_at": None,
            "path": None,
            "line": None,
        }
    ]
    assert [line.split(" ", 2)[2].partition(":")[0] for line in found["said"]] == [
        "systemd[4711]",
        "(kubelet)[185]",
        "systemd[1]",
    ]
    (other,) = found["needs"]
    assert (
        other["name"],
        other["how"],
        other["ordered"],
        other["active_state"],
        other["needs"],
    ) == ("lab.service", "Requires", True, "failed", [])
    assert start_refusal.now({}, found).what.endswith("/nope is missing")


def test_units_that_run_are_not_asked(system):
    running = {"name": "kubelet.service", "active_state": "active"}
    data = {
        "kubelet": {"unit": running},
        "runtime": {"units": [{"name": "docker.service", "absent": True}]},
    }
    with pytest.raises(base.Absent):
        unit_start.collect(base.Context({}, [], data))
    with pytest.raises(base.Absent):
        unit_start.collect(base.Context({}, [], {}))
    assert system.asked == []


def test_those_that_do_not_run_are_asked(system):
    data = {
        "kubelet": {"unit": {"name": "kubelet.service", "active_state": "failed"}},
        "runtime": {
            "units": [{"name": "containerd.service", "absent": False, "active_state": "inactive"}]
        },
    }
    found = unit_start.collect(base.Context({}, [], data))
    assert [one["name"] for one in found["units"]] == ["kubelet.service"]
    assert system.asked[0][-2:] == ["kubelet.service", "containerd.service"]


def test_without_an_answer_nothing_is_known(system, monkeypatch):
    def nothing(*_args):
        raise command.CommandError("systemctl: it said nothing")

    monkeypatch.setattr(command, "run", nothing)
    with pytest.raises(base.Failed):
        unit_start.collect(
            base.Context(
                {}, [], {"kubelet": {"unit": {"name": "kubelet.service", "active_state": "failed"}}}
            )
        )


def test_units_that_need_many_others_are_bounded(system, monkeypatch):
    names = [f"u{number}.service" for number in range(50)]
    block = "Id=%s\nLoadState=loaded\nActiveState=failed\nRequires=" + " ".join(names) + "\n"
    system.show = block % "kubelet.service"
    other = "\n".join(block % name for name in names)
    real = system.run
    monkeypatch.setattr(
        command,
        "run",
        lambda argv, *more: (
            other if argv[0] == "systemctl" and "kubelet.service" not in argv else real(argv, *more)
        ),
    )
    (found,) = unit_start.every(["kubelet.service"])
    assert count(found) == unit_start.UNITS


def count(facts):
    return 1 + sum(count(one) for one in facts["needs"])


def test_the_line_by_which_a_unit_is_needed(system, tmp_path):
    (tmp_path / "a").write_text("[Unit]\nAfter=lab.service\nRequires=other.service lab.service\n")
    system.show += "FragmentPath={}\n".format(tmp_path / "a")
    (found,) = unit_start.every(["kubelet.service"])
    assert [(one["path"], one["line"]) for one in found["needs"]] == [(str(tmp_path / "a"), 3)]


# -- conditions
# --------------------------------------------------------------------------------------------------


def test_without_busctl_the_units_files_are_read(system, tmp_path):
    system.bus = {}
    (tmp_path / "a").write_text(
        "[Unit]\nConditionPathExists=/gone-first\nConditionPathExists=\n[Service]\nConditionPath"
        "Exists=/no\n"
    )
    (tmp_path / "b").write_text(
        "[Unit]\n# x\nConditionPathExists = | !"
        f" {tmp_path}\nAssertPathExists=/gone\nConditionHost=%H\n"
    )
    system.show += "FragmentPath={}\nDropInPaths={}\n".format(tmp_path / "a", tmp_path / "b")
    (found,) = unit_start.every(["kubelet.service"])
    first, host, second = found["checks"]
    assert found["checks_from"] == "files"
    assert first["text"] == f"ConditionPathExists=|!{tmp_path}"
    assert (first["trigger"], first["met"], first["last"], first["path"], first["line"]) == (
        True,
        False,
        None,
        str(tmp_path / "b"),
        3,
    )
    assert (second["text"], second["assert"], second["met"], second["seen"]) == (
        "AssertPathExists=/gone",
        True,
        False,
        "/gone is missing",
    )
    assert host["met"] is None


# -- paths
# --------------------------------------------------------------------------------------------------


def states(**block):
    rows = unit_start.paths(
        {key: value if isinstance(value, list) else [value] for key, value in block.items()}
    )
    return [(one["setting"], one["state"]) for one in rows]


def test_what_a_start_needs(tmp_path):
    (tmp_path / "file").write_text("x")
    here = str(tmp_path)
    start = "{ path=%s/gone ; argv[]=%s/gone --x ; ignore_errors=%s ; start_time=[n/a] }"
    assert states(WorkingDirectory=here, ExecStart=start % (here, here, "no")) == [
        ("WorkingDirectory", "ok"),
        ("ExecStart", "missing"),
    ]
    assert states(WorkingDirectory=here + "/file", ExecStart=start % (here, here, "yes")) == [
        ("WorkingDirectory", "no_directory")
    ]
    assert states(ExecStart=start.replace("gone", "file") % (here, here, "no")) == [
        ("ExecStart", "not_executable")
    ]
    files = [
        here + "/file (ignore_errors=no)",
        here + "/gone (ignore_errors=yes)",
        here + "/gone (ignore_errors=no)",
        here + "/f* (ignore_errors=no)",
        here + " (ignore_errors=no)",
    ]
    assert [state for dummy, state in states(EnvironmentFiles=files)] == [
        "ok",
        "missing",
        "ok",
        "no_file",
    ]
    assert states(User="root", Group="no-such-group-here") == [("User", "ok"), ("Group", "missing")]
    assert states(User="4711", DynamicUser="no") == [("User", "ok")]
    assert states(User="x", DynamicUser="yes") == []


@pytest.mark.parametrize(
    ("row", "ended"),
    [
        ("code=exited ; status=1 }", 1),
        ("code=exited ; status=0 }", 0),
        ("code=(null) ; status=0/0 }", None),
        ("code=exited ; status=203/EXEC }", 203),
        ("code=killed ; status=9/KILL }", None),
    ],
)
def test_how_a_program_before_its_own_ended(row, ended):
    show = (
        "{ path=/bin/false ; argv[]=/bin/false ; ignore_errors=no ; start_time=[n/a] ;"
        " stop_time=[n/a] ; pid=302 ; " + row
    )
    assert [one["ended"] for one in unit_start.paths({"ExecStartPre": [show]})] == [ended]


@pytest.mark.parametrize("folder", ["", "~", "!/gone", "-/gone", "[not set]"])
def test_a_working_directory_that_may_be_missing_is_not_looked_at(folder):
    assert states(WorkingDirectory=folder) == []
    assert states(WorkingDirectory="/gone", RootDirectory="/srv") == []


def test_the_line_that_sets_it(tmp_path):
    (tmp_path / "a").write_text(
        "[Service]\nWorkingDirectory=/gone\nExecStart=-/gone --x\nEnvironmentFile=/gone\n"
    )
    written = unit_start.settings([str(tmp_path / "a"), str(tmp_path / "missing"), ""])
    rows = unit_start.paths(
        {"WorkingDirectory": ["/gone"], "EnvironmentFiles": ["/gone (ignore_errors=no)"]}, written
    )
    assert [(one["path"], one["line"]) for one in rows] == [
        (str(tmp_path / "a"), 2),
        (str(tmp_path / "a"), 4),
    ]


def test_the_file_behind_a_mask_is_read(system, tmp_path, monkeypatch):
    (tmp_path / "kubelet.service").write_text(
        "[Unit]\nConditionPathExists=/gone\nRequires=x.service\n[Service]\nWorkingDirectory=/gone\n"
        "EnvironmentFile=-/gone\nExecStart=/gone\nUser=%i\n"
    )
    (tmp_path / "kubelet.service.d").mkdir()
    (tmp_path / "kubelet.service.d" / "9.conf").write_text(
        "[Service]\nEnvironmentFile=/gone.env\nExecStart=\nExecStart=-/gone\n"
    )
    monkeypatch.setattr(unit_start.unit_mask, "facts", lambda name: {"file": str(tmp_path / name)})
    monkeypatch.setattr(unit_start, "DROPINS", (str(tmp_path),))
    system.show = "Id=kubelet.service\nLoadState=masked\nActiveState=inactive\nResult=success\n"
    (found,) = unit_start.every(["kubelet.service"])
    assert [(one["text"], one["met"]) for one in found["checks"]] == [
        ("ConditionPathExists=/gone", False)
    ]
    assert [(one["setting"], one["name"]) for one in found["paths"]] == [
        ("WorkingDirectory", "/gone"),
        ("EnvironmentFile", "/gone.env"),
    ]
    assert not any(argv[0] == "busctl" for argv in system.asked)


def test_the_mount_unit_of_the_root_is_no_option(monkeypatch):
    """Systemctl takes -.mount for an option and shows nothing at all."""
    asked = []
    monkeypatch.setattr(systemd.command, "run", lambda argv, seconds: asked.append(argv) or "")
    systemd._shown(["-.mount", "a.service"], ["Id"], 1)
    systemd._shown(["a.service"], ["Id"], 1)
    assert asked[0][-3:] == ["--", "-.mount", "a.service"]
    assert "--" not in asked[1]


def test_a_secret_at_the_cut_of_a_line_is_masked_as_a_whole(monkeypatch):
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    head = "2027-01-15T07:59:00+0000 m1 systemd[1]: etcd.service: Scheduled restart job "
    line = head + "x" * (unit_start.LONGEST - len(head) - 20) + " " + token
    monkeypatch.setattr(unit_start.command, "run", lambda *dummy: line + "\n")
    (kept,) = unit_start.systemd_lines("etcd.service", 1)
    assert "eyJ" not in kept


def test_files_of_other_installations_that_a_unit_hides(tmp_path):
    folders = [str(tmp_path / name) for name in ("etc", "usr", "lib", "run")]
    for folder in folders[:2]:
        Path(folder).mkdir()
    (tmp_path / "lib").symlink_to(tmp_path / "usr")
    own, other = tmp_path / "etc" / "a.service", tmp_path / "usr" / "a.service"
    own.write_text("[Service]\n")
    assert unit_start.hidden("a.service", str(own), folders) == []
    other.write_text("[Service]\n")
    assert unit_start.hidden("a.service", str(own), folders) == [str(other)]
    assert unit_start.hidden("a.service", str(other), folders) == []
    assert unit_start.hidden("a.service", "/elsewhere/a.service", folders) == []
    own.unlink()
    own.symlink_to(other)
    assert unit_start.hidden("a.service", str(own), folders) == []
    own.unlink()
    own.symlink_to("/dev/null")
    assert unit_start.hidden("a.service", str(own), folders) == []
