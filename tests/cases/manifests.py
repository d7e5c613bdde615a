# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of static pods: flags of a component, a copy of its manifest."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from .cluster import BuildError, Evidence


def flags(
    evidence: Evidence,
    host: str,
    component: str,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    running: bool = True,
    ago: int | None = None,
) -> None:
    """Give a component's manifest other flags, and its process too where that is running.

    remove: flags as they are there, or the beginning of one. ago: when the file was changed, in
    seconds.
    """
    manifest = _file(evidence, host, f"{component}.yaml")
    command = f"    - {component}\n"
    if command not in manifest["text"]:
        raise BuildError(f"the manifest of {component} has no such command")
    text = "\n".join(
        line
        for line in manifest["text"].split("\n")
        if not any(line.startswith(f"    - {word}") for word in remove)
    )
    new = "".join(f"    - {word}\n" for word in add)
    manifest.update(text=text.replace(command, command + new, 1))
    manifest["size"] = len(manifest["text"])
    if ago is not None:
        manifest["mtime"] = evidence.now - ago
    for row in evidence.data(host, "instances")["processes"] if running else ():
        if row["component"] == component:
            kept = [
                word for word in row["argv"][1:] if not any(word.startswith(old) for old in remove)
            ]
            row["argv"] = [row["argv"][0], *add, *kept]


def manifest_copy(
    evidence: Evidence, host: str, component: str, name: str, ago: int | None = None
) -> None:
    """Put a copy of a component's manifest beside it, under another name."""
    records = evidence.data(host, "manifests")["files"]
    record = copy.deepcopy(_file(evidence, host, f"{component}.yaml"))
    record.update(path=record["path"].replace(record["name"], name), name=name)
    if ago is not None:
        record["mtime"] = evidence.now - ago
    records.append(record)


def _file(evidence: Evidence, host: str, name: str) -> dict[str, Any]:
    for record in evidence.data(host, "manifests")["files"]:
        if record["name"] == name:
            found: dict[str, Any] = record
            return found
    raise BuildError(f"{host} has no {name}")
