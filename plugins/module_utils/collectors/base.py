# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors and the context of every collector."""

import time

MARGIN = 0.7


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
    """The parameters, the processes of interest and the data of the needed collectors."""

    __slots__ = ("data", "deadline", "params", "processes", "source", "truncated")

    def __init__(self, params, processes, data, deadline=None):
        self.params = params
        self.processes = processes
        self.data = data
        self.source = None
        self.truncated = False
        self.deadline = deadline

    def seconds(self, most):
        """Return how long one question may take.

        The collector has to send the data that it has before its own limit.
        """
        if self.deadline is None:
            return most
        return max(0.0, min(most, self.deadline - time.monotonic() - MARGIN))


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
