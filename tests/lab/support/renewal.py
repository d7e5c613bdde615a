# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of renewed certificates have in common."""

from __future__ import annotations

import contextlib
import json
import time

from tests.lab.cluster.host import note
from tests.lab.support import expired_certificates as certificates
from tests.lab.support import incident
from tests.lab.support.repairing import codes
from tests.lab.support.static_pod import MANAGER, SCHEDULER

ALLOW = ("-e", "kubemend_allow=api_down")
RENEW, LOAD = "renew_certificates", "load_certificates"
MASTERS = ("m1", "m2", "m3")
FILES = 17  # that kubeadm renews on a control-plane node: seven pairs and three kubeconfigs
OLD_YEAR = "2021"  # in which the certificates of the incident ended
_LEASES = ("get", "leases", "-A", "-o", "json")


@contextlib.contextmanager
def expired(cluster, name, target):
    """Let certificates have expired; after a test that fails the former ones are put back."""
    one = incident.by_name(name)
    incident.made(cluster, one, target)
    try:
        yield
        certificates.keep(cluster, one.masters(cluster, target))
    finally:
        one.finish(cluster, target)
        cluster.wait_healthy()


def _renewals(cluster):
    """Return when each lease of a node or a component was renewed the last time."""
    items = json.loads(cluster.kubectl(*_LEASES).stdout)["items"]
    return {
        item["metadata"]["name"]: item["spec"]["renewTime"]
        for item in items
        if item["metadata"]["namespace"] == "kube-node-lease"
        or item["metadata"]["name"] in (MANAGER, SCHEDULER)
    }


def all_renewed(cluster):
    """Return whether every lease has been renewed since a moment ago."""
    before = _renewals(cluster)
    assert len(before) == len(cluster.nodes) + 2, before

    def later():
        now = _renewals(cluster)
        return all(now[name] != before[name] for name in before)

    cluster.wait(later, 60, "every lease to be renewed")
    return True


def kept(cluster, node):
    """Return how many former files the journal of a node keeps."""
    said = cluster.exec(
        node, "find /var/lib/kubemend/journal -name '*.before' -perm 600 | wc -l", check=False
    )
    return int(said.stdout)


def is_shown(cluster, node):
    """Return whether each port of a master's API server and etcd shows a renewed certificate."""
    ends = [certificates.shown_end(cluster, node, port) for port in (6443, 2379, 2380)]
    return all(end and OLD_YEAR not in end for end in ends)


def timed(play, *arguments, name):
    """Run a playbook, and note its time, what it found and how its steps ended."""
    begin = time.monotonic()
    done, report = play(*arguments, name=name)
    note(f"{name} {' '.join(arguments)}: {time.monotonic() - begin:.1f} s, {done.returncode}")
    note(f"  {' '.join(sorted({f'{code}@{host}' for code, host in codes(report)}))}")
    for step in report["steps"]:
        note(
            f"  {step['id']}: {step['state']} {step.get('proof_seconds')} s {step['reason'][:300]}"
        )
    return done, report
