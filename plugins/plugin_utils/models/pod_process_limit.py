# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What limits the processes of a pod on one host: its kubelet, and CRI-O. Pure.

No field of a pod sets such a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cri import Cri, CriConfig
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.runtime import Runtime
from ..evidence.document import one_line
from ..parsers import release_number
from .kubelet import config as kubelet_config
from .result import EvidenceRef

CRIO = "crio"
UNLIMITED = (1, 24)  # from this release on CRI-O has no limit of its own


@dataclass(frozen=True)
class ProcessLimit:
    """A limit of processes and where it is set.

    clause: as it stands within a sentence
    """

    clause: str
    proof: EvidenceRef | None = None


def read(host: str, document: Mapping[str, Any]) -> tuple[ProcessLimit, ...]:
    """Return the limits that a host sets for its pods and containers."""
    return (*_of_kubelet(host, document), *_of_crio(host, document))


def _of_kubelet(host: str, document: Mapping[str, Any]) -> Iterator[ProcessLimit]:
    config = kubelet_config.read(contract.answer(document, Kubelet))
    setting = config.setting("podPidsLimit", "pod-max-pids")
    if setting is None or not setting.value.strip().isdigit() or int(setting.value) == 0:
        return
    place = "the kubelet's command line"
    if setting.path:
        place = f"{setting.path}:{setting.line}"
    clause = f"the kubelet allows a pod {int(setting.value)} (podPidsLimit, {place})"
    yield ProcessLimit(clause, setting.proof(host))


def _of_crio(host: str, document: Mapping[str, Any]) -> Iterator[ProcessLimit]:
    answer = contract.answer(document, Cri)
    config = answer.config or CriConfig()
    if config.pids_limit is not None:
        if config.pids_limit > 0:
            path = one_line(config.pids_limit_path, 300)
            clause = f"CRI-O allows a container {config.pids_limit} (pids_limit, {path})"
            proof = EvidenceRef("file", host, text=f"{path}: pids_limit = {config.pids_limit}")
            yield ProcessLimit(clause, proof)
    elif contract.answer(document, Runtime).kind == CRIO and _limits(answer.version):
        unread = "sets no pids_limit" if answer.config else "may set another pids_limit"
        clause = f"CRI-O allows a container 1024 up to its release 1.23; /etc/crio {unread}"
        yield ProcessLimit(clause)


def _limits(version: str) -> bool:
    """Tell whether CRI-O of this release may have a limit that no file sets."""
    number = release_number.parse(version)
    return number is None or number[:2] < UNLIMITED
