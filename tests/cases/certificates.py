# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of certificates: those of a control plane by the flags of its components, and k3s's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    certificate_flags,
)
from tests.unit.support import pki
from tests.unit.support.pki import Authority, Pair, Pki

from . import paths
from .cluster import Evidence

COLLECTOR = "certificates"
FRONT = "front-proxy-ca"
AGENT = certificate_flags.RANCHER_FOLDERS["k3s"] + "/agent"
YEAR = 365
AGED = 35  # days that kubeadm's certificates of the tests are old
WELL = 330.0  # days for which they are valid
KUBELETS = "/var/lib/kubelet/pki/kubelet.crt"


def certificates(
    evidence: Evidence,
    expired: float | None = None,
    apart: Iterable[str] = (),
    keys: Iterable[str] = (),
    begin: float | None = None,
    only: Iterable[str] = (),
) -> None:
    """Give each master certificates, as kubeadm makes them.

    expired: days since they ended. only: the files of which that is so, without their ending; all
    where none is named. begin: days until they begin. apart: authorities that each master has of
    its own. keys: paths of keys of which each master has its own, with the certificate beside it.
    """
    only = list(only)
    made = Pki(evidence.now if begin is None else evidence.now + (begin + AGED) * pki.DAY)
    masters = [
        host for host in evidence.hosts if evidence.record(host, "manifests")["status"] == "ok"
    ]
    for host in masters:
        ends = WELL if expired is None else -float(expired)
        if FRONT in apart:
            made.front = Authority(FRONT, evidence.now)
        pairs = made.files(host, _address(evidence, host), WELL if only else ends)
        old = made.files(host, _address(evidence, host), ends)
        pairs.update({name: old[name] for name in only})
        for path in keys:
            name = path.rpartition(".")[0]
            names = ["kubernetes", made.service, host, _address(evidence, host)]
            pairs[name] = made.ca.issue("kube-apiserver", names, ends=ends)
        argvs = _argvs(evidence, host)
        server = f"https://{_address(evidence, host)}:6443"
        tokens = pki.digest_of(made.tokens)
        data = pki.answer(argvs, pairs, tokens, server, evidence.now - 35 * pki.DAY)
        evidence.data(host, COLLECTOR).update(data)


def _address(evidence: Evidence, host: str) -> str:
    addresses: list[str] = evidence.data(host, "system")["addresses"]
    return next(address for address in addresses if not address.startswith("127."))


def _argvs(evidence: Evidence, host: str) -> dict[str, Any]:
    """Return (pid, argv) of each component, by its process or else its manifest."""
    argvs: dict[str, Any] = {}
    for record in evidence.data(host, "manifests")["files"]:
        component, argv = certificate_flags.argv_of_manifest(record["text"] or "")
        if component:
            argvs[component] = (None, argv)
    for row in evidence.data(host, "instances")["processes"]:
        if row["component"] in certificate_flags.KINDS:
            argvs[row["component"]] = (row["pid"], row["argv"])
    return argvs


def k3s_certificates(evidence: Evidence, serving: str = "servers") -> None:
    """Give each node of k3s its serving certificate, signed by the CA of servers or of clients."""
    servers = Authority(f"k3s-server-ca@{int(evidence.now) - YEAR}", evidence.now)
    clients = Authority(f"k3s-client-ca@{int(evidence.now) - YEAR}", evidence.now)
    signer = servers if serving == "servers" else clients
    for host in evidence.hosts:
        pair = signer.issue(host, [host, "127.0.0.1", "localhost"])
        rows = (
            ("tls-cert-file", f"{AGENT}/serving-kubelet.crt", pair),
            ("client-ca-file", f"{AGENT}/client-ca.crt", clients.pair),
            ("server-ca", f"{AGENT}/server-ca.crt", servers.pair),
        )
        evidence.data(host, COLLECTOR).update(_of_kubelet(rows, evidence.now))


def kubelet_serving(evidence: Evidence, hosts: Iterable[str], expired: float) -> None:
    """Let kubelets serve the certificate that they signed themselves, which ended days ago."""
    for host in hosts:
        authority = Authority(f"{host}-ca@{int(evidence.now) - 2 * YEAR}", evidence.now)
        pair = authority.issue(host, [host], begins=-expired - YEAR, ends=-expired)
        data = evidence.data(host, COLLECTOR)
        for key in ("uses", "files", "keys", "kubeconfigs", "served"):
            data.setdefault(key, [])
        use = {"component": "kubelet", "flag": "tls-cert-file", "path": KUBELETS, "pid": None}
        data["uses"].append({**use, "file": len(data["files"])})
        made = evidence.now - (expired + YEAR) * pki.DAY
        record = {"path": KUBELETS, "pem": pair.pem, "error": None, "key_beside": True}
        data["files"].append({**record, "mtime": made})
        served = {"component": "kubelet", "flag": "tls-cert-file", "pid": None, "pem": pair.pem}
        data["served"].append({**served, "address": "127.0.0.1", "port": 10250, "error": None})


def _of_kubelet(rows: Iterable[tuple[str, str, Pair]], now: float) -> dict[str, Any]:
    data: dict[str, Any] = {"uses": [], "files": [], "keys": [], "kubeconfigs": [], "served": []}
    for number, (flag, path, pair) in enumerate(rows):
        use = {"component": "kubelet", "flag": flag, "path": path, "pid": None, "file": number}
        data["uses"].append(use)
        record = {"path": path, "pem": pair.pem, "error": None, "key_beside": False}
        data["files"].append({**record, "mtime": now - pki.DAY})
    return data


def cluster_info(evidence: Evidence, other: bool = False) -> None:
    """Let cluster-info have the authority of the cluster, or that of another one."""
    authority = Authority("kubernetes", evidence.now)
    key = "0" * 64 if other else evidence.api[0]["cluster_key"]
    evidence.data(paths.API, "cluster_info").update(
        server="https://10.0.0.1:6443", pem=authority.pair.pem, key=key
    )
