# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every certificate of a control plane has expired: named without an API, renewed, loaded.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import contextlib
import json
import time

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.cluster.host import note
from tests.lab.support import expired_certificates as certificates
from tests.lab.support import incident
from tests.lab.support.repairing import (
    CONSENT,
    RELEASES,
    UNDRAWN,
    codes,
    ended,
    own,
    possible,
    state,
    untouched,
)
from tests.lab.support.report import findings
from tests.lab.support.static_pod import API_SERVER, MANAGER, SCHEDULER, processes

pytestmark = UNDRAWN
ALLOW = ("-e", "kubemend_allow=api_down")
RENEW, LOAD = "renew_certificates", "load_certificates"
MASTERS = ("m1", "m2", "m3")
LEASES = ("get", "leases", "-A", "-o", "json")


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 3, 1, "short", name=f"{request.param}-certificates")) as found:
        yield found


def renewals(cluster):
    """Return when each lease of a node or a component was renewed the last time."""
    items = json.loads(cluster.kubectl(*LEASES).stdout)["items"]
    return {
        item["metadata"]["name"]: item["spec"]["renewTime"]
        for item in items
        if item["metadata"]["namespace"] == "kube-node-lease"
        or item["metadata"]["name"] in (MANAGER, SCHEDULER)
    }


def all_renewed(cluster):
    """Return whether every lease has been renewed since a moment ago."""
    before = renewals(cluster)
    assert len(before) >= 6, before

    def later():
        now = renewals(cluster)
        return all(now[name] != before[name] for name in before)

    cluster.wait(later, 60, "every lease to be renewed")
    return True


def kept(cluster, node):
    """Return how many former files the journal of a node keeps."""
    said = cluster.exec(
        node, "find /var/lib/kubemend/journal -name '*.before' -perm 600 | wc -l", check=False
    )
    return int(said.stdout)


def pids(cluster, node, component):
    return [pid for pid, _argv in processes(cluster, node, component)]


def timed(play, *arguments, name):
    begin = time.monotonic()
    done, report = play(*arguments, name=name)
    note(f"{name} {' '.join(arguments)}: {time.monotonic() - begin:.1f} s, {done.returncode}")
    note(f"  {' '.join(sorted({f'{code}@{host}' for code, host in codes(report)}))}")
    for step in report["steps"]:
        note(f"  {step['id']}: {step['state']} {step.get('seconds')} s {step['reason'][:300]}")
    return done, report


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


def test_all_masters(cluster, play):
    with expired(cluster, "certificates-expired-everywhere", "m1"):
        before = state(cluster)
        done, report = timed(play, *CONSENT, name="api_down")
        found = codes(report)
        assert {("KM120", host) for host in MASTERS} <= found, findings(report)
        assert {("KM126", host) for host in MASTERS} <= found, findings(report)
        assert [(step["host"], step["remedy"]) for step in report["plan"]] == [
            *((host, RENEW) for host in MASTERS),
            *((host, LOAD) for host in MASTERS),
        ], report["plan"]
        assert all("api_down" in step["blocked_by"] for step in report["plan"]), report["plan"]
        for name, now in state(cluster).items():
            assert now[0] == before[name][0], name

        done, report = timed(play, *CONSENT, *ALLOW, name="api_down")
        assert ended(report) == ["done"] * 6, done.stdout[-4000:]
        assert not {code for code, _host in codes(report)} & {"KM120", "KM122", "KM126"}, (
            done.stdout[-4000:]
        )
        cluster.wait_healthy()
        assert all_renewed(cluster)
        for host in MASTERS:
            assert certificates.shown_end(cluster, host, 6443)
            assert kept(cluster, host) >= 17
            for port in (6443, 2379, 2380):
                assert "2021" not in certificates.shown_end(cluster, host, port)

        before = state(cluster)
        done, report = timed(play, *CONSENT, *ALLOW, name="api_down")
        assert report["plan"] == [], done.stdout[-4000:]
        untouched(cluster, before)


def test_one_master(cluster, play):
    with expired(cluster, "certificates-expired", "m2"):
        others = {host: pids(cluster, host, API_SERVER) for host in ("m1", "m3")}
        done, report = timed(play, name="certificates")
        found = codes(report)
        assert {("KM120", "m2"), ("KM126", "m2")} <= found, findings(report)
        assert {host for code, host in found if code in ("KM120", "KM126")} == {"m2"}
        assert [(step["host"], step["remedy"], step["risk"]) for step in report["plan"]] == [
            ("m2", RENEW, 2),
            ("m2", LOAD, 2),
        ], report["plan"]

        done, report = timed(play, *CONSENT, name="certificates")
        assert ended(report) == ["done"] * 2, done.stdout[-4000:]
        cluster.wait_healthy()
        assert all_renewed(cluster)
        assert {host: pids(cluster, host, API_SERVER) for host in ("m1", "m3")} == others
        assert "2021" not in certificates.shown_end(cluster, "m2", 6443)

        before = state(cluster)
        done, report = timed(play, *CONSENT, name="certificates")
        assert report["plan"] == [], done.stdout[-4000:]
        untouched(cluster, before)

        done, report = timed(play, "-e", "kubemend_run_id=last", name="revert")
        assert "would stop" in done.stdout, done.stdout[-4000:]
        assert "2021" not in certificates.shown_end(cluster, "m2", 6443)
