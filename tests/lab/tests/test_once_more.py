# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab failed to make in time is made once more, and nothing else is.

The tests are of conftest.py's hook, without a cluster.
"""

from __future__ import annotations

import subprocess
import types

import pytest

from tests.lab import conftest
from tests.lab.support import playbook

TRIED: list[str] = []


@pytest.mark.parametrize(
    "failure",
    [
        TimeoutError("the incident"),
        RuntimeError("kubectl create: exit 1"),
        subprocess.TimeoutExpired("kubectl", 60),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_was_not_made_in_time_is_made_once_more(failure, tmp_path):
    TRIED.append(tmp_path.name)
    if len(TRIED) == 1:
        raise failure
    assert TRIED.pop() == TRIED.pop() == tmp_path.name
    assert not TRIED


@pytest.mark.parametrize("failure", [TimeoutError("the repair"), AssertionError("wrong")])
def test_what_came_of_our_programs_stands(failure, monkeypatch):
    monkeypatch.setattr(playbook, "BEGUN", [])
    hook = conftest.pytest_pyfunc_call(
        types.SimpleNamespace(
            name="test", obj=lambda: pytest.fail("it was called again"), funcargs={}
        )
    )
    next(hook)
    playbook.BEGUN.append("remediate")
    with pytest.raises(type(failure)):
        hook.throw(failure)
