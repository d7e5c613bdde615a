# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that components repeat: KM529 of the node, KM118 of the control plane."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import (
    repeated_errors,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import error_answer
from tests.unit.support import known_rows

NOW = 1_800_000_000.0
HEAD = "E0115 07:59:00.000001       1 x.go:1] "
LEASE = HEAD + '"Failed to ensure lease exists, will retry" err="Unauthorized" interval="7s"'
LOCK = (
    HEAD + "error retrieving resource lock kube-system/kube-scheduler: leases.coordination.k8s.io"
    ' "kube-scheduler" is forbidden: User "system:kube-scheduler" cannot get resource "leases" in'
    ' API group "coordination.k8s.io" in the namespace "kube-system"'
)
UNKNOWN = HEAD + '"Something new" err="of which nothing is known"'


def entry(line: str, **more: Any) -> dict[str, Any]:
    values = {"count": 60, "minutes": 10, "first": NOW - 590, "last": NOW - 5, "pods": 0}
    return {**values, "line": line, **more}


def give(world: Any, host: str, component: str, source: str, *lines: str, **more: Any) -> None:
    """Let a component of a host repeat these lines."""
    row = {
        "component": component,
        "source": source,
        "error": None,
        "started": NOW - 86400,
        "since": NOW - 600,
        "lines": 900,
        "errors": 600,
        "cut": False,
        "entries": [entry(line) for line in lines],
        **more,
    }
    collectors = world.documents[host]["collectors"]
    data = collectors.get("repeated_errors", {}).get("data") or {"read_at": NOW, "components": []}
    data["components"].append(row)
    collectors["repeated_errors"] = {"status": "ok", "data": data}


def verdict(world: Any, code: str, host: str) -> tuple[str, list[Any]]:
    result = world.judge(faults=frozenset((code,)))
    verdicts = [item.verdict for item in result.verdicts if item.host == host]
    return (verdicts or ["not judged"])[0], list(result.findings)


def test_a_kubelet_that_is_refused(world):
    give(world, "w1", "kubelet", "kubelet.service", LEASE, UNKNOWN)
    said, (finding,) = verdict(world, "KM529", "w1")
    assert (said, finding.severity, finding.component) == ("present", "warning", "kubelet")
    assert (finding.host, finding.node) == ("w1", "w1")
    assert [proof.object for proof in finding.evidence] == ["kubelet.service"]
    assert finding.evidence[0].text == " ".join(LEASE.split())
    assert "401" in finding.summary
    assert "journalctl -u kubelet.service" in finding.remedy


def test_a_scheduler_that_is_forbidden(world):
    path = "/var/log/pods/kube-system_kube-scheduler-m1_0/kube-scheduler/0.log"
    give(world, "m1", "kube-scheduler", path, LOCK)
    said, (finding,) = verdict(world, "KM118", "m1")
    assert (said, finding.severity, finding.component) == ("present", "warning", "kube-scheduler")
    assert [proof.path for proof in finding.evidence] == [path]
    assert "system:kube-scheduler may not get leases" in finding.summary
    assert verdict(world, "KM529", "m1")[0] == "not_applicable"


def test_an_unknown_error_is_an_information(world):
    give(world, "w1", "kubelet", "kubelet.service", UNKNOWN)
    said, (finding,) = verdict(world, "KM529", "w1")
    assert (said, finding.severity) == ("present", "info")
    assert "Something new" in finding.summary


def test_components_without_errors(world):
    give(world, "m1", "kubelet", "kubelet.service")
    give(world, "m1", "etcd", "/var/log/pods/x")
    for code in ("KM529", "KM118"):
        assert verdict(world, code, "m1") == ("clear", [])


