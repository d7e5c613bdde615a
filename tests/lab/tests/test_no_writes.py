# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that accepts no writes.

The first finding says so and why, no host is called healthy, and a repair that needs a write is
refused.
"""

from __future__ import annotations

import pytest

from tests.lab.support.repairing import CONSENT, broken, state


def manifests(cluster, name):
    """Return the files that a repair would edit; processes end by themselves without writes."""
    return [line for line in state(cluster, [name])[name][0] if "manifests" in line]


@pytest.mark.parametrize(
    ("name", "cause"), [("etcd-no-space", "NOSPACE"), ("etcd-no-quorum", "no quorum")]
)
def test_a_cluster_that_accepts_no_writes(cluster, play, name, cause):
    masters = [master.name for master in cluster.of_role("master")]
    with (
        broken(cluster, "two-leaders", target=masters[1]),
        broken(cluster, name, target=masters[0]),
    ):
        before = manifests(cluster, masters[1])
        done, report = play(*CONSENT)
        assert manifests(cluster, masters[1]) == before
        first = report["findings"][0]
        assert (first["code"], first["severity"]) == ("KM115", "critical"), report["findings"]
        assert cause in first["summary"], report["findings"]
        verdicts = {
            item["code"]: item["verdict"] for item in report["verdicts"] if item["host"] is None
        }
        assert all(
            verdicts[code] in ("present", "unknown")
            for code in ("KM203", "KM511", "KM512", "KM525")
        ), verdicts
        assert "healthy:" not in done.stdout, done.stdout[-4000:]
        steps = [step for step in report["plan"] if step["code"] in ("KM101", "KM103")]
        assert steps, report["plan"]
        assert not any(step["allowed"] for step in steps), report["plan"]
        assert all("KM115" in step["blocked_by"] for step in steps), report["plan"]
