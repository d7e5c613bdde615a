# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that runs and has no Node, and why: a part of KM525. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support import known_rows

LONG_AGO, JUST_NOW, NOW = 1799990000.0, 1799999970.0, 1800000000.0
REFUSED_TOKEN = (
    "E0115 07:59:00.000000    7 certificate_manager.go:562] kubernetes.io/kube-apiserver-client-"
    "kubelet: Failed while requesting a signed certificate from the control plane: cannot create"
    " certificate signing request: Unauthorized"
)
UNBOUND_TOKEN = (
    "E0115 07:59:00.000000    7 certificate_manager.go:562] kubernetes.io/kube-apiserver-client-"
    "kubelet: Failed while requesting a signed certificate from the control plane: cannot create"
    " certificate signing request: certificatesigningrequests.certificates.k8s.io is forbidden:"
    ' User "system:bootstrap:abcdef" cannot create resource "certificatesigningrequests" in API'
    ' group "certificates.k8s.io" at the cluster scope'
)
UNABLE = (
    'E0115 07:59:00.000000    7 kubelet_node_status.go:107] "Unable to register node with API'
    ' server" err="{error}" node="w1"'
)
FORBIDDEN = UNABLE.format(
    error='nodes is forbidden: User \\"system:node:w1\\" cannot create resource \\"nodes\\" in API'
    ' group \\"\\" at the cluster scope'
)
LABELS = UNABLE.format(
    error='nodes \\"w1\\" is forbidden: is not allowed to set the following labels:'
    " node-role.kubernetes.io/worker"
)
DIALLED = UNABLE.format(
    error='Post \\"https://10.0.0.9:6443/api/v1/nodes\\": dial tcp 10.0.0.9:6443: i/o timeout'
)
PROXY_REFUSES = UNABLE.format(error='Post \\"https://10.0.0.9:6443/api/v1/nodes\\": Forbidden')
WEBHOOK = UNABLE.format(
    error='Internal error occurred: failed calling webhook \\"nodes.example.com\\": timed out'
)
UNREAD = UNABLE.format(error="something else")
ABSENT = (
    'E0115 07:59:00.000000    7 kubelet_node_status.go:549] "Error updating node status, will'
    ' retry" err="error getting node \\"w1\\": nodes \\"w1\\" not found"'
)
CACHED = (
    'E0115 07:59:00.000000    7 kubelet_node_status.go:549] "Error getting the current node from'
    ' lister" err="node \\"w1\\" not found"'
)
SERVER = "https://10.0.0.9:6443"


PLUGIN = (
    'E0115 07:59:00.000001       1 reflector.go:138] "Failed to watch" err="failed to list *v1.Pod:'
    ' Get \\"https://10.0.0.9:6443/api/v1/pods?limit=500\\": getting credentials: exec: executable'
    ' heptio-authenticator-aws not found"'
)


@pytest.fixture
def lone(world):
    """Return a world whose worker has a kubelet that runs, and no Node."""
    items = world.data("api", "nodes")["items"]
    items[:] = [item for item in items if item["name"] != "w1"]
    world.data("w1", "kubelet")["process"] = {
        "pid": 7,
        "argv": ["kubelet"],
        "started_at": LONG_AGO,
    }
    world.documents["w1"]["collectors"]["api_way"] = {
        "status": "ok",
        "data": {"server": SERVER, "address": "10.0.0.9", "failed": None, "error": None},
    }
    return world


def says(world, *lines, **more):
    """Let the kubelet say these lines once in ten seconds."""
    entries = [
        {"count": 60, "minutes": 10, "first": NOW - 600, "last": NOW - 5, "pods": 0, "line": line}
        for line in lines
    ]
    row = {"component": "kubelet", "source": "kubelet.service", "since": NOW - 600, **more}
    world.documents["w1"]["collectors"]["repeated_errors"] = {
        "status": "ok",
        "data": {"read_at": NOW, "components": [{**row, "lines": 600, "entries": entries}]},
    }


