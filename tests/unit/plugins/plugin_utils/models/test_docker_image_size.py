# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image without a size: the release of docker tells which of two causes it has."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import docker_image_size
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    known_message,
    pod_start_message,
)
from tests.unit.support.waiting_pods import judged, node_of, wait

MESSAGE = 'Failed to inspect image "a": Id or size of image "a" is not set'


MISFIT, DAMAGE = "cri-dockerd", "power cut"


@pytest.mark.parametrize(
    ("runtime", "present", "clear", "named"),
    [
        ("docker://25.0.0", "KM600", "KM610", {MISFIT}),
        ("docker://27.1.2", "KM600", "KM610", {MISFIT}),
        ("docker://24.0.7", "KM610", "KM600", {DAMAGE}),
        # one that is not known may have both causes
        ("docker://dev", "KM610", "KM600", {MISFIT, DAMAGE}),
        (None, "KM610", "KM600", {MISFIT, DAMAGE}),
    ],
)
def test_the_release_of_docker_decides(world, runtime, present, clear, named):
    node_of(world, "w1")["runtime_version"] = runtime
    wait(world, event=("InspectFailed", MESSAGE), state="ImageInspectError")
    assert judged(world, clear)[0] == ["clear"]
    (finding,) = judged(world, present)[1]
    assert finding.severity == "warning"
    assert {word for word in (MISFIT, DAMAGE) if word in finding.summary} == named
    assert "Known cause" not in finding.summary


def test_the_row_of_both_causes_is_there():
    row = known_message.find((known_message.EVENT,), MESSAGE)
    assert row is not None
    assert row.id == docker_image_size.ROW
    cause = pod_start_message.trouble("InspectFailed", MESSAGE)
    assert cause is not None
    assert cause.kind.endswith(f" {docker_image_size.ROW}")
