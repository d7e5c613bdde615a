# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The feature gates that a release knows, and those that it locks to a value.

A gate counts as known where any package of the release registers it, because components inherit the
gates of the libraries that they use. Up to 1.32 a gate has one specification, later one for each
release that changed it, of which the last one that is not newer counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FILES = (
    "kubernetes/pkg/features",
    "apiserver/pkg/features",
    "apiextensions-apiserver/pkg/features",
    "client-go/features",
    "component-base/featuregate",
    "component-base/logs/api/v1",
    "component-base/metrics/features",
    "component-base/zpages/features",
    "controller-manager/pkg/features",
    "cloud-provider",
    "apiserver/pkg/util/feature",
)
_NAMED = re.compile(
    r"(?m)^[ \t]*(?:const[ \t]+)?(\w+)(?:[ \t]+(?:\w+\.)?Feature)?[ \t]*=[ \t]*\"([A-Z]\w+)\""
)
_COMMENT = re.compile(r"//[^\n]*")
_ENTRY = re.compile(r"(?m)^[ \t]*(?:\w+\.)?([A-Z]\w*|all\w+Gate):[ \t]*\{")
_VERSION = re.compile(r"MustParse\(\"1\.(\d+)\"\)")
_DEFAULT = re.compile(r"Default:[ \t]*(true|false)\b")
_LOCKED = re.compile(r"LockToDefault:[ \t]*true\b")


def of_release(minor: int, folders: dict[str, Path]) -> tuple[frozenset[str], dict[str, str]]:
    """Return the known gates of one release, and the value of each that is locked."""
    texts = [_COMMENT.sub("", text) for text in _texts(folders)]
    names = dict(pair for text in texts for pair in _NAMED.findall(text))
    known: set[str] = set()
    locks: dict[str, str] = {}
    for text in texts:
        for constant, body in _entries(text):
            gate = names.get(constant, constant)
            known.add(gate)
            value = _locked(body, minor)
            if value:
                locks.setdefault(gate, value)
    return frozenset(known), locks


def _texts(folders: dict[str, Path]) -> Iterator[str]:
    for place in FILES:
        module, _slash, rest = place.partition("/")
        folder = folders.get(module, Path("/nonexistent")) / rest
        for path in sorted(folder.glob("*.go")):
            if not path.name.endswith("_test.go"):
                yield path.read_text(encoding="utf-8")


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield (constant, specification) of the maps of gates of one file."""
    for match in _ENTRY.finditer(text):
        body = _braced(text, match.end())
        if "Default:" in body:
            yield match.group(1), body


def _braced(text: str, begin: int) -> str:
    depth = 1
    for index in range(begin, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return text[begin:index]
    return ""


def _locked(body: str, minor: int) -> str:
    """Return the value to which a release locks a gate, else ""."""
    specification = body
    if "MustParse" in body:
        rows = [row for row in body.split("}") if _VERSION.search(row)]
        valid = [row for row in rows if int(_VERSION.findall(row)[0]) <= minor]
        specification = valid[-1] if valid else ""
    default = _DEFAULT.search(specification)
    if default is None or not _LOCKED.search(specification):
        return ""
    return default.group(1)
