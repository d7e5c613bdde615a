# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of repairing playbooks have in common, apart from the fixtures in conftest.py."""

from __future__ import annotations

import contextlib
import os

import pytest

from tests.gate import machine
from tests.lab.cluster import host
from tests.lab.support import incident, results, sampling
from tests.lab.support.report import findings
from tests.lab.support.static_pod import MANAGER, SCHEDULER, processes

OLD, NEW = "v1.18.4", "v1.36.3"
FULL = os.environ.get("KUBEMEND_TEST_FULL") == "1"
# What takes many minutes is the whole matrix's, or is asked for by its name.
UNDRAWN = pytest.mark.skipif(
    os.environ.get("KUBEMEND_DRAW") == "1", reason="many minutes: only in the whole matrix"
)


def releases() -> list[str]:
    """Return the releases that this run tests.

    Both in the whole matrix, else what KUBEMEND_K8S names or the commit draws.
    """
    if FULL:
        return [OLD, NEW]
    named = os.environ.get("KUBEMEND_K8S")
    if named:
        return [named]
    can_run = [version for version in (OLD, NEW) if not host.version_unavailable_reason(version)]
    return [sampling.release(can_run, results.tree()["commit"])]


RELEASES = releases()
CONSENT = ("-e", "kubemend_max_risk=2")
CAPTURE = ("-e", "kubemend_capture=true", "-e", "kubemend_capture_seconds=8")


def possible(version):
    """Skips the test where this machine can have no lab, or not this version.

    In a continuous integration the first is a failure.
    """
    if host.unavailable_reason():
        impossible(host.unavailable_reason())
    if host.version_unavailable_reason(version):
        pytest.skip(host.version_unavailable_reason(version))


def impossible(reason):
    """Skip a test that the machine cannot run; fail it in a continuous integration."""
    if machine.in_ci():
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def own(found):
    """Bring up a cluster of a test's own, and remove it at the end.

    It is one more than those that the others share. Its lock tells a run beside it that this one
    is not killed.
    """
    found.temporary = True
    try:
        with found.locked():
            yield found.up()
    finally:
        found.down()


@contextlib.contextmanager
def broken(cluster, *names, target="m2", symptom=True):
    """Make these incidents on that host, and heal them at the end in any case."""
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
    """Return what check mode must not change: files, processes and the directory of kubemend.

    names: the nodes to read; without it, all masters
    """
    seen = {}
    for node in (
        cluster.of_role("master") if names is None else [cluster.node(name) for name in names]
    ):
        listing = cluster.exec(
            node,
            "cd /etc/kubernetes && find . /var/lib/kubemend -type f -exec sha256sum {} +"
            " 2>/dev/null; stat -c '%n %i %Y' manifests/*",
        )
        pids = [processes(cluster, node, component) for component in (SCHEDULER, MANAGER)]
        seen[node.name] = (sorted(listing.stdout.decode().splitlines()), pids)
    return seen


def untouched(cluster, before, *names, journal=True):
    """Require that those masters, or all of them, are unchanged.

    A component has another process only where it gave its lead up by itself. That happens on a busy
    machine, to the leader while etcd is slow, and its log says so.
    """
    for name, now in state(cluster, names or list(before)).items():
        was, is_now = (
            [line for line in seen[0] if journal or "/var/lib/kubemend" not in line]
            for seen in (before[name], now)
        )
        assert was == is_now, name
        for component, former, running in zip(
            (SCHEDULER, MANAGER), before[name][1], now[1], strict=True
        ):
            if former != running:
                assert [argv for _pid, argv in former] == [argv for _pid, argv in running], (
                    name,
                    former,
                    running,
                )
                assert gave_up(cluster, name, component), (
                    f"{component} of {name} was started again, and not because it lost its lead"
                )


def gave_up(cluster, node, component):
    """Return whether its newest ended container lost its lease.

    The kubelet keeps one log of those that ended.
    """
    logs = f"/var/log/pods/kube-system_{component}-*/{component}/*.log"
    said = cluster.exec(
        node,
        f"ls -t {logs} | sed -n 2p | xargs -r grep -ciE 'leaderelection lost|lost lease'",
        check=False,
    )
    return said.stdout.strip() not in (b"", b"0")


def codes(report):
    return {
        (item["code"], item["host"])
        for item in findings(report)
        if item["code"] not in ("KM113", "KM112")
    }


def ended(report):
    """Return how each step of the plan ended, with the reason where that is not well."""
    told = {
        step["id"]: "done" if step["state"] == "done" else f"{step['state']}: {step['reason']}"
        for step in report["steps"]
    }
    return [told.get(step["id"], step["blocked_by"]) for step in report["plan"]]


def listing(cluster, node):
    return cluster.exec(node, "ls -A /etc/kubernetes/manifests").stdout.decode().split()
