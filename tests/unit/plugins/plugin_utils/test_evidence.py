# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence on the controller: made, written, refused, merged."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import stat

from pathlib import Path
from typing import Any

import pytest

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from ansible_collections.kubemend.remediation.plugins.plugin_utils import evidence


def certificate(*common_names: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, value) for value in common_names])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1).not_valid_before(
        now).not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
    return made.public_bytes(Encoding.PEM).decode("ascii")


def document(**more: Any) -> dict[str, Any]:
    return {"schema": evidence.SCHEMA, "host": "m1", "status": "ok", "collected_at": "2026-11-21T09:00:00Z", "collectors": {}, **more}


def kubelet(text: str, pem: str | None = None, ca: str | None = None) -> dict[str, Any]:
    data = {"kubeconfig": {"text": text}, "client_certificate": {"pem": pem}, "ca": {"pem": ca} if ca else None}
    return evidence.envelope("m1", "ok", "", {"collectors": {"kubelet": {"status": "ok", "data": data}}})


def test_the_node_and_its_cluster_are_proven_by_certificates() -> None:
    authority, other = certificate("kubernetes"), certificate("old")
    embedded = base64.b64encode((authority + other).encode()).decode()
    text = f"clusters:\n- cluster:\n    certificate-authority-data: {embedded}\n    server: https://x\n  name: k\n"
    found = evidence.finalise(kubelet(text, certificate("system:node:worker-1")), ["node"])
    digests = sorted(hashlib.sha256(x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)).hexdigest() for pem in (authority, other))
    assert found["cluster_key"] == hashlib.sha256("".join(digests).encode()).hexdigest()
    assert (found["node"], found["groups"]) == ("worker-1", ["node"])
    by_file = evidence.finalise(kubelet("clusters:\n- cluster: {certificate-authority: /ca.crt}\n", None, other + authority))
    assert (by_file["cluster_key"], by_file["node"]) == (found["cluster_key"], None)


@pytest.mark.parametrize("text", [
    "", "{", "a: [", "clusters: 1", "clusters: []", "clusters: [{cluster: {certificate-authority-data: '!'}}]", "- &a [*a]", "!!python/object:os.system {}"])
def test_no_proof_from_a_kubeconfig_of_another_shape(text: str) -> None:
    found = evidence.finalise(kubelet(text, "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"))
    assert found["cluster_key"] is None and found["node"] is None


@pytest.mark.parametrize("names", [("admin",), ("system:nodes:x",), ()])
def test_only_a_kubelets_name_is_a_node(names: tuple[str, ...]) -> None:
    assert evidence.finalise(kubelet("", certificate(*names)))["node"] is None


@pytest.mark.parametrize("junk", [{"kubelet": None}, {"kubelet": {"status": "ok", "data": [1]}}, {"kubelet": {"data": {"kubeconfig": {"text": 1}}}}, {}])
def test_junk_proves_nothing(junk: dict[str, Any]) -> None:
    found = evidence.finalise(evidence.envelope("m1", "ok", "", {"collectors": junk}))
    assert (found["node"], found["cluster_key"], evidence.role_of(found)) == (None, None, "unknown")


def test_the_node_cannot_speak_for_the_controller() -> None:
    said = {"host": "m2", "node": "x", "cluster_key": "k", "groups": ["control_plane"], "schema": "x", "reason": "a\x1b[2J\nb"}
    found = evidence.envelope("m1", "ok", "", said)
    assert (found["host"], found["node"], found["cluster_key"], found["groups"], found["schema"]) == ("m1", None, None, [], evidence.SCHEMA)
    assert found["reason"] == "a [2J b"


ROLES = [
    ("worker", {"kubelet": ("ok", {}), "manifests": ("absent", None), "instances": ("ok", {"processes": []})}),
    ("unknown", {"kubelet": ("ok", {}), "manifests": ("denied", None), "instances": ("ok", {"processes": []})}),
    ("unknown", {"kubelet": ("absent", None), "manifests": ("absent", None), "instances": ("ok", {"processes": []})}),
    ("control_plane", {"instances": ("ok", {"processes": [{"component": "kube-scheduler", "static": True, "host_network": True}]})}),
    ("control_plane", {"instances": ("ok", {"processes": [{"component": "kube-apiserver", "unit": "kube-apiserver.service"}]})}),
    ("unknown", {"instances": ("ok", {"processes": [{"component": "kube-scheduler", "static": True, "host_network": False}]})}),
    ("unknown", {"instances": ("ok", {"processes": [{"component": "kube-controller-manager", "static": False, "host_network": True}]})}),
    ("control_plane", {"manifests": ("ok", {"files": [{"name": "s.manifest", "text": "image: registry/kube-scheduler:v1"}]})}),
    ("worker", {"kubelet": ("ok", {}), "manifests": ("ok", {"files": [{"name": "proxy.yaml", "text": "x"}]}), "instances": ("ok", {})}),
]