@pytest.mark.parametrize(
    "more",
    [{"error": "denied"}, {"cut": True, "since": NOW - 60}, {"cut": True, "since": NOW - 599}],
)
def test_a_log_that_was_not_read_is_unknown(world, more):
    give(world, "w1", "kubelet", "kubelet.service", **more)
    assert verdict(world, "KM529", "w1") == ("unknown", [])


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (None, "not judged"),  # an older release collected
        ({"status": "denied", "data": None}, "unknown"),
        ({"status": "timeout", "data": None}, "unknown"),
        ({"status": "absent", "data": None}, "not_applicable"),
    ],
)
@pytest.mark.parametrize("code", ["KM529", "KM118"])
def test_without_an_answer(world, code, record, expected):
    world.documents["w1"]["collectors"]["repeated_errors"] = record
    if record is None:
        del world.documents["w1"]["collectors"]["repeated_errors"]
    assert verdict(world, code, "w1") == (expected, [])


def test_a_worker_has_no_control_plane(world):
    give(world, "w1", "kubelet", "kubelet.service", LEASE)
    assert verdict(world, "KM118", "w1")[0] == "not_applicable"


def test_a_full_disk_of_the_node_explains_it(world):
    give(world, "w1", "kubelet", "kubelet.service", LEASE)
    world.documents["w1"]["collectors"]["boot"]["data"]["mounts"] = [
        {"point": "/", "source": "/dev/sda1", "type": "ext4", "options": "ro,relatime"}
    ]
    result = world.judge(faults=frozenset(("KM529", "KM521")))
    findings = {finding.code: finding for finding in result.findings}
    assert findings["KM529"].because == ("KM521",)


def test_what_was_found_in_a_part_of_a_log_stands(world):
    give(world, "w1", "kubelet", "kubelet.service", LEASE, cut=True, since=NOW - 400)
    result = world.judge(faults=frozenset(("KM529",)))
    (verdict,) = [item for item in result.verdicts if item.host == "w1"]
    assert verdict.verdict == "present"
    assert [finding.code for finding in result.findings] == ["KM529"]


@pytest.mark.parametrize(
    ("code", "collector", "expected"),
    [
        ("KM529", "kubelet", "unknown"),
        ("KM529", "runtime", "unknown"),
        ("KM529", "instances", "clear"),
        ("KM118", "instances", "unknown"),
        ("KM118", "kubelet", "unknown"),
        ("KM118", "runtime", "clear"),
    ],
)
def test_without_what_tells_which_components_run_it_is_unknown(world, code, collector, expected):
    give(world, "m1", "kubelet", "kubelet.service")
    give(world, "m1", "etcd", "/var/log/pods/x")
    world.documents["m1"]["collectors"][collector] = {"status": "timeout", "data": None}
    assert verdict(world, code, "m1") == (expected, [])


def test_each_log_that_was_not_read_is_named(world):
    give(world, "m1", "etcd", "/var/log/pods/x", error="this folder has no log of its static pod")
    give(world, "m1", "kube-scheduler", "/var/log/pods/y", cut=True, since=NOW - 60)
    give(world, "m1", "kube-apiserver", "/var/log/pods/z")
    result = world.judge(faults=frozenset(("KM118",)))
    (item,) = [item for item in result.verdicts if item.host == "m1"]
    assert item.verdict == "unknown"
    assert {missing.status for missing in item.missing} == {"error", "timeout"}
    assert "etcd: this folder has no log" in item.note
    assert "kube-scheduler: not all of it was read" in item.note
    assert "kube-apiserver" not in item.note


@pytest.mark.parametrize(
    ("since", "minutes"), [(NOW - 600, 10), (NOW - 400, 7), (NOW - 20, 1), (None, 1)]
)
def test_a_finding_names_count_window_log_and_line(world, since, minutes):
    path = "/var/log/pods/kube-system_kube-scheduler-m1_0/kube-scheduler/0.log"
    give(world, "m1", "kube-scheduler", path, LOCK, UNKNOWN, since=since)
    _said, (finding,) = verdict(world, "KM118", "m1")
    for part in (
        f"{path} has it 60 times",
        f"in {minutes} minutes",
        "last at 2027-01-15T07:59:55Z",
    ):
        assert part in finding.summary
    assert "error retrieving resource lock" in finding.summary
    assert [proof.text for proof in finding.evidence] == [" ".join(LOCK.split())]
    assert "$(crictl ps -q --name kube-scheduler)" in finding.remedy


