# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why kube-vip does not hold the address of the API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import kube_vip_logs
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.pod_errors import (
    PodError,
    PodErrors,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.system_pods import (
    EndedPod,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.known_message import (
    Known,
)

KNOWN = Known("kube-vip-at-first-start", "it has no rights", "give it rights")
LOCK = "error retrieving resource lock kube-system/plndr-cp-lock: forbidden"


@dataclass
class Machine:
    pod_errors: PodErrors = field(default_factory=PodErrors)
    system_pods: tuple[Any, ...] = ()
    host: str = "m1"


def error(
    line: str = LOCK, known: Known | None = KNOWN, container: str = "kube-vip"
) -> dict[str, Any]:
    pod = PodError("kube-system", "kube-vip-m1", container, "/x", line, known=known)
    return {"pod_errors": PodErrors(True, (pod,))}


def end(line: str = LOCK, known: Known | None = KNOWN) -> dict[str, Any]:
    pod = EndedPod("kube-system", "kube-vip-m1", "kube-vip", 3, True, "/x", line, None, known=known)
    return {"system_pods": (pod,)}


@pytest.mark.parametrize(
    ("fields", "is_told"),
    [
        (error(), True),
        (end(), True),
        (error(known=None), False),  # it may be the consequence
        (end(known=None), False),
        (error(LOCK.replace("plndr-cp-lock", "plndr-svcs-lock")), False),
        (error(container="kube-vip-cloud-provider"), False),
        ({}, False),
    ],
)
def test_what_keeps_it_from_its_work(fields: dict[str, Any], is_told: bool) -> None:
    found = kube_vip_logs.obstacle([Machine(), Machine(**fields)])
    assert bool(found.clause) is is_told
    assert (KNOWN.cause in found.clause) is is_told
    assert found.advice == (KNOWN.advice if is_told else "")
    assert len(found.proofs) == is_told
