# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding that containerd of a node drops the setting which would keep it from failing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..models import containerd_tables
from ..models.cluster import Host
from ..models.containerd_merge import Dropped
from ..models.result import EvidenceRef
from ..parsers import pod_start_message
from .base import Detection

_RUNTIME = re.compile(r"no runtime for \\?\"(?P<name>[\w.-]{1,80})\\?\" is configured")
_PULL = "pull_"
SHOWN = 3


def of_pull(host: Host | None, kind: str) -> tuple[Dropped, ...]:
    """Return how a node was to ask registries, and does not, where pods wait for an image."""
    if host is None or not kind.startswith(_PULL) or kind == pod_start_message.PLATFORM:
        return ()
    return tuple(row for row in host.dropped_settings if row.is_of_registries)


def of_runtime(host: Host | None, text: str) -> tuple[Dropped, ...]:
    """Return the lines of the runtime that a message misses."""
    match = _RUNTIME.search(text)
    if host is None or match is None:
        return ()
    end = f".runtimes.{match.group('name')}"
    rows = host.dropped_settings
    return tuple(row for row in rows if row.line.table.removesuffix(".options").endswith(end))


def of_sandbox(host: Host | None, image: str, kind: str) -> tuple[Dropped, ...]:
    """Return what names another image for sandboxes, else how registries were to be asked.

    image: that the runtime lacks; kind: why it cannot be pulled
    """
    if host is None:
        return ()
    rows = host.dropped_settings
    images = [row for row in rows if row.line.key == containerd_tables.SANDBOX_IMAGE]
    different = tuple(row for row in images if row.line.value.strip("\"'") != image)
    return different or of_pull(host, kind)


def with_dropped(hit: Detection, host: str | None, rows: Iterable[Dropped]) -> Detection:
    """Return a hit with the lines that have no effect, and what to do about them."""
    shown = tuple(rows)[:SHOWN]
    if not shown:
        return hit
    places = ", ".join(row.place for row in shown)
    return replace(
        hit,
        summary=f"{hit.summary}; containerd of that node drops {places}: {shown[0].reason}",
        evidence=(*proofs(host, shown), *hit.evidence),
        remedy=f"{advice(shown[0])}; else {hit.remedy}",
    )


def proofs(host: str | None, rows: Iterable[Dropped]) -> list[EvidenceRef]:
    """Return the lines as evidence."""
    return [
        EvidenceRef(
            "file",
            host,
            path=row.path,
            line=row.line.line,
            text=f"version = {row.version}, [{row.line.table}] {row.line.key} = {row.line.value}",
        )
        for row in rows
    ]


def advice(row: Dropped) -> str:
    """Return how to move the lines to where containerd reads them."""
    if row.is_of_one_file:
        return (
            f'on that node move what {row.file} has below [plugins."io.containerd.grpc.v1.cri"] to'
            " the tables of containerd 2, runtimes below"
            " [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.NAME]. containerd config"
            f" dump must then show {row.line.key}; systemctl restart containerd loads it. Correct"
            " also the program that wrote those lines (an installer, an operator of the runtime)"
        )
    return (
        f"write {row.file} with version = 3 and its tables: registry below"
        " [plugins.'io.containerd.cri.v1.images'.registry], sandbox_image as sandbox below"
        " [plugins.'io.containerd.cri.v1.images'.pinned_images], runtimes below"
        " [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.NAME] (containerd -c FILE"
        " config migrate prints it, of a copy of the file without its imports);"
        f" containerd config dump then has {row.line.key}; systemctl restart containerd on that"
        " node loads it. What installs nodes has to write it so, too"
    )
