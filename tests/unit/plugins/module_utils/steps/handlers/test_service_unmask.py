# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet unmasked on its node: guarded, journalled, proven, taken back.

Systemctl is a program that reads the folders, and remembers what it read.
"""

import json
import os
import shlex
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    durable_files,
    journal_entry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    service_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import unit_mask
from tests.unit.plugins.module_utils.steps.handlers.test_service_start import Unit

RUN, NEXT, LAST = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f", "20261121T110000Z-7a8b9c"
UNIT = "kubelet.service"
SYSTEMCTL = """#!/bin/sh
cd {folder} || exit 9
asked="$*"
etc={etc} run={run} runtime=no masks=no
for word; do case $word in --runtime) runtime=yes ;; -*) ;; *) words="$words $word" ;; esac; done
set -- $words
if [ -L "$etc/kubelet.service" ] || [ -L "$run/kubelet.service" ]; then masks=yes; fi
for name in load enabled does stuck; do read -r "$name" <$name; done
case $1 in is-enabled | show) ;; *) echo "$asked" >>asked ;; esac
case $1 in
is-enabled)
    if [ $masks = yes ]; then echo masked; exit 1; fi
    echo "$enabled" ;;
show)
    for last; do :; done
    printf '%s\\n' "Id=$last" LoadState=$load ActiveState=inactive \\
        SubState=dead UnitFileState= Result=success MainPID=0 ;;
unmask)
    if [ $does = True ]; then
        [ $runtime = no ] || etc=$run
        rm "$etc/$2"
        echo "Removed link." >&2
    fi ;;
daemon-reload)
    if [ $masks = yes ] || [ $stuck = True ]; then echo masked >load; else echo loaded >load; fi ;;
