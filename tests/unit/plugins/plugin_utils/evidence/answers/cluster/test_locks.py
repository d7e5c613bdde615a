# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock objects of leader elections, as each API server has them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    locks,
)
from tests.unit.support import answers

LOCKS = answers.recorded("v1.36.3-etcd-no-space", "m1.cluster", "locks")


def test_two_api_servers_with_the_same_locks():
    first, second = answers.typed(locks.Locks, LOCKS).servers
    assert (first.address, second.address) == ("10.89.0.12:6443", "10.89.0.13:6443")
    assert first.kube_system_uid == second.kube_system_uid
    assert first.objects == second.objects
    assert (first.error, first.beat) == (None, "2026-11-25T13:39:25.747487Z")
    assert first.clock.asked_at < first.clock.read_at


def test_the_lock_of_the_schedulers():
    lock = answers.typed(locks.Locks, LOCKS).servers[0].objects[1]
    assert (lock.kind, lock.namespace, lock.name) == ("Lease", "kube-system", "kube-scheduler")
    assert lock.uid == "9f8a42fe-673c-42d1-bd8c-95501fc4cb63"
    assert lock.holder.startswith("m2_")
    assert (lock.renew_time, lock.transitions) == ("2026-11-25T13:39:31.983333Z", 1)
    assert lock.lease_duration_s == 8


def test_a_server_that_did_not_answer_has_no_objects():
    (server,) = answers.typed(
        locks.Locks, {"servers": [{"address": "192.0.2.1:6443", "error": "timed out"}]}
    ).servers
    assert (server.error, server.objects, server.kube_system_uid) == ("timed out", (), None)


def test_transitions_of_another_type_are_unknown():
    place = ("servers", 0, "objects", 1)
    decoded = answers.changed(locks.Locks, LOCKS, *place, "transitions", value="1")
    assert decoded.malformed == ("servers[0].objects[1].transitions",)
    lock = decoded.answer.servers[0].objects[1]
    assert (lock.transitions, lock.lease_duration_s) == (None, 8)
