# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and addresses replaced consistently.

Nothing of them is left, and what compares them still compares them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
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
        kubelet = change.document(document)["collectors"].get("kubelet", {}).get("data", {})
        pem = (kubelet.get("client_certificate") or {}).get("pem")
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
