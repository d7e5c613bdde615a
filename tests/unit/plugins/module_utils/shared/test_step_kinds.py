# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of kinds of steps: each has what its handler and its planner need."""

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds

KINDS = step_kinds.KINDS.values()


def test_a_kind_through_the_api_has_a_time_limit_and_asks_no_host() -> None:
    through_api = [kind for kind in KINDS if kind.through_api]
    assert through_api
    for kind in through_api:
        assert kind.seconds
        assert kind.check_mode not in (step_kinds.ON_HOST, step_kinds.COMPONENT)


def test_only_the_recovery_precedes_all_other_hosts() -> None:
    assert [kind.name for kind in KINDS if kind.order == 0] == ["recover"]


def test_a_kind_that_no_version_has_is_unknown() -> None:
    kind = step_kinds.kind_of("one_more")
    assert not kind.in_plan
    assert kind.handler is None
    assert "one_more" not in step_kinds.in_plans()


def test_a_local_step_is_local_up_to_its_risk() -> None:
    assert step_kinds.kind_of("unit_limit").is_local(1)
    assert not step_kinds.kind_of("unit_limit").is_local(2)
    assert not step_kinds.kind_of("drain").is_local(0)
