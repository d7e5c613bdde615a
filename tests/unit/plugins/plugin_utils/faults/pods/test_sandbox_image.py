# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of the sandbox that a node lacks, KM605."""

from __future__ import annotations

import pytest

from tests.unit.support.cri_evidence import CONFIG, cri
from tests.unit.support.waiting_pods import judged, wait

EVENT = (
    "FailedCreatePodSandBox",
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image"
    ' "registry.k8s.io/pause:3.6": failed to pull image: dial tcp: lookup registry.k8s.io: no such'
    " host",
)


def test_the_image_and_why_it_cannot_be_pulled(world):
    wait(world, event=EVENT)
    verdicts, (finding,) = judged(world, "KM605")
    assert verdicts == ["present"]
    assert (finding.host, finding.node, finding.severity) == ("w1", "w1", "critical")
    assert "(registry.k8s.io/pause:3.6)" in finding.summary
    assert "cannot resolve the registry's name" in finding.summary
    assert "crictl pull registry.k8s.io/pause:3.6" in finding.remedy
    found = {row.code: row for row in world.judge(faults={"KM600", "KM605"}).findings}
    assert found["KM600"].because == ("KM605",)


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("registry.k8s.io/pause:9.9", "crictl pull registry.k8s.io/pause:9.9"),
        ("a b", "crictl pull IMAGE"),
    ],
)
def test_an_image_that_only_the_configuration_names(world, image, command):
    """As CRI-O 1.34 says it."""
    text = (
        'creating pod sandbox with name "k8s_d-1": unable to try pulling possible OCI artifact:'
        ' build image source: pinging container registry registry.k8s.io: Get "https://x/v2/":'
        " dial tcp: lookup registry.k8s.io: no such host"
    )
    wait(world, event=("FailedCreatePodSandBox", f"Failed to create pod sandbox: {text}"))
    cri(world)["config"].update(sandbox_image=image, sandbox_image_by="/etc/x:2")
    _verdicts, (finding,) = judged(world, "KM605")
    assert command in finding.remedy


def test_what_is_over_or_of_another_image_is_clear(world):
    wait(world, event=("Failed", 'Failed to pull image "a": no such host'))
    assert judged(world, "KM605") == (["clear"], [])
    wait(world, event=EVENT)
    event = world.data("api", "pod_start")["events"][1]
    event["count"] = 2
    assert judged(world, "KM605") == (["clear"], [])
    event.update(count=45, last="2027-01-15T07:50:00Z")
    assert judged(world, "KM605") == (["clear"], [])
    event["last"] = None
    assert judged(world, "KM605") == (["unknown"], [])
    event.update(last="2027-01-15T07:59:00Z", waiting=0)
    assert judged(world, "KM605") == (["clear"], [])
    del world.api["collectors"]["pod_start"]
    assert judged(world, "KM605") == (["not judged"], [])
    world.leave_kubernetes()
    assert set(judged(world, "KM605")[0]) <= {"not_applicable"}


@pytest.mark.parametrize(("release", "named"), [("2.0.0-beta.2", True), ("2.0.0", False)])
def test_mirrors_that_containerd_does_not_take_over(world, release, named):
    file = {"path": "/etc/containerd/config.toml", "version": 2, "error": None, "lines": []}
    data = {"name": "containerd", "version": release, "files": [file]}
    world.documents["w1"]["collectors"]["cri"] = {"status": "ok", "data": data}
    request = "pull image: failed to do request: dial tcp 192.0.2.10:443: connect: refused"
    wait(world, event=(EVENT[0], EVENT[1].replace("pull image: dial", request + ": dial")))
    _verdicts, (finding,) = judged(world, "KM605")
    assert ("asks no mirror that /etc/containerd/config.toml names" in finding.summary) is named
    assert (f"containerd {release}" in finding.summary) is named


PAUSE = (
    "E0216 19:39:20.989274    9262 remote_runtime.go:105] RunPodSandbox from runtime service failed"
    ': rpc error: code = Unknown desc = failed pulling image "k8s.gcr.io/pause:3.2": Error response'
    " from daemon: Get https://k8s.gcr.io/v2/: dial tcp 192.0.2.82:443: connect: connection refused"
)
OTHER = PAUSE.replace("pause:3.2", "etcd:3.4")


def repeat(world, host, line, **more):
    clock = world.data(host, "system")["clock"]
    entry = {"count": 50, "minutes": 10, "first": clock - 590, "last": clock - 5, "line": line}
    row = {"component": "kubelet", "source": "kubelet.service", "since": clock - 600}
    components = [{**row, "entries": [{**entry, **more}]}]
    world.documents[host]["collectors"]["repeated_errors"] = {
        "status": "ok",
        "data": {"read_at": clock, "components": components},
    }


@pytest.mark.parametrize(
    ("line", "more", "hosts"),
    [
        (PAUSE, {}, ["w1"]),
        (OTHER, {}, []),
        (PAUSE, {"count": 2, "minutes": 1}, []),
    ],
    ids=["of the sandbox", "of a container", "once or twice"],
)
def test_the_journal_tells_of_it_without_an_api_server(world, line, more, hosts):
    world.api.update(status="error", reason="connection refused", collectors={})
    repeat(world, "w1", line, **more)
    _verdicts, findings = judged(world, "KM605")
    assert [finding.host for finding in findings] == hosts
    for finding in findings:
        assert "(k8s.gcr.io/pause:3.2)" in finding.summary
        assert finding.evidence[0].object == "kubelet.service"


def test_events_and_journal_are_one_finding(world):
    wait(world, event=EVENT)
    repeat(world, "w1", PAUSE)
    _verdicts, (finding,) = judged(world, "KM605")
    assert "pause:3.6" in finding.summary


LINE = {"line": 7, "table": "plugins.io.containerd.grpc.v1.cri", "key": "sandbox_image"}
FILES = [
    {"path": CONFIG, "version": 2, "lines": [{**LINE, "value": '"registry.k8s.io/pause:3.6"'}]}
]
DROPIN = "/etc/crio/crio.conf.d/10-image.conf:3"
OF_CRIO = {"sandbox_image": "registry.k8s.io/pause:3.6", "sandbox_image_by": DROPIN}
OTHER_IMAGE = {**OF_CRIO, "sandbox_image": "mirror.local/pause:3.9"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"files": FILES}, ("pause:3.6, which", f"{CONFIG}:7 sets")),
        ({"config": OF_CRIO, "files": []}, ("pause:3.6, which", f"{DROPIN} sets")),
        ({"config": OTHER_IMAGE, "files": []}, (f"{DROPIN} sets mirror.local/pause:3.9",)),
    ],
)
def test_the_setting_that_names_the_image_is_told(world, more, words):
    cri(world, **more)
    wait(world, event=EVENT)
    _verdicts, (finding,) = judged(world, "KM605")
    assert [word for word in words if word not in finding.summary] == []


def test_the_journal_s_finding_names_the_setting_too(world):
    flag = "--pod-infra-container-image=k8s.gcr.io/pause:3.2"
    world.data("w1", "kubelet")["argv"] = ["/usr/bin/kubelet", flag]
    world.documents["w1"]["collectors"]["runtime"] = {"status": "ok", "data": {"kind": "docker"}}
    repeat(world, "w1", PAUSE)
    (finding,) = judged(world, "KM605")[1]
    assert "--pod-infra-container-image of the kubelet sets" in finding.summary
