# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster's own pods of a host repeat."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import pod_errors
from tests.unit.support.saying_pods import DOWN, say


def test_an_error_with_its_count(world):
    say(world)
    answer = pod_errors.extract(world.documents["w1"])
    (row,) = answer.rows
    assert (row.pod, row.message, row.count, row.minutes) == ("calico-node-bcdfg", DOWN, 60, 10)
    assert (answer.is_known, row.is_constant, row.kind, answer.gaps) == (True, True, "", ())


def test_the_answer_that_it_got(world):
    say(world, "E0524 12:11:36.1 1 a.go:1] list: dial tcp 192.0.2.1:443: connect: no route to host")
    (row,) = pod_errors.extract(world.documents["w1"]).rows
    assert row.kind == "unreachable"
    assert "192.0.2.1:443" in row.clause


def test_one_that_has_ended_is_no_message(world):
    say(world, last=500)
    (row,) = pod_errors.extract(world.documents["w1"]).rows
    assert (row.message, row.count) == ("", 0)


def test_a_log_that_cannot_be_read_and_an_older_release(world):
    say(world, entries=[], error="Permission denied")
    assert pod_errors.extract(world.documents["w1"]).gaps == ("kube-system/calico-node-bcdfg",)
    assert not pod_errors.extract({}).is_known