@pytest.mark.parametrize("role, collectors", ROLES)
def test_role(role: str, collectors: dict[str, tuple[str, Any]]) -> None:
    records = {name: {"status": status, "data": data} for name, (status, data) in collectors.items()}
    assert evidence.role_of(evidence.envelope("m1", "ok", "", {"collectors": records})) == role


@pytest.mark.parametrize("host, name", [
    ("m1", "m1.json"), ("node.example.org", "node.example.org.json"), ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd.json"), (".hidden", "%2Ehidden.json"),
    ("ü b", "%C3%BC%20b.json"), ("fe80::1%eth0", "fe80%3A%3A1%25eth0.json"), ("..", "%2E..json"),
])
def test_any_name_is_one_file(tmp_path: Path, host: str, name: str) -> None:
    written = evidence.write(document(host=host), tmp_path / "evidence")
    path = tmp_path / "evidence" / (name if not name.startswith("..") else "%2E" + name[1:])
    assert [one.name for one in (tmp_path / "evidence").iterdir()] == [path.name]
    assert written == {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [one["host"] for one in evidence.stream([tmp_path])] == [host]


def _nested(depth: int) -> Any:
    value: Any = []
    for _level in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("broken, reason", [
    ([], "no JSON object"), (document(schema="kubemend.evidence/2"), "schema is"), (document(host=""), "host or status"),
    (document(host=None), "host is missing"), (document(status="fine"), "host or status"), (document(collectors=[]), "collectors is missing"),
    (document(collectors={"a": 1}), "collector a has no known status"),
    (document(collectors={"a": {"status": []}}), "collector a has no known status"), (document(collected_at=1), "collected_at is missing"),
    (document(x=_nested(60)), "nested more than"), (document(groups="control_plane"), "groups is missing"),
])
def test_what_is_no_evidence_is_refused_by_name(tmp_path: Path, broken: Any, reason: str) -> None:
    (tmp_path / "m1.json").write_text(json.dumps(broken))
    with pytest.raises(evidence.EvidenceError) as caught:
        list(evidence.stream([tmp_path]))
    assert str(caught.value).startswith(f"{tmp_path / 'm1.json'}: ") and reason in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100000])
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(evidence.EvidenceError, match="no JSON, or cut"):
        list(evidence.stream([tmp_path]))


def test_folders_are_merged(tmp_path: Path) -> None:
    def put(folder: str, host: str, status: str, hour: int) -> None:
        evidence.write(document(host=host, status=status, collected_at=f"2026-11-21T{hour:02}:00:00Z", reason=folder), tmp_path / folder)

    put("a/evidence", "m1", "ok", 1), put("b", "m1", "unreachable", 2), put("c", "m1", "not_asked", 3)
    put("a/evidence", "m2", "unreachable", 1), put("b", "m2", "not_asked", 2)
    put("a/evidence", "m3", "ok", 1), put("b", "m3", "ok", 2)
    put("b", "m4", "error", 1), put("c", "m4", "unreachable", 4)
    found = {one["host"]: one["reason"] for one in evidence.stream([tmp_path / "a", tmp_path / "b", tmp_path / "c"])}
    assert found == {"m1": "a/evidence", "m2": "a/evidence", "m3": "b", "m4": "b"}


def test_cluster_and_node_evidence_of_one_host_are_two(tmp_path: Path) -> None:
    evidence.write(document(), tmp_path)
    evidence.write(document(kind="cluster"), tmp_path, ".cluster.json")
    assert [one.get("kind") for one in evidence.stream([tmp_path])] == ["cluster", None]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(evidence.EvidenceError, match="no evidence"):
        list(evidence.stream([tmp_path]))
    with pytest.raises(evidence.EvidenceError, match="no such folder"):
        list(evidence.stream([tmp_path / "x"]))


def test_stub(tmp_path: Path) -> None:
    evidence.write_stub(tmp_path, "w9", ["node"])
    found = next(evidence.stream([tmp_path]))
    assert (found["status"], found["groups"], found["collectors"]) == ("not_asked", ["node"], {})
