# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a node as evidence holds them."""

from __future__ import annotations

import posixpath
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    file_record,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    limits as limits_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode


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


def files(records: Any) -> tuple[file_record.FileRecord, ...]:
    """Return a collector's list of files as the decoder reads it, whatever it is."""
    return decode(limits_answer.Limits, {"sysctl_files": records}).answer.sysctl_files or ()


def file(path: str, text: str | None = None, **more: Any) -> file_record.FileRecord:
    (one,) = files([record(path, text, **more)])
    return one


def named_file(path: str, text: str | None = "", **more: Any) -> file_record.FileRecord:
    (one,) = files([named_record(path, text, **more)])
    return one
