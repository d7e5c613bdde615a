# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane that is down for two causes at once: named in seconds, brought back in one run.

Every leaf certificate of all masters has expired, and etcd is at its quota. The cluster is one of
its own, with a low quota, and taken away at the end.
"""

from __future__ import annotations

import pytest

from tests.lab.cluster.clusters import Cluster
from tests.lab.support import full_etcd
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

pytestmark = UNDRAWN
# each once; as many members are defragmented as are near their quota
ORDER = [RENEW, "etcd_snapshot", "etcd_compact", "etcd_defragment", "etcd_alarm", LOAD]
CAUSES = {"KM120", "KM122", "KM126", "KM140", "KM146"}


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request):
    possible(request.param)
    with own(
        Cluster(request.param, 3, 1, "small-etcd", name=f"{request.param}-showpiece")
    ) as found:
        full_etcd.be_patient(found, MASTERS)
        yield found


def check_order(plan):
    """Assert the order of the steps. The number of members near their quota may still grow."""
    remedies = [step["remedy"] for step in plan]
    assert list(dict.fromkeys(remedies)) == ORDER, plan
    assert remedies == sorted(remedies, key=ORDER.index), plan
    assert (remedies.count(RENEW), remedies.count(LOAD)) == (3, 3), plan


def test_both_causes_are_named_and_one_run_brings_the_cluster_back(cluster, play):
    full_etcd.fill(cluster, MASTERS)
    with expired(cluster, "certificates-expired-everywhere", "m1"):
        before = state(cluster)
        done, report = timed(play, name="api_down")
        found = codes(report)
        assert {("KM120", host) for host in MASTERS} <= found, findings(report)
        assert "KM140" in {code for code, _host in found}, findings(report)
        check_order(report["plan"])
        for name, now in state(cluster).items():
            assert now[0] == before[name][0], name

        done, report = timed(play, *CONSENT, *ALLOW, name="api_down")
        check_order(report["plan"])
        assert set(ended(report)) == {"done"}, done.stdout[-6000:]
        assert not {code for code, _host in codes(report)} & CAUSES, done.stdout[-6000:]
        cluster.wait_healthy()
        assert all_renewed(cluster)
        assert full_etcd.alarms(cluster, "m1") == ""
        for host in MASTERS:
            assert kept(cluster, host) >= FILES
            assert is_shown(cluster, host), host

        before = state(cluster)
        done, report = timed(play, *CONSENT, *ALLOW, name="api_down")
        assert report["plan"] == [], done.stdout[-4000:]
        untouched(cluster, before)
