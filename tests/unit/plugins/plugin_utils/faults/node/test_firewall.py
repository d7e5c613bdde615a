# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's firewall that keeps Kubernetes' ports shut, KM527, and what SELinux denies, KM528.

The files of distributions, and what people make of them.
"""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence
from tests.unit.support.firewall_records import (
    BEFORE,
    CONF,
    PUBLIC,
    SERVICES,
    UFW_CONF,
    UFW_DEFAULT,
    USER,
    ZONES,
    denied,
    red_hat,
    ubuntu,
    walls,
)

TRUSTED = (
    '<?xml version="1.0" encoding="utf-8"?>\n<zone target="ACCEPT">\n '
    " <short>Trusted</short>\n{0}</zone>\n"
)
WORKER = (
    '<service>\n  <short>Kubernetes Worker Node</short>\n  <include service="kubelet"/>\n  <include'
    ' service="kube-nodeport-services"/>\n</service>\n'
)
# The same of firewalld 0.4 to 0.6; the policy that docker makes since it asks firewalld for its
# networks; one of firewalld 2.4, which is off as it is shipped.
RHEL_7 = (
    PUBLIC.format("").replace('  <service name="cockpit"/>\n', "").replace("  <forward/>\n", "")
)
FORWARDING = (
    '<?xml version="1.0" encoding="utf-8"?>\n<policy version="1.0" target="ACCEPT">\n '
    ' <ingress-zone name="ANY"/>\n  <egress-zone name="docker"/>\n</policy>\n'
)
GATEWAY = (
    '<policy target="CONTINUE" priority="1000">\n  {0}\n  <ingress-zone name="internal" />\n '
    ' <egress-zone name="HOST" />\n  <port port="10250" protocol="tcp"/>\n</policy>\n'
)


def before(*rules, after="COMMIT\n", **more):
    """Rules of somebody's own in before.rules."""
    return ubuntu(
        **{
            "/etc/ufw/before.rules": BEFORE.replace("COMMIT\n", "\n".join(rules) + "\n" + after),
            **more,
        }
    )


def script(text, executable):
    seen = ubuntu(**{"/etc/ufw/before.init": text})
    next(one for one in seen["ufw"]["files"] if one["path"] == "/etc/ufw/before.init")[
        "executable"
    ] = executable
    return seen


SHIPPED = (
    'set -e\n\ncase "$1" in\nstart)\n    # typically required\n    ;;\n*)\n    echo "\'$1\' not'
    ' supported"\n    ;;\nesac\n'
)


def lets_in(seen, port=10250):
    (wall,) = walls(seen)
    return wall.lets_in(port)


@pytest.fixture
def node(world):
    for name in [name for name in world.documents if name != "w1"]:
        del world.documents[name]
    return world


def judged(world, code, host="w1"):
    result = world.judge(faults=frozenset((code,)))
    return [item.verdict for item in result.verdicts if item.host == host] or ["not judged"], [
        item for item in result.findings if item.host == host
    ]


def with_firewall(world, seen, host="w1"):
    world.data(host, "boot")["firewall"] = seen
    return judged(world, "KM527", host)


