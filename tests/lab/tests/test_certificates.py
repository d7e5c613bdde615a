# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every certificate of a control plane has expired: named without an API, renewed, loaded.

The cluster is one of its own, and taken away at the end.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.support import interrupt
from tests.lab.support.renewal import (
    ALLOW,
    FILES,
    LOAD,
    MASTERS,
    RENEW,
    all_renewed,
    expired,
    is_shown,
    kept,
    timed,
)
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
from tests.lab.support.static_pod import API_SERVER, processes

pytestmark = UNDRAWN


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(Cluster(request.param, 3, 1, "short", name=f"{request.param}-certificates")) as found:
        yield found


def pids(cluster, node, component):
    return [pid for pid, _argv in processes(cluster, node, component)]


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
            assert kept(cluster, host) >= FILES
            assert is_shown(cluster, host), host

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
        assert is_shown(cluster, "m2")

        before = state(cluster)
        done, report = timed(play, *CONSENT, name="certificates")
        assert report["plan"] == [], done.stdout[-4000:]
        untouched(cluster, before)

        done, report = timed(play, "-e", "kubemend_run_id=last", name="revert")
        assert "would stop" in done.stdout, done.stdout[-4000:]
        assert is_shown(cluster, "m2")


def test_a_controller_that_is_killed_between_two_masters(cluster, play, tmp_path):
    """The next run renews what is left, restarts what has not loaded it, and leaves nothing."""
    with expired(cluster, "certificates-expired-everywhere", "m1"):
        before = {host: kept(cluster, host) for host in MASTERS}

        def renewed(host):
            return kept(cluster, host) - before[host]

        with interrupt.Controller(
            cluster, tmp_path / "killed", *CONSENT, *ALLOW, name="api_down"
        ) as controller:
            cluster.wait(lambda: renewed("m1") >= FILES, 240, "the certificates of m1 renewed")
            controller.kill()
        assert renewed("m3") == 0
        done, report = timed(play, *CONSENT, *ALLOW, name="api_down")
        assert set(ended(report)) == {"done"}, done.stdout[-4000:]
        assert not {code for code, _host in codes(report)} & {"KM120", "KM122", "KM126"}
        cluster.wait_healthy()
        assert all_renewed(cluster)
        assert all(is_shown(cluster, host) for host in MASTERS)
        assert interrupt.left_over(cluster) == []
