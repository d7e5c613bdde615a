# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's name and address against what the API knows it by: KM509 and KM518. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support.facts import facts

# As kubelets write them, behind what journalctl puts before: 1.22, v1.36.3 (from the lab), v1.18.4,
# 1.7.
STRUCTURED = (
    "2026-11-23T02:10:01+0000 w9 kubelet[{pid}]: E1123 02:10:01.000000    {pid}"
    ' kubelet_node_status.go:113] "Unable to register node with API server" err="nodes \\"{new}\\"'
    ' is forbidden: node \\"{old}\\" is not allowed to modify node \\"{new}\\"" node="{new}"'
)
NEWEST = (
    "2026-11-23T02:17:03+0000 w9 kubelet[{pid}]: E1123 02:17:03.489533 {pid}"
    ' kubelet_node_status.go:114] "Unable to register node with API server, error getting existing'
    ' node" err="nodes \\"{new}\\" is forbidden: User \\"system:node:{old}\\" cannot get resource'
    " \\\"nodes\\\" in API group \\\"\\\" at the cluster scope: node '{old}' cannot read '{new}',"
    ' only its own Node object" node="{new}"'
)
OLDER = (
    "2026-11-23T02:10:01+0000 w9 kubelet[{pid}]: E1123 02:10:01.000000    {pid}"
    ' kubelet_node_status.go:92] Unable to register node "{new}" with API server: nodes "{new}" is'
    ' forbidden: node "{old}" is not allowed to modify node "{new}"'
)
OLDEST = (
    "2026-11-23T02:10:01+0000 w9 kubelet[{pid}]: E1123 02:10:01.000000    {pid}"
    ' kubelet_node_status.go:107] Unable to register node "{new}" with API server: nodes "{new}" is'
    ' forbidden: node "{old}" cannot modify node "{new}"'
)
DONE = (
    "2026-11-23T02:11:01+0000 w9 kubelet[{pid}]: I1123 02:11:01.000000    {pid}"
    ' kubelet_node_status.go:76] "Successfully registered node" node="{old}"'
)


def judged(world, code, host="w1"):
    result = world.judge(faults=frozenset((code,)))
    verdicts = {item.host: item for item in result.verdicts}
    found = [one for one in result.findings if one.host == host]
    assert len(found) == (host in verdicts and verdicts[host].verdict == "present")
    return (
        verdicts[host].verdict if host in verdicts else "not judged",
        found[0] if found else None,
        verdicts.get(host),
    )


def argv(world, *words, host="w1"):
    world.data(host, "kubelet").update(
        argv=["/usr/bin/kubelet", *words], process={"pid": 7, "argv": ["/usr/bin/kubelet", *words]}
    )


def node(world, name="w1"):
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def said(world, *lines, collector="kubelet_log", pid=7, new="w9", old="w1"):
    told = [line.format(pid=pid, new=new, old=old) for line in lines]
    world.documents["w1"]["collectors"][collector] = {"status": "ok", "data": {"lines": told}}


# KM509


@pytest.mark.parametrize("code", ["KM509", "KM518"])
def test_a_healthy_cluster(world, code):
    result = world.judge(faults=frozenset((code,)))
    assert {item.verdict for item in result.verdicts} == {"clear"}
    assert len(result.verdicts) == 4
    assert not result.findings


@pytest.mark.parametrize(
    ("hostname", "words", "verdict"),
    [
        ("w1", (), "clear"),
        ("W1", (), "clear"),
        ("w9", (), "present"),
        ("w1.example.org", (), "present"),
        ("w9", ("--hostname-override=w1",), "clear"),
        ("w9", ("--hostname-override", " W1 "), "clear"),
        ("w1", ("--hostname-override=w9",), "present"),
        ("w1", ("--hostname-override=",), "clear"),
        ("w9", ("--hostname-override=w9", "--hostname_override=w1"), "clear"),
        ("w9", ("--cloud-provider=external",), "present"),
        ("w9", ("--cloud-provider=aws",), "not_applicable"),
        ("w1", ("--hostname-override=$(HOSTNAME)",), "unknown"),
        ("", (), "unknown"),
    ],
)
def test_which_name_a_kubelet_uses(world, hostname, words, verdict):
    world.data("w1", "system")["hostname"] = hostname
    argv(world, *words)
    assert judged(world, "KM509")[0] == verdict


