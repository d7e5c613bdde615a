# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a defragmentation that k3s or RKE2 did not wait for, in the journal of its unit. Pure.

Each start defragments the etcd within k3s. Meanwhile it answers no request, so what fails then by
a time limit fails for that reason; etcd says later that it has finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_GAVE_UP = re.compile(r"local etcd status for learner management: context deadline exceeded")
_FINISHED = "finished defragmenting directory"
_PROCESS = re.compile(r" ([^\s\[\]:]{1,80}\[\d{1,10}\]): ")


def text(lines: Sequence[str], line: str) -> Iterator[str]:
    """Yield a line about etcd that does not answer with the one that says what it did then.

    lines: of the journal, in their order
    line: why a start failed; another one of the same process may be nearer
    """
    if not _GAVE_UP.search(line) or line not in lines:
        return
    after = lines[len(lines) - list(reversed(lines)).index(line) :]
    process = _process(line)
    finished = (row for row in after if _FINISHED in row and _process(row) == process)
    yield from (f"{line} {row}" for row in list(finished)[:1])


def _process(line: str) -> str:
    """Return the name and the pid that journald gives a line, "" without them."""
    return "".join(_PROCESS.findall(line)[:1])
