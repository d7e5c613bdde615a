# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run raised in the running kernel, and what a revert lowers."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import boot
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    running_limits,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_kernel_setting import KEY, OTHER, RUN, Node, back


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_a_revert_takes_the_file_and_leaves_the_running_value(node):
    """Lowering a limit that processes are above now would stop the next of them."""
    node.do()
    results, why = back(node)
    assert results == ["restored", "kept"]
    assert not node.path.exists()
    assert node.value() == 8192
    facts(why, "8192", "128", f"-e kubemend_run_id={RUN} -e kubemend_allow=revert_runtime")
    assert journal.open_entries(node.root) == []


@pytest.mark.parametrize("key", boot.RUNNING)
def test_a_switch_that_pods_need_is_never_switched_off(node, key):
    place = node.place(key)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("0\n")
    node.do({KEY: 8192, key: 1})
    results, why = back(node, ["revert_runtime"])
    assert results == ["restored", "restored", "kept"]
    assert (node.value(), node.value(key)) == (128, 1)
    assert not node.path.exists()
    facts(why, "stays 1", "switch")
    results, why = back(node, by="20261121T110000Z-aaaaaa")
    assert results == ["already", "kept"]
    facts(why, "stays 1", "switch")


def test_a_revert_that_may_lowers_the_running_value_too_also_afterwards(node):
    node.do({KEY: 8192, OTHER: 2097152})
    assert back(node, ["revert_runtime"])[0] == ["restored"] * 3
    assert (
        node.value(),
        node.value(OTHER),
    ) == (128, 800000)
    node.place(KEY).write_text("8192\n")
    assert back(node, by="20261121T110000Z-aaaaaa")[0] == ["already", "kept"]
    assert back(node, ["revert_runtime"], "20261121T120000Z-aaaaaa")[0] == ["already", "restored"]
    assert node.value() == 128
    assert back(node, ["revert_runtime"], "20261121T130000Z-aaaaaa") == (["already"], "")


def test_what_somebody_changed_since_is_not_lowered(node):
    node.do()
    node.place(KEY).write_text("9000\n")
    results, why = back(node)
    assert results == ["restored", "kept"]
    facts(why, "9000", "8192", "128", "changed since")
    results, why = back(node, ["revert_runtime"], "20261121T110000Z-aaaaaa")
    assert results == ["already", "refused"]
    assert "it was changed since" in why
    assert node.value() == 9000


def test_a_running_value_stays_with_its_file(node):
    node.do()
    node.path.write_text("# mine\n")
    results, why = back(node, ["revert_runtime"])
    assert results == ["refused", "kept"]
    facts(why, "8192", str(node.path))
    assert node.value() == 8192


def test_a_kernel_that_does_not_take_it_back_is_told(node, monkeypatch):
    def refuse(*dummy, **more):
        raise PermissionError(30, "Read-only file system")

    node.do()
    monkeypatch.setattr(running_limits, "open", refuse, raising=False)
    results, why = back(node, ["revert_runtime"])
    assert results == ["restored", "refused"]
    assert "it is 8192 and was not put back to 128" in why
    assert "Read-only" in why
    assert node.value() == 8192


def test_what_was_never_raised_has_no_row(node):
    node.place(KEY).write_text("16384\n")
    node.do()
    assert back(node, ["revert_runtime"]) == (["restored"], "")
    assert node.value() == 16384


def test_check_mode_says_what_would_become_of_it_and_changes_nothing(node):
    node.do()
    asked = {"state": "listed", "root": node.root, "reverts": "last", "host": "w1"}
    for allow, state in (([], "kept"), (["revert_runtime"], "restore")):
        (run,) = revert_run.run(dict(asked, allow=allow))["runs"]
        assert [(one["path"], one["state"]) for one in run["paths"]] == [
            (str(node.path), "restore"),
            (KEY + " of the running kernel", state),
        ]
    assert node.path.exists()
    assert node.value() == 8192
    assert [
        len(run["paths"]) for run in revert_run.run({"state": "listed", "root": node.root})["runs"]
    ] == [1]
