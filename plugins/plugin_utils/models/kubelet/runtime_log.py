# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the containerd of k3s or RKE2 ended, which takes the kubelet with it. Pure.

Their containerd writes to a file of its own; their journal only says that it exited.
"""

from __future__ import annotations

import re

from ...evidence.answers.node.kubelet_end import KubeletEnd
from ...evidence.answers.node.runtime import RuntimeUnit
from ...evidence.document import ends, one_line
from ...parsers import component_log, runtime_journal, unit_journal
from ...parsers.runtime_journal import Words

EXITED = re.compile(r"containerd exited|^containerd: (?:exit status|signal:) ")
# As the parser of a journal knows the lines of its program.
_PREFIX = "- - containerd[1]: "


def find(end: KubeletEnd | None) -> Words | None:
    """Return the last line of containerd, None where it did not end, or says nothing."""
    if end is None or end.runtime_file is None or not end.runtime_file.lines:
        return None
    starts = unit_journal.starts(end.lines)
    if not starts or not any(EXITED.search(line.text) for line in starts[-1].lines):
        return None
    lines = tuple(f"{_PREFIX}{line}" for line in end.runtime_file.lines)
    words = runtime_journal.last_words(RuntimeUnit(name="containerd.service", said=lines))
    return words if words.ends or words.what else None


def clause(words: Words, path: str) -> str:
    """Return the last line of containerd as a clause."""
    line = ends(component_log.text(words.line.removeprefix(_PREFIX)), 300)
    text = f'; its containerd ended, and {one_line(path, 200)} has: "{line}"'
    return f"{text} ({words.what})" if words.what else text


def line_of(words: Words) -> str:
    """Return the line of its log."""
    return words.line.removeprefix(_PREFIX)
