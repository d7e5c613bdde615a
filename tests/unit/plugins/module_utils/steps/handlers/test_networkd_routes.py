# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drop-in by which systemd-networkd leaves routes and rules of others alone.

The folders of networkd and systemd-analyze are made up here, so that nothing of this machine
changes.
"""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    networkd_routes,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    boot_firewall,
    command,
    network_services,
)
from tests.unit.support.facts import facts
from tests.unit.support.unrecorded_step import NEXT, RUN, recover_unrecorded

ROUTES, RULES = networkd_routes.KEYS
BOTH = [ROUTES, RULES]


class Node:
    """A node with systemd-networkd, of a systemd that knows both settings."""

    def __init__(self, path, monkeypatch):
        self.etc, self.vendor = path / "etc", path / "lib"
        self.path = self.etc / "networkd.conf.d" / "99-zz-kubemend.conf"
        self.root = str(path / "kubemend")
        for folder in (self.etc, self.vendor / "networkd.conf.d"):
            folder.mkdir(parents=True)
        (self.vendor / "systemd-networkd.service").touch()
        self.systemd(252)
        mains = tuple(str(folder / "networkd.conf") for folder in (self.etc, self.vendor))
        for name, value in (
            ("NETWORKD_MAIN", mains),
            ("NETWORKD_FOLDERS", tuple(f"{main}.d" for main in mains)),
            ("LIBRARY_FOLDERS", (str(self.vendor),)),
            ("MULTIARCH", str(self.vendor)),
        ):
            monkeypatch.setattr(network_services, name, value)
        monkeypatch.setattr(boot_firewall, "UNITS", (str(self.vendor),))
        monkeypatch.setattr(command, "run", self.analyze)

    def systemd(self, release):
        """Install another systemd."""
        for path in self.vendor.glob("libsystemd-shared-*"):
            path.unlink()
        (self.vendor / f"libsystemd-shared-{release}.so").touch()

    def analyze(self, argv, seconds):
        """Print the files as systemd-analyze 252 does."""
        assert argv[-1] == "systemd/networkd.conf"
        paths = [self.vendor / "networkd.conf", *sorted(self.path.parent.glob("*.conf"))]
        texts = [f"# {path}\n{path.read_text()}\n" for path in paths if path.exists()]
        if not texts:
            raise command.Silent("systemd-analyze: it said nothing")
        return "".join(texts)

    def step(self, keys=None):
        return {
            "id": "01-routes",
            "host": "w1",
            "remedy": "networkd_routes",
            "code": ["KM534"],
            "target": str(self.path),
            "guard": {"allow": []},
            "change": {
                "kind": "networkd_routes",
                "path": str(self.path),
                "keys": BOTH if keys is None else keys,
            },
        }

    def do(self, keys=None, check=False):
        return step_executor.work(
            {
                "run_id": RUN,
                "root": self.root,
                "lock": None,
                "check": check,
                "step": self.step(keys),
            }
        )

    def forget(self):
        return recover_unrecorded(self.root, "01-routes")


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_both_settings_are_written_and_read_back(node):
    answer = node.do()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert answer["seen"]["next_start"] == {ROUTES: "no", RULES: "no"}
    assert node.path.read_text().endswith(f"[Network]\n{ROUTES}=no\n{RULES}=no\n")
    assert node.path.stat().st_mode & 0o777 == 0o644
    rows = network_services.networkd()["rows"]
    assert {row["key"]: row["value"] for row in rows} == {ROUTES: "no", RULES: "no"}


def test_done_once_more_it_writes_nothing(node):
    node.do()
    step = {**node.step(), "id": "02-routes"}
    params = {"run_id": NEXT, "root": node.root, "lock": None, "check": False, "step": step}
    answer = step_executor.work(params)
    assert answer["state"] == "done"
    assert not journal.read_run(NEXT, node.root)


def test_a_setting_that_the_file_has_already_stays(node):
    node.systemd(247)
    assert node.do([ROUTES])["state"] == "done"
    node.systemd(252)
    params = {"run_id": NEXT, "root": node.root, "lock": None, "step": node.step([RULES])}
    assert step_executor.work(params)["state"] == "done"
    assert node.path.read_bytes() == networkd_routes.content(BOTH)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (245, "systemd 245 of w1 does not know ManageForeignRoutes and"),
        (247, "systemd 247 of w1 does not know ManageForeignRoutingPolicyRules"),
    ],
)
def test_a_systemd_that_does_not_know_it(node, release, words):
    node.systemd(release)
    answer = node.do()
    assert answer["state"] == "refused"
    assert words in answer["reason"]
    assert not node.path.exists()


def test_a_systemd_whose_release_is_not_known(node):
    next(node.vendor.glob("libsystemd-shared-*")).unlink()
    answer = node.do()
    assert answer["state"] == "refused"
    facts(answer["reason"], "which systemd w1 has is not known")


@pytest.mark.parametrize("keys", [[], None, ["SpeedMeter"], [ROUTES, "x\n[Match]"], "no", [["x"]]])
def test_only_the_settings_that_are_known(node, keys):
    step = node.step()
    step["change"]["keys"] = keys
    answer = step_executor.work({"run_id": RUN, "root": node.root, "lock": None, "step": step})
    assert answer["state"] in ("refused", "failed")
    assert not node.path.exists()
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize("text", ["", "[Network]\nManageForeignRoutes=no\nSpeedMeter=yes\n"])
def test_a_file_of_somebody_else_is_left(node, text):
    node.path.parent.mkdir()
    node.path.write_text(text)
    answer = node.do()
    assert answer["state"] == "refused"
    assert "something else than kubemend writes" in answer["reason"]
    assert node.path.read_text() == text


@pytest.mark.parametrize(
    "name", ["networkd.conf", "networkd.conf.d/10-a.conf", "networkd.conf.d/z.conf"]
)
def test_what_another_file_decides_is_left(node, name):
    path = node.etc / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("[Network]\nManageForeignRoutingPolicyRules=yes\n")
    answer = node.do()
    assert answer["state"] == "refused"
    facts(answer["reason"], f"{path}:2 of w1", "ManageForeignRoutingPolicyRules=yes", "decides")
    assert not node.path.exists()


def test_a_file_that_cannot_be_read_may_decide(node):
    (node.etc / "networkd.conf").mkdir()
    answer = node.do()
    assert answer["state"] == "refused"
    assert "cannot be read" in answer["reason"]


def test_a_networkd_that_was_removed(node):
    (node.vendor / "systemd-networkd.service").unlink()
    answer = node.do()
    assert answer["state"] == "refused"
    assert "has no systemd-networkd" in answer["reason"]


def test_a_file_that_systemd_does_not_read_is_taken_away(node, monkeypatch):
    monkeypatch.setattr(command, "run", lambda argv, seconds: "[Network]\nSpeedMeter=no\n")
    answer = node.do()
    assert answer["state"] == "rolled_back"
    facts(answer["reason"], "of w1", "systemd-analyze says", f"{node.path} is as it was")
    assert not node.path.exists()
    assert step_record.unproven(node.root) == []


def test_a_machine_without_systemd_analyze(node, monkeypatch):
    def absent(argv, seconds):
        raise command.Silent("systemd-analyze: it said nothing")

    monkeypatch.setattr(command, "run", absent)
    assert node.do()["state"] == "done"


@pytest.mark.parametrize(
    ("is_written", "words"), [(True, "holds it"), (False, "nothing of it was written")]
)
def test_killed_before_its_end_was_recorded(node, is_written, words):
    node.do()
    if not is_written:
        node.path.unlink()
    answer = node.forget()
    assert answer["state"] == "done"
    assert words in answer["reason"]
    assert step_record.unproven(node.root) == []


def test_interrupted_and_without_an_effect_it_is_taken_away(node, monkeypatch):
    node.do()
    monkeypatch.setattr(command, "run", lambda argv, seconds: "[Network]\nSpeedMeter=no\n")
    answer = node.forget()
    assert answer["state"] == "done"
    assert "is as it was" in answer["reason"]
    assert not node.path.exists()
    assert step_record.of_run(RUN, node.root)[0]["state"] == step_record.ROLLED_BACK


def test_under_the_lock_of_its_run_and_never_in_check_mode(node):
    assert node.do(check=True)["state"] == "skipped"
    assert not Path(node.root).exists()
    assert not node.path.exists()
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    lock = {"controller": None, "seconds": 60}
    params = {"run_id": RUN, "root": node.root, "lock": lock, "step": node.step()}
    assert step_executor.work(params)["state"] == "refused"
    assert not node.path.exists()


def test_check_mode_says_what_would_refuse_it(node):
    node.systemd(245)
    assert node.do(check=True)["state"] == "refused"


def test_a_revert_takes_the_file_away(node):
    node.do()
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert done["error"] is None
    assert [one["result"] for one in done["paths"]] == ["restored"]
    assert not node.path.exists()
    assert journal.open_entries(node.root) == []


def test_a_revert_leaves_what_somebody_changed_since(node):
    node.do()
    node.path.write_text("[Network]\nManageForeignRoutes=yes\n")
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert [one["result"] for one in done["paths"]] != ["restored"]
    assert "yes" in node.path.read_text()
