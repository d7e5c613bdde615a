# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redact secrets in bytes that are rarely suspicious."""

from .redaction_names import suspicious


def masked(data):
    """Return (bytes with asterisks over secrets, their spans).

    The rules are compiled only for suspicious bytes, which are rare on a worker.
    """
    if not suspicious(data):
        return data, []
    from . import redaction

    return redaction.data(data)
