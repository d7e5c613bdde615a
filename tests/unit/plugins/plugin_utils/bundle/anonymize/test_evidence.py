# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and addresses replaced consistently.

Nothing of them is left, and what compares them still compares them.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle.anonymize import (
    evidence as anonymize_evidence,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)

FOLDER = Path(__file__).resolve().parents[5] / "fixtures" / "recorded"
SOME = sorted(path.name for path in FOLDER.iterdir())[::5]
SECRET = b"of the test"


def of(*documents, **more):
    return anonymize_evidence.Anonymizer(
        [{"host": "h", "collectors": {}, **one} for one in documents] or [more], SECRET
    )


def certificate(name, *others, authority=False):
    key = Ed25519PrivateKey.generate()
    subject = x509.Name(
        [
            x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(x509.NameOID.COMMON_NAME, name),
        ]
    )
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    builder = x509.CertificateBuilder(
        issuer,
        subject,
        key.public_key(),
        7,
        datetime.datetime(2026, 1, 1),
        datetime.datetime(2027, 1, 1),
    )
    builder = builder.add_extension(x509.BasicConstraints(authority, None), True)
    if others:
        builder = builder.add_extension(
            x509.SubjectAlternativeName(
                [
                    (
                        x509.IPAddress(ipaddress.ip_address(one))
                        if one[0].isdigit()
                        else x509.DNSName(one)
                    )
                    for one in others
                ]
            ),
            False,
        )
    return builder.sign(key, None).public_bytes(Encoding.PEM).decode()


@pytest.mark.parametrize("case", SOME)
def test_nothing_of_a_recorded_cluster_is_left(case):
    documents = list(evidence_sources.stream([str(FOLDER / case / "evidence")]))
    change = anonymize_evidence.Anonymizer(documents, SECRET)
    told = "\n".join(json.dumps(change.document(document)) for document in documents)
    for document in documents:
        system = document["collectors"].get("system", {}).get("data") or {}
        named = [
            document["host"],
            document["node"],
            *(system.get(name) for name in ("hostname", "machine_id", "boot_id")),
            *(system.get("addresses") or ()),
        ]
        for name in filter(None, named):
            plain = re.sub(r"-----BEGIN CERT.*?-----END|LS0tLS1[A-Za-z0-9+/=]+", "", told)
            assert not re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", plain), name
        pem = (
            change.document(document)["collectors"]
            .get("kubelet", {})
            .get("data", {})
            .get("client_certificate", {})
            .get("pem")
        )
        if pem and document["node"]:
            assert (
                evidence_document._node_name(pem)
                == change.text(document["node"])
                == change.document(document)["node"]
            )


def test_one_host_is_one_name_wherever_it_stands():
    change = of(
        {
            "host": "db7",
            "node": "db7.prod.acme.com",
            "collectors": {"system": {"data": {"hostname": "db7"}}},
        }
    )
    name = change.text("db7")
    full = change.text("db7.prod.acme.com")
    assert name.startswith("host-")
    assert full.startswith(f"{name}.domain-")
    assert full.endswith(".com")
    assert "acme" not in full
    for before, after in (
        ("etcd-{}", None),
        ("/var/log/pods/kube-system_etcd-{}_1/etcd", None),
        ("{}_3f2a", None),
        ("system:node:{}", None),
        ("--node-name={}", None),
        ("https://{}:6443/a", None),
        ('"node" node="{}"', None),
        ("x ({}) y", None),
        ("{}:9100", None),
    ):
        assert change.text(before.format("db7")) == (after or before).format(name)
        assert change.text(before.format("db7.prod.acme.com")) == (after or before).format(full)
    assert change.text("other9.prod.acme.com").endswith(full.partition(".")[2])
    assert change.text("prod.acme.com") == full.partition(".")[2]
    assert change.text("DB7") == name.upper()
    assert change.text("xdb7 db77 db7x") == "xdb7 db77 db7x"


