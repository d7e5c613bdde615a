# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of repairing playbooks have in common, beside the fixtures in conftest.py."""

from __future__ import annotations

import contextlib

from tests.lab import incident
from tests.lab.staticpod import MANAGER, SCHEDULER, processes

OLD, NEW = "v1.18.4", "v1.36.3"
CONSENT = ("-e", "kubemend_max_risk=2")


@contextlib.contextmanager
def broken(cluster, *names, target="m2", symptom=True):
    """These incidents on that host, healed at the end whatever happened to it."""
    chosen = [incident.by_name(name) for name in names]
    begun = []
    try:
        for one in chosen:
            begun.append(one)
            one.start(cluster, target)
        for one in chosen if symptom else ():
            one.symptom(cluster, target)
        yield
    finally:
        for one in reversed(begun):
            one.finish(cluster, target)
        cluster.wait_healthy()


def state(cluster, names=None):
    """What a run that only looks must not change: files, processes, our own folder; of all masters or these."""
    seen = {}
    for node in cluster.of_role("master") if names is None else [cluster.node(name) for name in names]:
        listing = cluster.exec(node, "cd /etc/kubernetes && find . /var/lib/kubemend -type f -exec sha256sum {} + 2>/dev/null; true")
        pids = [processes(cluster, node, component) for component in (SCHEDULER, MANAGER)]
        seen[node.name] = (sorted(listing.stdout.decode().splitlines()), pids)
    return seen


def codes(report):
    return {(item["code"], item["host"]) for item in report["findings"] if item["code"] not in ("KM113", "KM112")}


def listing(cluster, node):
    return cluster.exec(node, "ls -A /etc/kubernetes/manifests").stdout.decode().split()
