# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags whose quotes no shell took away, so that they are a part of the value. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..evidence.document import one_line
from ..parsers import pflag

SHOWN = 3


def clause(argv: Sequence[str]) -> str:
    """Return that quotes are a part of values, as a clause, or ""."""
    words = pflag.quoted(argv)
    if not words:
        return ""
    shown = one_line(" ".join(words[:SHOWN]), 240)
    return f"; the program gets the quotes as a part of the value: {shown}"


def advice(argv: Sequence[str]) -> str:
    """Return what to do about such quotes, or ""."""
    if not pflag.quoted(argv):
        return ""
    return (
        "take the quotes out of these values, or put them around the whole word"
        ' ("--flag=value"): neither systemd nor the kubelet takes away quotes within a word, as a'
        " shell does; then "
    )
