# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quote what device plugins log of a resource that no node offers; a part of KM210.

A plugin without a device for a resource may not register it: then no Node has the resource.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...evidence.document import one_line
from ...models import pod_roles
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.pod_errors import PodError
from ...models.result import EvidenceRef
from ...parsers import known_message
from ..base import Detection
from ..known_causes import explained

SHOWN = 2
NAMING = 5  # characters of a name that stands for itself; gpu and rdma are in any line
_HEAD = re.compile(r"^[IWEF]\d{4} [\d:.]{8,15} {1,12}\d{1,9} [\w./-]{1,60}:\d{1,6}\] ")


class _PluginLine(NamedTuple):
    """A line of a device plugin about a resource."""

    host: Host
    pod: PodError
    line: str


def with_plugin_lines(
    cluster: Cluster, hit: Detection, lacking: Mapping[str, set[str]]
) -> Detection:
    """Return a hit with what device plugins say of resources, and what that means.

    lacking: {resource: the nodes that the scheduler is known to exclude for it}
    """
    rows = [row for name in sorted(lacking) for row in _plugin_lines(cluster, name, lacking[name])]
    if not rows:
        return hit
    by_line: dict[str, list[_PluginLine]] = {}
    for row in rows:
        by_line.setdefault(_message(row.line), []).append(row)
    shown = list(by_line.items())[:SHOWN]
    hit = replace(
        hit,
        summary="; ".join([hit.summary, *(_clause(line, group) for line, group in shown)]),
        evidence=(*hit.evidence, *(_proof(group[0]) for _line, group in shown)),
    )
    return explained(hit, (pod_roles.DEVICES,), [line for line, _group in shown])


def _plugin_lines(cluster: Cluster, name: str, nodes: set[str]) -> Iterator[_PluginLine]:
    """Yield the last line of each device plugin of these nodes that is about a resource."""
    if "/" not in name:
        return
    for host in cluster.hosts:
        if nodes and host.node not in nodes:
            continue  # a node that is excluded for another reason may have no such device at all
        for pod in host.pod_errors.rows:
            lines = [line for line in pod.told if _is_about(pod, line, name)]
            if lines and pod_roles.DEVICES in pod_roles.places(pod):
                yield _PluginLine(host, pod, lines[-1])


def _is_about(pod: PodError, line: str, name: str) -> bool:
    """Tell whether a line of a plugin names a resource, or is a known one of its vendor's plugin.

    nvidia.com/gpu is of a pod such as nvidia-device-plugin-daemonset.
    """
    domain, _slash, short = name.rpartition("/")
    word = re.compile(rf"(?<![\w.-]){re.escape(short)}(?![\w-])")
    if name in line or (len(short) >= NAMING and word.search(line)):
        return True
    text = f"{pod.namespace} {pod.pod} {pod.container}".lower()
    if not all(label in text for label in domain.split(".")[:-1]):
        return False
    return known_message.first((pod_roles.DEVICES,), (line,)) is not None


def _message(line: str) -> str:
    """Return a line without the time and the place that klog puts before it."""
    return one_line(_HEAD.sub("", line), 300)


def _clause(line: str, rows: list[_PluginLine]) -> str:
    pod = rows[0].pod
    nodes = list(dict.fromkeys(row.host.node or row.host.host for row in rows))
    name = f"{pod.namespace}/{pod_roles.workload(pod)}"
    return f"the device plugin {name} on {and_others(nodes)} says: {line}"


def _proof(row: _PluginLine) -> EvidenceRef:
    name = f"{row.pod.namespace}/{row.pod.pod}"
    return EvidenceRef("log", row.host.host, path=row.pod.path, object=name, text=row.line)