def test_the_order_of_hosts_stays():
    names = ["a1", "b-2", "b10", "m1.x.acme.net", "m2.x.acme.net", "w1", "w10", "w2", "z_1"] + [
        f"n{number}" for number in range(120)
    ]
    change = of(*({"host": name} for name in names))
    assert [change.text(name) for name in sorted(names)] == sorted(
        change.text(name) for name in names
    )
    assert len({change.text(name) for name in names}) == len(names)


def test_words_of_kubernetes_stay_whoever_is_called_so():
    change = of({"host": "master"}, {"host": "node"}, {"host": "master-1"})
    text = (
        "node-role.kubernetes.io/master: system:node:x --node-ip node.kubernetes.io/not-ready"
        " kube-system control-plane"
    )
    assert change.text(text) == text
    assert change.text("master-1") != "master-1"
    assert change.text("etcd-master-1").startswith("etcd-host-")


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:10257",
        "0.0.0.0",
        "https://registry.k8s.io/pause:3.9",
        "k8s.gcr.io/etcd:3.4.3-0",
        "v1.36.3",
        "kubernetes.default.svc.cluster.local",
        "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
        "10:13:16.298479",
        "2026-11-21T10:13:18.306797Z",
        "::1",
        "[::]:10250",
        "kubelet.service",
        "/etc/rc.local",
        "nvidia.com/gpu",
        "169.254.169.254",
        "224.0.0.1",
        "remote_runtime.go:237] x",
        "pkg/kubelet/kubelet.go:1:2",
        "/root/.kube/config",
        "/home/kubernetes/bin",
        "6.18.44-fc-v669",
        "cb47b034a368619b1b34f097a9cbfc7ae7915f02dc08c219738a25b8a985e82a",
        "topology.kubernetes.io/zone=eu-1a",
    ],
)
def test_what_names_nobody_stays(text):
    assert of({"host": "m1"}).text(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("http://10.1.2.3:80/x", "10.1.2.3"),
        ("dial tcp 192.168.7.8:6443: connect", "192.168.7.8"),
        ("--node-ip=203.0.113.9", "203.0.113.9"),
        ("kube-apiserver-10.4.5.6", "10.4.5.6"),
        ("[2001:db8:1::5]:6443", "2001:db8:1::5"),
        ("addr:fd00:1::7, x", "fd00:1::7"),
        ("fe80::1c2d:3eff:fe4f:1%eth0", "1c2d"),
        ("link/ether 52:54:00:ab:cd:ef brd", "52:54:00:ab:cd:ef"),
        ("ip-10-1-2-3.ec2.internal", "10-1-2-3"),
        ("/home/alice/.kube/config", "alice"),
        ("Accepted publickey for alice from 10.1.2.3 port 1", "alice"),
        ("mail to alice@acme.com", "alice"),
        ("pulling registry.acme.com/app:1", "acme"),
        ("lookup api.k8s.acme.internal on 10.0.0.2:53: no such host", "acme"),
        ("https://login.acme.de/oidc", "acme"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("no_proxy=.acme.corp,build.lab.acme.corp", "build.lab.acme"),
        ("IPv6 2001:0db8:0001:0000:0000:0000:0000:0005", "0db8"),
    ],
)
def test_what_names_somebody_is_replaced(text, secret):
    change = of({"host": "m1", "collectors": {"x": {"data": {"text": text}}}})
    told = change.text(text)
    assert secret not in told
    assert told != text
    assert change.text(text) == told


def test_users_by_limits_conf_and_by_the_folder_of_a_kubeconfig():
    text = "alice hard nofile 4096\n@devs soft nproc 10\n* - nofile 1\nroot hard nofile 9\n"
    change = of(
        {
            "host": "m1",
            "collectors": {
                "limits": {"data": {"files": [{"text": text, "masked": [], "size": len(text)}]}}
            },
        }
    )
    told = change.text(text)
    assert "alice" not in told
    assert "devs" not in told
    assert "* - nofile 1\nroot hard nofile 9" in told
    assert change.text("/home/alice/x") == "/home/" + told.split()[0] + "/x"