@pytest.mark.parametrize(
    ("seen", "lets"),
    [
        (red_hat(), False),
        (red_hat('  <port port="10250" protocol="tcp"/>\n'), True),
        (red_hat('  <port protocol="tcp" port="10000-10300"/>\n'), True),
        (red_hat('  <port port="10250" protocol="udp"/>\n'), False),
        (red_hat('  <!-- <port port="10250" protocol="tcp"/> -->\n'), False),
        (red_hat('  <service name="kubelet"/>\n'), True),
        (
            red_hat('  <service name="kube-worker"/>\n', **{SERVICES + "kube-worker.xml": WORKER}),
            True,
        ),
        (red_hat('  <service name="kube-worker"/>\n'), None),
        (red_hat('  <service name="http"/>\n'), False),
        (red_hat('  <protocol value="tcp"/>\n'), True),
        # nothing is in it
        (red_hat(**{ZONES + "public.xml": TRUSTED.format("")}), True),
        (red_hat(**{ZONES + "trusted.xml": TRUSTED.format("")}), False),
        (
            red_hat(
                **{ZONES + "trusted.xml": TRUSTED.format('  <source address="10.0.0.0/24"/>\n')}
            ),
            True,
        ),
        (red_hat(**{ZONES + "trusted.xml": TRUSTED.format('  <interface name="cni0"/>\n')}), True),
        (
            red_hat(
                zones=["trusted"], **{"/usr/lib/firewalld/zones/trusted.xml": TRUSTED.format("")}
            ),
            True,
        ),
        (red_hat(zones=["lost"]), None),
        (red_hat(**{ZONES + "public.xml": None}), None),
        (red_hat(**{"/etc/firewalld/firewalld.conf": None}), None),
        (
            red_hat(
                **{
                    "/etc/firewalld/direct.xml": (
                        '<direct><rule chain="INPUT">-s 10.0.0.0/24 -j ACCEPT</rule></direct>'
                    )
                }
            ),
            None,
        ),
        (
            red_hat(
                '  <rule family="ipv4">\n    <source address="10.0.0.0/24"/>\n    <accept/>\n '
                " </rule>\n"
            ),
            True,
        ),
        (
            red_hat(
                '  <rule family="ipv4">\n    <source address="10.0.0.9"/>\n    <port port="22"'
                ' protocol="tcp"/>\n    <accept/>\n  </rule>\n'
            ),
            False,
        ),
        (
            red_hat(
                '  <rule family="ipv4">\n    <source address="10.0.0.9"/>\n    <port port="10250"'
                ' protocol="tcp"/>\n    <accept/>\n  </rule>\n'
            ),
            True,
        ),
        (
            red_hat(
                '  <rule family="ipv4">\n    <source address="10.0.0.9"/>\n    <port port="10250"'
                ' protocol="tcp"/>\n    <drop/>\n  </rule>\n'
            ),
            False,
        ),
        (
            red_hat(
                **{
                    "/etc/firewalld/policies/in.xml": (
                        '<policy target="ACCEPT"><egress-zone name="HOST"/></policy>'
                    )
                }
            ),
            True,
        ),
        (red_hat(**{"/etc/firewalld/policies/in.xml": "no xml at all"}), None),
        (red_hat(**{"/etc/firewalld/policies/docker-forwarding.xml": FORWARDING}), False),
        (
            red_hat(
                **{"/etc/firewalld/policies/gateway-lan-to-HOST.xml": GATEWAY.format("<disable />")}
            ),
            False,
        ),
        (red_hat(**{"/etc/firewalld/policies/gateway-lan-to-HOST.xml": GATEWAY.format("")}), True),
        (red_hat(**{ZONES + "public.xml": RHEL_7}), False),
        (ubuntu(), False),
        (ubuntu("### tuple ### allow tcp 10250 0.0.0.0/0 any 10.0.0.0/24 in"), True),
        (ubuntu("### tuple ### allow any any 0.0.0.0/0 any 10.0.0.0/24 in"), True),
        (ubuntu("### tuple ### allow_log tcp 10248:10252 0.0.0.0/0 any 0.0.0.0/0 in"), True),
        (ubuntu("### tuple ### limit tcp 22,10250 0.0.0.0/0 any 0.0.0.0/0 in_eth0"), True),
        (ubuntu("### tuple ### deny tcp 10250 0.0.0.0/0 any 0.0.0.0/0 in"), False),
        (ubuntu("### tuple ### allow udp 10250 0.0.0.0/0 any 0.0.0.0/0 in"), False),
        (ubuntu("### tuple ### allow tcp 10250 0.0.0.0/0 any 0.0.0.0/0 out"), False),
        (ubuntu("### tuple ### route:allow tcp 10250 0.0.0.0/0 any 0.0.0.0/0 in"), False),
        (
            ubuntu(
                **{
                    "/etc/default/ufw": UFW_DEFAULT.replace(
                        'INPUT_POLICY="DROP"', 'INPUT_POLICY="ACCEPT"'
                    )
                }
            ),
            True,
        ),
        (
            ubuntu(
                **{
                    "/etc/ufw/before.rules": BEFORE.replace(
                        "COMMIT", "-A ufw-before-input -s 10.0.0.0/24 -j ACCEPT\nCOMMIT"
                    )
                }
            ),
            True,
        ),
        (
            ubuntu(
                **{
                    "/etc/ufw/before.rules": BEFORE.replace(
                        "COMMIT", "-A ufw-before-input -p tcp --dport 9100 -j ACCEPT\nCOMMIT"
                    )
                }
            ),
            False,
        ),
        (ubuntu(**{"/etc/ufw/user.rules": None}), None),
        (
            before("-A ufw-before-input -s 10.0.0.0/8 -m state --state NEW,ESTABLISHED -j ACCEPT"),
            True,
        ),
        (before("-A ufw-before-input -s 10.0.0.0/8 -m state --state ESTABLISHED -j ACCEPT"), False),
        (
            before("-A ufw-before-input -m conntrack ! --ctstate RELATED,ESTABLISHED -j ACCEPT"),
            True,
        ),
        (before("-I ufw-before-input -j kube", "-A kube -p tcp --dport 10250 -j ACCEPT"), None),
        (before("-I ufw-before-input 1 -j kube"), None),
        (
            before(
                "-A kube -p tcp --dport 22 -j ACCEPT",
                "-A ufw-before-input -p tcp --dport 22 -j kube",
            ),
            False,
        ),
        (before("-A ufw-not-local -s 10.0.0.0/8 -j ACCEPT"), None),
        (before("-A  ufw-before-input  -p tcp --dport 10250  -j  ACCEPT"), True),
        (before("[0:0] -A ufw-before-input -ptcp --dport=10000: -jACCEPT"), True),
        (before("-A ufw-before-input -p tcp ! --dport 22 -j ACCEPT"), True),
        (before("-A ufw-before-input -p tcp -m multiport --dports 22,10240:10259 -j ACCEPT"), True),
        (before("-A INPUT -p tcp --dport kubelet -j ACCEPT"), None),
        (before("-A ufw-before-input -p tcp --dport ssh -j ACCEPT"), False),
        (before("-A ufw-before-input -j ufw-before-forward"), None),
        (
            before(
                "-A ufw-before-forward -s 10.244.0.0/16 -j ACCEPT", "-A ufw-before-output -j ACCEPT"
            ),
            False,
        ),
        (before(":INPUT ACCEPT [0:0]"), None),
        (
            before(
                after=(
                    "COMMIT\n*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 10.8.0.0/8 -o eth0"
                    " -j MASQUERADE\nCOMMIT\n"
                )
            ),
            False,
        ),
        (
            before(
                after=(
                    "COMMIT\n*nat\n-A PREROUTING -p tcp --dport 10250 -j REDIRECT --to-ports"
                    " 22\nCOMMIT\n"
                )
            ),
            None,
        ),
        (
            ubuntu(
                **{
                    "/etc/ufw/after.rules": (
                        "*filter\n-A ufw-after-input -p tcp --dport 10250 -j ACCEPT\nCOMMIT\n"
                    )
                }
            ),
            True,
        ),
        (
            ubuntu(
                **{"/etc/ufw/after6.rules": "*filter\n-A ufw6-after-input -j DOCKER-USER\nCOMMIT\n"}
            ),
            None,
        ),
        (ubuntu(**{"/etc/ufw/after.rules": None}), None),
        (script(SHIPPED, True), False),
        (script(SHIPPED + "iptables -I INPUT -j ACCEPT\n", True), None),
        (script("iptables -I INPUT -j ACCEPT\n", False), False),
        (script(None, False), False),
        (script(None, True), None),
    ],
)
def test_what_its_files_let_in(seen, lets):
    assert lets_in(seen) is lets


