# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that take no more writes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    space,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import store

MIB, GIB = 1024**2, 1024**3


def row(path: str = "/run", use: str = "run", **more: Any) -> space.Store:
    known = {"device": 1, "total_bytes": 100 * GIB, "free_bytes": 50 * GIB, "read_only": False}
    return space.Store(path, use, **{**known, "inodes": 6000000, "free_inodes": 5000000, **more})


@pytest.mark.parametrize(
    ("changes", "full"),
    [
        ({}, False),
        ({"free_bytes": 65 * MIB}, False),
        ({"free_bytes": 63 * MIB}, True),
        ({"free_bytes": 0}, True),
        # a small tmpfs: one percent
        ({"total_bytes": 200 * MIB, "free_bytes": 3 * MIB}, False),
        ({"total_bytes": 200 * MIB, "free_bytes": 1 * MIB}, True),
        ({"free_inodes": 600}, False),
        ({"free_inodes": 0}, True),
        ({"inodes": None, "free_inodes": None}, False),
        ({"total_bytes": 0, "free_bytes": 0}, False),
        ({"free_bytes": None}, False),
    ],
)
def test_when_one_is_full(changes, full):
    assert [found.full for found in store.unwritable([row(**changes)])] == [True] * full


def test_folders_of_one_file_system_are_one():
    rows = [row("/var/lib/etcd", "etcd", free_bytes=0), row("/var/log/pods", "pod_logs")]
    (found,) = store.unwritable(rows)
    assert [item.path for item in found.stores] == ["/var/lib/etcd", "/var/log/pods"]
    assert found.severe
    assert "etcd" in found.uses


def test_one_of_logs_alone_is_not_severe():
    (found,) = store.unwritable([row("/var/log/pods", "pod_logs", free_bytes=0)])
    assert not found.severe


def test_one_that_is_read_only():
    (found,) = store.unwritable([row(read_only=True, free_bytes=0)])
    assert (found.full, found.why) == (False, "is read-only")


def test_folders_without_a_device_are_each_their_own():
    rows = [row(device=None, free_bytes=0), row("/var/lib/cni", "cni", device=None)]
    assert [found.stores[0].path for found in store.unwritable(rows)] == ["/run"]
