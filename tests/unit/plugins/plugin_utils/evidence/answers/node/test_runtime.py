# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime that the kubelet uses."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    runtime,
)
from tests.unit.support import answers

WITHOUT_CRI = answers.recorded("v1.36.3-runtime-without-cri", "w1", "runtime")
HUNG = answers.recorded("v1.36.3-runtime-hung", "w1", "runtime")
EMPTIED = answers.recorded("v1.18.4-runtime-config-emptied", "w1", "runtime")
SKIPPED = answers.recorded("v1.36.3-unit-runtime-condition", "w1", "runtime")


def test_a_runtime_whose_configuration_disables_cri():
    answer = answers.typed(runtime.Runtime, WITHOUT_CRI)
    assert (answer.kind, answer.socket, answer.asked) == ("containerd", "present", True)
    assert answer.endpoint == answer.path == "/run/containerd/containerd.sock"
    assert answer.calls == {"v1": 12, "v1alpha2": 12}
    assert (answer.config.path, answer.config.line) == ("/etc/containerd/config.toml", 1)
    assert answer.config.disabled_plugins == ("io.containerd.grpc.v1.cri",)


def test_a_call_without_a_status_has_a_reason():
    answer = answers.typed(runtime.Runtime, HUNG)
    assert (answer.calls, answer.socket) == ({"v1": "no answer"}, "present")
    decoded = answers.changed(runtime.Runtime, HUNG, "calls", "v1", value=False)
    assert (decoded.malformed, decoded.answer.calls) == (("calls.v1",), {})


def test_a_runtime_that_was_not_started():
    answer = answers.typed(runtime.Runtime, SKIPPED)
    assert (answer.socket, answer.asked, answer.calls) == ("missing", False, {})
    (unit,) = answer.units
    assert (unit.name, unit.active_state, unit.absent) == ("containerd.service", "inactive", False)
    assert unit.drop_in_paths == ("/etc/systemd/system/containerd.service.d/99-lab.conf",)
    assert (unit.wanted_by, unit.trigger, unit.said) == (("multi-user.target",), None, ())


def test_a_runtime_whose_configuration_was_emptied():
    answer = answers.typed(runtime.Runtime, EMPTIED)
    assert (answer.emptied, answer.config) == ("/etc/containerd/config.toml", None)
    assert (answer.docker, answer.metadata) == (False, None)


def test_the_database_and_the_socket_that_starts_a_unit():
    trigger = {"name": "docker.socket", "active_state": "active", "unit_file_state": "enabled"}
    metadata = {"path": "/var/lib/containerd/meta.db", "size": 0, "valid": False}
    decoded = answers.changed(
        runtime.Runtime, {**WITHOUT_CRI, "metadata": metadata}, "units", 0, "trigger", value=trigger
    )
    assert decoded.malformed == ()
    socket = decoded.answer.units[0].trigger
    assert (socket.name, socket.active_state, socket.unit_file_state) == tuple(trigger.values())
    assert (decoded.answer.metadata.size, decoded.answer.metadata.valid) == (0, False)


def test_what_brings_a_unit_is_unknown_to_an_older_release():
    assert answers.typed(runtime.Runtime, WITHOUT_CRI).units[0].brought_by is None
    assert answers.typed(runtime.Runtime, EMPTIED).units[0].brought_by == ()
    decoded = answers.changed(runtime.Runtime, EMPTIED, "units", 0, "brought_by", value="kubelet")
    assert decoded.malformed == ("units[0].brought_by",)
    assert decoded.answer.units[0].brought_by is None


def test_a_socket_that_refuses():
    raw = {**WITHOUT_CRI, "error": "Connection refused"}
    assert answers.typed(runtime.Runtime, raw).error == "Connection refused"
    decoded = answers.changed(runtime.Runtime, raw, "error", value=111)
    assert (decoded.malformed, decoded.answer.error) == (("error",), None)


def test_whether_it_was_asked_is_no_text():
    decoded = answers.changed(runtime.Runtime, WITHOUT_CRI, "asked", value="yes")
    assert (decoded.malformed, decoded.answer.asked) == (("asked",), False)