def test_a_profile_that_cannot_be_read_may_name_a_zone(node):
    seen = red_hat()
    seen["firewalld"]["unread"] = [
        {"path": "/etc/NetworkManager/system-connections/a.nmconnection", "error": "denied"}
    ]
    assert lets_in(seen) is None
    assert with_firewall(node, seen) == (["unknown"], [])
    (verdict,) = [
        one for one in node.judge(faults=frozenset(("KM527",))).verdicts if one.host == "w1"
    ]
    assert [(one.collector, one.status) for one in verdict.missing] == [("boot", "denied")]
    assert "/etc/NetworkManager/system-connections/a.nmconnection (denied)" in verdict.note
    assert "as root" in verdict.note


@pytest.mark.parametrize(
    ("seen", "status", "words"),
    [
        (
            red_hat(**{ZONES + "public.xml": None}),
            "denied",
            (ZONES + "public.xml (denied)", "as root"),
        ),
        (
            red_hat(
                **{
                    "/etc/firewalld/direct.xml": (
                        '<direct><rule chain="INPUT">-j ACCEPT</rule></direct>'
                    )
                }
            ),
            "error",
            (
                "/etc/firewalld/direct.xml (it has rules of iptables",
                "firewall-cmd --direct --get-all-rules",
            ),
        ),
        (
            ubuntu(**{"/etc/ufw/user.rules": None}),
            "denied",
            ("/etc/ufw/user.rules (denied)", "as root"),
        ),
        (
            before("-A ufw-before-input -j kube"),
            "error",
            (
                (
                    "/etc/ufw/before.rules (what the rule does is not known: -A ufw-before-input -j"
                    " kube)"
                ),
                "iptables -S",
            ),
        ),
        (script(None, True), "error", ("/etc/ufw/before.init (ufw runs it",)),
        (red_hat(zones=["lost"]), "error", ("a zone that is used is in no file",)),
        (red_hat(active=None, enabled=False), "error", ("systemctl is-active firewalld",)),
        (
            ubuntu(enabled=False, **{"/etc/ufw/ufw.conf": None}),
            "denied",
            ("/etc/ufw/ufw.conf (denied)",),
        ),
    ],
)
def test_unknown_names_the_file_and_a_way_out(node, seen, status, words):
    assert with_firewall(node, seen) == (["unknown"], [])
    (verdict,) = [
        one for one in node.judge(faults=frozenset(("KM527",))).verdicts if one.host == "w1"
    ]
    assert [(one.collector, one.status) for one in verdict.missing] == [("boot", status)]
    assert [word for word in words if word not in verdict.note] == []


