# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors and the context of every collector."""

import time

MARGIN = 0.7
DEFAULT_SECONDS = 30.0  # for all collectors together; the limit of each is made for it


def scale(params):
    """Return by how much the limit of each collector is longer than its usual one."""
    return max(1.0, float(params.get("timeout") or DEFAULT_SECONDS) / DEFAULT_SECONDS)


class Absent(Exception):
    """The object of the collector is not on this node."""


class Denied(Exception):
    """The object may be on this node, but this user may not read it."""


class Failed(Exception):
    """The object did not answer; `data` is what is known nevertheless."""

    def __init__(self, reason, data=None):
        super().__init__(reason)
        self.data = data


class Context:
    """The parameters, the processes of interest and the data of the needed collectors.

    scale: by how much each limit is longer than its usual one.
    """

    __slots__ = ("data", "deadline", "params", "processes", "scale", "source", "truncated")

    def __init__(self, params, processes, data, deadline=None, scale=1.0):
        self.params = params
        self.processes = processes
        self.data = data
        self.source = None
        self.truncated = False
        self.deadline = deadline
        self.scale = scale

    def seconds(self, most):
        """Return how long one question may take.

        The collector has to send the data that it has before its own limit.
        """
        if self.deadline is None:
            return most
        return max(0.0, min(most * self.scale, self.deadline - time.monotonic() - MARGIN))


def in_this_network(context, components):
    """Return the processes of these components that share this node's network.

    It raises Denied where that is not known.
    """
    instances = context.data.get("instances") or {}
    processes = [
        process
        for process in instances.get("processes") or []
        if process["component"] in components
    ]
    for process in processes:
        if process["host_network"] is None:
            raise Denied(
                f"without root it is unknown whether pid {process['pid']} is in this node's network"
            )
    return [process for process in processes if process["host_network"]]
