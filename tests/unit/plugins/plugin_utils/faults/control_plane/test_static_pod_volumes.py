# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM174: files that flags of static pods name, against their volumes and the machine."""

from __future__ import annotations

from typing import Any

import pytest

SERVER = "kube-apiserver"
POLICY = "/etc/kubernetes/audit/policy.yaml"
FLAG = f"--audit-policy-file={POLICY}"


def give(
    world: Any,
    *flags: str,
    volumes: tuple[tuple[str, str, str], ...] = (),
    kinds: dict[str, str] | None = None,
    runs: bool = False,
    component: str = SERVER,
) -> None:
    """Give m1 a manifest with flags and volumes: (path on the host, mount path, type)."""
    text = (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {component}\n  namespace: kube-system\n"
        f"spec:\n  containers:\n  - command:\n    - {component}\n"
    )
    text += "".join(f"    - {flag}\n" for flag in flags)
    text += f"    image: registry/{component}:v1.30.1\n    name: {component}\n"
    if volumes:
        text += "    volumeMounts:\n"
        for number, (_host, mount, _kind) in enumerate(volumes):
            text += f"    - mountPath: {mount}\n      name: v{number}\n"
        text += "  volumes:\n"
        for number, (host, _mount, kind) in enumerate(volumes):
            text += (
                f"  - hostPath:\n      path: {host}\n      type: '{kind}'\n    name: v{number}\n"
            )
    world.manifest("m1", component)
    file = next(
        row for row in world.data("m1", "manifests")["files"] if row["name"] == f"{component}.yaml"
    )
    file["text"] = text
    processes = world.data("m1", "instances")["processes"]
    for row in processes:
        if row["component"] == component:
            row["argv"] = [component, *flags]
    if not runs:
        processes[:] = [row for row in processes if row["component"] != component]
    world.documents["m1"]["collectors"]["static_pod_paths"] = {
        "status": "ok",
        "data": {"paths": [{"path": path, "kind": kind} for path, kind in (kinds or {}).items()]},
    }


def found(world: Any) -> list[Any]:
    result = world.judge(faults={"KM174"})
    return [item for item in result.findings if item.code == "KM174"]


def verdict(world: Any) -> str:
    rows = world.judge(faults={"KM174"}).verdicts
    return next(row.verdict for row in rows if row.host == "m1")


MOUNTED = (("/etc/kubernetes/audit", "/etc/kubernetes/audit", "DirectoryOrCreate"),)


def test_no_volume_has_the_file(world):
    give(world, FLAG, kinds={POLICY: "file"})
    (one,) = found(world)
    assert (one.host, one.component, one.severity) == ("m1", SERVER, "critical")
    assert FLAG in one.summary
    assert "no volume" in one.summary
    assert "/etc/kubernetes/audit" in one.remedy
    codes = world.judge(faults={"KM174", "KM114"}).findings
    assert [item.because for item in codes if item.code == "KM114"] == [("KM174",)]


@pytest.mark.parametrize(
    ("component", "codes"), [("kube-scheduler", []), ("kube-controller-manager", ["KM174"])]
)
def test_a_flag_that_the_release_no_longer_has_needs_no_file(world, component, codes):
    """The scheduler lost --policy-config-file with 1.23; no controller manager ever had it."""
    give(world, "--policy-config-file=/srv/policy.json", component=component)
    assert [item.code for item in found(world)] == codes


@pytest.mark.parametrize("component", ["kube-scheduler", "kube-controller-manager", "etcd"])
def test_it_holds_for_every_component(world, component):
    give(world, "--tls-cert-file=/srv/pki/a.crt", component=component)
    (one,) = found(world)
    assert one.component == component


@pytest.mark.parametrize(
    ("volumes", "kinds"),
    [
        (MOUNTED, {POLICY: "file"}),
        (((POLICY, POLICY, "File"),), {POLICY: "file"}),
        # another folder of the host, whose file is there
        ((("/srv/audit", "/etc/kubernetes/audit/", ""),), {"/srv/audit/policy.yaml": "file"}),
        # of which nothing is known
        ((("/srv/audit", "/etc/kubernetes/audit", ""),), {}),
        # a kubelet makes it
        (((POLICY, POLICY, "FileOrCreate"),), {POLICY: "missing"}),
    ],
)
def test_a_file_that_is_mounted(world, volumes, kinds):
    give(world, FLAG, volumes=volumes, kinds=kinds)
    assert found(world) == []
    assert verdict(world) == "clear"


@pytest.mark.parametrize(
    ("volumes", "kinds", "word"),
    [
        (MOUNTED, {POLICY: "missing"}, "not on this machine"),
        (MOUNTED, {POLICY: "directory"}, "is a directory"),
        (((POLICY, POLICY, ""),), {POLICY: "directory"}, "is a directory"),
        (
            (("/etc/kubernetes/audit", "/etc/kubernetes/audit", "Directory"),),
            {"/etc/kubernetes/audit": "missing", POLICY: "missing"},
            "needs /etc/kubernetes/audit",
        ),
        (
            (("/etc/kubernetes/audit", "/etc/kubernetes/audit", "Directory"),),
            {"/etc/kubernetes/audit": "file"},
            "another type of path",
        ),
    ],
)
def test_a_volume_that_leads_nowhere(world, volumes, kinds, word):
    give(world, FLAG, volumes=volumes, kinds=kinds)
    assert word in " ".join(one.summary for one in found(world))


