# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The handler of a kind of step is found by its name."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.base import StepHandler

KINDS = step_kinds.KINDS.values()
WITH_HANDLER = [kind for kind in KINDS if kind.handler]


@pytest.mark.parametrize("kind", WITH_HANDLER, ids=lambda kind: kind.name)
def test_a_handler_is_found_by_its_name(kind: Any) -> None:
    handler = registry.handler_of(kind.name)
    assert isinstance(handler, StepHandler)
    assert type(handler).__module__.endswith(kind.handler.partition(":")[0])


def test_what_a_recovery_calls_last_is_found_by_its_name() -> None:
    assert callable(registry.named(registry.SWEEP))