@pytest.mark.parametrize(
    ("seen", "verdict", "said"),
    [
        ({}, "clear", ""),
        (None, "not judged", ""),
        (red_hat(active=False, enabled=False), "clear", ""),
        (red_hat('<port port="10250" protocol="tcp"/>'), "clear", ""),
        (red_hat(), "present", "is on, and comes back with each boot"),
        (red_hat(enabled=False), "present", "is on, though no boot brings it"),
        (red_hat(active=False), "present", "is off, and comes back with the next boot"),
        (red_hat(active=None, enabled=False), "unknown", ""),
        (red_hat(active=None), "present", "may be on, and comes back with each boot"),
        (red_hat(**{ZONES + "public.xml": None}), "unknown", ""),
        (ubuntu(), "present", "ufw is on"),
        (ubuntu(**{"/etc/ufw/ufw.conf": UFW_CONF.replace("=yes", "=no")}), "clear", ""),
        (ubuntu(**{"/etc/ufw/ufw.conf": None}), "unknown", ""),
        (ubuntu(active=False), "present", "may be on"),
        # ufw enable loads its rules without its service (seen on Debian 12)
        (ubuntu(enabled=False, active=False), "unknown", ""),
        (
            ubuntu(
                enabled=False,
                active=False,
                **{
                    "/etc/ufw/user.rules": USER.format(
                        "### tuple ### allow any 10250 0.0.0.0/0 any 0.0.0.0/0 in"
                    )
                },
            ),
            "clear",
            "",
        ),
        ({"firewalld": {**red_hat(active=False)["firewalld"], "masked": True}}, "clear", ""),
        ({"firewalld": "text", "ufw": {"files": 7}, "nft": {}}, "unknown", ""),
    ],
)
def test_what_is_said_of_it(node, seen, verdict, said):
    verdicts, found = with_firewall(node, seen)
    if seen is None:
        del node.data("w1", "boot")["firewall"]
        verdicts, found = judged(node, "KM527")
    assert verdicts == [verdict]
    assert len(found) == (verdict == "present")
    for one in found:
        assert said in one.summary
        assert "10250/tcp (the kubelet)" in one.summary
        assert (one.severity, one.risk) == ("warning", 0)
        assert one.evidence[0].object == f"{one.component}.service"
        assert "10250/tcp" in one.remedy


def test_of_a_control_plane_node_the_api_and_etcd_too(world):
    world.data("m1", "kubelet")["argv"] = ["kubelet", "--port=10350"]
    etcd = next(
        one for one in world.data("m1", "instances")["processes"] if one["component"] == "etcd"
    )
    etcd["argv"].append("--listen-peer-urls=https://10.0.0.1:2390")
    summary = with_firewall(world, red_hat(), "m1")[1][0].summary
    assert "6443/tcp (the API server)" in summary
    assert "10350/tcp (the kubelet)" in summary
    assert "2390/tcp (etcd's other members)" in summary
    opened = "".join(f'<port port="{port}" protocol="tcp"/>' for port in (10350, 6443, 2390))
    assert with_firewall(world, red_hat(opened), "m1") == (["clear"], [])
    world.documents["m1"]["collectors"]["instances"] = {"status": "timeout", "data": None}
    assert with_firewall(world, red_hat(opened), "m1") == (["unknown"], [])
    # without a firewall nothing else matters
    assert with_firewall(world, {}, "m1") == (["clear"], [])


