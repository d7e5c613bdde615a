# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line in which a kubelet says why no sandbox of a pod is made, where its cause is known. Pure.

Without sandboxes no static pod starts, and no container of one has a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...parsers import known_message
from .. import releases

PLACES = (known_message.EVENT, "kubelet")
_SANDBOX = re.compile(r"RunPodSandbox|[Cc]reatePodSandbox|[Ff]ailed to create (?:pod )?sandbox")


def last(document: Mapping[str, Any]) -> str:
    """Return the newest line about a sandbox that is not made, of a known cause, or ""."""
    versions = releases.of_node(document)
    for line in _newest_first(contract.answer(document, KubeletEnd)):
        if not _SANDBOX.search(line):
            continue
        row = known_message.find(PLACES, line, None, versions)
        if row is not None and not row.is_of_workload:
            return line
    return ""


def _newest_first(end: KubeletEnd) -> Iterator[str]:
    for file in (end.file, end.runtime_file):
        if file is not None:
            yield from reversed(file.lines)
    yield from reversed(end.lines)
