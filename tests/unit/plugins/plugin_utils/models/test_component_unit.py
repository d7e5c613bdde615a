# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a unit of the control plane is; faults/control_plane/test_services.py has its findings."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import component_unit
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import host_of

ROW = {
    "name": "etcd.service",
    "component": "etcd",
    "load_state": "loaded",
    "active_state": "active",
    "sub_state": "running",
    "unit_file_state": "enabled",
    "n_restarts": 0,
}


def read(world, *rows):
    document = world.documents["m1"]
    document["collectors"]["component_units"] = {"status": "ok", "data": {"units": list(rows)}}
    return component_unit.read(host_of(document), document)


def test_a_unit_that_runs(world):
    (service,) = read(world, ROW)
    assert (service.kind, service.exits, service.refused, service.last) == ("running", 0, (), None)
    assert component_unit.own_lines(service) == []


def test_the_last_start_that_ended_counts(world):
    prefix = "2027-01-15T07:59:00+0000 m1 "
    lines = [
        f"{prefix}etcd[7]: first",
        f"{prefix}systemd[1]: etcd.service: Main process exited, code=exited, status=1/FAILURE",
        f"{prefix}systemd[1]: etcd.service: Scheduled restart job, restart counter is at 1.",
        f"{prefix}etcd[8]: second",
    ]
    (service,) = read(world, dict(ROW, lines=lines))
    assert component_unit.own_lines(service) == ["first"]


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://10.0.0.1:2379", "10.0.0.1"),
        ("https://[::1]:2379/x", "::1"),
        ("http://localhost:2379", "localhost"),
        ("", ""),
    ],
)
def test_the_address_of_an_endpoint(url, address):
    assert component_unit._address(url) == address