OPENED = red_hat('<port port="10250" protocol="tcp"/><port port="6443" protocol="tcp"/>')


@pytest.mark.parametrize(
    ("words", "members", "verdict"),
    [
        (["--listen-peer-urls=https://10.0.0.1:2380"], 3, "present"),
        (["--listen-peer-urls=https://10.0.0.1:2380"], None, "unknown"),
        (
            [
                "--listen-peer-urls=https://10.0.0.1:2380",
                "--initial-cluster=m1=https://10.0.0.1:2380",
            ],
            3,
            "present",
        ),
        (
            [
                "--listen-peer-urls=https://10.0.0.1:2380",
                "--initial-cluster=m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380",
            ],
            1,
            "clear",
        ),
        (
            ["--listen-peer-urls=https://127.0.0.1:2380,http://localhost:2380,https://[::1]:2380"],
            3,
            "clear",
        ),
        (["--listen-peer-urls=https://127.0.0.1:2380"], None, "clear"),
        ([], 3, "unknown"),
        ([], 1, "clear"),
        (["--listen-peer-urls=https://10.0.0.1:6443"], 3, "clear"),
        (["--listen-peer-urls=https://10.0.0.1:port"], 3, "unknown"),
        (["--listen-peer-urls=https://10.0.0.1:2380", "--name=events"], 3, "unknown"),
        (["--listen-peer-urls=https://10.0.0.1:2380", "--name=m1"], 3, "present"),
    ],
)
def test_etcd_s_port_by_the_members_that_it_counts(world, words, members, verdict):
    next(one for one in world.data("m1", "instances")["processes"] if one["component"] == "etcd")[
        "argv"
    ] += words
    if members is None:
        world.documents["m1"]["collectors"]["etcd"] = {"status": "error", "data": None}
    else:
        del world.data("m1", "etcd")["members"][members:]
    assert with_firewall(world, OPENED, "m1")[0] == [verdict]


def etcd_unit(world, host, error, state="activating"):
    """Let etcd be a unit of a host without a kubelet, as kubespray installs it first."""
    line = (
        "2026-11-27T04:00:00+0000 m1 etcd[7]: "
        '{"level":"warn","msg":"prober detected unhealthy status","remote-peer-id":"9d7ef3ca",'
        f'"rtt":"0s","error":"{error}"}}'
    )
    unit = {"name": "etcd.service", "component": "etcd", "active_state": state, "lines": [line]}
    collectors = world.documents[host]["collectors"]
    collectors["component_units"] = {"status": "ok", "data": {"units": [unit]}}
    collectors["kubelet"] = {"status": "absent", "data": None}
    collectors["instances"]["data"]["processes"] = []


@pytest.mark.parametrize(
    ("error", "state", "verdict"),
    [
        ("dial tcp 10.0.0.2:2380: connect: no route to host", "activating", "present"),
        ("dial tcp 10.0.0.2:2380: i/o timeout", "failed", "present"),
        ("dial tcp 10.0.0.2:2380: i/o timeout", "active", "not_applicable"),
        ("dial tcp 127.0.0.1:2380: connect: connection refused", "activating", "not_applicable"),
        ("tls: bad certificate", "activating", "not_applicable"),
    ],
)
def test_an_etcd_that_finds_no_peer_on_a_host_without_a_kubelet(world, error, state, verdict):
    etcd_unit(world, "m1", error, state)
    verdicts, findings = with_firewall(world, red_hat(), "m1")
    assert verdicts == [verdict]
    for one in findings:
        assert one.severity == "critical"
        assert "2380/tcp (etcd's other members)" in one.summary
        assert "10250" not in one.summary


def test_a_port_that_is_open_keeps_no_peer_away(world):
    etcd_unit(world, "m1", "dial tcp 10.0.0.2:2380: i/o timeout")
    opened = red_hat('<port port="2380" protocol="tcp"/>')
    assert with_firewall(world, opened, "m1") == (["clear"], [])


