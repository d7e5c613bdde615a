# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM507 by the dates of a kubelet's client certificate.

One that is over, and one that nobody renews.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...evidence.document import one_line, shell_name
from ...models import control_plane
from ...models.cluster import Host
from ...models.kubelet import client_certificate as kubelet_certificate
from ...models.kubelet import status as kubelet_why
from ...models.kubelet.client_certificate import Validity
from ...models.kubelet.status import Why
from ...models.result import Missing, Proof
from ..base import Hit, Outcome
from . import kubelet_exit_advice as kubelet_cures
from . import kubelet_unit as nodes

CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
CLOCK = "compare the node's clock first (timedatectl)"


def dated(host: Host, document: Mapping[str, Any], told: Outcome) -> Outcome:
    """What the dates add to what the kubelet's last words told, which prove nothing of its
    certificate.
    """
    valid, why = kubelet_certificate.read(document), kubelet_why.read(document)
    if valid is not None and why is not None and valid.overdue:
        return Outcome((_hit(host, valid, why),), host=host.host, component="kubelet")
    known = control_plane.data(document, "kubelet").get("client_certificate")
    if isinstance(known, Mapping) and known.get("error") == "denied" and not told.missing:
        return Outcome(
            (),
            (Missing(host.host, "kubelet", "denied"),),
            host=host.host,
            component="kubelet",
            note="its client certificate was not read",
        )
    return told


def _hit(host: Host, valid: Validity, why: Why) -> Hit:
    """Critical where the API refuses it now.

    One inside the kubeconfig counts at the kubelet's next start for certain.
    """
    node, path = host.node or host.host, one_line(valid.path, 200)
    starts = not why.ended
    state = (
        _over(valid, starts)
        if valid.expired
        else (
            f"ends in {_span(valid.left.total_seconds())}, and was not renewed, as it is from seven"
            " tenths of its time on"
        )
    )
    proofs = (
        Proof(
            "file",
            host.host,
            path=path if path[:1] == "/" else None,
            object=None if path[:1] == "/" else path,
            text=_dates(valid),
        ),
        nodes.proof(host, why.unit),
    )
    return Hit(
        f"the client certificate of the kubelet of {node} {state} ({path}, valid until"
        f" {valid.ends:%Y-%m-%d %H:%M:%S} UTC)",
        proofs,
        _cure(valid, node, shell_name(why.unit.name, "UNIT")),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity=None if valid.expired and not (starts and valid.aside) else "warning",
    )


def _over(valid: Validity, runs: bool) -> str:
    if not runs:
        return "has expired: it does not run, and will not start with it"
    if valid.aside:
        return (
            "has expired: with its next start the kubelet fails; until then it may have a newer one"
            " of its own folder"
        )
    return "has expired: the API server refuses the kubelet that runs, and it will not start again"


def _cure(valid: Validity, node: str, unit: str) -> str:
    """How it comes by one that is good."""
    if valid.aside:
        theirs = (
            f"where {CURRENT} is good (openssl x509 -noout -enddate -in), name it in"
            f" {one_line(valid.path, 200)} as client-certificate and client-key, in the place of"
            " client-certificate-data and client-key-data, or of the file that it names, which"
            " nothing renews; else "
        )
    else:
        theirs = ""
    if valid.expired:
        return f"{CLOCK}; {theirs}{kubelet_cures.credentials(node)}; then systemctl restart {unit}"
    if theirs:
        return f"{theirs}{kubelet_cures.credentials(node)}, before that day"
    if valid.rotates is False:
        return (
            "the kubelet is not told to renew it: set rotateCertificates: true in its"
            " configuration, and restart it, which makes it ask for another; or, before that day,"
            f" {kubelet_cures.credentials(node)}"
        )
    return (
        "see whether its request waits to be signed (kubectl get csr), and whether the controller"
        " manager that leads signs (its controllers csrapproving and csrsigning,"
        f" --cluster-signing-cert-file); journalctl -u {unit} tells why it does not ask; or, before"
        f" that day, {kubelet_cures.credentials(node)}"
    )


def _span(seconds: float) -> str:
    days, hours = divmod(int(seconds) // 3600, 24)
    return (
        f"{days} days"
        if days > 1
        else f"{24 * days + hours} h"
        if days or hours
        else f"{int(seconds) // 60} min"
    )


def _dates(valid: Validity) -> str:
    rotates = (
        ""
        if valid.rotates is None
        else f"; rotateCertificates is {'true' if valid.rotates else 'not true'}"
    )
    return (
        f"valid from {valid.begins:%Y-%m-%dT%H:%M:%SZ} to {valid.ends:%Y-%m-%dT%H:%M:%SZ}"
        + (", inside the kubeconfig or named by it" if valid.aside else "")
        + rotates
    )