@pytest.mark.parametrize(
    ("ready", "line", "severity", "words"),
    [
        ("Unknown", None, "critical", "the node is NotReady (Ready is Unknown)"),
        ("False", None, "critical", "Ready is False"),
        ("True", None, "warning", "with its next start it is refused"),
        ("True", STRUCTURED, "critical", "the API refuses it"),
        ("True", NEWEST, "critical", "the API refuses it"),
        ("True", OLDER, "critical", "the API refuses it"),
        ("True", OLDEST, "critical", "the API refuses it"),
    ],
)
def test_what_became_of_the_node(world, ready, line, severity, words):
    world.data("w1", "system")["hostname"] = "w9"
    argv(world)
    node(world)["ready"] = ready
    if line:
        said(world, line)
    _verdict, found, _note = judged(world, "KM509")
    assert (found.severity, found.component, found.node, found.risk) == (
        severity,
        "kubelet",
        "w1",
        0,
    )
    assert words in found.summary
    assert found.summary.startswith(
        "registers as w9, by the machine's host name, w9, and its certificate is of the former name"
    )
    assert found.remedy.startswith("hostnamectl set-hostname w1, then systemctl restart")
    assert "Nothing here renames a host" in found.remedy
    assert any(
        "is not allowed to modify" in (proof.text or "")
        or "cannot modify" in (proof.text or "")
        or "only its own Node object" in (proof.text or "")
        for proof in found.evidence
    ) == bool(line)


def test_an_override_is_named_with_its_line(world):
    argv(world, "--hostname-override=w9")
    text = "# --hostname-override=no\nKUBELET_EXTRA_ARGS=--hostname-override=w9\n"
    world.data("w1", "kubelet")["unit"]["environment_files"] = [
        {"path": "/etc/default/kubelet", "text": text},
        {"path": "x", "text": None},
    ]
    _verdict, found, _note = judged(world, "KM509")
    assert "by --hostname-override=w9 and" in found.summary
    assert "set it to w1" in found.remedy
    assert [(proof.path, proof.line) for proof in found.evidence if proof.path] == [
        ("/etc/default/kubelet", 2)
    ]


def test_a_control_plane_node_carries_its_name_in_more_places(world):
    world.data("m2", "system")["hostname"] = "m9"
    assert "etcd's member" in judged(world, "KM509", "m2")[1].remedy


@pytest.mark.parametrize(
    ("certificate", "verdict", "status"),
    [
        (None, "not_applicable", None),
        ({"error": "missing"}, "not_applicable", None),
        ({"error": None, "pem": "no node's"}, "not_applicable", None),
        ({"error": "denied"}, "unknown", "denied"),
        ({"error": "it is empty"}, "unknown", "error"),
    ],
)
def test_without_a_certificate_of_a_node(world, certificate, verdict, status):
    world.documents["w1"]["node"] = None
    world.data("w1", "kubelet")["client_certificate"] = certificate
    found, _dummy, told = judged(world, "KM509")
    assert found == verdict
    assert [lack.status for lack in told.missing] == ([status] if status else [])


def test_a_kubelet_that_does_not_run_would_not_come_back(world):
    world.data("w1", "system")["hostname"] = "w9"
    world.data("w1", "kubelet").update(argv=["/usr/bin/kubelet"], process=None)
    for ready in ("True", "Unknown"):
        node(world)["ready"] = ready
        _verdict, found, _note = judged(world, "KM509")
        assert found.severity == "critical"
        assert found.summary.endswith("it does not run, and with its next start the API refuses it")


def test_without_the_api_the_name_is_wrong_all_the_same(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world, "KM509")[0] == "clear"
    world.data("w1", "system")["hostname"] = "w9"
    verdict, found, _dummy = judged(world, "KM509")
    assert (verdict, found.severity) == ("present", "critical")
    assert "is not known" in found.summary


@pytest.mark.parametrize("collector", ["system", "kubelet"])
@pytest.mark.parametrize("status", ["error", "timeout", "denied"])
def test_unknown_without_evidence(world, collector, status):
    world.documents["w1"]["collectors"][collector] = {"status": status, "data": None}
    for code in ("KM509", "KM518"):
        found, _dummy, told = judged(world, code)
        assert found == "unknown"
        assert [(lack.collector, lack.status) for lack in told.missing] == [(collector, status)]