def test_what_listens_on_loopback_needs_no_port(world):
    api = next(
        one
        for one in world.data("m1", "instances")["processes"]
        if one["component"] == "kube-apiserver"
    )
    del world.data("m1", "etcd")["members"][1:]
    world.data("m1", "kubelet")["argv"] = ["kubelet", "--address=127.0.0.1"]
    assert "10250" not in with_firewall(world, red_hat(), "m1")[1][0].summary
    api["argv"].append("--bind-address=127.0.0.1")
    assert with_firewall(world, red_hat(), "m1") == (["clear"], [])


def test_a_kubelet_s_configuration_that_cannot_be_read_may_name_another_port(node):
    node.data("w1", "kubelet").update(
        argv=["kubelet", "--config=/var/lib/kubelet/config.yaml"],
        config={
            "path": "/var/lib/kubelet/config.yaml",
            "text": None,
            "error": "denied",
            "kind": "file",
        },
    )
    assert with_firewall(node, red_hat()) == (["unknown"], [])
    (verdict,) = [
        one for one in node.judge(faults=frozenset(("KM527",))).verdicts if one.host == "w1"
    ]
    assert [(one.collector, one.status) for one in verdict.missing] == [("kubelet", "denied")]
    assert "/var/lib/kubelet/config.yaml" in verdict.note


@pytest.mark.parametrize(
    ("argv", "verdict", "words"),
    [
        (
            ["/usr/local/bin/k3s", "server"],
            "unknown",
            ("it is part of k3s", "6443/tcp on servers", "ss -tlnp"),
        ),
        (["/snap/microk8s/current/kubelite"], "unknown", ("it is part of kubelite",)),
        (
            ["kubelet", "--kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig"],
            "present",
            ("10250/tcp (the kubelet)", "9345/tcp on servers"),
        ),
    ],
)
def test_a_kubelet_of_rancher(node, argv, verdict, words):
    node.data("w1", "kubelet").update(argv=argv, process=None)
    verdicts, found = with_firewall(node, red_hat())
    (told,) = [one for one in node.judge(faults=frozenset(("KM527",))).verdicts if one.host == "w1"]
    said = " ".join([told.note, *(f"{one.summary} {one.remedy}" for one in found)])
    assert verdicts == [verdict]
    assert [word for word in words if word not in said] == []
    assert "as root" not in said


def test_services_that_include_each_other_end():
    loop = {
        SERVICES + f"kube-{one}.xml": f'<service><include service="kube-{two}"/></service>'
        for one, two in ("ab", "ba")
    }
    assert lets_in(red_hat('  <service name="kube-a"/>\n', **loop)) is False


# KM528

AVC = (
    'type=AVC msg=audit(1799999000.364:4154): avc:  denied  {{ read }} for  pid=2017 comm="{0}"'
    ' name="pki" dev="dm-0" ino=1 scontext=system_u:system_r:{1}:s0{2}'
    " tcontext=unconfined_u:object_r:user_home_t:s0 tclass=dir permissive=0"
)


