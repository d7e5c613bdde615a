# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one host's evidence says of the control plane: files, processes, whose they are."""

from __future__ import annotations

import base64
import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import control_plane
from tests.unit.plugins.plugin_utils.conftest import CA

OTHER = "-----BEGIN CERTIFICATE-----\nMIIBother\n-----END CERTIFICATE-----\n"
SCHEDULER = "kube-scheduler"


def extracted(world, host="m1"):
    return control_plane.extract(copy.deepcopy(world.documents[host]))


def scheduler(world):
    (process,) = [one for one in extracted(world).processes if one.component == SCHEDULER]
    return process


def test_a_worker_has_no_part_of_the_control_plane(world):
    assert extracted(world, "w1") is None


def test_a_master_has_its_manifests_and_processes(world):
    plane = extracted(world)
    assert {use.component for use in plane.files} == {SCHEDULER, "kube-controller-manager"}
    assert all(use.usual and use.version == (1, 30) for use in plane.files)
    assert [process.pid for process in plane.processes_of(SCHEDULER)] == [100]
    assert (plane.broken, plane.unread, plane.kubelet_problem) == ((), (), "")


@pytest.mark.parametrize(
    ("changes", "broken", "unread"),
    [
        ({"binary": True, "text": None}, 1, 0),
        ({"text": None, "error": "denied"}, 0, 1),
        ({"truncated": True}, 0, 1),
        ({"text": "kind: Pod\n  bad: [\n"}, 1, 0),
        ({"kind": "directory"}, 0, 0),
    ],
)
def test_a_file_is_broken_or_unread_by_what_is_known_of_it(world, changes, broken, unread):
    world.data("m1", "manifests")["files"][0].update(changes)
    plane = extracted(world)
    assert (len(plane.broken), len(plane.unread), len(plane.files)) == (broken, unread, 1)
    assert [one.component for one in plane.broken] == [SCHEDULER] * broken


@pytest.mark.parametrize(
    ("changes", "ours"),
    [
        ({}, True),
        ({"authority": {"pem": OTHER}}, False),
        ({"authority": None}, True),
        ({"authority": None, "static": False}, None),
        ({"static": False}, True),
    ],
)
def test_whose_instance_it_is_shows_the_authority_that_it_trusts(world, changes, ours):
    world.data("m1", "instances")["processes"][0].update(changes)
    assert scheduler(world).ours is ours


@pytest.mark.parametrize(
    ("flag", "filed", "version", "elect"),
    [
        ("--leader-elect=false", "true", "v1.22.0", True),
        ("--leader-elect=false", "true", "v1.23.0", False),
        ("--leader-elect=false", "true", "", None),
        ("--leader-elect=true", "false", "v1.22.0", False),
        ("--v=2", "false", "v1.30.0", False),
        ("--v=2", "maybe", "v1.30.0", None),
    ],
)
def test_flag_and_file_by_version(world, flag, filed, version, elect):
    config = {"path": "/s.yaml", "text": f"leaderElection: {{leaderElect: {filed}}}\n"}
    world.run("m1", SCHEDULER, "--config=/s.yaml", flag, elect=None, config=config)
    world.data("m1", "component_http")["components"][-1]["metrics"]["git_version"] = version
    for file in world.data("m1", "manifests")["files"]:
        file["text"] = file["text"].replace(":v1.30.1", "@sha256:0")
    assert scheduler(world).elect is elect


def test_the_answer_of_a_process_beats_its_flags(world):
    world.run("m1", SCHEDULER, "--leader-elect=true", elect=False)
    assert (scheduler(world).elect, scheduler(world).source) == (False, "configz")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, False),
        ({"process": None}, True),
        ({"healthz": {"status": 500, "error": None}}, True),
        ({"healthz": {"status": None, "error": "refused"}}, True),
        ({"healthz": {"status": None, "error": control_plane.SWITCHED_OFF}}, False),
    ],
)
def test_a_kubelet_that_is_not_well_loads_no_manifest(world, changes, problem):
    world.data("m1", "kubelet").update(changes)
    assert bool(extracted(world).kubelet_problem) is problem


def test_authorities_are_the_same_in_a_kubeconfig_and_a_file():
    encoded = base64.b64encode(CA.encode()).decode()
    embedded = control_plane.authority_digests(f"certificate-authority-data: {encoded}\n", None)
    assert embedded == control_plane.authority_digests(None, CA)
    assert len(control_plane.authority_digests(None, CA + OTHER)) == 2
    assert control_plane.authority_digests("certificate-authority-data: AAA\n", "") == frozenset()
