# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of edits, and sources whose secrets are masked."""

from __future__ import annotations

import hashlib

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import argument


def check_edit(result: argument.Edit, before: str) -> str:
    """Return the text afterwards; the splices must make it from the bytes before."""
    data = before.encode()
    for splice in result.splices:
        assert data[splice.start : splice.end] == splice.old
    assert argument.apply(data, result.splices).decode() == result.text
    assert result.sha256 == hashlib.sha256(data).hexdigest()
    assert bool(result.diff) == result.changed == (result.text != before)
    return result.text


def mask_secrets(text: str, *secrets: str) -> tuple[argument.Source, bytes]:
    """Return the source as evidence holds it, and the true bytes."""
    data, spans = text.encode(), []
    shown = bytearray(data)
    for secret in secrets:
        start = data.index(secret.encode())
        spans.append((start, start + len(secret.encode())))
        shown[start : spans[-1][1]] = b"*" * len(secret.encode())
    return argument.Source(
        shown.decode(), "/m/s.yaml", hashlib.sha256(data).hexdigest(), tuple(spans)
    ), data
