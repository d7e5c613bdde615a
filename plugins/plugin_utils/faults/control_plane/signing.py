# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM128: check that controller managers have the keys to sign certificates and tokens with.

Without its files a controller is skipped. The controller manager says so once, in a line that its
usual verbosity leaves out or that is long gone, and does not end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...evidence.document import one_line
from ...models.api_node import and_others
from ...models.certificates import MANAGER
from ...models.cluster import Cluster, Host
from ...models.control_plane import Process
from ...models.result import EvidenceRef
from ...parsers import pflag
from ..base import CheckResult, Detection, cluster_check, not_applicable, without_kubernetes

# One pair for all signers, or one for each of them since 1.19.
_CERTIFICATES = tuple(
    f"cluster-signing-{signer}cert-file"
    for signer in (
        "",
        "kubelet-serving-",
        "kubelet-client-",
        "kube-apiserver-client-",
        "legacy-unknown-",
    )
)
_TOKEN_KEY = "service-account-private-key-file"
# From this release on, pods have tokens without Secrets; the controller makes none any more.
_WITHOUT_SECRETS = (1, 24)
# Up to then, the flag had a default, which few clusters have: /etc/kubernetes/ca/ca.pem.
_WITHOUT_DEFAULT = (1, 20)
ALL = "*"
# Since 1.28 a controller has a longer name too, and the flag takes both.
_LONG_NAMES = {
    "csrsigning": "certificatesigningrequest-signing-controller",
    "serviceaccount-token": "serviceaccount-token-controller",
}


class _Lack(NamedTuple):
    """What a controller manager lacks: the flags, what it does not do, and what to do.

    controller: the one that it skips
    """

    controller: str
    flags: str
    effect: str
    advice: str


_SIGNER = _Lack(
    "csrsigning",
    "--cluster-signing-cert-file and --cluster-signing-key-file",
    "it signs no certificate: a CertificateSigningRequest that is approved is never issued, and"
    " kubelets get no client certificate to join or to renew theirs",
    "give it the CA of the cluster and its key (with kubeadm"
    " --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt and"
    " --cluster-signing-key-file=/etc/kubernetes/pki/ca.key), which its pod must mount; requests"
    " that wait are signed then. Where another program signs all requests, write"
    " --controllers=*,-csrsigning",
)
_TOKENS = _Lack(
    "serviceaccount-token",
    f"--{_TOKEN_KEY}",
    "it makes no tokens for ServiceAccounts: pods are refused or have no token, for whose account"
    " no Secret has one",
    "give it the private key whose public one the API servers have as --service-account-key-file"
    f" (with kubeadm --{_TOKEN_KEY}=/etc/kubernetes/pki/sa.key), which its pod must mount",
)


@cluster_check(
    "KM128",
    "Controller manager has no key to sign with",
    severity="warning",
    applies="clusters with an audited control-plane node",
    needs=("instances",),
    component=MANAGER,
)
def unsigned(cluster: Cluster) -> Iterator[CheckResult]:
    """KM128: report controller managers without the keys of certificates or of tokens."""
    if cluster.key is None:
        yield without_kubernetes(component=MANAGER)
        return
    running = list(_running(cluster))
    missing = [lack for host in cluster.members for lack in host.missing("instances")]
    if not running and not missing:
        yield not_applicable("no controller manager runs as a process of its own")
        return
    hits = [_hit(lack, places) for lack, places in _lacks(running) if places]
    yield CheckResult(tuple(hits), tuple(missing))


_Place = tuple[Host, Process]


def _running(cluster: Cluster) -> Iterator[_Place]:
    for host in cluster.hosts:
        if host.control_plane is not None:
            for process in host.control_plane.processes_of(MANAGER):
                yield host, process


def _lacks(running: list[_Place]) -> Iterator[tuple[_Lack, list[_Place]]]:
    """Yield what is lacking, and which controller managers lack it."""
    yield _SIGNER, [row for row in running if _runs(row, _SIGNER) and _signs_nothing(row[1])]
    yield _TOKENS, [row for row in running if _runs(row, _TOKENS) and _makes_no_token(row[1])]


def _runs(place: _Place, lack: _Lack) -> bool:
    """Tell whether a controller is switched on; those of these names are by default."""
    listed = (pflag.string_flag(place[1].argv, "controllers") or ALL).split(",")
    names = {lack.controller, _LONG_NAMES[lack.controller]}
    if names & {name[1:] for name in listed if name.startswith("-")}:
        return False
    return ALL in listed or bool(names.intersection(listed))


def _signs_nothing(process: Process) -> bool:
    return not any(pflag.string_flag(process.argv, flag) for flag in _CERTIFICATES)


def _makes_no_token(process: Process) -> bool:
    if process.version is None or process.version >= _WITHOUT_SECRETS:
        return False
    return not pflag.string_flag(process.argv, _TOKEN_KEY)


def _hit(lack: _Lack, places: list[_Place]) -> Detection:
    hosts = and_others(sorted({host.host for host, _process in places}))
    default = ""
    if lack is _SIGNER and any(_has_default(process) for _host, process in places):
        default = " (and this release has another pair only in /etc/kubernetes/ca)"
    return Detection(
        f"{MANAGER} of {hosts} has no {lack.flags}{default}: {lack.effect}",
        tuple(_proof(host, process) for host, process in places),
        f"{lack.advice}. Its flags are in /etc/kubernetes/manifests/{MANAGER}.yaml, in its unit or"
        " in a file of the installer",
        component=MANAGER,
    )


def _has_default(process: Process) -> bool:
    return process.version is None or process.version < _WITHOUT_DEFAULT


def _proof(host: Host, process: Process) -> EvidenceRef:
    return EvidenceRef(
        "process",
        host.host,
        pid=process.pid,
        object=MANAGER,
        text=one_line(" ".join(process.argv), 300),
    )
