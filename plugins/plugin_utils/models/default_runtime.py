# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs a container of no RuntimeClass, and what it does not give a plugin of devices. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cri import Cri, CriConfig
from ..evidence.document import one_line
from ..parsers.known_message import Known

# Messages of a plugin that lacks what only the runtime of NVIDIA gives a container.
WITHOUT_DRIVER = frozenset(("nvml-library-missing",))


def extract(document: Mapping[str, Any]) -> str:
    """Return the name of the default runtime of one node, "" where it is not known."""
    config = contract.answer(document, Cri).config or CriConfig()
    return one_line(config.default_runtime, 80)


def clause(runtime: str, row: Known | None) -> str:
    """Return that the default runtime gives a plugin no driver, as a clause, or ""."""
    if not runtime or row is None or row.id not in WITHOUT_DRIVER:
        return ""
    if "nvidia" in runtime.lower():
        return ""
    return (
        f"; the default runtime of that node is {runtime}, which gives a pod without a RuntimeClass"
        " neither GPU nor driver"
    )