def judged(world):
    result = world.judge(faults={"KM525"})
    verdicts = [item.verdict for item in result.verdicts] or ["not judged"]
    return verdicts, list(result.findings)


def cause(world):
    verdicts, (found,) = judged(world)
    assert verdicts == ["present"]
    assert (found.host, found.node, found.component) == ("w1", "w1", "kubelet")
    assert "no Node w1" in found.summary
    return found


@pytest.mark.parametrize(
    ("lines", "summary", "remedy"),
    [
        ([REFUSED_TOKEN], "401 Unauthorized", "kubeadm token create"),
        ([UNBOUND_TOKEN], "system:bootstrap:abcdef may not create", "kubeadm:kubelet-bootstrap"),
        ([FORBIDDEN, ABSENT], "w1 may not create nodes", "--authorization-mode"),
        ([LABELS], "node-role.kubernetes.io/worker", "--node-labels"),
        ([DIALLED], "10.0.0.9:6443", "ip route get"),
        ([PROXY_REFUSES], "a proxy, which refuses", "NO_PROXY"),
        ([WEBHOOK], "nodes.example.com", "webhook"),
        ([PLUGIN], "the program heptio-authenticator-aws, which its kubeconfig runs", "exec"),
        ([UNREAD, ABSENT], "something else", "names"),
        ([ABSENT], "deleted while the kubelet ran", "restart"),
    ],
)
def test_what_the_kubelet_says_of_its_registration(lone, lines, summary, remedy):
    says(lone, *lines)
    found = cause(lone)
    assert summary in found.summary
    assert remedy in found.remedy
    assert any(proof.kind == "log" for proof in found.evidence)


def test_what_the_api_server_answers_comes_before_the_proxy_and_the_network_after(lone):
    process = lone.data("w1", "kubelet")["process"]
    process["proxy"] = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": "localhost"}
    says(lone, DIALLED)
    assert "192.0.2.20:3128" in cause(lone).summary
    says(lone, DIALLED, FORBIDDEN)
    assert "may not create nodes" in cause(lone).summary


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([ABSENT], "deleted while the kubelet ran"),
        ([DIALLED, ABSENT], "10.0.0.9:6443"),
        ([CACHED], "192.0.2.20:3128"),  # of the kubelet's own cache
    ],
)
def test_an_answer_of_the_api_server_proves_the_way_through_the_proxy(lone, lines, words):
    process = lone.data("w1", "kubelet")["process"]
    process["proxy"] = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": "localhost"}
    says(lone, *lines)
    summary = cause(lone).summary
    assert words in summary
    assert ("192.0.2.20" in summary) is (lines == [CACHED])


def test_a_proxy_that_the_api_server_is_asked_through(lone):
    process = lone.data("w1", "kubelet")["process"]
    process["proxy"] = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": "localhost"}
    found = cause(lone)
    assert "http://192.0.2.20:3128" in found.summary
    assert "10.0.0.9" in found.remedy
    process["proxy"]["NO_PROXY"] = "10.0.0.0/24"
    assert "proxy" not in cause(lone).summary


def test_a_proxy_is_not_judged_by_another_server(lone):
    process = lone.data("w1", "kubelet")["process"]
    process["proxy"] = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": "localhost"}
    lone.data("w1", "api_way")["server"] = None
    assert "192.0.2.20" not in cause(lone).summary
    lone.data("w1", "api_way")["server"] = SERVER
    lone.data("w1", "kubelet")["kubeconfig"] = {"error": "missing"}
    found = cause(lone)
    assert "192.0.2.20" not in found.summary
    assert "192.0.2.20" in found.remedy  # to look at first
    assert any("HTTPS_PROXY" in proof.text for proof in found.evidence)


