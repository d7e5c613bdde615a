# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a commit leaves to others, without a cluster."""

from __future__ import annotations

import pathlib
import re

from tests.lab.support import sampling

HERE = pathlib.Path(__file__).parent
IDS = [
    f"tests/lab/tests/{file.relative_to(HERE)}::{name}"
    for file in sorted(HERE.rglob("test_*.py"))
    for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
]


def test_the_same_commit_draws_the_same_and_no_test_is_never_drawn():
    assert sampling.left_out(IDS, "a") == sampling.left_out(reversed(IDS), "a")
    never = set.intersection(*(sampling.left_out(IDS, str(number)) for number in range(300)))
    assert never == {
        one
        for one in IDS
        if sampling.MACHINES in one and not any(file in one for file in sampling.MACHINE_FILES)
    }


def test_every_scenario_is_drawn_by_some_commit_and_one_by_each():
    out = [sampling.scenarios_left_out(str(number)) for number in range(20)]
    assert {len(one) for one in out} == {len(sampling.SCENARIOS) - 1}
    assert {name for one in out for name in set(sampling.SCENARIOS) - set(one)} == set(
        sampling.SCENARIOS
    )
    assert all(
        (HERE.parents[2] / "extensions/molecule" / name / "molecule.yml").is_file()
        for name in sampling.SCENARIOS
    )


def test_as_many_as_stand_there():
    kept = [one for one in IDS if one not in sampling.left_out(IDS, "a")]
    for count, parts in sampling.TESTS.values():
        assert len([one for one in kept if any(part in one for part in parts)]) == count
    assert len({part for part in sampling.FILES if any(part in one for one in kept)}) == 1
    assert len([one for one in kept if sampling.MACHINES in one]) == sampling.MACHINE_TESTS
    assert "tests/lab/tests/test_repair.py::test_two_leaders" in kept


def test_a_release_that_no_machine_was_tried_with_draws_none_of_them():
    ids = [f"tests/lab/tests/vm/test_clock.py::test_one[{k8s}]" for k8s in ("v1.18.4", "v1.36.3")]
    kept = [set(ids) - sampling.left_out(ids, str(number)) for number in range(20)]
    assert {one for some in kept for one in some} == {ids[1]}


def test_every_name_there_is_a_test():
    parts = [
        *sampling.FILES,
        *sampling.MACHINE_FILES,
        sampling.MACHINES,
        *(part for _count, parts in sampling.TESTS.values() for part in parts),
    ]
    assert [part for part in parts if not any(part in one for one in IDS)] == []


def test_each_file_with_playbooks_runs_a_third_of_them_and_another_commit_the_others():
    ids = [f"tests/unit/test_{file}.py::test_{number}" for file in "ab" for number in range(5)]
    left = [sampling.playbooks_left_out(ids, str(number)) for number in range(30)]
    assert {len([one for one in out if "test_a.py" in one]) for out in left} == {3}
    assert set.intersection(*left) == set()
    assert sampling.playbooks_left_out(["tests/unit/test_a.py::test_only"], "") == set()
