# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cordon of a node: whose it is, and what another client writes at the same moment."""

import json
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import cordon

RUN, OTHER = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
CORDON = "kubemend.io/cordon"


class Api:
    """One Node, and what goes wrong with its patches: exceptions, the oldest first."""

    def __init__(self, is_cordoned: bool = False, run: "str | None" = None, **mark: Any) -> None:
        annotations = {CORDON: json.dumps(dict({"run": run}, **mark))} if run else {}
        self.node = {
            "metadata": {"resourceVersion": "7", "annotations": annotations},
            "spec": {"unschedulable": is_cordoned},
        }  # type: dict[str, Any]
        self.wrong = []  # type: list[tuple[bool, ApiError]]
        self.patches = 0

    def get(self, _path: str) -> "dict[str, Any]":
        return json.loads(json.dumps(self.node))

    def send(self, _method: str, _path: str, patch: "dict[str, Any]", kind: str) -> None:
        self.patches += 1
        is_done, errors = True, []
        if self.wrong:
            is_done, *errors = self.wrong.pop(0)
        assert patch["metadata"]["resourceVersion"] == "7"
        if is_done:
            self.node["metadata"]["annotations"].update(patch["metadata"]["annotations"])
            self.node["spec"].update(patch.get("spec") or {})
        for error in filter(None, errors):
            raise error

    def state(self) -> "tuple[bool, Any]":
        mark = self.node["metadata"]["annotations"].get(CORDON)
        return bool(self.node["spec"]["unschedulable"]), json.loads(mark)["run"] if mark else None


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cordon, "PAUSE", 0)


@pytest.mark.parametrize(
    ("api", "answer", "state"),
    [
        (Api(), (cordon.MINE, True), (True, RUN)),
        (Api(True), (cordon.THEIRS, False), (True, None)),
        (Api(True, RUN), (cordon.MINE, False), (True, RUN)),
        (Api(True, OTHER), (cordon.MINE, True), (True, RUN)),
        (Api(True, OTHER, held=True), (cordon.THEIRS, False), (True, OTHER)),
        (Api(False, OTHER), (cordon.MINE, True), (True, RUN)),
    ],
)
def test_whose_cordon_it_is_when_it_is_put(api: Api, answer: Any, state: Any) -> None:
    assert cordon.put(api, "w1", RUN, "why") == answer
    assert api.state() == state


@pytest.mark.parametrize(("has_ended", "state"), [(True, OTHER), (False, RUN)])
def test_a_held_cordon_is_good_where_its_run_came_to_its_end(has_ended: bool, state: str) -> None:
    def ended(_run: str) -> bool:
        return has_ended

    api = Api(True, OTHER, held=True)
    assert cordon.put(api, "w1", RUN, "why", is_held=True, ended=ended) == (
        cordon.MINE,
        not has_ended,
    )
    assert api.state() == (True, state)


@pytest.mark.parametrize(
    ("api", "run_id", "held", "answer"),
    [
        (Api(), RUN, False, (cordon.NONE, False)),
        (Api(True), None, False, (cordon.THEIRS, False)),
        (Api(True, RUN), RUN, False, (cordon.MINE, True)),
        (Api(True, OTHER), RUN, False, (cordon.THEIRS, False)),
        (Api(True, OTHER), None, False, (cordon.MINE, True)),
        (Api(True, OTHER, held=True), None, False, (cordon.THEIRS, False)),
        (Api(True, OTHER, held=True), None, True, (cordon.MINE, True)),
        (Api(True, RUN, held=True), RUN, False, (cordon.MINE, True)),
    ],
)
def test_only_the_tools_own_cordon_is_lifted(
    api: Api, run_id: Any, held: bool, answer: Any
) -> None:
    before = api.state()[0]
    assert cordon.lift(api, "w1", run_id, held) == answer
    assert api.state()[0] is (before and not answer[1])


def test_a_cordon_that_is_released_waits_for_no_run() -> None:
    api = Api(True, RUN, held=True)
    assert cordon.release(api, "w1", OTHER) == (cordon.THEIRS, False)
    assert cordon.release(api, "w1", RUN) == (cordon.MINE, True)
    assert cordon.release(api, "w1", RUN) == (cordon.MINE, False)
    assert cordon.lift(api, "w1") == (cordon.MINE, True)
    assert cordon.release(api, "w1") == (cordon.NONE, False)


def test_a_conflict_is_tried_again() -> None:
    api = Api()
    api.wrong = [(False, ApiError("error", "conflict", 409))]
    assert cordon.put(api, "w1", RUN, "why") == (cordon.MINE, True)
    assert api.patches == 2


def test_an_answer_that_got_lost_counts_as_a_change() -> None:
    api = Api()
    api.wrong = [(True, ApiError("error", "reset"))]
    assert cordon.put(api, "w1", RUN, "why") == (cordon.MINE, True)
    assert api.patches == 1


@pytest.mark.parametrize(("code", "patches"), [(403, 1), (500, 5), (409, 5)])
def test_a_patch_that_never_succeeds_is_an_error(code: int, patches: int) -> None:
    api = Api()
    api.wrong = [(False, ApiError("error", "no", code))] * 9
    with pytest.raises(ApiError, match="no"):
        cordon.put(api, "w1", RUN, "why")
    assert api.patches == patches
    assert api.state() == (False, None)
