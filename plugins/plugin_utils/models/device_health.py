# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a device plugin said of the health of the devices that it serves. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from ...module_utils.shared import system_namespaces
from .cluster import Host
from .pod_errors import PodError

OF_HEALTH = re.compile(r"(?i)unhealthy|\bXid(?:CriticalError)?\b")


def plugin(host: Host | None, resource: str) -> PodError | None:
    """Return the plugin of a resource on a host, with only what it told of devices' health."""
    if host is None:
        return None
    vendor = resource.partition("/")[0].partition(".")[0]
    for pod in host.pod_errors.rows:
        lines = tuple(line for line in pod.told if OF_HEALTH.search(line))
        is_its = vendor in pod.pod or any(resource in line for line in lines)
        if lines and is_its and system_namespaces.is_device_plugin(pod.pod):
            return replace(pod, told=lines)
    return None