def test_a_component_that_runs_has_the_file_from_its_image(world):
    give(world, FLAG, runs=True)
    assert found(world) == []


def test_a_file_that_is_gone_is_missed_at_the_next_start(world):
    give(world, FLAG, volumes=MOUNTED, kinds={POLICY: "missing"}, runs=True)
    (one,) = found(world)
    assert one.severity == "warning"
    assert "will not start again" in one.summary


@pytest.mark.parametrize(
    "flag",
    [
        "--oidc-ca-file=/etc/ssl/certs/ca-certificates.crt",
        "--audit-log-path=/var/log/audit.log",
        "--audit-policy-file=$(POLICY)",
        "--token-auth-file=****",
    ],
)
def test_paths_that_are_not_judged(world, flag):
    give(world, flag)
    assert found(world) == []


@pytest.mark.parametrize("kind", ["denied", "Input/output error"])
def test_a_path_that_cannot_be_read_is_not_missing(world, kind):
    give(world, FLAG, volumes=MOUNTED, kinds={POLICY: kind})
    assert found(world) == []


def test_without_the_paths_of_the_host_it_is_unknown(world):
    give(world, FLAG, volumes=MOUNTED)
    world.documents["m1"]["collectors"]["static_pod_paths"] = {"status": "denied", "data": None}
    assert verdict(world) == "unknown"
    give(world, FLAG)
    world.documents["m1"]["collectors"]["static_pod_paths"] = {"status": "denied", "data": None}
    assert verdict(world) == "present"


def without_server(world: Any, host: str = "m1") -> None:
    processes = world.data(host, "instances")["processes"]
    processes[:] = [row for row in processes if row["component"] != SERVER]


def manifest_findings(world: Any) -> list[Any]:
    result = world.judge(faults={"KM179"})
    return [item for item in result.findings if item.code == "KM179"]


def manifest_verdict(world: Any, host: str = "m1") -> str:
    rows = world.judge(faults={"KM179"}).verdicts
    return next(row.verdict for row in rows if row.host == host)


def test_the_manifest_of_the_api_server_is_gone(world):
    without_server(world)
    world.data("m1", "manifests")["ignored"] = [".kube-apiserver.yaml"]
    (one,) = manifest_findings(world)
    assert (one.host, one.component, one.severity) == ("m1", SERVER, "critical")
    assert ".kube-apiserver.yaml" in one.summary
    assert "/etc/kubernetes/manifests/kube-apiserver.yaml" in one.remedy


def test_an_api_server_that_runs_or_has_a_manifest(world):
    assert manifest_verdict(world, "m2") == "clear"
    without_server(world)
    world.manifest("m1", SERVER)
    assert manifest_verdict(world) == "clear"
    assert manifest_verdict(world, "w1") == "not_applicable"


def test_a_manifest_of_the_api_server_that_is_broken_or_unread(world):
    without_server(world)
    world.manifest("m1", SERVER)
    file = world.data("m1", "manifests")["files"][-1]
    file["text"] = "kind: ["
    assert manifest_verdict(world) == "clear"
    file.update(text=None, error="denied")
    assert manifest_verdict(world) == "unknown"


def test_an_api_server_that_is_a_unit(world):
    without_server(world)
    unit = {"name": "kube-apiserver.service", "component": SERVER, "active_state": "active"}
    world.documents["m1"]["collectors"]["component_units"] = {
        "status": "ok",
        "data": {"units": [unit]},
    }
    assert manifest_findings(world) == []
    world.documents["m1"]["collectors"]["component_units"] = {"status": "error", "data": None}
    assert manifest_verdict(world) == "unknown"


def test_a_host_of_etcd_alone(world):
    without_server(world)
    world.data("m1", "manifests")["files"] = []
    world.manifest("m1", "etcd")
    assert manifest_verdict(world) == "not_applicable"


SCHEMA = 'no kind "AArgs" is registered for version "kubescheduler.config.k8s.io/v1beta2" in scheme'


@pytest.mark.parametrize(
    ("lines", "ago", "is_found"),
    [
        ([SCHEMA], 0, False),
        ([SCHEMA], 10**9, True),  # of a manifest before
        (["open /etc/scheduler/config.yaml: no such file or directory"], 0, True),
        (["unknown flag: --lister"], 0, True),
        ([], 0, True),
    ],
)
def test_a_file_of_kinds_that_the_component_has_read_is_there(world, lines, ago, is_found):
    give(world, "--config=/etc/scheduler/config.yaml", component="kube-scheduler")
    clock = world.data("m1", "system")["clock"]
    row = {"component": "kube-scheduler", "running": False, "restart": 3, "path": None}
    row |= {"first": clock - ago - 1, "last": clock - ago, "lines": lines, "kubelet": None}
    record = {"status": "ok", "data": {"components": [row]}}
    world.documents["m1"]["collectors"]["component_end"] = record
    assert bool(found(world)) is is_found