def test_hosts_that_have_no_kubelet_of_their_own(world):
    for words in (["/usr/local/bin/k3s", "agent"], ["/snap/microk8s/1/kubelite", "--x"]):
        world.data("w1", "kubelet").update(argv=words)
        world.data("w1", "system").update(hostname="w9", addresses=["192.0.2.1"])
        assert {judged(world, code)[0] for code in ("KM509", "KM518")} == {"not_applicable"}
    world.documents["w1"]["collectors"]["kubelet"] = {"status": "absent", "data": None}
    assert {judged(world, code)[0] for code in ("KM509", "KM518")} == {"not_applicable"}
    world.silence("w1")
    assert {judged(world, code)[0] for code in ("KM509", "KM518")} == {"unknown"}


def test_an_api_that_takes_the_name_is_right(world):
    """Without NodeRestriction a kubelet may be any node; the node of another host is not it."""
    world.data("w1", "system")["hostname"] = "w9"
    world.data("api", "nodes")["items"].append(
        {"name": "w9", "ready": "True", "addresses": [], "taints": [], "conditions": []}
    )
    verdict, _dummy, told = judged(world, "KM509")
    assert verdict == "clear"
    assert "takes it as w9" in told.note
    world.data("w1", "system")["hostname"] = "m1"
    assert judged(world, "KM509")[0] == "present"


@pytest.mark.parametrize(
    ("lines", "more", "verdict"),
    [
        ((STRUCTURED,), {}, "present"),
        ((NEWEST,), {}, "present"),
        ((NEWEST, DONE), {}, "clear"),
        ((OLDER,), {"collector": "kubelet_end"}, "present"),
        # it was given its name back without a restart of ours
        ((STRUCTURED, DONE), {}, "clear"),
        ((STRUCTURED,), {"pid": 6}, "clear"),  # an earlier process
        ((STRUCTURED,), {"old": "w2"}, "clear"),  # another certificate than it has now
        (("something else",), {}, "clear"),
    ],
)
def test_a_name_that_is_right_again_and_a_kubelet_that_does_not_know(world, lines, more, verdict):
    argv(world)
    said(world, *lines, **more)
    found, hit, _dummy = judged(world, "KM509")
    assert found == verdict
    assert hit is None or ("runs as w9" in hit.summary and "systemctl restart" in hit.remedy)


# KM518


def addresses(world, *told, host="w1"):
    world.data(host, "system")["addresses"] = list(told)


@pytest.mark.parametrize(
    ("api", "machine", "verdict"),
    [
        (["10.0.0.100"], ["10.0.0.100"], "clear"),
        (["10.0.0.100"], ["10.244.1.1", "10.0.0.100"], "clear"),
        (["10.0.0.100"], ["10.0.0.7"], "present"),
        (["10.0.0.100", "fd00::1"], ["fd00::1"], "clear"),  # dual stack: one is enough
        (["10.0.0.100", "fd00::1"], ["fd00::2"], "present"),
        (["fd00:0:0::1"], ["fd00::1"], "clear"),
        ([], ["10.0.0.7"], "clear"),
        (["10.0.0.100"], [], "unknown"),
        (["no address"], ["10.0.0.7"], "clear"),
    ],
)
def test_internal_addresses(world, api, machine, verdict):
    node(world)["addresses"] = [{"type": "InternalIP", "address": one} for one in api] + [
        {"type": "ExternalIP", "address": "198.51.100.1"}
    ]
    addresses(world, *machine)
    found, hit, _dummy = judged(world, "KM518")
    assert found == verdict
    assert hit is None or (hit.severity, hit.component) == ("warning", "kubelet")


@pytest.mark.parametrize(
    ("provider", "verdict"), [("external", "clear"), ("aws", "clear"), ("", "present")]
)
def test_what_a_cloud_provider_tells_may_be_nowhere(world, provider, verdict):
    node(world)["addresses"] = [{"type": "InternalIP", "address": "203.0.113.5"}]
    argv(world, f"--cloud-provider={provider}")
    assert judged(world, "KM518")[0] == verdict


@pytest.mark.parametrize(
    ("ready", "words"), [("Unknown", "look why it does not run"), ("True", "look again")]
)
def test_a_kubelet_that_is_not_pinned_puts_it_right_itself(world, ready, words):
    node(world).update(addresses=[{"type": "InternalIP", "address": "10.0.0.7"}], ready=ready)
    addresses(world, "10.0.0.100")
    _verdict, found, _note = judged(world, "KM518")
    assert words in found.remedy
    facts(found.summary, "API knows it by 10.0.0.7", "10.0.0.100")


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("--node-ip=10.0.0.100", "clear"),
        ("--node-ip=10.0.0.7", "present"),
        ("--node-ip=10.0.0.7,10.0.0.100", "clear"),
        ("--node-ip=0.0.0.0", "clear"),
        ("--node-ip=::", "clear"),
        ("--node-ip=10.0.0.7,fd00::9", "present"),
        ("--node-ip=127.0.0.1", "clear"),
        ("--node-ip=", "clear"),
    ],
)
def test_a_kubelet_that_is_pinned(world, words, verdict):
    argv(world, words)
    found, hit, _dummy = judged(world, "KM518")
    assert found == verdict
    assert hit is None or (
        hit.severity == "critical"
        and "--node-ip pins its kubelet to 10.0.0.7" in hit.summary
        and "put --node-ip right" in hit.remedy
    )