def test_a_line_of_a_unit_names_its_journal(world):
    give(world, "w1", "kubelet", "kubelet.service", LEASE)
    _said, (finding,) = verdict(world, "KM529", "w1")
    assert "kubelet.service has it 60 times in 10 minutes" in finding.summary
    assert "journalctl -u kubelet.service --since -10min" in finding.remedy


def test_a_component_that_may_run_unseen_is_unknown(world):
    give(world, "m1", "etcd", "/var/log/pods/x")
    assert verdict(world, "KM529", "m1") == ("not_applicable", [])
    world.documents["m1"]["collectors"]["kubelet"] = {"status": "timeout", "data": None}
    assert verdict(world, "KM529", "m1") == ("unknown", [])


STALE = (
    'E0115 07:59:00.000001       1 resource_quota_controller.go:440] "Failed" err="unable to'
    ' retrieve the complete list of server APIs: {0}: stale GroupVersion discovery: {0}"'
)


@pytest.mark.parametrize(
    ("group", "expected"), [("a.example/v1", "present"), ("metrics.k8s.io/v1beta1", "clear")]
)
def test_a_group_that_the_api_server_does_not_discover(world, group, expected):
    give(world, "m1", "kube-controller-manager", "/var/log/pods/a/0.log", STALE.format(group))
    said, findings = verdict(world, "KM118", "m1")
    assert said == expected
    for found in findings:
        assert f"does not discover {group}" in found.summary
        assert found.severity == "warning"
        assert "kubectl get apiservices" in found.remedy


ORPHAN = HEAD + (
    'orphaned pod "a60244b2-e6ee-4a63-b311-13f7b29ef49a" found, but volume paths are still present'
    " on disk : There were a total of 1 errors similar to this."
)
SOCKET = HEAD + "listen unix /run/kms.sock: bind: address already in use"


@pytest.mark.parametrize(
    ("code", "host", "component", "line", "words"),
    [
        ("KM529", "w1", "kubelet", ORPHAN, "The kubelet cannot remove the folder of the pod a602"),
        ("KM118", "m1", "kube-apiserver", SOCKET, "A file is at the place of its socket /run/kms"),
    ],
)
def test_the_cause_of_a_known_message_is_told(world, code, host, component, line, words):
    give(world, host, component, f"{component}.service", line)
    said, (finding,) = verdict(world, code, host)
    assert (said, finding.severity) == ("present", "warning")
    assert f"Known cause: {words}" in finding.summary
    assert "(see https://github.com/" in finding.remedy
    answer = error_answer.read(line, component)
    general = repeated_errors.UNCLEAR if answer is None else answer.advice
    assert general not in finding.remedy


# The table of messages reads its end as one of a start, which refuses a file of configuration.
CACHER = HEAD + (
    "cacher (podsecuritypolicies.policy): unexpected ListAndWatch error: failed to list"
    ' *policy.PodSecurityPolicy: no kind "PodSecurityPolicy" is registered for version'
    ' "policy/v1beta1" in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"'
)


def test_what_runs_is_not_said_to_refuse_its_configuration(world):
    give(world, "m1", "kube-apiserver", "kube-apiserver.service", CACHER)
    _said, (finding,) = verdict(world, "KM118", "m1")
    answer = error_answer.read(CACHER, "kube-apiserver")
    assert answer is not None
    assert answer.kind == "configuration"
    assert answer.clause not in finding.summary
    assert "Known cause: etcd holds objects of the resource podsec" in finding.summary


@pytest.mark.parametrize(
    ("code", "host", "component"), [("KM529", "w1", "kubelet"), ("KM118", "m1", "kube-scheduler")]
)
def test_a_message_of_another_release_has_no_known_cause(world, monkeypatch, code, host, component):
    give(world, host, component, f"{component}.service", SOCKET)
    known_rows.of_a_later_release(monkeypatch)
    known_rows.give_kubelet(world.documents["w1"], "v1.30.1")
    assert verdict(world, code, host)[1] == []


