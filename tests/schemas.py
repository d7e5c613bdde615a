# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report and a file of evidence are held against.

The schemas that the collection publishes.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "schema"


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """Report, evidence or catalogue."""
    return json.loads((FOLDER / f"{name}-1.json").read_text(encoding="utf-8"))


def complaints(name: str, document: Any) -> list[str]:
    """Return the violations of that schema in a document: where, and what."""
    found = jsonschema.Draft202012Validator(schema(name)).iter_errors(document)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


@functools.cache
def _shape() -> Any:
    import xmlschema  # slow, and of one test only

    return xmlschema.XMLSchema(str(FOLDER / "junit.xsd"))


def junit_complaints(text: str) -> list[str]:
    """Return the violations of the shape of junit.xml in this file."""
    return [f"{error.path}: {error.reason}" for error in _shape().iter_errors(text)]


def checked(name: str, document: Any) -> Any:
    """Return the document itself, which has to be as the schema says."""
    wrong = complaints(name, document)
    if wrong:
        raise AssertionError(f"not as docs/schema/{name}-1.json says: " + "; ".join(wrong[:5]))
    return document
