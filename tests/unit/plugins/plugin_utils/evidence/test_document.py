# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence on the controller: made, written, refused."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    document as evidence_document,
)


def certificate(*common_names: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(x509.NameOID.COMMON_NAME, value) for value in common_names]
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode("ascii")


def document(**more: Any) -> dict[str, Any]:
    return {
        "schema": evidence_document.SCHEMA,
        "host": "m1",
        "status": "ok",
        "collected_at": "2026-11-21T09:00:00Z",
        "collectors": {},
        **more,
    }


def kubelet(text: str, pem: str | None = None, ca: str | None = None) -> dict[str, Any]:
    data = {
        "kubeconfig": {"text": text},
        "client_certificate": {"pem": pem},
        "ca": {"pem": ca} if ca else None,
    }
    return evidence_document.envelope(
        "m1", "ok", "", {"collectors": {"kubelet": {"status": "ok", "data": data}}}
    )


def test_the_node_and_its_cluster_are_proven_by_certificates() -> None:
    authority, other = certificate("kubernetes"), certificate("old")
    embedded = base64.b64encode((authority + other).encode()).decode()
    text = (
        f"clusters:\n- cluster:\n    certificate-authority-data: {embedded}\n    server:"
        " https://x\n  name: k\n"
    )
    found = evidence_document.finalise(kubelet(text, certificate("system:node:worker-1")), ["node"])
    digests = sorted(
        hashlib.sha256(
            x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)
        ).hexdigest()
        for pem in (authority, other)
    )
    assert found["cluster_key"] == hashlib.sha256("".join(digests).encode()).hexdigest()
    assert (found["node"], found["groups"]) == ("worker-1", ["node"])
    by_file = evidence_document.finalise(
        kubelet("clusters:\n- cluster: {certificate-authority: /ca.crt}\n", None, other + authority)
    )
    assert (by_file["cluster_key"], by_file["node"]) == (found["cluster_key"], None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "a: [",
        "clusters: 1",
        "clusters: []",
        "clusters: [{cluster: {certificate-authority-data: '!'}}]",
        "- &a [*a]",
        "!!python/object:os.system {}",
    ],
)
def test_no_proof_from_a_kubeconfig_of_another_shape(text: str) -> None:
    found = evidence_document.finalise(
        kubelet(text, "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n")
    )
    assert found["cluster_key"] is None
    assert found["node"] is None


@pytest.mark.parametrize("names", [("admin",), ("system:nodes:x",), ()])
def test_only_a_kubelets_name_is_a_node(names: tuple[str, ...]) -> None:
    assert evidence_document.finalise(kubelet("", certificate(*names)))["node"] is None


@pytest.mark.parametrize(
    "junk",
    [
        {"kubelet": None},
        {"kubelet": {"status": "ok", "data": [1]}},
        {"kubelet": {"data": {"kubeconfig": {"text": 1}}}},
        {},
    ],
)
def test_junk_proves_nothing(junk: dict[str, Any]) -> None:
    found = evidence_document.finalise(
        evidence_document.envelope("m1", "ok", "", {"collectors": junk})
    )
    assert (found["node"], found["cluster_key"], evidence_document.role_of(found)) == (
        None,
        None,
        "unknown",
    )


def test_the_node_cannot_speak_for_the_controller() -> None:
    said = {
        "host": "m2",
        "node": "x",
        "cluster_key": "k",
        "groups": ["control_plane"],
        "schema": "x",
        "reason": "a\x1b[2J\nb",
    }
    found = evidence_document.envelope("m1", "ok", "", said)
    assert (
        found["host"],
        found["node"],
        found["cluster_key"],
        found["groups"],
        found["schema"],
    ) == ("m1", None, None, [], evidence_document.SCHEMA)
    assert found["reason"] == "a [2J b"


ROLES = [
    (
        "worker",
        {
            "kubelet": ("ok", {}),
            "manifests": ("absent", None),
            "instances": ("ok", {"processes": []}),
        },
    ),
    (
        "unknown",
        {
            "kubelet": ("ok", {}),
            "manifests": ("denied", None),
            "instances": ("ok", {"processes": []}),
        },
    ),
    (
        "unknown",
        {
            "kubelet": ("absent", None),
            "manifests": ("absent", None),
            "instances": ("ok", {"processes": []}),
        },
    ),
    (
        "control_plane",
        {
            "instances": (
                "ok",
                {
                    "processes": [
                        {"component": "kube-scheduler", "static": True, "host_network": True}
                    ]
                },
            )
        },
    ),
    (
        "control_plane",
        {
            "instances": (
                "ok",
                {"processes": [{"component": "kube-apiserver", "unit": "kube-apiserver.service"}]},
            )
        },
    ),
    (
        "unknown",
        {
            "instances": (
                "ok",
                {
                    "processes": [
                        {"component": "kube-scheduler", "static": True, "host_network": False}
                    ]
                },
            )
        },
    ),
    (
        "unknown",
        {
            "instances": (
                "ok",
                {
                    "processes": [
                        {
                            "component": "kube-controller-manager",
                            "static": False,
                            "host_network": True,
                        }
                    ]
                },
            )
        },
    ),
    (
        "control_plane",
        {
            "manifests": (
                "ok",
                {"files": [{"name": "s.manifest", "text": "image: registry/kube-scheduler:v1"}]},
            )
        },
    ),
    (
        "worker",
        {
            "kubelet": ("ok", {}),
            "manifests": ("ok", {"files": [{"name": "proxy.yaml", "text": "x"}]}),
            "instances": ("ok", {}),
        },
    ),
]