OF_WORKLOADS = known_rows.of_workloads()


@pytest.mark.parametrize("pods", [0, 1, 9])
@pytest.mark.parametrize("component", ["kubelet", "containerd", "crio"])
@pytest.mark.parametrize(
    ("name", "place", "text"), OF_WORKLOADS, ids=[line[0] for line in OF_WORKLOADS]
)
def test_what_workloads_themselves_bring_about_accuses_no_node(
    world, name, place, text, component, pods
):
    give(world, "w1", component, f"{component}.service", entries=[entry(HEAD + text, pods=pods)])
    assert verdict(world, "KM529", "w1") == ("clear", [])


@pytest.mark.parametrize("pods", [0, 1, 9])
def test_an_object_that_another_program_has_to_make_accuses_no_kubelet(world, pods):
    line = HEAD + 'MountVolume.SetUp failed: configmap "kube-root-ca.crt" not found'
    give(world, "w1", "kubelet", "kubelet.service", entries=[entry(line, pods=pods)])
    assert verdict(world, "KM529", "w1") == ("clear", [])


BRIDGE = HEAD + (
    '"Error syncing pod, skipping" err="failed to \\"CreatePodSandbox\\" for \\"a\\" with'
    " CreatePodSandboxError: plugin type=flannel failed (add): failed to set bridge addr:"
    ' \\"cni0\\" already has an IP address different from 10.244.1.1/24" pod="default/a"'
)


@pytest.mark.parametrize(("pods", "is_told"), [(0, True), (1, False), (3, True)])
def test_a_known_message_about_few_pods_is_left_to_the_finding_about_pods(world, pods, is_told):
    entries = [entry(BRIDGE, pods=pods)]
    give(world, "w1", "kubelet", "kubelet.service", entries=entries)
    findings = verdict(world, "KM529", "w1")[1]
    assert bool(findings) is is_told
    if is_told:
        assert "Known cause: The bridge cni0" in findings[0].summary


FULL = (
    'time="2026-11-26T18:00:00Z" level=error msg="error while inserting: database or disk is full"'
)
ODD = 'time="2026-11-26T18:00:00Z" level=error msg="Unauthorized"'


@pytest.mark.parametrize("component", ["k3s", "rke2", "k0s", "kubelite"])
@pytest.mark.parametrize(("line", "expected"), [(FULL, "present"), (ODD, "clear")])
def test_of_a_program_of_many_components_only_a_known_cause_counts(
    world, component, line, expected
):
    give(world, "w1", component, f"{component}.service", line)
    said, findings = verdict(world, "KM529", "w1")
    assert said == expected
    for finding in findings:
        assert "Known cause: The database of K3s takes no writes" in finding.summary
        assert f"journalctl -u {component}.service" in finding.remedy


def of_k0s(pod: str) -> str:
    """Return what k0s logs of its kubelet, which cannot make the sandbox of a pod."""
    text = (
        r"E0115 07:59:00.000001    2154 kuberuntime_manager.go:815] \"CreatePodSandbox for pod"
        r" failed\" err=\"failed to setup network for sandbox: could not initialize etcdv3"
        r" client: open /ucp-volume-mounts/ucp-node-certs/cert.pem: no such file or directory\""
        rf" pod=\"default/{pod}\""
    )
    return f'time="2027-01-15 07:59:00" level=info msg="{text}" component=kubelet stream=stderr'


def test_a_file_of_another_network_plugin_is_named_in_the_log_of_k0s(world):
    give(world, "w1", "k0s", "k0sworker.service")
    (row,) = world.data("w1", "repeated_errors")["components"]
    row["entries"] = [entry(of_k0s(name), pods=3) for name in ("a", "b", "c")]
    _verdict, (found,) = verdict(world, "KM529", "w1")
    assert "/ucp-volume-mounts/ucp-node-certs/cert.pem for its plugin" in found.summary


