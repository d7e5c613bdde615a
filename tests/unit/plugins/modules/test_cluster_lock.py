# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module of a cluster's lock: what it demands, hands on and packs."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.cluster_lock import ActionModule
from ansible_collections.kubemend.remediation.plugins.modules import cluster_lock
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program
from tests.unit.support import fake_module

OPTIONS = {"report_dir": "/r", "run_id": "r1", "seconds": 60}
HELD = {"held": True, "changed": True}


@pytest.fixture
def lock(monkeypatch):
    entry = fake_module.Entry(HELD)
    monkeypatch.setattr(cluster_lock.cluster_lock, "run", entry)
    return entry


@pytest.mark.parametrize(
    ("check_mode", "check", "expected"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_the_request_is_handed_on_with_the_check_mode(
    monkeypatch, lock, check_mode, check, expected
):
    ended = fake_module.run(
        monkeypatch, cluster_lock, check_mode, check=check, controller={"pid": 7}, **OPTIONS
    )
    (params,) = lock.calls
    assert (params["state"], params["run_id"], params["seconds"]) == ("acquired", "r1", 60)
    assert (params["controller"], params["check"]) == ({"pid": 7}, expected)
    assert ended.result == {"changed": True, "document": HELD}


def test_a_lock_of_another_run_changes_nothing(monkeypatch, lock):
    lock.answer = {"held": False, "changed": False}
    ended = fake_module.run(monkeypatch, cluster_lock, **OPTIONS)
    assert ended.result == {"changed": False, "document": lock.answer}


@pytest.mark.parametrize(
    ("state", "missing", "is_refused"),
    [
        ("acquired", "run_id", True),
        ("renewed", "run_id", True),
        ("released", "run_id", True),
        ("acquired", "seconds", True),
        ("renewed", "seconds", True),
        ("released", "seconds", False),
    ],
)
def test_only_a_release_needs_no_time(monkeypatch, lock, state, missing, is_refused):
    options = {name: value for name, value in OPTIONS.items() if name != missing}
    ended = fake_module.run(monkeypatch, cluster_lock, state=state, **options)
    assert ended.has_failed is is_refused
    assert len(lock.calls) == (0 if is_refused else 1)


def test_every_option_of_the_action_is_one_of_the_module(monkeypatch):
    options = fake_module.argument_spec(monkeypatch, cluster_lock)
    assert {name: options.get(name) for name in ActionModule.SPEC} == ActionModule.SPEC


def test_it_packs_what_the_program_of_the_action_ships():
    program = node_program._sources(ActionModule.ENTRY.partition(":")[0], ActionModule.SHIP)
    packed = node_program._sources("plugins.modules.cluster_lock", ())
    assert set(program) - set(packed) == set()
