# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of step is killed at everything that it does.

The next run comes to where an undisturbed one is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from tests.fault_injection import clusters, effects, judged, levels, nodes
from tests.fault_injection.judged import NEXT, RUN, Case

SCENES = {**nodes.SCENES, **levels.SCENES, **clusters.SCENES}
SAMPLE = 2


@pytest.fixture
def case(
    request: pytest.FixtureRequest, record_property: Callable[[str, Any], None]
) -> Iterator[Case]:
    name = request.param
    made = Case(name, SCENES[name])
    made.undisturbed()
    yield made
    record_property("injected", made.injected)
    made.close()


def points(case: Case, way: str) -> list[int]:
    """Return which of the undisturbed run's effects are disturbed, counted from 1."""
    all_of = [
        number
        for number, one in enumerate(case.points, 1)
        if way != effects.HALF or one.name == "os.write"
    ]
    return judged.drawn(f"{case.name} {way}", all_of, SAMPLE, case.scene.slow)


def over(number: int, ended: Any) -> bool:
    """Tell whether it came to its end before its k-th effect.

    How often it waits, looks again and notes how far it is depends on the time that it takes: one
    run has more effects than another.
    """
    return len(ended.effects) < number and ended.answer[-1]["state"] == "done"


@pytest.mark.parametrize("way", [effects.KILL, effects.HALF])
@pytest.mark.parametrize("case", SCENES, indirect=True)
def test_the_next_run_ends_it(case: Case, way: str) -> None:
    for number in points(case, way):
        with case.node() as node:
            ended = node.run(at=number, way=way)
            where = (case.name, way, number, case.points[number - 1])
            assert ended.killed or over(number, ended), (where, ended.answer)
            judged.ends_as_undisturbed(node, where)


@pytest.mark.parametrize("case", SCENES, indirect=True)
def test_a_connection_that_is_made_anew_does_nothing_twice(case: Case) -> None:
    """The same step of the same run once more.

    It says what became of it, and the next run ends it all the same.
    """
    for number in points(case, "anew"):
        with case.node() as node:
            steps = case.scene.steps(node.made)
            ended = node.run(at=number)
            where = (case.name, number, case.points[number - 1])
            assert ended.killed or over(number, ended), where
            for answer in node.work(steps, RUN):
                judged.one_sentence(answer, where)
            judged.ends_as_undisturbed(node, where)


@pytest.mark.parametrize("case", SCENES, indirect=True)
def test_the_recovery_is_killed_too(case: Case) -> None:
    """Killed, and the run that comes to end it killed at everything that it does, and so on.

    Each step of it can be repeated.
    """
    for number in points(case, "twice")[:: 5 if case.scene.slow else 9 if judged.WHOLE else 3]:
        later = 1
        while True:
            with case.node() as node:
                ended = node.run(at=number)
                assert ended.killed or over(number, ended), (case.name, number)
                node.take(NEXT, RUN)
                ended = effects.run(case.base, node.recover, at=later)
                where = (case.name, number, case.points[number - 1], "recovery", later)
                if not ended.killed:
                    break
                judged.ends_as_undisturbed(node, where)
            later += 2 if judged.WHOLE and not case.scene.slow else 7


def test_every_kind_of_step_has_a_scene() -> None:
    there = {kind for scene in SCENES.values() for kind in scene.kinds}
    assert there == set(step_kinds.KINDS) - {"recover"}
