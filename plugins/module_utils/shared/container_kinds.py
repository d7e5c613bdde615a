# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of containers, and whether the resources of a container ask for CPU pinning."""

from . import quantity

APP, INIT, SIDECAR = "app", "init", "sidecar"
RESOURCES = ("cpu", "memory")


def unequal(container):
    """Return the resources of a container that keep its pod from the QoS class Guaranteed.

    Such a resource has no limit, or a request that is not its limit.
    """
    return [resource for resource in RESOURCES if not _is_guaranteed(container, resource)]


def _is_guaranteed(container, resource):
    request, limit = container[f"{resource}_request"], container[f"{resource}_limit"]
    if not quantity.positive(limit):
        return False
    return request is None or quantity.same(request, limit)


def meant(container):
    """Return whether an app container asks for whole CPUs as one that is to be pinned does."""
    return (
        container["kind"] == APP
        and quantity.whole(container["cpu_limit"])
        and "cpu" not in unequal(container)
    )