@pytest.mark.parametrize(("role", "collectors"), ROLES)
def test_role(role: str, collectors: dict[str, tuple[str, Any]]) -> None:
    records = {
        name: {"status": status, "data": data} for name, (status, data) in collectors.items()
    }
    assert (
        evidence_document.role_of(
            evidence_document.envelope("m1", "ok", "", {"collectors": records})
        )
        == role
    )


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("m1", "m1.json"),
        ("node.example.org", "node.example.org.json"),
        ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd.json"),
        (".hidden", "%2Ehidden.json"),
        ("ü b", "%C3%BC%20b.json"),
        ("fe80::1%eth0", "fe80%3A%3A1%25eth0.json"),
        ("..", "%2E..json"),
    ],
)
def test_any_name_is_one_file(tmp_path: Path, host: str, name: str) -> None:
    written = evidence_document.write(document(host=host), tmp_path / "evidence")
    path = tmp_path / "evidence" / (name if not name.startswith("..") else "%2E" + name[1:])
    assert [one.name for one in (tmp_path / "evidence").iterdir()] == [path.name]
    assert written == {
        "path": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "size": path.stat().st_size,
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert evidence_document.read(path)["host"] == host


def _nested(depth: int) -> Any:
    value: Any = []
    for _level in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ([], "no JSON object"),
        (document(schema="kubemend.evidence/2"), "schema is"),
        (document(host=""), "host or status"),
        (document(host=None), "host is missing"),
        (document(status="fine"), "host or status"),
        (document(collectors=[]), "collectors is missing"),
        (document(collectors={"a": 1}), "collector a has no known status"),
        (document(collectors={"a": {"status": []}}), "collector a has no known status"),
        (document(collected_at=1), "collected_at is missing"),
        (document(x=_nested(60)), "nested more than"),
        (document(groups="control_plane"), "groups is missing"),
    ],
)
def test_what_is_no_evidence_is_refused_by_name(tmp_path: Path, broken: Any, reason: str) -> None:
    (tmp_path / "m1.json").write_text(json.dumps(broken))
    with pytest.raises(evidence_document.EvidenceError) as caught:
        evidence_document.read(tmp_path / "m1.json")
    assert str(caught.value).startswith(f"{tmp_path / 'm1.json'}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100000])
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(evidence_document.EvidenceError, match="no JSON, or cut"):
        evidence_document.read(tmp_path / "a.json")


def test_stub(tmp_path: Path) -> None:
    evidence_document.write_stub(tmp_path, "w9", ["node"])
    found = evidence_document.read(tmp_path / "w9.json")
    assert (found["status"], found["groups"], found["collectors"]) == ("not_asked", ["node"], {})


DEEP = [
    "x: " + "[" * 100000,
    "x: " + "{a: " * 100000,
    "- " * 100000,
    "clusters: " + "[" * 100000 + "]" * 100000,
]


@pytest.mark.parametrize("text", DEEP)
def test_a_kubeconfig_however_deep_ends_nobody(text: str) -> None:
    """Libyaml composes by recursion in C: were it let, this process would be gone."""
    authority = certificate("kubernetes")
    assert evidence_document.finalise(kubelet(text, None, authority))[
        "cluster_key"
    ] == evidence_document.cluster_key(authority)


def test_merge_keys_of_a_kubeconfig_are_not_followed() -> None:
    text = "".join(
        f"a{number}: &a{number} {{<<: [{', '.join([f'*a{number - 1}'] * 9)}]}}\n"
        for number in range(1, 12)
    )
    begin = time.process_time()
    assert evidence_document.finalise(kubelet("a0: &a0 {k: v}\n" + text))["cluster_key"] is None
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("empty", ["", "null", "~", "''", "[]"])
def test_an_authority_that_is_not_embedded_is_the_files(empty: str) -> None:
    authority = certificate("kubernetes")
    text = f"clusters:\n- cluster: {{certificate-authority-data: {empty}}}\n"
    assert evidence_document.finalise(kubelet(text, None, authority))[
        "cluster_key"
    ] == evidence_document.cluster_key(authority)


def test_a_certificate_of_an_unknown_version_proves_nothing() -> None:
    der = base64.b64decode("".join(certificate("system:node:w1").split("-----")[2].split()))
    assert der.count(b"\xa0\x03\x02\x01\x02") == 1
    odd = base64.b64encode(der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07")).decode()
    pem = f"-----BEGIN CERTIFICATE-----\n{odd}\n-----END CERTIFICATE-----\n"
    with pytest.raises(x509.InvalidVersion):
        x509.load_pem_x509_certificate(pem.encode())
    assert evidence_document.finalise(kubelet("", pem))["node"] is None


def test_what_is_no_number_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(evidence_document.EvidenceError, match="a number without a value"):
        evidence_document.write(
            document(collectors={"system": {"status": "ok", "data": {"x": float("inf")}}}), tmp_path
        )
    assert not list(tmp_path.iterdir())
