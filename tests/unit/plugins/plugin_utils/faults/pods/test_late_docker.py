# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker that answers too late while pods of its node do not end, in KM609."""

from __future__ import annotations

import pytest

from tests.unit.support.waiting_pods import judged, node_of

LINE = (
    'time="x" level=error msg="Handler for GET /v1.40/containers/json returned error: write unix'
    ' /var/run/docker.sock->@: write: broken pipe"'
)


def finding(world, line, version):
    row = {"node": "w1", "pods": 2, "since": "2027-01-15T07:00:00Z", "names": ["default/pod-0"]}
    world.data("api", "pod_states")["ending"] = [{**row, "finalizers": 0}]
    entry = {"line": line, "count": 60, "minutes": 10, "first": 1_799_999_400.0}
    entry["last"] = 1_799_999_999.0
    component = {"component": "dockerd", "source": "docker.service", "entries": [entry]}
    data = {"read_at": 1_800_000_000.0, "components": [component]}
    world.documents["w1"]["collectors"]["repeated_errors"] = {"status": "ok", "data": data}
    node_of(world, "w1")["runtime_version"] = version
    return judged(world, "KM609")[1][0]


@pytest.mark.parametrize(
    ("line", "version", "is_late", "is_known"),
    [
        (LINE, "docker://19.3.13", True, True),
        (LINE, "docker://19.3.14", True, False),
        (LINE, "docker://19.3.130", True, False),
        ('time="x" level=error msg="another one"', "docker://19.3.13", False, False),
    ],
)
def test_docker_answers_late(world, line, version, is_late, is_known):
    found = finding(world, line, version)
    assert ("docker answers so late" in found.summary) is is_late
    assert ("containerd 1.4.0" in found.summary) is is_known
    assert found.remedy.startswith("containerd --version") is is_known
    assert "ps -eo pid" in found.remedy
    assert any("broken pipe" in (proof.text or "") for proof in found.evidence) is is_late