OPEN = (
    "W0419 09:31:04.114203       1 dispatcher.go:174] Failed calling webhook, failing open"
    ' slow.example.com: failed calling webhook "slow.example.com": {post}: {reason}'
)
POSTS = (
    "Post https://slow.default.svc:443/v?timeout=5s",
    'failed to call webhook: Post "https://slow.default.svc:443/v?timeout=5s"',
)
LOG = "/var/log/pods/kube-system_kube-apiserver-m1_0/kube-apiserver/0.log"


def end(world: Any, *lines: str, ago: float = 30) -> None:
    """Let a controller manager have ended with these lines."""
    row = {"component": "kube-controller-manager", "running": True, "lines": list(lines)}
    row |= {"last": NOW - ago, "path": "/var/log/pods/x/20.log", "restart": 20}
    world.documents["m1"]["collectors"]["component_end"] = {
        "status": "ok",
        "data": {"components": [row]},
    }


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("context deadline exceeded", "present"),
        ("context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "present"),
        ("dial tcp 10.96.1.1:443: i/o timeout", "present"),
        # such a request passes at once
        ("dial tcp 10.96.1.1:443: connect: connection refused", "clear"),
        ('service "slow" not found', "clear"),
    ],
)
def test_a_webhook_that_fails_open_holds_requests(world, post, reason, expected):
    give(world, "m1", "kube-apiserver", LOG, OPEN.format(post=post, reason=reason))
    said, found = verdict(world, "KM118", "m1")
    assert said == expected
    for finding in found:
        assert "slow.example.com does not answer" in finding.summary
        assert "waits 5s before it passes" in finding.summary
        assert finding.severity == "warning"
        assert "timeoutSeconds" in finding.remedy


@pytest.mark.parametrize(
    ("lines", "ago", "severity"),
    [
        (["F0419 09:31:09.119001       1 controllermanager.go:279] leaderelection lost"], 30, True),
        (
            ["F0419 09:31:09.119001       1 controllermanager.go:279] leaderelection lost"],
            3000,
            False,
        ),
        (["F0419 09:31:09.119001       1 controllermanager.go:279] no such file"], 30, False),
    ],
)
def test_a_slow_webhook_that_costs_leaders_their_leases(world, lines, ago, severity):
    line = OPEN.format(post=POSTS[0], reason="context deadline exceeded")
    give(world, "m1", "kube-apiserver", LOG, line)
    end(world, *lines, ago=ago)
    _said, (finding,) = verdict(world, "KM118", "m1")
    assert finding.severity == ("critical" if severity else "warning")
    assert ("kube-controller-manager ended without" in finding.summary) == severity
    assert len(finding.evidence) == 1 + severity


def test_a_lost_lease_is_not_of_another_error(world):
    give(world, "m1", "kube-scheduler", LOG, LOCK)
    end(world, "F0419 09:31:09.119001       1 controllermanager.go:279] leaderelection lost")
    _said, (finding,) = verdict(world, "KM118", "m1")
    assert finding.severity == "warning"


FLEXVOLUME = (
    "plugins.go:599] Error initializing dynamic plugin prober: Error (re-)creating driver"
    " directory: mkdir /usr/libexec/kubernetes: read-only file system"
)
EXPIRED = (
    "reflector.go:153] Failed to list *v1.Node: Get https://127.0.0.1:6443/api/v1/nodes: x509:"
    " certificate has expired or is not yet valid"
)


