# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of the cluster's own pods: those that end again and again, and what those say that run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    system_pods as node_collector,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.logs import (
    plugin_files,
    pod_errors,
)

from . import clock
from .cluster import BuildError, Evidence

WINDOW, DAY = 600, 86400  # seconds
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def system_pod(
    evidence: Evidence,
    host: str,
    pod: str,
    container: str,
    restarts: int,
    lines: Iterable[str],
    lasted: float = 2,
    namespace: str = "kube-system",
    own: Iterable[str] = (),
) -> None:
    """Let a container of such a pod be started again and again, its logs with these lines.

    lasted: how long a start ran, in seconds. own: lines of its program's own file on the host, as
    of late, read by the collector itself.
    """
    begun = evidence.now - 90
    first = begun - 300 - lasted
    folder = f"/var/log/pods/{namespace}_{pod}_5b0c9c1e-52a5-4d0b-9b7e-6f1e0d3a2c44/{container}"
    row = {"namespace": namespace, "pod": pod, "container": container, "restart": restarts}
    row |= {"begun": begun, "written": begun + lasted, "path": f"{folder}/{restarts - 1}.log"}
    row |= {"first": first, "last": first + lasted, "lines": list(lines), "error": None}
    row["own"] = _own_file(container, list(own), evidence.now)
    answer = evidence.data(host, "system_pods")
    answer.setdefault("pods", []).append(row)
    answer["more"] = 0


def _own_file(container: str, lines: list[str], now: float) -> dict[str, Any] | None:
    """Return what the collector reads of a program's own file, None where it has no lines."""
    if not lines:
        return None
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".log") as log:
        log.write("".join(ISO.sub(clock.iso(now - 60)[:-1], line, 1) + "\n" for line in lines))
        log.flush()
        path = plugin_files.PATHS[container]
        with mock.patch.dict(plugin_files.PATHS, {container: log.name}):
            record: dict[str, Any] = plugin_files.errors(container, now)
    return {**record, "path": path}


def pod_says(
    evidence: Evidence,
    host: str,
    pod: str,
    container: str,
    lines: Iterable[str],
    every: float = 30,
    once: bool = False,
    namespace: str = "kube-system",
) -> None:
    """Let a container of such a pod that runs have said these lines, read by the collector itself.

    every: how often in the last ten minutes, in seconds; once: only when it started, a day ago
    """
    times: list[float] = (
        [DAY] if once else [every * number + 1 for number in range(int(WINDOW // every))]
    )
    written = [
        f"{clock.iso(evidence.now - time)[:-1]}.000000000Z stderr F {line}\n"
        for time in reversed(times)
        for line in lines
    ]
    path = f"/var/log/pods/{namespace}_{pod}_5b0c9c1e-52a5-4d0b-9b7e-6f1e0d3a2c44/{container}"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "0.log"
        # its first line is old: the log is that of a container that has run for a day
        begun = f"{clock.iso(evidence.now - DAY)[:-1]}.000000000Z stderr F begins\n"
        log.write_text(begun + "".join(written), encoding="utf-8")
        row = {"namespace": namespace, "pod": pod, "container": container, "path": f"{path}/0.log"}
        row["told"] = pod_errors.complaints(str(log)) if node_collector.is_plugin(pod) else []
        row.update(pod_errors.read(str(log), evidence.now))
    if not row["told"] and not row["entries"]:
        raise BuildError(f"the collector does not take this for an error: {next(iter(lines))[:60]}")
    answer = evidence.data(host, "system_pods")
    answer.setdefault("running", []).append(row)


def probe_fails(
    evidence: Evidence,
    host: str,
    pod: str,
    container: str,
    message: str,
    count: int = 40,
    minutes: int = 30,
    namespace: str = "kube-system",
) -> None:
    """Let the API have events of a probe of such a pod that fails since so many minutes."""
    row = {"namespace": namespace, "pod": pod, "container": container, "node": host}
    row |= {"message": message, "count": count}
    row |= {"first": clock.iso(evidence.now - 60 * minutes), "last": clock.iso(evidence.now - 60)}
    rows = evidence.data("api", "pod_start").setdefault("unhealthy", [])
    rows.append(row)
