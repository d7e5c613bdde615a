# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources of a workload's containers, and the end of its rollout."""

import copy
import json
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    workload_resources,
)
from tests.unit.support.workload import ITEM

CRON = {
    "kind": "CronJob",
    "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}},
}


def test_a_cronjobs_template_lies_deeper() -> None:
    assert json.loads(workload_resources.text_of(CRON)) == [["containers", "a", {}]]
    assert workload_resources.rolled_out(CRON) is None
    text = workload_resources.set_quantities(
        workload_resources.text_of(CRON), {"containers": {"a": {"cpu": "1"}}}
    )
    assert workload_resources.text_of(workload_resources.put(copy.deepcopy(CRON), text)) == text
    with pytest.raises(ValueError, match="no longer those"):
        workload_resources.put(copy.deepcopy(CRON), workload_resources.text_of(ITEM))


def partitioned(partition: int, updated: int, ready: int = 3) -> "dict[str, Any]":
    """Return a StatefulSet of three pods that keeps the first `partition` ones at an update."""
    return {
        "spec": {
            "replicas": 3,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        },
        "status": {"replicas": 3, "updatedReplicas": updated, "readyReplicas": ready},
    }


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (ITEM, None),
        ({**ITEM, "metadata": {"generation": 5}}, "has not seen the change yet"),
        ({**ITEM, "status": {**ITEM["status"], "replicas": 3}}, "1 of its former pods"),
        ({**ITEM, "spec": {"replicas": 0}, "status": {"observedGeneration": 4}}, None),
        ({**ITEM, "spec": {"paused": True}, "status": {}}, None),
        ({"spec": {"updateStrategy": {"type": "OnDelete"}}}, None),
        (
            {
                "spec": {},
                "status": {
                    "desiredNumberScheduled": 2,
                    "updatedNumberScheduled": 1,
                    "numberAvailable": 2,
                },
            },
            "1 of 2 pods recreated",
        ),
        (
            {
                "spec": {},
                "status": {
                    "desiredNumberScheduled": 2,
                    "updatedNumberScheduled": 2,
                    "numberAvailable": 2,
                },
            },
            None,
        ),
        ({"spec": {}, "status": {}}, "0 of 1 pod"),
        (partitioned(2, 1), None),
        (partitioned(2, 0), "0 of 1 pod recreated, 3 of 3 ready"),
        (partitioned(3, 0), None),
        (partitioned(5, 0), None),
        (partitioned(2, 1, ready=2), "1 of 1 pod recreated, 2 of 3 ready"),
        (partitioned(0, 2), "2 of 3 pods recreated"),
    ],
)
def test_when_a_rollout_has_ended(item: "dict[str, Any]", why: Any) -> None:
    found = workload_resources.rolled_out(item)
    assert found is None if why is None else why in found
