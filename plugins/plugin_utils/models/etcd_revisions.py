# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member of etcd that has a revision which the others do not have, by its own log. Pure.

etcd compares the hashes of its members at its start, and later at times. A member that asks for the
hash at a revision gets an error from one that has not reached it: it is behind for a moment, or its
data are others. No alarm is raised for that, and the check at the start passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.repeated_errors import RepeatedErrors
from ..evidence.document import ends, one_line

# server/etcdserver/corrupt.go: in JSON since 3.4, and as plain text before.
_ASKED = re.compile(
    r'failed hash kv request\\?"[^\n]{0,200}?requested-revision\\?":(?P<revision>\d{1,19})'
    r"|hash-kv error [^\n]{0,200} with revision (?P<former>\d{1,19})"
)
_FUTURE = "required revision is a future revision"
_PROGRAMS = frozenset(("etcd", "k3s", "rke2"))
# A member that is behind for a moment has the revision at the next comparison.
APART_SECONDS = 60.0
LONGEST = 600


@dataclass(frozen=True)
class Ahead:
    """A revision that others do not have. source: the file of the log, or the unit."""

    revision: str
    count: int
    seconds: float
    line: str
    source: str


def extract(document: Mapping[str, Any]) -> Ahead | None:
    """Return that others lack the revision of a host's member again and again, or None."""
    for row in contract.answer(document, RepeatedErrors).components:
        if row.component not in _PROGRAMS:
            continue
        for entry in row.entries:
            seconds = (entry.last or 0.0) - (entry.first or 0.0)
            request = _ASKED.search(entry.line)
            if request is None or _FUTURE not in entry.line or seconds < APART_SECONDS:
                continue
            revision = request.group("revision") or request.group("former")
            line, source = ends(one_line(entry.line, 2000), LONGEST), one_line(row.source, 300)
            return Ahead(revision, entry.count, seconds, line, source)
    return None
