# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validity of the client certificate of a kubelet. Pure.

A kubelet that renews its own requests another when seven to nine tenths of its time are over
(k8s.io/client-go/util/certificate, nextRotationDeadline). One in its last tenth was therefore not
renewed: renewal is off, or the kubelet's requests are not signed. One inside the kubeconfig is
never renewed there; the kubelet may meanwhile use a newer one of its own directory, but it uses the
kubeconfig at each start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

# As evidence.py has it: ansible-core needs it itself, and only ansible-test imports plugins where
# it is not.
try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
except ImportError:
    x509 = UnsupportedAlgorithm = None

from ....module_utils.shared.cluster_key import CERTIFICATE
from ...evidence import contract
from ...evidence.answers.file_record import CertificateFile
from ...evidence.answers.node.kubelet import Kubelet
from ...safe_io import yaml_nodes
from ..moments import timestamp
from . import config as kubelet_config

OVERDUE = 10  # the last tenth of its time
# and not earlier where only people renew it: a tenth of ten years is a year
BY_HAND = timedelta(days=90)
OWN = "kubelet-client-current.pem"  # of the folder in which a kubelet keeps what it was given


@dataclass(frozen=True)
class Validity:
    """Validity of a kubelet's client certificate.

    path: the file that holds it
    aside: whether the file is not one that the kubelet itself renews, but lies inside the
    kubeconfig or is named by it begins, ends: its dates
    left: time until its end, by the node's clock at collection
    rotates: whether the kubelet is configured to renew it, None where that is not known
    """

    path: str
    aside: bool
    begins: datetime
    ends: datetime
    left: timedelta
    rotates: bool | None

    @property
    def expired(self) -> bool:
        """Return whether its time is over."""
        return self.left <= timedelta(0)

    @property
    def overdue(self) -> bool:
        """Return whether it should have been renewed by now."""
        return self.left * OVERDUE < self.ends - self.begins and (
            self.rotates is not False or self.left < BY_HAND
        )


def read(document: Mapping[str, Any]) -> Validity | None:
    """Return the certificate of a node's evidence; None where none can be read."""
    kubelet = contract.answer(document, Kubelet)
    certificate = kubelet.client_certificate or CertificateFile()
    collected = timestamp(str(document.get("collected_at") or ""))
    dates = _dates(certificate.pem or "")
    if dates is None or collected is None:
        return None
    path, rotates = certificate.path, _rotates(kubelet)
    aside = _is_aside(path, rotates)
    if aside and kubelet.kubeconfig is not None:
        path = kubelet.kubeconfig.path
    return Validity(path or "its kubeconfig", aside, *dates, dates[1] - collected, rotates)


def _is_aside(path: str | None, rotates: bool | None) -> bool:
    """Return whether the file is not one that the kubelet renews.

    A kubelet that renews its certificate keeps it in its own directory, and leaves any other file
    that its kubeconfig names as it was.
    """
    if path is None:
        return True
    return rotates is not False and not path.endswith(f"/{OWN}")


def _dates(pem: str) -> tuple[datetime, datetime] | None:
    block = CERTIFICATE.search(pem)
    if block is None or x509 is None:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(block.group().encode("ascii"))
        return _date(certificate, "not_valid_before"), _date(certificate, "not_valid_after")
    except (ValueError, TypeError, OverflowError, x509.InvalidVersion, UnsupportedAlgorithm):
        return None


def _date(certificate: Any, name: str) -> datetime:
    """Return a date with its zone, which newer libraries (42) give; they warn of the other."""
    date: datetime = getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)
    if date.tzinfo:
        return date
    return date.replace(tzinfo=timezone.utc)


def _rotates(kubelet: Kubelet) -> bool | None:
    config = kubelet_config.read(kubelet)
    rotates, setting = config.switch("rotateCertificates", "rotate-certificates")
    if not config.certain(setting):
        return None
    if setting is None or (setting.path is not None and setting.value in yaml_nodes.NULL):
        return False
    return rotates
