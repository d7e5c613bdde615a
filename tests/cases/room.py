# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of free space: a file system that is nearly full, and what the Node says of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import pressure

from . import clock
from .cluster import Evidence

GIBIBYTE = 1024**3
# The lab's own: its nodes share a disk with everything else. A node has the defaults.
LAB_THRESHOLDS = re.compile(r"^evictionHard:\n(?:  .*\n)+|^imageGCHighThresholdPercent: .*\n", re.M)


def full(
    evidence: Evidence,
    host: str,
    free: float | None = None,
    inodes_free: int | None = None,
    largest: Iterable[list[Any]] = (),
    pressed: int | None = 600,
) -> None:
    """Let the one file system of a host have so few GiB or inodes left.

    largest: [path, GiB, files] of its folders. pressed: since when the Node has DiskPressure, in
    seconds; null where it has not.
    """
    kubelet, data = evidence.data(host, "kubelet"), evidence.data(host, "pressure")
    if kubelet["config"]:
        kubelet["config"]["text"] = LAB_THRESHOLDS.sub("", kubelet["config"]["text"])
    for row in data["filesystems"]:
        if free is not None:
            row["free"] = int(free * GIBIBYTE)
        if inodes_free is not None:
            row["inodes_free"] = inodes_free
    data["used_up"] = pressure.used_up(data, pressure.thresholds(pressure.threshold_texts(kubelet)))
    rows = [
        {"path": path, "bytes": int(size * GIBIBYTE), "files": files}
        for path, size, files in largest
    ]
    if data["used_up"]:
        found = {"name": "nodefs", "folders": rows, "bytes": None, "files": None, "complete": True}
        evidence.data(host, "largest").update(filesystems=[found], memory=[], threads=[])
    if pressed is not None:
        _disk_pressure(evidence, host, pressed)


def _disk_pressure(evidence: Evidence, host: str, since: int) -> None:
    at, item = clock.iso(evidence.now - since), evidence.node(host)
    reason = "KubeletHasDiskPressure"
    item["conditions"].append(
        {"type": "DiskPressure", "status": "True", "reason": reason, "since": at}
    )
    taint = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule", "added": at}
    item["taints"] = [*(item["taints"] or []), taint]
