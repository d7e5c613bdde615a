# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which measured address a message is about that says that an address is in use. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ...module_utils.shared import address_in_use
from ..evidence.answers.node.address_holders import AddressHolders, TakenAddress


def first(texts: Iterable[str], answer: AddressHolders) -> TakenAddress | None:
    """Return the row of the first address that one of these texts names, or None."""
    if not answer.addresses:
        return None
    rows = {(row.protocol, row.address, row.port): row for row in answer.addresses}
    places = (place for text in texts for place in address_in_use.find(text))
    return next((rows[place] for place in places if place in rows), None)
