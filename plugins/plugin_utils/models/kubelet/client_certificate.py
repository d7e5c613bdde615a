# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long the client certificate of a kubelet is good. Pure.

A kubelet that renews its own asks for another when seven to nine tenths of its time are over
(k8s.io/client-go/util/certificate, nextRotationDeadline). So one that is in its last tenth was not
renewed: nobody does it, or nobody signs what the kubelet asks for. One that lies inside the
kubeconfig is never renewed there; the kubelet may meanwhile use a newer one of its own folder, but
it asks the kubeconfig at each start.
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

from ...evidence.document import CERTIFICATE
from ...safe_io import yaml_nodes
from .. import control_plane
from ..cluster import timestamp
from . import config as kubelet_config

OVERDUE = 10  # the last tenth of its time
# and no sooner where nobody but people renew it: a tenth of ten years is a year
BY_HAND = timedelta(days=90)
OWN = "kubelet-client-current.pem"  # of the folder in which a kubelet keeps what it was given


@dataclass(frozen=True)
class Validity:
    """path: where it lies; aside.

    Not the kubelet's own, which it renews, but one inside the kubeconfig or that this names;
    begins, ends: its dates; left: until its end, by the node's clock when it was asked.

    rotates: whether the kubelet is told to renew it; None where that cannot be told.
    """

    path: str
    aside: bool
    begins: datetime
    ends: datetime
    left: timedelta
    rotates: bool | None

    @property
    def expired(self) -> bool:
        return self.left <= timedelta(0)

    @property
    def overdue(self) -> bool:
        """Whether it should have been renewed by now."""
        return self.left * OVERDUE < self.ends - self.begins and (
            self.rotates is not False or self.left < BY_HAND
        )


def read(document: Mapping[str, Any]) -> Validity | None:
    """Of a node's evidence; None where that holds no certificate that can be read."""
    kubelet = control_plane.data(document, "kubelet")
    found, at = (
        kubelet.get("client_certificate"),
        timestamp(str(document.get("collected_at") or "")),
    )
    dates = _dates(found.get("pem")) if isinstance(found, Mapping) else None
    if dates is None or at is None or not isinstance(found, Mapping):
        return None
    own, config = found.get("path"), kubelet.get("kubeconfig")
    rotates = _rotates(kubelet)
    # A kubelet that renews its certificate keeps it in its own folder, and leaves any other file
    # that its kubeconfig names as it was.
    aside = not isinstance(own, str) or (rotates is not False and not own.endswith("/" + OWN))
    path = config.get("path") if aside and isinstance(config, Mapping) else own
    return Validity(
        path if isinstance(path, str) else "its kubeconfig", aside, *dates, dates[1] - at, rotates
    )


def _dates(pem: Any) -> tuple[datetime, datetime] | None:
    block = CERTIFICATE.search(pem) if isinstance(pem, str) else None
    if block is None or x509 is None:
        return None
    try:
        found = x509.load_pem_x509_certificate(block.group().encode("ascii"))
        return _date(found, "not_valid_before"), _date(found, "not_valid_after")
    except (ValueError, TypeError, OverflowError, x509.InvalidVersion, UnsupportedAlgorithm):
        return None


def _date(certificate: Any, name: str) -> datetime:
    """Newer libraries (42) say it with its zone, and warn of the other."""
    told = getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)
    return told if told.tzinfo else told.replace(tzinfo=timezone.utc)


def _rotates(kubelet: Mapping[str, Any]) -> bool | None:
    config = kubelet_config.read(kubelet)
    told, setting = config.switch("rotateCertificates", "rotate-certificates")
    unset = setting is None or (setting.path is not None and setting.value in yaml_nodes.NULL)
    return None if not config.certain(setting) else False if unset else told
