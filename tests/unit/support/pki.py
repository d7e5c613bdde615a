# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a cluster that never was, and what the collector `certificates` says of them."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    certificate_flags,
)

FOLDER = "/etc/kubernetes/pki"
DAY = 86400


def digest_of(key: ec.EllipticCurvePrivateKey) -> str:
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(der).hexdigest()


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def name_of(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


@dataclass
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")

    @property
    def private(self) -> str:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode("ascii")

    @property
    def digest(self) -> str:
        return digest_of(self.key)


@dataclass
class Authority:
    """An authority; begins and ends in days from now."""

    name: str
    now: float
    begins: float = -400
    ends: float = 3250
    key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)

    def __post_init__(self) -> None:
        self.pair = self.issue(self.name, begins=self.begins, ends=self.ends, key=self.key)

    def issue(
        self,
        common_name: str,
        names: Iterable[str] = (),
        begins: float = -35,
        ends: float = 330,
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Pair:
        own = key or new_key()
        now = datetime.fromtimestamp(self.now, timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name_of(common_name))
            .issuer_name(name_of(self.name))
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=begins))
            .not_valid_after(now + timedelta(days=ends))
            .add_extension(x509.BasicConstraints(ca=key is self.key, path_length=None), True)
        )
        if names:
            general = [_general(name) for name in names]
            builder = builder.add_extension(x509.SubjectAlternativeName(general), False)
        return Pair(builder.sign(self.key, hashes.SHA256()), own)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Pki:
    """The certificates of a cluster of kubeadm's; those of a host by their paths."""

    def __init__(self, now: float, service: str = "10.96.0.1") -> None:
        self.now, self.service = now, service
        self.ca, self.etcd = Authority("kubernetes", now), Authority("etcd-ca", now)
        self.front = Authority("front-proxy-ca", now)
        self.tokens = new_key()

    def files(self, host: str, address: str, ends: float = 330) -> dict[str, Pair]:
        """Return the certificates of a control-plane node by the names of their files."""
        begins = min(-35.0, ends - 365)
        served = [host, address, "127.0.0.1", "localhost"]
        cluster = ["kubernetes", "kubernetes.default.svc", self.service, host, address]
        made = {"begins": begins, "ends": ends}
        return {
            "ca": self.ca.pair,
            "etcd/ca": self.etcd.pair,
            "front-proxy-ca": self.front.pair,
            "apiserver": self.ca.issue("kube-apiserver", cluster, **made),
            "apiserver-kubelet-client": self.ca.issue("kube-apiserver-kubelet-client", **made),
            "apiserver-etcd-client": self.etcd.issue("kube-apiserver-etcd-client", **made),
            "front-proxy-client": self.front.issue("front-proxy-client", **made),
            "etcd/server": self.etcd.issue(host, served, **made),
            "etcd/peer": self.etcd.issue(host, served, **made),
            "controller-manager.conf": self.ca.issue("system:kube-controller-manager", **made),
            "scheduler.conf": self.ca.issue("system:kube-scheduler", **made),
            "admin.conf": self.ca.issue("kubernetes-admin", **made),
        }


def answer(
    argvs: Mapping[str, tuple[int, Iterable[str]]],
    pairs: Mapping[str, Pair],
    tokens: str,
    server: str,
    mtime: float,
) -> dict[str, Any]:
    """Return the collector's answer for components with these arguments, all well.

    argvs: (pid, argv) by component. tokens: the digest of the key of tokens.
    """
    data: dict[str, Any] = {"uses": [], "files": [], "keys": [], "kubeconfigs": [], "served": []}
    numbers: dict[str, int] = {}
    for component, (pid, argv) in argvs.items():
        for flags in certificate_flags.KINDS[component].values():
            for flag in flags:
                for path in certificate_flags.values(list(argv), flag):
                    use = {"component": component, "flag": flag, "path": path, "pid": pid}
                    _add(data, numbers, use, pairs, tokens, mtime)
        if component in ("kube-apiserver", "etcd"):
            _serve(data, component, pid)
    for component, name in (
        ("kube-controller-manager", "controller-manager.conf"),
        ("kube-scheduler", "scheduler.conf"),
        ("", "admin.conf"),
    ):
        row = kubeconfig(component, f"/etc/kubernetes/{name}", pairs[name], pairs["ca"], server)
        data["kubeconfigs"].append({**row, "mtime": mtime})
    return data


def _add(
    data: dict[str, Any],
    numbers: dict[str, int],
    use: dict[str, Any],
    pairs: Mapping[str, Pair],
    tokens: str,
    mtime: float,
) -> None:
    path = use["path"]
    name = path.removeprefix(FOLDER + "/").rpartition(".")[0]
    if certificate_flags.kind_of(use["component"], use["flag"]) == certificate_flags.KEY:
        digest = tokens if name == "sa" else pairs[name].digest
        data["keys"].append({**use, "digests": [digest], "error": None})
        return
    if path not in numbers:
        numbers[path] = len(data["files"])
        record = {"path": path, "pem": pairs[name].pem, "error": None, "mtime": mtime}
        data["files"].append({**record, "key_beside": True})
    data["uses"].append({**use, "file": numbers[path]})