def test_a_file_keeps_its_size_and_its_masked_places_true():
    text = "host: w-long-name-7\ntoken: ****\nhost: w-long-name-7\n"
    record = {
        "text": text,
        "masked": [[text.index("*"), text.index("*") + 4]],
        "size": len(text),
        "sha256": "ab" * 32,
        "path": "/x",
    }
    change = of({"host": "w-long-name-7", "collectors": {"a": {"data": record}}})
    told = change.document(record)
    ((start, end),) = told["masked"]
    assert told["text"][start:end] == "****"
    assert told["size"] == len(told["text"])
    assert "long" not in told["text"]
    assert told["sha256"] != record["sha256"]
    assert change.document(record) == told


def test_ids_of_machines_are_others_in_every_form():
    plain, dashed = "b9b316b4f4b748149a987838d8763bd9", "B9B316B4-F4B7-4814-9A98-7838D8763BD9"
    change = of(
        {
            "host": "m1",
            "collectors": {
                "nodes": {
                    "data": {"items": [{"name": "m1", "machine_id": plain, "system_uuid": dashed}]}
                }
            },
        }
    )
    item = change.document({"machine_id": plain, "system_uuid": dashed})
    assert item["machine_id"] != plain
    assert item["system_uuid"].replace("-", "").lower() == item["machine_id"]


def test_a_certificate_that_names_a_host_is_made_again_and_one_that_does_not_stays():
    pem, ca = (
        certificate("system:node:db7", "db7.acme.com", "10.7.7.7"),
        certificate("kubernetes", authority=True),
    )
    change = of(
        {
            "host": "db7",
            "collectors": {
                "kubelet": {"data": {"client_certificate": {"pem": pem}, "ca": {"pem": ca}}}
            },
        }
    )
    made = x509.load_pem_x509_certificate(change.text(pem).encode())
    old = x509.load_pem_x509_certificate(pem.encode())
    assert made.subject.rfc4514_string() == f"CN=system:node:{change.text('db7')},O=system:nodes"
    named = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in named] == [
        change.text("db7.acme.com"),
        change.text("10.7.7.7"),
    ]
    assert (made.serial_number, made.not_valid_after_utc, made.public_key()) == (
        7,
        old.not_valid_after_utc,
        old.public_key(),
    )
    assert change.text(ca) == ca
    broken = "-----BEGIN CERTIFICATE-----\nMIIDdb7\n-----END CERTIFICATE-----"
    assert "MIIDdb7" not in change.text(broken)


def test_keys_of_maps_too_and_names_of_fields_never():
    change = of({"host": "storage7"}, {"host": "w1"})
    told = change.document(
        {"rejected": {"nodes": {"w1": {"pods": []}}}, "kernel": {"w1": "x"}, "node": "w1"}
    )
    name = change.text("w1")
    assert told == {
        "rejected": {"nodes": {name: {"pods": []}}},
        "kernel": {name: "x"},
        "node": name,
    }


def test_an_inventory_name_that_is_none_of_dns():
    change = of({"host": "Büro #3"}, {"host": "10.9.8.7"}, {"host": "fd00::9"})
    told = [change.document({"host": name})["host"] for name in ("Büro #3", "10.9.8.7", "fd00::9")]
    assert len(set(told)) == 3
    assert not set(told) & {"Büro #3", "10.9.8.7", "fd00::9"}
    assert change.text("fatal: Büro #3 is down") == f"fatal: {told[0]} is down"


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_taken_and_the_same_gives_the_same(before, after):
    change = of({"host": "db7", "collectors": {"x": {"data": before}}})
    text = f"{before} db7 10.1.2.3 {after}"
    told = change.text(text)
    assert told == change.text(text)
    assert f" {change.text('db7')} {change.text('10.1.2.3')} " in told
