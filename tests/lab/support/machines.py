# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worker with a kernel of its own: what tests ask of it, and its state between tests."""

from __future__ import annotations

import json

from tests.lab.cluster import bringup
from tests.lab.cluster.clusters import Cluster
from tests.lab.cluster.node import Node

SNAPSHOT = "joined"
NOT_READY_SECONDS = 240
READY_SECONDS = 300
REST_SECONDS = 240
IDLE_SHARE = 0.3
IDLE_WINDOW = 5  # seconds


def worker(cluster: Cluster) -> Node:
    """Return the worker that is a virtual machine."""
    return next(node for node in cluster.of_role("worker") if node.vm)


def keep(cluster: Cluster) -> None:
    """Keep the state of the healthy node, once for each machine."""
    machine = cluster.machine(worker(cluster))
    mark = machine.folder / SNAPSHOT
    if not mark.exists():
        cluster.wait_healthy()
        wait_at_rest(cluster, worker(cluster).name)
        machine.keep(SNAPSHOT)
        mark.touch()


def restore(cluster: Cluster) -> None:
    """Restore that state, its memory and its disk, and wait until the cluster is healthy.

    The process of QEMU is a new one: in the former the processor's clock never goes back, so that
    the restored kernel would see minutes pass at once, and systemd's watchdog end its services.
    """
    node = worker(cluster)
    machine = cluster.machine(node)
    machine.cut_power()
    bringup.power_on(cluster, node, state=SNAPSHOT)
    machine.go_on()
    cluster.kubectl("uncordon", node.name, check=False)
    cluster.wait_healthy()


def api_object(cluster: Cluster, name: str) -> dict:
    return json.loads(cluster.kubectl("get", "node", name, "-o", "json").stdout)


def is_ready(cluster: Cluster, name: str) -> bool:
    conditions = api_object(cluster, name)["status"].get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def taints(cluster: Cluster, name: str) -> set[str]:
    return {taint["key"] for taint in api_object(cluster, name)["spec"].get("taints") or ()}


def wait_ready(cluster: Cluster, name: str) -> None:
    """Wait until the node is Ready and at rest."""
    cluster.wait(lambda: is_ready(cluster, name), READY_SECONDS, f"{name} to be ready")
    wait_at_rest(cluster, name)


def wait_at_rest(cluster: Cluster, name: str) -> None:
    """Wait until the emulated processor is idle for a part of the time.

    Just after its start it is so busy that collectors do not end within their limits: what they
    read is unknown then, and a repair of it is rightly not planned.
    """
    cluster.wait(
        lambda: _idle_share(cluster, name) >= IDLE_SHARE, REST_SECONDS, f"{name} to be at rest"
    )


def _idle_share(cluster: Cluster, name: str) -> float:
    """Return which part of a few seconds the node's processor had nothing to do."""
    program = f"head -n 1 /proc/stat; sleep {IDLE_WINDOW}; head -n 1 /proc/stat"
    lines = cluster.exec(name, program).stdout.decode().splitlines()
    before, after = ([int(word) for word in line.split()[1:]] for line in lines)
    spent = [end - begin for begin, end in zip(before, after, strict=True)]
    return spent[3] / max(1, sum(spent[:8]))


def wait_not_ready(cluster: Cluster, name: str) -> None:
    cluster.wait(lambda: not is_ready(cluster, name), NOT_READY_SECONDS, f"{name} to be not ready")


def unit(cluster: Cluster, name: str, service: str) -> tuple[str, str]:
    """Return what systemctl is-enabled and is-active print."""
    command = f"systemctl is-enabled {service}; systemctl is-active {service}; true"
    enabled, active = cluster.exec(name, command).stdout.decode().splitlines()
    return enabled, active