def _serve(data: dict[str, Any], component: str, pid: int) -> None:
    """Let the ports of a component show the certificates of its files."""
    ports = {"tls-cert-file": 6443, "cert-file": 2379, "peer-cert-file": 2380}
    for use in list(data["uses"]):
        if use["component"] == component and use["flag"] in ports:
            place = {"address": "127.0.0.1", "port": ports[use["flag"]], "pid": pid}
            shown = {"component": component, "flag": use["flag"], "error": None}
            pem = data["files"][use["file"]]["pem"]
            data["served"].append({**place, **shown, "pem": pem})


def kubeconfig(component: str, path: str, pair: Pair, ca: Pair, server: str) -> dict[str, Any]:
    return {
        "component": component,
        "path": path,
        "server": server,
        "client": pair.pem,
        "client_path": None,
        "authority": ca.pem,
        "digests": [pair.digest],
        "users": 1,
        "error": None,
        "mtime": None,
    }


def set_file(data: dict[str, Any], path: str, pair: Pair, **more: Any) -> None:
    """Replace a file of certificates in an answer."""
    for record in data["files"]:
        if record["path"] == path:
            record.update(pem=pair.pem, **more)


def set_key(data: dict[str, Any], flag: str, digest: str) -> None:
    """Replace the key of a flag in an answer."""
    for row in data["keys"]:
        if row["flag"] == flag:
            row["digests"] = [digest]


def argvs(host: str, address: str) -> dict[str, tuple[int, list[str]]]:
    """Return (pid, argv) of the components of a control-plane node, as kubeadm starts them."""
    server, etcd = f"{FOLDER}/apiserver", f"{FOLDER}/etcd"
    return {
        "kube-apiserver": (
            90,
            [
                "kube-apiserver",
                f"--advertise-address={address}",
                f"--client-ca-file={FOLDER}/ca.crt",
                f"--etcd-cafile={etcd}/ca.crt",
                f"--etcd-certfile={server}-etcd-client.crt",
                f"--etcd-keyfile={server}-etcd-client.key",
                "--etcd-servers=https://127.0.0.1:2379",
                f"--kubelet-client-certificate={server}-kubelet-client.crt",
                f"--kubelet-client-key={server}-kubelet-client.key",
                f"--proxy-client-cert-file={FOLDER}/front-proxy-client.crt",
                f"--proxy-client-key-file={FOLDER}/front-proxy-client.key",
                f"--requestheader-client-ca-file={FOLDER}/front-proxy-ca.crt",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={FOLDER}/sa.pub",
                f"--service-account-signing-key-file={FOLDER}/sa.key",
                "--service-cluster-ip-range=10.96.0.0/12",
                f"--tls-cert-file={server}.crt",
                f"--tls-private-key-file={server}.key",
            ],
        ),
        "kube-controller-manager": (
            101,
            [
                "kube-controller-manager",
                f"--cluster-signing-cert-file={FOLDER}/ca.crt",
                f"--cluster-signing-key-file={FOLDER}/ca.key",
                f"--root-ca-file={FOLDER}/ca.crt",
                f"--service-account-private-key-file={FOLDER}/sa.key",
            ],
        ),
        "etcd": (
            80,
            [
                "etcd",
                f"--cert-file={etcd}/server.crt",
                f"--initial-advertise-peer-urls=https://{address}:2380",
                f"--key-file={etcd}/server.key",
                f"--peer-cert-file={etcd}/peer.crt",
                f"--peer-key-file={etcd}/peer.key",
                f"--peer-trusted-ca-file={etcd}/ca.crt",
                f"--trusted-ca-file={etcd}/ca.crt",
            ],
        ),
    }


def certify(world: Any, pki: Pki, ends: float = 330) -> dict[str, dict[str, Pair]]:
    """Give the masters of a world certificates and processes that use them.

    The result has the certificates of each host by the names of their files.
    """
    made: dict[str, dict[str, Pair]] = {}
    for host in world.documents:
        if not host.startswith("m"):
            world.documents[host]["collectors"]["certificates"] = {"status": "absent"}
            continue
        address = f"10.0.0.{host[1:]}"
        made[host] = pki.files(host, address, ends)
        started = argvs(host, address)
        for row in world.data(host, "instances")["processes"]:
            if row["component"] in started:
                row.update(pid=started[row["component"]][0], argv=started[row["component"]][1])
        data = answer(
            started,
            made[host],
            digest_of(pki.tokens),
            f"https://{address}:6443",
            pki.now - 35 * DAY,
        )
        world.documents[host]["collectors"]["certificates"] = {"status": "ok", "data": data}
    info = {"server": "https://10.0.0.1:6443", "pem": pki.ca.pair.pem, "key": None}
    world.api["collectors"]["cluster_info"] = {"status": "ok", "data": info}
    return made


def forget(world: Any) -> None:
    """Let the evidence of a world be that of a release without the collector."""
    for document in world.documents.values():
        document["collectors"].pop("certificates", None)
    world.api["collectors"].pop("cluster_info", None)