def test_pinned_and_without_the_api(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world, "KM518")[0] == "unknown"
    argv(world, "--node-ip=10.0.0.7")
    assert judged(world, "KM518")[0] == "present"


def test_more_addresses_than_were_kept(world):
    node(world)["addresses"] = [{"type": "InternalIP", "address": "10.0.0.7"}]
    world.documents["w1"]["collectors"]["system"]["truncated"] = True
    verdict, _dummy, told = judged(world, "KM518")
    assert verdict == "unknown"
    assert "more addresses" in told.note
    node(world)["addresses"][0]["address"] = "10.0.0.100"
    assert judged(world, "KM518")[0] == "clear"


ETCD = [
    "--listen-client-urls=https://127.0.0.1:2379,https://{0}:2379",
    "--listen-peer-urls=https://{0}:2380",
    "--initial-advertise-peer-urls=https://{0}:2380",
]


def etcd(world, *words, address="10.0.0.1"):
    world.manifest("m1", "etcd", *(word.format(address) for word in words))


@pytest.mark.parametrize(
    ("words", "address", "verdict"),
    [
        (ETCD, "10.0.0.1", "clear"),
        (ETCD, "10.0.0.9", "present"),
        (ETCD, "0.0.0.0", "clear"),
        (ETCD, "[::]", "clear"),
        (ETCD, "[fd00::9]", "present"),
        (ETCD, "etcd.example.org", "clear"),
        (["--listen-peer-urls=unix:///x"], "", "clear"),
        # behind NAT that may be right
        (["--initial-advertise-peer-urls=https://{0}:2380"], "10.0.0.9", "clear"),
    ],
)
def test_where_etcd_is_to_listen(world, words, address, verdict):
    etcd(world, *words, address=address)
    found, hit, _dummy = judged(world, "KM518", "m1")
    assert found == verdict
    assert hit is None or (hit.severity, hit.component) == ("critical", "etcd")
    if address == "10.0.0.9" and hit:
        assert "etcd is to listen on 10.0.0.9, and does not start again" in hit.summary
        assert "former address" in hit.remedy
        assert any(
            "--initial-advertise-peer-urls: 10.0.0.9" in (proof.text or "")
            for proof in hit.evidence
        )


def test_a_copy_of_the_manifest_is_another_fault(world):
    etcd(world, *ETCD)
    files = world.data("m1", "manifests")["files"]
    copy = dict(next(one for one in files if one["name"] == "etcd.yaml"))
    copy.update(
        name="etcd.yaml.bak",
        path="/etc/kubernetes/manifests/etcd.yaml.bak",
        text=copy["text"].replace("10.0.0.1", "10.0.0.9"),
    )
    files.append(copy)
    assert "10.0.0.9" in copy["text"]
    assert judged(world, "KM518", "m1")[0] == "clear"


def test_a_whole_master_that_moved(world):
    """As kubeadm sets it up: all of it stands on one address."""
    etcd(world, *ETCD)
    world.data("m1", "instances")["processes"] = []
    world.manifest(
        "m1", "kube-apiserver", "--advertise-address=10.0.0.1", "--bind-address=10.0.0.1"
    )
    argv(world, "--node-ip=10.0.0.1", host="m1")
    addresses(world, "192.0.2.9", host="m1")
    _verdict, found, _note = judged(world, "KM518", "m1")
    assert found.severity == "critical"
    assert "etcd is to listen on 10.0.0.1, and cannot start" in found.summary
    assert "kube-apiserver is to listen on 10.0.0.1, and cannot start" in found.summary
    assert "pins its kubelet" in found.summary
    assert "the API knows it by 10.0.0.1" in found.summary
    assert found.summary.endswith("the machine has 192.0.2.9")
    assert any(
        "kube-apiserver --advertise-address: 10.0.0.1" in (proof.text or "")
        for proof in found.evidence
    )