esac
"""


class Node:
    """A unit that a link in /etc masks while its own file exists, on a node without devices."""

    def __init__(self, path, monkeypatch):
        self.root, self.unit, self.folders = (
            str(path / "kubemend"),
            Unit(path / "unit"),
            [path / "etc", path / "run", path / "lib"],
        )
        for one in self.folders:
            one.mkdir()
        self.etc, self.run, self.lib = [one / UNIT for one in self.folders]
        self.lib.write_text("[Service]\n")
        self.etc.symlink_to("/dev/null")
        self.set(load="masked", enabled="disabled", does=True, stuck=False)
        (path / "bin").mkdir()
        (path / "bin" / "systemctl").write_text(
            SYSTEMCTL.format(
                folder=shlex.quote(str(self.unit.folder)),
                etc=shlex.quote(str(self.folders[0])),
                run=shlex.quote(str(self.folders[1])),
            )
        )
        (path / "bin" / "systemctl").chmod(0o755)
        monkeypatch.setenv("PATH", str(path / "bin"), prepend=":")
        for name, value in (
            ("MASKS", tuple(map(str, self.folders[:2]))),
            ("OWN", (str(self.folders[2]),)),
            ("ETC", str(self.folders[0])),
            ("RUN", str(self.folders[1])),
        ):
            monkeypatch.setattr(unit_mask, name, value)
        self.held = set()
        monkeypatch.setattr(devices, "running", lambda *dummy: self.held)
        monkeypatch.setattr(devices, "names", sorted)

    def set(self, **changes):
        self.unit.set(**changes)

    def get(self, name):
        return self.unit.get(name)

    def do(self, run_id=RUN, check=False, allow=(), **more):
        step = {
            "id": "01-unmask",
            "host": "w1",
            "remedy": "unmask_kubelet",
            "code": ["KM503"],
            "target": UNIT,
            "guard": {"allow": list(allow)},
            "expect": {"component": "kubelet"},
            "change": dict(
                {"kind": "unmask_kubelet", "path": str(self.etc), "unit": UNIT, "to": "/dev/null"},
                **more,
            ),
        }
        return step_executor.work(
            {"run_id": run_id, "root": self.root, "lock": None, "check": check, "step": step}
        )

    def recover(self):
        return step_executor.work(
            {
                "run_id": NEXT,
                "root": self.root,
                "lock": None,
                "step": {"id": "recover", "host": "w1", "remedy": "recover", "expect": {}},
            }
        )

    def take_back(self, reverts=RUN, run_id=NEXT):
        done = revert_run.reverted(
            {"run_id": run_id, "reverts": reverts, "root": self.root, "lock": None}
        )
        assert done["error"] is None, done
        return [one["result"] for one in done["paths"]]


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_the_link_goes_and_systemd_is_told(node):
    answer = node.do()
    assert (answer["state"], answer["changed"], answer["seen"]["enabled"]) == (
        "done",
        True,
        "disabled",
    ), answer
    assert not os.path.lexists(str(node.etc))
    assert node.get("asked") == ["unmask --no-reload " + UNIT, "daemon-reload"]
    assert node.get("load") == "loaded"
    (item,) = journal.read_run(RUN, node.root)
    assert (item["end"]["result"], item["intent"]["real"], item["intent"]["sha256_after"]) == (
        "committed",
        f"unit:{node.etc}",
        None,
    )
    assert journal.former_bytes(item, node.root) == b"/dev/null"
    assert item["intent"]["sha256_before"] == storage.digest(b"/dev/null")


def test_a_mask_under_run_is_taken_away_there(node):
    node.etc.unlink()
    node.run.symlink_to("/dev/null")
    assert node.do(path=str(node.run))["state"] == "done"
    assert node.get("asked")[0] == "unmask --no-reload --runtime " + UNIT


def test_check_mode_touches_nothing(node):
    assert node.do(check=True)["state"] == "skipped"
    assert node.etc.is_symlink()
    assert node.get("asked") == []


def test_a_revert_masks_it_again_by_the_very_link(node):
    node.etc.unlink()
    node.etc.symlink_to("../../../../../../../../../../../../dev/null")
    link = str(Path(str(node.etc)).readlink())
    assert node.do(to=link)["state"] == "done"
    assert not os.path.lexists(str(node.etc))
    assert node.take_back() == ["restored"]
    assert str(Path(str(node.etc)).readlink()) == link
    assert node.get("load") == "masked"
    assert node.get("asked")[2:] == ["daemon-reload"]  # it stops nothing
    assert node.take_back(run_id=LAST) == ["already"]
    assert node.take_back(NEXT, LAST) == ["restored"]
    assert not os.path.lexists(str(node.etc))
    assert node.get("load") == "loaded"


def test_what_was_enabled_and_unmasked_is_taken_back_together(node):
    assert node.do()["state"] == "done"
    node.set(enabled="disabled")
    step = journal_entry.StepContext(RUN, "02-enable", "enable", "KM503", node.root)
    text = node.unit.folder.parent / "bin" / "systemctl"
    text.write_text(
        text.read_text().replace(
            "daemon-reload)", "enable | disable) echo ${1}d >enabled ;;\ndaemon-reload)"
        )
    )
    assert service_start.switch(UNIT, storage.digest(b"disabled\n"), "enabled", step)["changed"]
    assert node.take_back() == ["restored", "restored"]
    assert node.get("enabled") == "disabled"
    assert node.etc.is_symlink()
    assert set(node.take_back(run_id=LAST)) == {"already"}
    assert node.etc.is_symlink()


@pytest.mark.parametrize(
    ("held", "said"),
    [({"b2d5", "a1"}, "pods with devices run on w1 (a1, b2d5)"), (None, "cannot be determined")],
)
def test_devices_of_running_containers_are_not_put_at_stake(node, held, said):
    node.held = held
    answer = node.do()
    assert (answer["state"], answer["changed"]) == ("refused", False)
    assert said in answer["reason"]
    assert "kubemend_allow=kubelet_restart" in answer["reason"]
    assert node.etc.is_symlink()
    assert node.get("asked") == []
    assert node.do(run_id=NEXT, allow=["kubelet_restart"])["state"] == "done"
    # systemd is not told of it then
    assert node.take_back(NEXT, LAST) == ["restored"]
    assert node.etc.is_symlink()
    assert node.get("asked")[2:] == []


@pytest.mark.parametrize(
    "change",
    [{"unit": "sshd.service"}, {"path": "/etc/passwd"}, {"to": "/dev/zero"}, {"unit": None}],
)
def test_nothing_but_the_mask_of_the_evidence_is_touched(node, change):
    answer = node.do(**change)
    assert (answer["state"], answer["changed"]) == ("refused", False)
    assert node.etc.is_symlink()
    assert node.get("asked") == []


def test_a_mask_that_changed_meanwhile_is_left(node):
    node.run.symlink_to("/dev/null")
    assert "the evidence is old" in node.do()["reason"]
    node.run.unlink()
    node.etc.unlink()
    node.etc.write_text("")
    assert "the evidence is old" in node.do(run_id=NEXT)["reason"]
    assert node.get("asked") == []
    assert node.etc.exists()


def test_a_systemctl_that_does_nothing_has_changed_nothing(node):
    node.set(does=False)
    answer = node.do()
    assert (answer["state"], answer["changed"]) == ("refused", False)
    assert "is as it was" in answer["reason"]
    assert node.etc.is_symlink()
    assert [item["end"]["result"] for item in journal.read_run(RUN, node.root)] == ["not_done"]


def test_what_is_masked_still_gets_its_link_back(node):
    node.set(stuck=True)
    answer = node.do()
    assert answer["state"] == "rolled_back"
    assert "its mask is back" in answer["reason"]
    assert str(Path(str(node.etc)).readlink()) == "/dev/null"
    assert node.take_back() == ["already"]


def interrupted(node):
    """Leave the journal as if the program had been killed before it wrote how the step ended.

    Its change is not committed either.
    """
    folder = Path(node.root) / "journal" / RUN
    path = folder / "proof-01-unmask.json"
    path.write_text(json.dumps(dict(json.loads(path.read_text()), state="awaited", by={})))
    for one in folder.glob("001-*.end.json"):
        one.unlink()


@pytest.mark.parametrize("done", [True, False])
def test_an_interrupted_one_is_found_and_ended(node, done):
    node.do()
    if not done:
        node.etc.symlink_to("/dev/null")
    interrupted(node)
    answer = node.recover()
    assert answer["state"] == "done"
    assert ("is unmasked" if done else "is masked still") in answer["reason"]
    assert step_record.read(RUN, "01-unmask", node.root)["state"] == (
        "proven" if done else "not_done"
    )
    assert journal.read_run(RUN, node.root)[0]["end"]["result"] == (
        "committed" if done else "not_done"
    )


@pytest.mark.parametrize("held", [{"a1"}, None])
def test_an_interrupted_one_is_ended_without_a_reload_beside_devices(node, held):
    """The consent was for the run that is gone.

    Pods that came to run meanwhile are not put at risk.
    """
    node.do()
    interrupted(node)
    node.held, before = held, node.get("asked")
    assert "is unmasked" in node.recover()["reason"]
    assert node.get("asked") == before
    assert step_record.read(RUN, "01-unmask", node.root)["state"] == "proven"


def test_what_somebody_put_in_its_place_stays_open(node):
    node.do()
    node.etc.write_text("[Service]\n")
    interrupted(node)
    answer = node.recover()
    assert answer["state"] == "failed"
    assert "it is no link to /dev/null" in answer["reason"]
    assert node.etc.read_text() == "[Service]\n"
    assert "unmask_kubelet" in step_kinds.in_plans()


def test_a_mask_that_is_gone_and_cannot_be_committed_is_told_to_systemd(node, monkeypatch):
    sync = durable_files.sync_folder

    def full(path):
        if path == str(node.etc.parent):
            raise OSError(28, "No space left on device")
        sync(path)

    monkeypatch.setattr(durable_files, "sync_folder", full)
    answer = node.do()
    assert (answer["state"], answer["changed"]) == (
        "failed",
        True,
    )
    assert "is unmasked, but that is not proven" in answer["reason"]
    assert node.get("load") == "loaded"
    assert not os.path.lexists(str(node.etc))