@pytest.mark.parametrize(
    ("enforce", "told", "verdict"),
    [
        (None, None, "not_applicable"),
        ("0", None, "clear"),
        ("1", None, "not judged"),
        ("1", denied(), "clear"),
        ("1", denied(error="missing"), "unknown"),
        ("1", denied(cut=True), "unknown"),
        ("1", denied(AVC.format("kubelet", "kubelet_t", "")), "present"),
        (
            "1",
            denied(AVC.format("containerd-shim", "unconfined_service_t", ""), cut=True),
            "present",
        ),
        ("1", denied(AVC.format("nginx", "container_t", ":c1,c2")), "clear"),
        ("1", denied(AVC.format("calico-node", "container_t", ":c1,c2")), "clear"),
        ("1", denied(AVC.format("kube-apiserver", "container_t", ":c1,c2")), "present"),
        ("1", denied(AVC.format("kube-controller", "spc_t", "")), "present"),
        ("1", denied(AVC.format("kubelet", "user_t", "")), "clear"),
        ("1", denied(AVC.format("iptables", "fail2ban_t", "")), "clear"),
        ("1", denied(AVC.format("runc", "container_init_t", "")), "clear"),
        ("1", denied(AVC.format("kube-proxy", "spc_t", "")), "clear"),
        ("1", denied(AVC.format("exe", "container_runtime_t", "")), "present"),
        ("1", denied(AVC.format("kubelet", "init_t", "")), "present"),
        ("1", denied(AVC.format("httpd", "init_t", "")), "clear"),
        # As systemd's child is called before it executes (cri-o/cri-o#528,
        # confidential-containers/operator#115).
        (
            "1",
            denied(AVC.format("(kubelet)", "init_t", "").replace('"pki"', '"kubelet"')),
            "present",
        ),
        (
            "1",
            denied(AVC.format("(yperkube)", "init_t", "").replace('"pki"', '"hyperkube"')),
            "present",
        ),
        (
            "1",
            denied(AVC.format("(ntainerd)", "init_t", "").replace('"pki"', '"containerd"')),
            "present",
        ),
        ("1", denied(AVC.format("(httpd)", "init_t", "").replace('"pki"', '"httpd"')), "clear"),
        ("1", denied(AVC.format("httpd", "init_t", "").replace('"pki"', '"kubelet"')), "clear"),
        ("1", denied(AVC.format("etcd", "rke2_service_db_t", ":c1,c2")), "present"),
        ("1", denied(AVC.format("podman", "container_engine_t", ":c1,c2")), "clear"),
        ("1", denied(since=False), "unknown"),
        ("1", denied(error="denied"), "unknown"),
        ("1", denied(count=40), "unknown"),
        ("1", denied(AVC.format("sshd", "sshd_t", "")), "clear"),
        ("1", denied("no line"), "clear"),
        ("1", denied(7, None, "no line"), "unknown"),
    ],
)
def test_what_selinux_denied(node, enforce, told, verdict):
    node.data("w1", "boot").update(
        selinux={"enforce": enforce, "config": "enforcing"}, denials=told
    )
    verdicts, found = judged(node, "KM528")
    assert verdicts == [verdict]
    assert len(found) == (verdict == "present")
    for one in found:
        assert "since the boot" in one.summary
        assert "container-selinux" in one.remedy
        assert one.evidence[0].path == "/var/log/audit/audit.log"


def labelled(name, label, comm="kubelet", domain="kubelet_t"):
    line = AVC.format(comm, domain, "").replace('"pki"', f'"{name}"')
    return denied(line.replace("user_home_t", label))


@pytest.mark.parametrize(
    ("told", "words", "commands"),
    [
        (
            labelled("k3s.service", "user_tmp_t", "systemd", "init_t"),
            ["k3s.service", "user_tmp_t"],
            ["restorecon -Rv /etc/systemd/system/k3s.service", "systemctl daemon-reload"],
        ),
        (labelled("pki", "user_home_t"), ["pki", "user_home_t"], ["restorecon -Rv PATH/pki"]),
        (labelled("pods", "default_t"), ["pods", "default_t"], ["semanage fcontext -a -e"]),
        (
            labelled("pause", "container_t", "runc", "unconfined_service_t"),
            ["domain unconfined_service_t"],
            ["restorecon -v /usr/bin/containerd", "container_runtime_exec_t"],
        ),
        (labelled("pods", "container_file_t"), ["kubelet"], ["audit2why"]),
    ],
)
def test_the_label_and_its_correction_are_named(node, told, words, commands):
    node.data("w1", "boot").update(selinux={"enforce": "1", "config": "enforcing"}, denials=told)
    (found,) = judged(node, "KM528")[1]
    assert all(word in found.summary for word in words)
    assert all(command in found.remedy for command in commands)


BPF = AVC.format("bpftool", "spc_t", "").replace("tclass=dir", "tclass=bpf")


@pytest.mark.parametrize(
    ("lines", "components"),
    [
        ([BPF], ["bpf"]),
        ([BPF, AVC.format("kubelet", "kubelet_t", "")], ["bpf", "selinux"]),
        ([BPF.replace("spc_t", "container_t")], []),
        ([BPF.replace("permissive=0", "permissive=1")], []),
    ],
)
def test_bpf_that_privileged_containers_may_not_use(node, lines, components):
    node.data("w1", "boot").update(
        selinux={"enforce": "1", "config": "enforcing"}, denials=denied(*lines)
    )
    found = judged(node, "KM528")[1]
    assert sorted(one.component for one in found) == components
    for one in found:
        assert ("bpftool" in one.summary) is (one.component == "bpf")