@pytest.mark.parametrize(
    ("entries", "is_judged"),
    [
        ("node.example.com," * 3000 + "10.0.0.9", False),  # which has it
        ("node.example.com," * 3000 + "local", True),
        ("node.example.com," * 9000, False),
        ("a," * 25000, False),
        ("a,b\u2026", False),  # as the collector cut it
    ],
)
def test_a_list_without_the_proxy_is_read_as_a_whole_or_not_at_all(lone, entries, is_judged):
    process = lone.data("w1", "kubelet")["process"]
    process["proxy"] = {"HTTPS_PROXY": "http://192.0.2.20:3128", "NO_PROXY": entries}
    found = cause(lone)
    assert ("192.0.2.20" in found.summary) is is_judged
    assert all(len(proof.text) <= 600 for proof in found.evidence)


@pytest.mark.parametrize(
    ("kubelet", "words"),
    [
        ({"argv": ["kubelet", "--register-node=false"]}, "--register-node=false"),
        ({"kubeconfig": {"error": "missing"}}, "waits for its first client certificate"),
    ],
)
def test_what_its_configuration_tells(lone, kubelet, words):
    lone.data("w1", "kubelet").update(kubelet)
    assert words in cause(lone).summary


@pytest.mark.parametrize("failed", ["name", "connection", "certificate"])
def test_a_way_that_fails(lone, failed):
    lone.data("w1", "api_way").update(failed=failed, error="no")
    found = cause(lone)
    assert "the server of its kubeconfig" in found.summary
    assert found.evidence[-1].object == SERVER


@pytest.mark.parametrize(("lines", "words"), [(None, "was not read"), ([], "does not name")])
def test_a_cause_that_is_not_known_is_not_guessed(lone, lines, words):
    if lines is not None:
        says(lone, *lines)
    assert words in cause(lone).summary


@pytest.mark.parametrize("more", [{"cut": True}, {"error": "journalctl: timed out"}])
def test_of_a_log_that_was_not_read_as_a_whole_nothing_is_claimed(lone, more):
    says(lone, **more)
    summary = cause(lone).summary
    assert "log of the last ten minutes does not" not in summary
    assert more.get("error", "not all of it was read") in summary


@pytest.mark.parametrize(
    "kubelet",
    [
        {"kubeconfig": None},  # alone, as below an etcd of kubeadm
        {"process": None},  # it does not run, which is another fault
        {"argv": ["/usr/local/bin/k3s", "agent"]},
    ],
)
def test_a_kubelet_that_is_to_have_no_node(lone, kubelet):
    lone.data("w1", "kubelet").update(kubelet)
    assert judged(lone) == (["clear"], [])


def test_a_node_of_another_name_with_the_address_is_its_node(lone):
    lone.documents["w1"]["node"] = None
    addresses = [{"type": "InternalIP", "address": "10.0.0.100"}]
    master = lone.data("api", "nodes")["items"][0]
    other = {**master, "name": "ip-10-0-0-100", "control_plane": False, "addresses": addresses}
    lone.data("api", "nodes")["items"].append(other)
    assert judged(lone) == (["clear"], [])


def test_a_name_that_a_cloud_gives_is_not_known(lone):
    lone.documents["w1"]["node"] = None
    lone.data("w1", "kubelet")["argv"] = ["kubelet", "--cloud-provider=aws"]
    assert judged(lone) == (["unknown"], [])


def test_a_kubelet_that_has_just_started_has_time(lone):
    lone.data("w1", "kubelet")["process"]["started_at"] = JUST_NOW
    assert judged(lone) == (["unknown"], [])


def test_a_kubelet_that_may_be_of_another_cluster(lone):
    lone.documents["w1"].update(cluster_key=None, node=None)
    assert judged(lone) == (["unknown"], [])
    lone.data("w1", "kubelet")["kubeconfig"] = {"error": "missing"}
    assert judged(lone)[0] == ["present"]


