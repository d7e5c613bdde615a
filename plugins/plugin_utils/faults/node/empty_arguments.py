# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding about kubelite of MicroK8s that files of its flags are empty.

MicroK8s writes these files again at each start of kubelite and at each change of an add-on. A crash
or a power cut in between leaves them with 0 bytes (microk8s#4089). What a component then says of
missing flags is no matter of its release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.installer import Installer
from ...evidence.document import one_line
from ...models.result import EvidenceRef
from ..base import Detection

KUBELITE = "kubelite"
MEANING = (
    "empty, so that flags are missing: a crash or a power cut in the midst of writing leaves such"
    " files"
)


def paths(document: Mapping[str, Any], unit: str) -> tuple[str, ...]:
    """Return the files of flags that are empty, where this unit is that of kubelite."""
    if KUBELITE not in unit:
        return ()
    files = contract.answer(document, Installer).empty_arguments
    return tuple(one_line(path, 200) for path in files)


def with_files(hit: Detection, files: Sequence[str]) -> Detection:
    """Return a hit with the files that are empty, once, and how they are written again."""
    if not files or MEANING in hit.summary:
        return hit
    verb = "is" if len(files) == 1 else "are"
    names = ", ".join(path.rpartition("/")[2] for path in files)
    return replace(
        hit,
        summary=f"{hit.summary}. {' and '.join(files)} {verb} {MEANING}",
        evidence=(
            *(EvidenceRef("file", hit.host, path=path, text="empty") for path in files),
            *hit.evidence,
        ),
        remedy=f"write {names} again: from the same file of a like node, of the folder args of an"
        " earlier revision (ls -l /var/snap/microk8s/*/args) or of"
        " /snap/microk8s/current/default-args; then what was changed in it (microk8s enable rbac"
        f" and dns write there, too); snap restart microk8s.daemon-kubelite; else {hit.remedy}",
    )
