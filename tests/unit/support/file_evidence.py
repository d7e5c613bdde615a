# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a node as evidence holds them."""

from __future__ import annotations

import posixpath
from typing import Any


def record(path: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "path": path,
        "kind": "file",
        "link": None,
        "text": text,
        "truncated": False,
        "binary": False,
        "error": None,
        **more,
    }


def named_record(path: str, text: str | None = "", **more: Any) -> dict[str, Any]:
    return record(path, text, **{"name": posixpath.basename(path), **more})
