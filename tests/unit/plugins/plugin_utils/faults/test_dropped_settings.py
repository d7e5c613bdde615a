# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that name a setting which containerd of their node drops."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    cri as answers,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import dropped_settings
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.containerd_merge import (
    Dropped,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import pod_start_message
from tests.unit.support.cri_evidence import CONFIG, cri, kubelet_driver
from tests.unit.support.waiting_pods import judged, wait

HIT = Detection("it says x", (), "look at x")
TWO, DROP_IN = "plugins.io.containerd.grpc.v1.cri", "/etc/containerd/conf.d/99-nvidia.toml"
RUNTIMES = f"{TWO}.containerd.runtimes"


def row(table, key, value="a"):
    return Dropped(CONFIG, answers.ConfigLine(9, table, key, value), DROP_IN)


FOLDER = row(f"{TWO}.registry", "config_path")
MIRROR = row(f"{TWO}.registry.mirrors.docker.io", "endpoint")
IMAGE = row(TWO, "sandbox_image")
KATA = row(f"{RUNTIMES}.kata", "runtime_type")
HOST = SimpleNamespace(dropped_settings=(FOLDER, MIRROR, IMAGE, KATA))


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("pull_timeout", (FOLDER, MIRROR)),
        ("pull_rate_limit", (FOLDER, MIRROR)),
        (pod_start_message.PLATFORM, ()),
        ("mount", ()),
        ("", ()),
    ],
)
def test_how_registries_were_to_be_asked(kind, rows):
    assert dropped_settings.of_pull(HOST, kind) == rows
    assert dropped_settings.of_pull(None, kind) == ()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('no runtime for "kata" is configured', (KATA,)),
        ('desc = no runtime for \\"kata\\" is configured', (KATA,)),
        ('no runtime for "ata" is configured', ()),
        ("something else", ()),
    ],
)
def test_a_runtime_that_is_not_there(text, rows):
    assert dropped_settings.of_runtime(HOST, text) == rows
    assert dropped_settings.of_runtime(None, text) == ()


def test_the_image_of_sandboxes_comes_before_the_mirrors():
    assert dropped_settings.of_sandbox(HOST, "b", "pull_timeout") == (IMAGE,)
    # the same image: that line would change nothing
    assert dropped_settings.of_sandbox(HOST, "a", "pull_timeout") == (FOLDER, MIRROR)
    without = SimpleNamespace(dropped_settings=(FOLDER,))
    assert dropped_settings.of_sandbox(without, "b", "pull_timeout") == (FOLDER,)
    assert dropped_settings.of_sandbox(None, "b", "pull_timeout") == ()


def test_a_finding_names_both_files_and_the_setting():
    found = dropped_settings.with_dropped(HIT, "w1", [FOLDER])
    assert found.summary.startswith("it says x; ")
    for word in ("config_path", f"{CONFIG}:9", DROP_IN, "version = 2", "version = 3"):
        assert word in found.summary
    assert found.remedy.startswith(f"write {CONFIG} with version = 3")
    assert found.remedy.endswith("; else look at x")
    assert [(proof.path, proof.line) for proof in found.evidence] == [(CONFIG, 9)]
    assert dropped_settings.with_dropped(HIT, "w1", ()) is HIT


def lines(world, table, key, value, second=3):
    files = [
        {
            "path": CONFIG,
            "version": 2,
            "error": None,
            "lines": [{"line": 9, "table": table, "key": key, "value": value}],
        },
        {"path": DROP_IN, "version": second, "error": None, "lines": []},
    ]
    return cri(world, version="v2.1.6", files=files)


PULL = (
    "Failed",
    'Failed to pull image "registry.k8s.io/a:1": failed to do request: Head'
    ' "https://registry.k8s.io/v2/a/manifests/1": dial tcp 192.0.2.34:443: i/o timeout',
)


@pytest.mark.parametrize(("second", "codes"), [(3, ["KM600"]), (2, ["KM610"])])
def test_one_workload_is_not_blamed_where_the_node_lost_its_mirrors(world, second, codes):
    lines(world, f"{TWO}.registry", "config_path", "/etc/containerd/certs.d", second)
    wait(world, state="ImagePullBackOff", event=PULL)
    findings = world.judge(faults={"KM600", "KM610"}).findings
    assert [found.code for found in findings] == codes
    assert (DROP_IN in findings[0].summary) is (second == 3)


def test_a_runtime_class_whose_runtime_was_dropped(world):
    lines(world, f"{RUNTIMES}.kata", "runtime_type", '"io.containerd.kata.v2"')
    text = 'Failed to create pod sandbox: no runtime for "kata" is configured'
    wait(world, event=("FailedCreatePodSandBox", text))
    (found,) = judged(world, "KM600")[1]
    assert DROP_IN in found.summary
    assert "runtime_type" in found.summary


def test_the_image_of_sandboxes_that_was_dropped(world):
    data = lines(world, TWO, "sandbox_image", '"mirror.local/pause:3.10"')
    data["config"]["sandbox_image"] = ""  # containerd 2 does not tell
    text = (
        'Failed to create pod sandbox: failed to get sandbox image "registry.k8s.io/pause:3.10":'
        " failed to pull image: dial tcp 192.0.2.34:443: i/o timeout"
    )
    wait(world, event=("FailedCreatePodSandBox", text))
    (found,) = judged(world, "KM605")[1]
    assert DROP_IN in found.summary
    assert "sets" not in found.summary


@pytest.mark.parametrize(("second", "is_told"), [(3, True), (2, False)])
def test_a_cgroup_driver_that_was_dropped(world, second, is_told):
    kubelet_driver(world, "systemd")
    data = lines(world, f"{RUNTIMES}.runc.options", "SystemdCgroup", "true", second)
    data["config"]["systemd_cgroup"] = False
    (found,) = [row for row in world.judge(faults={"KM516"}).findings if row.host == "w1"]
    assert (DROP_IN in found.summary) is is_told


@pytest.mark.parametrize(
    ("version", "new", "is_told"), [(2, True, True), (2, False, False), (3, False, True)]
)
def test_a_runtime_below_a_table_of_containerd_1(world, version, new, is_told):
    rows = [{"line": 9, "table": f"{RUNTIMES}.kata", "key": "runtime_type", "value": "k"}]
    if new:
        table = "plugins.io.containerd.cri.v1.runtime.containerd.runtimes.runc"
        rows.append({"line": 3, "table": table, "key": "runtime_type", "value": "r"})
    cri(
        world,
        version="v2.1.6",
        files=[{"path": CONFIG, "version": version, "error": None, "lines": rows}],
    )
    text = 'Failed to create pod sandbox: no runtime for "kata" is configured'
    wait(world, event=("FailedCreatePodSandBox", text))
    (found,) = judged(world, "KM600")[1]
    assert (f"{CONFIG}:9" in found.summary) is is_told
    assert ("move what" in found.remedy) is is_told
    assert (f"version = {version}, [{RUNTIMES}.kata]" in str(found.evidence)) is is_told
