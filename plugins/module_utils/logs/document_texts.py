# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts in the answers of other collectors that have one of some words."""

MOST = 200  # texts of one answer
DEEPEST = 8


def having(answer, marks):
    """Return the texts of an answer, at any depth, that have one of these words; in its order."""
    texts, rest = [], [(answer, 0)]
    while rest and len(texts) < MOST:
        item, depth = rest.pop()
        if isinstance(item, str):
            if any(mark in item for mark in marks):
                texts.append(item)
        elif depth < DEEPEST:
            rest += [(child, depth + 1) for child in reversed(_children(item))]
    return texts


def _children(item):
    if isinstance(item, dict):
        return list(item.values())
    if isinstance(item, (list, tuple)):
        return list(item)
    return []
