# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remember the last reading of evidence: several faults need it, one after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Evidence = TypeVar("Evidence")
Answer = TypeVar("Answer")


def last(read: Callable[[Evidence], Answer]) -> Callable[[Evidence], Answer]:
    """Return a function that reads the same evidence once, if it gets it twice in a row.

    Evidence is compared by identity: faults get one document after the other, and nothing changes
    evidence once it is read. One document is held, so that memory does not grow, and so that no
    other document can have its identity.
    """
    cache: list[Any] = [object(), None]  # the evidence and its answer

    @functools.wraps(read)
    def remembered(evidence: Evidence) -> Answer:
        if cache[0] is not evidence:
            cache[:] = (evidence, read(evidence))
        answer: Answer = cache[1]
        return answer

    return remembered
