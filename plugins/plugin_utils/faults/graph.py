# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The graph of causes: which fault can lead to which, as the catalogue says."""

from __future__ import annotations

from functools import cache

from . import CATALOGUE


@cache
def effects() -> dict[str, tuple[str, ...]]:
    """Return the codes that each fault can lead to."""
    codes_by_cause: dict[str, set[str]] = {}
    for code, fault in CATALOGUE.items():
        for cause, _component in fault.explained_by:
            codes_by_cause.setdefault(cause, set()).add(code)
    return {code: tuple(sorted(codes)) for code, codes in sorted(codes_by_cause.items())}


def explains(cause: str, component: str | None, effect: str) -> bool:
    """Return whether a fault of this component can lead to another one.

    A check may name a cause that the catalogue does not: such a cause is taken as it is.
    """
    fault = CATALOGUE.get(effect)
    if fault is None:
        return True
    explained_by = fault.explained_by
    if cause not in {code for code, _component in explained_by}:
        return True
    return not explained_by.isdisjoint({(cause, component), (cause, None)})
