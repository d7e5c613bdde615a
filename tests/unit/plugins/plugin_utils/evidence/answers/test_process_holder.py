# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that hold descriptors, watches, memory or threads."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    process_holder,
)
from tests.unit.support import answers

HOLDERS = answers.recorded("v1.18.4-inotify-watches", "m2", "descriptors")["inotify"]
AT_LIMIT = answers.recorded("v1.36.3-process-at-nofile", "w1", "descriptors")["nofile"][0]


def test_a_process_of_a_unit():
    kubelet = answers.typed(process_holder.Holder, HOLDERS[0])
    assert (kubelet.pid, kubelet.comm, kubelet.uid) == (242, "kubelet", 0)
    assert (kubelet.unit, kubelet.pod_uid) == ("kubelet.service", None)
    assert (kubelet.instances, kubelet.watches) == (5, 155)


def test_a_process_of_a_container():
    manager = answers.typed(process_holder.Holder, HOLDERS[5])
    assert (manager.unit, manager.pod_uid) == (None, "0933007529b97f7b7a748aba5900e280")
    assert manager.pod == "kube-system/kube-controller-manager-m2"
    assert manager.container == "kube-controller-manager"
    assert manager.container_id == HOLDERS[5]["container_id"]


def test_a_process_at_its_limit_of_open_files():
    holder = answers.typed(process_holder.Holder, AT_LIMIT)
    assert (holder.open, holder.soft, holder.hard) == (98, 100, 100)
    assert (holder.comm, holder.unit) == ("python3", "holder.service")


def test_what_a_process_has_of_memory_and_threads():
    raw = {"pid": 5, "comm": "java", "rss": 4096, "threads": 7, "ticks": 590309, "session": "3"}
    holder = answers.typed(process_holder.Holder, raw)
    assert (holder.rss, holder.threads, holder.ticks, holder.session) == (4096, 7, 590309, "3")
    assert (holder.open, holder.instances) == (None, None)


@pytest.mark.parametrize(
    ("field", "value", "default"),
    [("open", "98", None), ("soft", 100.0, None), ("pid", True, None), ("comm", None, "")],
)
def test_a_field_of_another_type_has_its_default(field, value, default):
    decoded = answers.changed(process_holder.Holder, AT_LIMIT, field, value=value)
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), default)
