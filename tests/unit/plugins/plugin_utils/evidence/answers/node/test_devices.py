# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's device plugins and its record of devices."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    devices,
)
from tests.unit.support import answers

HELD = answers.recorded("v1.18.4-gpu-held", "w1", "devices")
CORRUPT = answers.recorded("v1.36.3-gpu-corrupt-checkpoint", "w1", "devices")


def test_the_sockets_of_kubelet_and_plugin():
    answer = answers.typed(devices.Devices, HELD)
    assert answer.folder == "/var/lib/kubelet/device-plugins"
    assert (answer.kubelet_socket.name, answer.kubelet_socket.answers) == ("kubelet.sock", True)
    (plugin,) = answer.sockets
    assert (plugin.name, plugin.answers) == ("lab-nvidia.com-gpu.sock", True)
    assert plugin.made > answer.kubelet_socket.made


def test_the_record_of_devices_that_a_pod_holds():
    checkpoint = answers.typed(devices.Devices, HELD).checkpoint
    assert (checkpoint.format, checkpoint.checksum, checkpoint.error) == ("list", "right", None)
    assert checkpoint.mtime == 1795282285.0546558
    assert checkpoint.registered == {"nvidia.com/gpu": ("gpu-0", "gpu-1")}
    (entry,) = checkpoint.entries
    assert (entry.pod_uid, entry.container) == ("338bdd55-0e7b-4406-919f-a73b12193717", "work")
    assert (entry.resource, entry.devices) == ("nvidia.com/gpu", ("gpu-1", "gpu-0"))


def test_a_record_with_another_checksum():
    checkpoint = answers.typed(devices.Devices, CORRUPT).checkpoint
    assert (checkpoint.format, checkpoint.checksum, checkpoint.size) == ("numa", "wrong", 300)
    assert checkpoint.entries[0].devices == ("gpu-0",)
    assert checkpoint.path.endswith("/kubelet_internal_checkpoint")


def test_an_answer_of_an_older_release_has_no_names():
    answer = answers.typed(devices.Devices, HELD)
    assert (answer.running, answer.names) == (None, None)
    newer = answers.recorded("v1.18.4-component-ends", "m1", "devices")
    assert answers.typed(devices.Devices, newer).running is not None


def test_devices_that_are_one_text_are_not_registered():
    decoded = answers.changed(
        devices.Devices, HELD, "checkpoint", "registered", "nvidia.com/gpu", value="gpu-0"
    )
    assert decoded.malformed == ("checkpoint.registered.nvidia.com/gpu",)
    assert decoded.answer.checkpoint.registered == {}


def test_whether_a_socket_answers_is_unknown_where_it_is_a_text():
    decoded = answers.changed(devices.Devices, HELD, "kubelet_socket", "answers", value="no")
    assert decoded.malformed == ("kubelet_socket.answers",)
    assert decoded.answer.kubelet_socket.answers is None
