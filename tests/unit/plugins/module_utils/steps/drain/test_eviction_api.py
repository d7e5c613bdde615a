# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain asks the API besides nodes and pods: budgets, Jobs, and whether it comes back."""

import time
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import eviction_api

DENIED = {"message": 'pods "a" is forbidden: User "x" cannot create resource'}


class Api:
    """Answers from a table of paths."""

    def __init__(self, **objects: Any) -> None:
        self.objects = objects
        self.asked = []  # type: list[str]

    def find(self, path: str) -> Any:
        self.asked.append(path)
        return self.objects.get(path.rpartition("/")[2])

    get = find

    def items(self, path: str) -> Any:
        self.asked.append(path)
        return [{"metadata": {"namespace": "n", "name": "b"}}]


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [(["v1beta1", "v1"], "v1"), (["v1beta1"], "v1beta1"), (["v1"], "v1")],
)
def test_budgets_come_in_the_newest_version(versions: "list[str]", chosen: str) -> None:
    api = Api(policy={"versions": [{"version": name} for name in versions]})
    (budget,) = eviction_api.budgets(api)
    assert api.asked[-1] == f"/apis/policy/{chosen}/poddisruptionbudgets"
    assert (budget.full_name, budget.all_if_empty) == ("n/b", chosen == "v1")


def test_an_api_without_the_group_has_no_budgets() -> None:
    assert list(eviction_api.budgets(Api())) == []


def test_an_api_without_evictions_is_refused() -> None:
    with pytest.raises(ChangeError, match="serves no Eviction API"):
        eviction_api.eviction_version(Api(v1={"resources": []}))


@pytest.mark.parametrize(
    ("item", "ended"),
    [
        (None, True),
        ({"metadata": {"uid": "another"}}, True),
        ({"metadata": {"uid": "u"}, "status": {"active": 1}}, False),
        (
            {
                "metadata": {"uid": "u"},
                "status": {"conditions": [{"type": "Complete", "status": "True"}]},
            },
            True,
        ),
    ],
)
def test_a_job_that_is_gone_or_replaced_has_ended(item: Any, ended: bool) -> None:
    assert bool(eviction_api.job_ended(Api(j=item), ("n", "j", "u"))) is ended


@pytest.mark.parametrize(
    ("code", "body", "is_passing"),
    [
        (None, None, True),
        (401, None, True),
        (429, None, True),
        (500, None, True),
        (503, None, True),
        (403, DENIED, True),
        (403, {"message": "an admission plugin denied it"}, False),
        (404, None, False),
        (422, None, False),
    ],
)
def test_which_errors_pass(code: Any, body: Any, is_passing: bool) -> None:
    error = ApiError("error", "x", code, body=body)
    assert bool(eviction_api.passing(error)) is is_passing


def test_a_call_is_repeated_until_the_api_is_back() -> None:
    errors = [ApiError("error", "x", 503), ApiError("error", "x")]

    def call() -> str:
        if errors:
            raise errors.pop()
        return "answer"

    assert eviction_api.patiently(call, time.monotonic() + 60, 0) == "answer"


@pytest.mark.parametrize(("code", "seconds"), [(404, 60), (503, -1)])
def test_what_does_not_pass_or_comes_too_late_is_an_error(code: int, seconds: int) -> None:
    calls = []  # type: list[int]

    def call() -> None:
        calls.append(1)
        raise ApiError("error", "x", code)

    with pytest.raises(ApiError):
        eviction_api.patiently(call, time.monotonic() + seconds, 0)
    assert len(calls) == 1