@pytest.mark.parametrize(
    ("collected", "lines", "verdict"),
    [
        ("2027-01-15T07:59:30Z", (), "present"),
        ("2027-01-15T07:58:30Z", (), "unknown"),
        ("2027-01-15T07:58:30Z", (ABSENT,), "present"),
        ("2027-01-15T07:58:30Z", (FORBIDDEN,), "present"),
    ],
)
def test_a_node_that_may_be_removed_between_both_readings(lone, collected, lines, verdict):
    lone.documents["w1"]["collected_at"] = collected
    says(lone, *lines)
    assert judged(lone)[0] == [verdict]


def test_nodes_that_were_listed_in_part(lone):
    lone.api["collectors"]["nodes"]["truncated"] = True
    assert judged(lone) == (["unknown"], [])


def test_nodes_that_were_not_listed(lone):
    lone.api["collectors"]["nodes"] = {"status": "denied", "data": None}
    assert judged(lone) == (["unknown"], [])


def request(state, node="w1", **more):
    return {
        "name": "csr-x7k2p",
        "node": node,
        "user": "system:bootstrap:abcdef",
        "created": "2027-01-15T07:50:00Z",
        "state": state,
        **more,
    }


@pytest.mark.parametrize(
    ("state", "summary", "remedy"),
    [
        ("waiting", "csr-x7k2p was not approved", "kubectl certificate approve csr-x7k2p"),
        ("denied", "was denied", "kubectl delete csr csr-x7k2p"),
        ("approved", "approved and not signed", "--cluster-signing-cert-file"),
        ("failed", "could not be signed", "kubectl get csr csr-x7k2p -o yaml"),
        ("other", "was not approved", "approve csr-x7k2p"),
    ],
)
def test_what_became_of_the_request_for_the_first_certificate(lone, state, summary, remedy):
    lone.data("w1", "kubelet")["kubeconfig"] = {"error": "missing"}
    lone.data("api", "nodes")["requests"] = [request("waiting", "w9"), request(state)]
    found = cause(lone)
    assert summary in found.summary
    assert remedy in found.remedy
    assert found.evidence[-1].object == "CertificateSigningRequest csr-x7k2p"
    assert "system:bootstrap:abcdef" in found.evidence[-1].text


@pytest.mark.parametrize(
    ("requests", "words"),
    [([], "no request of it that waits"), (None, "waits for its first client certificate")],
)
def test_a_request_that_is_not_there_or_not_known(lone, requests, words):
    lone.data("w1", "kubelet")["kubeconfig"] = {"error": "missing"}
    lone.data("api", "nodes")["requests"] = requests
    found = cause(lone)
    assert words in found.summary
    assert "kubeadm token create" in found.remedy


def test_a_hostile_name_of_a_request_is_no_command(lone):
    lone.data("w1", "kubelet")["kubeconfig"] = {"error": "missing"}
    lone.data("api", "nodes")["requests"] = [request("waiting", name="x; reboot")]
    assert "approve NAME" in cause(lone).remedy


def test_what_the_kubelet_repeats_of_its_node_follows_from_its_absence(lone):
    says(lone, ABSENT)
    lone.data("w1", "kubelet")["unit"]["name"] = "kubelet.service"
    result = lone.judge(faults={"KM525", "KM529"})
    assert {item.code: item.because for item in result.findings} == {
        "KM525": (),
        "KM529": ("KM525",),
    }


REFUSED_NAME = (
    'E0115 07:59:00.000000    7 kubelet_node_status.go:107] "Unable to register node with API'
    ' server" err="Node \\"my_node\\" is invalid: metadata.name: Invalid value: \\"my_node\\""'
)


def test_the_cause_of_a_known_message_is_told(lone):
    says(lone, REFUSED_NAME)
    found = cause(lone)
    assert "the name my_node, by which the kubelet registers, is none" in found.summary
    assert "hostnameOverride" in found.remedy


def test_a_message_of_another_release_has_no_known_cause(lone, monkeypatch):
    says(lone, REFUSED_NAME)
    known_rows.of_a_later_release(monkeypatch)
    known_rows.give_kubelet(lone.documents["w1"], "v1.30.1")
    assert "by which the kubelet registers, is none" not in cause(lone).summary
