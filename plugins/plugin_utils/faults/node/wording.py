# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name a Node's host and the time of its state in findings."""

from __future__ import annotations

from ....module_utils.shared.text import counted
from ...evidence.document import one_line
from ...models.api_node import NodeView, views
from ...models.cluster import Cluster

# Distributions that keep modules of their kernel apart.
MORE_MODULES = (
    "install the package that has the other modules of the running kernel (RHEL and its like:"
    " kernel-modules-extra-$(uname -r), Ubuntu: linux-modules-extra-$(uname -r)), and load them"
    " (modprobe)"
)


def host_name(view: NodeView) -> str | None:
    """Return the host of the run that is this Node, or None."""
    if view.host is None:
        return None
    return view.host.host


def host_of(cluster: Cluster, node: str) -> str | None:
    """Return the host of the run that is the Node with this name, or None."""
    return next((host_name(view) for view in views(cluster) if view.name == node), None)


def pods(count: int) -> str:
    """Return how many pods."""
    return counted(count, "pod")


def do(count: int) -> str:
    """Return the verb of so many pods."""
    return "does" if count == 1 else "do"


def since(time: object) -> str:
    """Return since when a state lasts, as a clause with a leading space, or ""."""
    if not time:
        return ""
    return f" since {one_line(time, 40)}"
