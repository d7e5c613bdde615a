# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes of databases: which witness counts, each member once, and quotas that are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    etcd,
    space,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    control_plane,
    etcd_sizes,
)
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


FILE = space.DatabaseFile("/var/lib/etcd/member/snap/db", 3 * MIB)


def stopped(*flags, **more):
    use = control_plane.FileUse("etcd.yaml", "etcd", "etcd", flags, None, None, 0.0, None, True)
    plane = control_plane.ControlPlane(files=(use,))
    statuses = {"instances": "ok"}
    return replace(host("m1"), control_plane=plane, statuses=statuses, database=FILE, **more)


@pytest.mark.parametrize(
    ("flags", "quota"),
    [
        ((), 2048 * MIB),
        (("--quota-backend-bytes=0",), 2048 * MIB),
        (("--quota-backend-bytes=8388608",), 8 * MIB),
        (("--quota-backend-bytes=-1",), None),
        (("--config-file=/x",), None),
    ],
)
def test_a_member_that_does_not_run_has_its_file_and_the_quota_of_its_manifest(flags, quota):
    (row,) = etcd_sizes.sizes(Cluster("k", [stopped(*flags)]))
    assert (row.size, row.used, row.quota, row.path) == (3 * MIB, None, quota, FILE.path)
    assert row.text.endswith("by its file")


@pytest.mark.parametrize("more", [{"database": None}, {"control_plane": None}, {"statuses": {}}])
def test_a_file_that_no_stopped_etcd_has_is_left_out(more):
    assert etcd_sizes.sizes(Cluster("k", [replace(stopped(), **more)])) == []


def test_another_member_that_this_host_asks_does_not_hide_its_own_file():
    status = etcd.MemberStatus(db_size=1, member_id="7")
    asked = replace(stopped(), etcd_said=etcd.Etcd(status=status))
    rows = etcd_sizes.sizes(Cluster("k", [host("m2", status=status), asked]))
    assert [(row.host.host, row.path) for row in rows] == [("m2", ""), ("m1", FILE.path)]


def test_a_member_that_runs_and_tells_nothing_has_the_file_of_its_folder():
    folder = etcd.DataFolder("/data", etcd.Database(bytes=5 * MIB))
    row = only(local=etcd.LocalMember(quota=8 * MIB, folder=folder))
    assert (row.size, row.quota, row.path) == (5 * MIB, 8 * MIB, "/data/member/snap/db")
    row = only(
        status=etcd.MemberStatus(db_size=1), local=etcd.LocalMember(quota=8 * MIB, folder=folder)
    )
    assert (row.size, row.path) == (1, "")