def test_a_unit_that_is_no_node_s_is_not_the_node_s(node):
    node.data("w1", "boot").update(
        selinux={"enforce": "1", "config": "enforcing"},
        denials=labelled("httpd.service", "user_tmp_t", "systemd", "init_t"),
    )
    assert judged(node, "KM528") == (["clear"], [])


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        (
            denied(error="denied", path="/var/log/audit/audit.log.1"),
            "denied",
            ("/var/log/audit/audit.log.1", "as root"),
        ),
        (denied(error="missing"), "error", ("/var/log/audit/audit.log: missing", "journalctl -k")),
        (denied(cut=True), "error", ("ausearch",)),
        (
            denied(since=False),
            "error",
            ("/var/log/audit/audit.log has no entry since the boot", "systemctl status auditd"),
        ),
    ],
)
def test_why_it_is_not_known_what_selinux_denied(node, told, status, words):
    node.data("w1", "boot").update(selinux={"enforce": "1", "config": "enforcing"}, denials=told)
    (verdict,) = [
        one for one in node.judge(faults=frozenset(("KM528",))).verdicts if one.host == "w1"
    ]
    assert [(one.collector, one.status) for one in verdict.missing] == [("boot", status)]
    assert [word for word in words if word not in verdict.note] == []


def test_of_a_container_nothing_is_said(node):
    node.data("w1", "boot").update(
        selinux={"enforce": "1", "config": None},
        denials=denied(AVC.format("kubelet", "kubelet_t", "")),
        container=True,
    )
    assert judged(node, "KM528") == (["not_applicable"], [])


FIREWALLD_CONF = "/etc/firewalld/firewalld.conf"
OPEN = '<port port="10250" protocol="tcp"/>'
NFTABLES = {FIREWALLD_CONF: CONF + "FirewallBackend=nftables\n"}
CLOSED = {**NFTABLES, ZONES + "public.xml": PUBLIC.format(OPEN).replace("<forward/>", "")}
SHUT = {**NFTABLES, ZONES + "public.xml": PUBLIC.format("").replace("<forward/>", "")}
CNI0 = TRUSTED.format('  <interface name="cni0"/>\n')
RANGE = TRUSTED.format('  <source address="10.42.0.0/16"/>\n')


@pytest.mark.parametrize(
    ("seen", "interface", "verdict", "severity"),
    [
        (red_hat(OPEN, **CLOSED), "cni0", "present", "warning"),
        (red_hat(OPEN, **CLOSED), "cali*", "present", "warning"),
        (red_hat(OPEN, **CLOSED), "docker0", "clear", None),
        (red_hat(OPEN, **NFTABLES), "cni0", "present", "info"),  # its zone has forward
        (red_hat(OPEN), "cni0", "clear", None),  # iptables: rules of plugins come first
        (red_hat(OPEN, active=False, enabled=False, **CLOSED), "cni0", "clear", None),
        (red_hat(OPEN, **CLOSED, **{ZONES + "trusted.xml": CNI0}), "cni0", "clear", None),
        (red_hat(OPEN, **CLOSED, **{ZONES + "trusted.xml": CNI0}), "cali*", "present", "warning"),
        (red_hat(OPEN, **CLOSED, **{ZONES + "trusted.xml": RANGE}), "cali*", "clear", None),
        (red_hat(OPEN, zones=["trusted"], **CLOSED), "cni0", "clear", None),
        (red_hat(OPEN, **CLOSED, **{"/etc/firewalld/policies/a.xml": ""}), "cni0", "clear", None),
    ],
)
def test_interfaces_of_pods_in_no_zone(node, seen, interface, verdict, severity):
    network_evidence.network(node, interfaces=[network_evidence.interface(interface)])
    verdicts, found = with_firewall(node, seen)
    assert verdicts == [verdict]
    assert [item.severity for item in found] == [severity] * bool(severity)
    assert [item.component for item in found] == [interface] * bool(severity)


@pytest.mark.parametrize(
    ("more", "components"),
    [(NFTABLES, ["firewalld"]), (SHUT, ["firewalld", "cni0"])],
)
def test_a_shut_port_tells_of_interfaces_unless_pods_do_not_reach_each_other(
    node, more, components
):
    network_evidence.network(node, interfaces=[network_evidence.interface("cni0")])
    _verdicts, found = with_firewall(node, red_hat("", **more))
    assert sorted(item.component for item in found) == sorted(components)


def test_interfaces_that_were_not_read_are_unknown(node):
    node.documents["w1"]["collectors"]["network"] = {"status": "error", "data": None}
    assert with_firewall(node, red_hat(OPEN))[0] == ["unknown"]
    assert with_firewall(node, {})[0] == ["clear"]