def log(world: Any, component: str, text: str, ago: float, started: float) -> None:
    """Let a kubelet or K3s that started so long ago have logged this once."""
    unit = {"kubelet": "kubelet.service", "k3s": "k3s.service"}[component]
    collectors = world.documents["w1"]["collectors"]
    collectors["kubelet"]["data"]["unit"]["name"] = unit
    collectors["kubelet"]["data"]["process"]["started_at"] = NOW - started
    when = datetime.fromtimestamp(NOW - ago, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+0000")
    line = f"{when} w1 {component}[7]: E0115 07:59:00.000001       7 {text}"
    collectors["kubelet_log"] = {"status": "ok", "data": {"lines": [line, line]}}


SHUTDOWN = (
    'kubelet.go:1404] "Failed to start node shutdown manager" err="node shutdown manager was unable'
    " to update logind InhibitDelayMaxSec to 1m0s (ShutdownGracePeriod), current value of"
    ' InhibitDelayMaxSec (30s) is less than requested ShutdownGracePeriod"'
)
INHIBITOR = (
    'kubelet.go:1600] "Failed to start node shutdown manager" err="failed creating systemd'
    ' inhibitor: The operation inhibition has been requested for is already running"'
)
OVERRIDE = (
    'kubelet.go:1600] "Failed to start node shutdown manager" err="unable to override inhibit delay'
    " by shutdown manager: failed writing logind shutdown inhibit override file /etc/a.conf: open"
    ' /etc/a.conf: read-only file system"'
)
REGISTRY = (
    'server.go:100] "Failed to listen to socket while starting device plugin registry" err="listen'
    ' unix /var/lib/kubelet/device-plugins/kubelet.sock: bind: permission denied"'
)
QUOTAS = 'time="x" level=warning msg="Disabling CPU quotas due to missing cpu.cfs_period_us"'
POLICIES = (
    'time="x" level=warning msg="Skipping network policy controller start, ipset save failed: ipset'
    ' v7.15: Cannot open session to kernel."'
)
IMAGES = (
    'time="x" level=error msg="Error encountered while importing'
    ' /var/lib/rancher/k3s/agent/images/a.tar.gz: unexpected EOF"'
)
BENIGN = 'oom_linux.go:66] "Nothing is known of this line"'


@pytest.mark.parametrize(
    ("component", "text", "ago", "said"),
    [
        ("kubelet", SHUTDOWN, 86400, "present"),
        ("kubelet", SHUTDOWN, 86401.5, "clear"),  # of the process before
        ("kubelet", INHIBITOR, 86400, "present"),
        ("kubelet", OVERRIDE, 86400, "present"),
        ("kubelet", REGISTRY, 86400, "present"),
        ("kubelet", BENIGN, 86400, "clear"),
        ("rke2", QUOTAS, 86500, "present"),  # before it starts its kubelet
        ("rke2", QUOTAS, 86700, "clear"),
        ("rke2", POLICIES, 86400, "present"),
        ("rke2", IMAGES, 86400, "present"),
    ],
)
def test_what_is_told_once_at_the_start(world, component, text, ago, said):
    unit = {"rke2": "rke2-agent.service"}.get(component, "kubelet.service")
    give(world, "w1", component, unit)
    log(world, "kubelet", text, ago, 86400.5)
    world.data("w1", "kubelet")["unit"]["name"] = unit
    lines = world.data("w1", "kubelet_log").pop("lines")
    world.data("w1", "kubelet_log").update(lines=[], at_start=lines)
    found, findings = verdict(world, "KM529", "w1")
    assert found == said
    assert [(finding.severity, finding.component) for finding in findings] == [
        ("warning", component)
    ] * (said == "present")
    assert all("Known cause" in finding.summary for finding in findings)


@pytest.mark.parametrize(
    ("component", "text", "ago", "started", "said"),
    [
        ("kubelet", FLEXVOLUME, 7000, 7002, "present"),
        ("k3s", FLEXVOLUME, 7000, 7002, "present"),
        ("kubelet", FLEXVOLUME, 7000, 6000, "clear"),  # the process before
        ("kubelet", "failed to fetch hugetlb info", 7000, 7002, "present"),
        ("k3s", EXPIRED, 30, 7000, "present"),
        ("k3s", EXPIRED, 2000, 7000, "clear"),  # since then it is over
        ("k3s", EXPIRED, 30, 20, "clear"),
        ("kubelet", EXPIRED, 30, 7000, "clear"),  # of K3s and RKE2 alone
    ],
)
def test_what_is_told_rarely(world, component, text, ago, started, said):
    give(world, "w1", component, f"{component}.service")
    log(world, component, text, ago, started)
    found, findings = verdict(world, "KM529", "w1")
    assert found == said
    for finding in findings:
        assert (finding.severity, finding.component) == ("warning", component)
        assert "Known cause" in finding.summary
        assert f"journalctl -u {component}.service" in finding.remedy
    assert len(findings) == (said == "present")


def test_what_is_repeated_comes_before_what_is_told_rarely(world):
    log(world, "kubelet", FLEXVOLUME, 7000, 7002)
    give(world, "w1", "kubelet", "kubelet.service", LEASE)
    _said, (finding,) = verdict(world, "KM529", "w1")
    assert "401" in finding.summary


def test_an_error_without_a_meaning_does_not_hide_what_is_told_rarely(world):
    give(world, "w1", "kubelet", "kubelet.service", UNKNOWN)
    log(world, "kubelet", FLEXVOLUME, 7000, 7002)
    said, findings = verdict(world, "KM529", "w1")
    assert said == "present"
    assert sorted(finding.severity for finding in findings) == ["info", "warning"]
    assert ["Known cause" in finding.summary for finding in findings].count(True) == 1


@pytest.mark.parametrize(
    ("component", "text", "ago", "clock", "count"),
    [
        ("kubelet", FLEXVOLUME, 7000, None, 1),
        ("k3s", EXPIRED, 7000, NOW, 0),
        ("k3s", EXPIRED, 30, NOW, 1),
        ("k3s", EXPIRED, 30, None, 0),  # how old it is, is not known
    ],
)
def test_what_counts_for_a_time_has_the_clock_of_its_node(
    world, component, text, ago, clock, count
):
    log(world, component, text, ago, 7002)
    world.documents["w1"]["collectors"]["repeated_errors"] = {"status": "error", "error": "x"}
    world.data("w1", "system")["clock"] = clock
    assert len(verdict(world, "KM529", "w1")[1]) == count


# rancher/rke2#692
AUDIT = (
    HEAD + "Error in audit plugin 'log' affecting 1 audit events: can't open new logfile: open"
    " /var/lib/rancher/rke2/server/logs/audit.log: permission denied"
)


@pytest.mark.parametrize(
    ("enforce", "passes", "is_told"), [("1", True, True), ("1", False, False), ("0", True, False)]
)
def test_a_file_that_selinux_denies_to_root(world, enforce, passes, is_told):
    give(world, "m1", "kube-apiserver", "/var/log/pods/a/kube-apiserver/0.log", AUDIT)
    world.data("m1", "boot").update(selinux={"enforce": enforce, "config": "enforcing"})
    for row in world.data("m1", "instances")["processes"]:
        row["ignores_modes"] = passes
    _said, (finding,) = verdict(world, "KM118", "m1")
    assert ("SELinux" in finding.summary) is is_told
    assert ("rke2-selinux" in finding.remedy) is is_told


def test_a_plugin_that_asks_through_the_proxy_of_the_runtime(world):
    line = (
        f'{HEAD}"Error syncing pod" err="plugin type=\\"calico\\" failed (add): error getting'
        ' ClusterInformation: Get \\"https://10.43.0.1:443/apis/x\\": x509: certificate is valid'
        ' for 10.0.0.1, not 10.43.0.1"'
    )
    proxy = {"HTTPS_PROXY": "http://proxy.example.org:3128", "NO_PROXY": "example.org"}
    answer = {"status": "ok", "data": {"kind": "containerd", "proxy": proxy}}
    world.documents["w1"]["collectors"]["runtime"] = answer
    give(world, "w1", "kubelet", "kubelet.service", line)
    _verdict, (found,) = verdict(world, "KM529", "w1")
    assert "http://proxy.example.org:3128" in found.summary
    assert "certSANs" not in found.remedy
    assert len(found.evidence) == 2
