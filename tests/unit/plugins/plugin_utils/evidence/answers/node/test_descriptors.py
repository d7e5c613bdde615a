# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that hold descriptors, inotify instances, watches and threads."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    descriptors,
)
from tests.unit.support import answers

AT_LIMIT = answers.recorded("v1.36.3-process-at-nofile", "w1", "descriptors")
WATCHES = answers.recorded("v1.18.4-inotify-watches", "m2", "descriptors")


def test_what_each_user_holds():
    answer = answers.typed(descriptors.Descriptors, AT_LIMIT)
    assert (answer.processes, answer.denied, answer.complete) == (16, 0, True)
    root, dbus = answer.uids
    assert (root.uid, root.instances, root.watches, root.holders) == (0, 14, 98, 4)
    assert (dbus.uid, dbus.holders) == (100, 1)


def test_a_process_at_its_limit():
    answer = answers.typed(descriptors.Descriptors, AT_LIMIT)
    (holder,) = answer.nofile
    assert (holder.unit, holder.open, holder.soft) == ("holder.service", 98, 100)
    assert [item.comm for item in answer.inotify][:2] == ["kubelet", "systemd"]
    assert (answer.open, answer.threads) == ((), ())


def test_no_units_is_not_the_same_as_no_answer_of_systemd():
    assert answers.typed(descriptors.Descriptors, WATCHES).units == ()
    assert answers.typed(descriptors.Descriptors, AT_LIMIT).units is None
    decoded = answers.changed(descriptors.Descriptors, WATCHES, "units", value={})
    assert (decoded.malformed, decoded.answer.units) == (("units",), None)


def test_a_unit_with_its_process():
    unit = {"name": "holder.service", "limit_nofile": [100, 100], "main": {"pid": 553, "open": 98}}
    (unit,) = answers.typed(descriptors.Descriptors, {**AT_LIMIT, "units": [unit]}).units
    assert (unit.name, unit.limit_nofile, unit.main.open) == ("holder.service", (100, 100), 98)


def test_whether_it_is_complete_is_unknown_where_it_is_a_number():
    decoded = answers.changed(descriptors.Descriptors, AT_LIMIT, "complete", value=1)
    assert (decoded.malformed, decoded.answer.complete) == (("complete",), None)


def test_watches_of_another_type_are_unknown():
    decoded = answers.changed(descriptors.Descriptors, AT_LIMIT, "uids", 0, "watches", value="98")
    assert decoded.malformed == ("uids[0].watches",)
    assert (decoded.answer.uids[0].watches, decoded.answer.uids[0].instances) == (None, 14)
