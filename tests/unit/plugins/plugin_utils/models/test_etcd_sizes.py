# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes of databases: which witness counts, each member once, and quotas that are none."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import etcd
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import etcd_sizes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import (
    Cluster,
    Host,
)

MIB = 1024**2


def host(name, **said):
    return Host(
        name,
        name,
        "k",
        "ok",
        "",
        (),
        frozenset([name]),
        {},
        None,
        etcd.Etcd(),
        (),
        etcd_said=etcd.Etcd(**said),
    )


def only(**said):
    (row,) = etcd_sizes.sizes(Cluster("k", [host("m1", **said)]))
    return row


def test_metrics_count_before_a_status():
    row = only(
        status=etcd.MemberStatus(db_size=1, db_size_in_use=1, quota=8 * MIB),
        local=etcd.LocalMember(metrics=etcd.Metrics(db_size=4.0 * MIB, db_size_in_use=1.0 * MIB)),
    )
    assert (row.size, row.used, row.quota) == (4 * MIB, MIB, 8 * MIB)
    assert (row.share, row.free) == (0.5, 3 * MIB)
    assert row.text == "m1 4.0 MiB of 8.0 MiB (50%), 1.0 MiB in use"


@pytest.mark.parametrize(
    ("status", "metrics", "local", "quota"),
    [(5, 6.0, 7, 5.0), (None, 6.0, 7, 6.0), (None, None, 7, 7.0), (-1, None, None, None)],
)
def test_the_quota_that_etcd_tells_counts_before_its_flag(status, metrics, local, quota):
    row = only(
        status=etcd.MemberStatus(db_size=1, quota=status),
        local=etcd.LocalMember(metrics=etcd.Metrics(quota=metrics), quota=local),
    )
    assert row.quota == quota


def test_without_a_quota_nothing_is_near_it():
    row = only(status=etcd.MemberStatus(db_size=9000 * MIB))
    assert (row.share, row.free, row.text) == (0.0, 0.0, "m1 9000.0 MiB")


def test_a_member_that_two_hosts_ask_counts_once():
    status = etcd.MemberStatus(db_size=1, member_id="7")
    rows = etcd_sizes.sizes(Cluster("k", [host("m1", status=status), host("m2", status=status)]))
    assert [row.host.host for row in rows] == ["m1"]


@pytest.mark.parametrize("said", [{}, {"status": etcd.MemberStatus(db_size=-4)}])
def test_what_has_no_size_is_left_out(said):
    assert etcd_sizes.sizes(Cluster("k", [host("m1", **said)])) == []
