# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which etcd is told to begin a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    control_plane,
    etcd_initial_state,
)


def extract(document):
    return etcd_initial_state.extract(document, control_plane.extract(document))


def etcd_of(world):
    processes = world.data("m1", "instances")["processes"]
    return next(row for row in processes if row["component"] == "etcd")


@pytest.mark.parametrize(
    ("flag", "is_new"),
    [
        ("--initial-cluster-state=new", True),
        ("--initial-cluster-state=existing", False),
        ("--initial-cluster-state=", False),
        ("--initial-cluster-token=new", False),
    ],
)
def test_a_process_with_the_flag(world, flag, is_new):
    process = etcd_of(world)
    process["argv"] = ["etcd", "--name=m1", flag]
    found = extract(world.documents["m1"])
    assert bool(found.place) is is_new
    assert (f"process {process['pid']}" in found.clause) is is_new


def test_what_has_no_flag_says_nothing(world):
    found = extract(world.documents["w1"])
    assert (found.place, found.unit, found.clause) == ("", "", "")
    assert extract(world.documents["m1"]).clause == ""


def test_other_units_are_none(world):
    rows = [
        {"name": "a.service", "component": "kube-apiserver", "active_state": "active"},
        {"name": "etcd.service", "component": "etcd", "active_state": "failed"},
    ]
    data = {"units": [{**row, "argv": ["--initial-cluster-state=new"]} for row in rows]}
    world.documents["w1"]["collectors"]["component_units"] = {"status": "ok", "data": data}
    found = extract(world.documents["w1"])
    assert (found.place, found.unit) == ("", "")


def test_a_manifest_with_the_flag(world):
    world.data("m1", "instances")["processes"] = []
    plane = control_plane.extract(world.documents["m1"])
    use = plane.files[0]
    flagged = replace(use, component="etcd", words=("etcd", "--initial-cluster-state=new"))
    found = etcd_initial_state.extract(world.documents["m1"], replace(plane, files=(flagged,)))
    assert found.place == use.path


@pytest.mark.parametrize("state", ["active", "activating", "reloading"])
def test_the_unit_that_runs(world, state):
    row = {"name": "etcd.service", "component": "etcd", "active_state": state, "argv": ["etcd"]}
    world.documents["w1"]["collectors"]["component_units"] = {
        "status": "ok",
        "data": {"units": [row]},
    }
    found = extract(world.documents["w1"])
    assert (found.place, found.unit) == ("", "etcd.service")


def test_the_same_flag_of_another_component_is_none(world):
    flag = "--initial-cluster-state=new"
    for process in world.data("m1", "instances")["processes"]:
        if process["component"] != "etcd":
            process["argv"] = [*process["argv"], flag]
    plane = control_plane.extract(world.documents["m1"])
    assert plane is not None
    use = replace(plane.files[0], component="kube-apiserver", words=("kube-apiserver", flag))
    found = etcd_initial_state.extract(world.documents["m1"], replace(plane, files=(use,)))
    assert found.place == ""
