# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the dates of a kubelet's client certificate for KM507: expired, or not renewed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.document import one_line, shell_name
from ...models.cluster import Host
from ...models.kubelet import client_certificate, supervisor
from ...models.kubelet import status as kubelet_status
from ...models.kubelet.client_certificate import Validity
from ...models.kubelet.status import KubeletStatus
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, present, unknown
from . import kubelet_exit_advice, kubelet_supervisor, kubelet_unit

CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
CLOCK = "compare the node's clock first (timedatectl)"


def with_dates(host: Host, document: Mapping[str, Any], outcome: CheckResult) -> CheckResult:
    """Return the result with what the dates add: the last log lines do not show the certificate."""
    valid, status = client_certificate.read(document), kubelet_status.read(document)
    if valid is not None and status is not None and valid.overdue:
        hit = _hit(host, document, valid, status)
        return present(hit, host=host.host, component="kubelet")
    record = contract.answer(document, Kubelet).client_certificate
    if record is not None and record.error == "denied" and not outcome.missing:
        return unknown(
            Missing(host.host, "kubelet", "denied"),
            host=host.host,
            component="kubelet",
            note="its client certificate was not read",
        )
    return outcome


def _hit(
    host: Host, document: Mapping[str, Any], valid: Validity, status: KubeletStatus
) -> Detection:
    """Report a certificate: critical if the API refuses it now.

    One inside the kubeconfig certainly counts only at the kubelet's next start.
    """
    node, path = host.node or host.host, one_line(valid.path, 200)
    starts = not status.ended
    severity: str | None = "warning"
    if valid.expired:
        state = _over(valid, starts)
        if not (starts and valid.aside):
            severity = None
    else:
        state = (
            f"ends in {_span(valid.left.total_seconds())}, and was not renewed, as it is from seven"
            " tenths of its time on"
        )
    place = EvidenceRef("file", host.host, object=path, text=_dates(valid))
    if path[:1] == "/":
        place = EvidenceRef("file", host.host, path=path, text=_dates(valid))
    return Detection(
        f"the client certificate of the kubelet {state} ({path}, valid until"
        f" {valid.ends:%Y-%m-%d %H:%M:%S} UTC)",
        (place, kubelet_unit.proof(host, status.unit)),
        _cure(document, valid, node, shell_name(status.unit.name, "UNIT")),
        host=host.host,
        node=host.node,
        component="kubelet",
        severity=severity,
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


def _cure(document: Mapping[str, Any], valid: Validity, node: str, unit: str) -> str:
    """Return how the kubelet gets a valid certificate: k3s and RKE2 make it at their start."""
    owner = supervisor.read(document)
    if owner is None:
        return _advice(valid, kubelet_exit_advice.credentials(node), unit)
    credentials = kubelet_supervisor.credentials(owner)
    if valid.expired:
        return f"{CLOCK}; {credentials}"
    return (
        f"systemctl restart {unit} before that day: {owner.title} renews at its start what ends"
        f" soon; else {credentials}"
    )


def _advice(valid: Validity, credentials: str, unit: str) -> str:
    """Return how the kubelet gets a valid certificate.

    credentials: how it gets another one
    """
    other = ""
    if valid.aside:
        other = (
            f"where {CURRENT} is good (openssl x509 -noout -enddate -in), name it in"
            f" {one_line(valid.path, 200)} as client-certificate and client-key, in the place of"
            " client-certificate-data and client-key-data, or of the file that it names, which"
            " nothing renews; else "
        )
    if valid.expired:
        return f"{CLOCK}; {other}{credentials}; then systemctl restart {unit}"
    if other:
        return f"{other}{credentials}, before that day"
    if valid.rotates is False:
        return (
            "the kubelet is not configured to renew it: set rotateCertificates: true in its"
            " configuration, and restart it, which makes it ask for another; or, before that day,"
            f" {credentials}"
        )
    return (
        "see whether its request waits to be signed (kubectl get csr), and whether the controller"
        " manager that leads signs (its controllers csrapproving and csrsigning,"
        f" --cluster-signing-cert-file); journalctl -u {unit} shows why it does not ask; or, before"
        f" that day, {credentials}"
    )


def _span(seconds: float) -> str:
    days, hours = divmod(int(seconds) // 3600, 24)
    if days > 1:
        return f"{days} days"
    if days or hours:
        return f"{24 * days + hours} h"
    return f"{int(seconds) // 60} min"


def _dates(valid: Validity) -> str:
    text = f"valid from {valid.begins:%Y-%m-%dT%H:%M:%SZ} to {valid.ends:%Y-%m-%dT%H:%M:%SZ}"
    if valid.aside:
        text += ", inside the kubeconfig or named by it"
    if valid.rotates is None:
        return text
    if valid.rotates:
        return f"{text}; rotateCertificates is true"
    return f"{text}; rotateCertificates is not true"
