# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of the cluster's own pods that end again and again, with their last words."""

from __future__ import annotations

from collections.abc import Iterable

from .cluster import Evidence


def system_pod(
    evidence: Evidence,
    host: str,
    pod: str,
    container: str,
    restarts: int,
    lines: Iterable[str],
    lasted: float = 2,
    namespace: str = "kube-system",
) -> None:
    """Let a container of such a pod be started again and again, its logs with these lines.

    lasted: how long a start ran, in seconds.
    """
    begun = evidence.now - 90
    first = begun - 300 - lasted
    folder = f"/var/log/pods/{namespace}_{pod}_5b0c9c1e-52a5-4d0b-9b7e-6f1e0d3a2c44/{container}"
    row = {"namespace": namespace, "pod": pod, "container": container, "restart": restarts}
    row |= {"begun": begun, "written": begun + lasted, "path": f"{folder}/{restarts - 1}.log"}
    row |= {"first": first, "last": first + lasted, "lines": list(lines), "error": None}
    answer = evidence.data(host, "system_pods")
    answer.setdefault("pods", []).append(row)
    answer["more"] = 0
