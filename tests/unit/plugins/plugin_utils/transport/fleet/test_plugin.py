# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker sends, and how it is taken."""

from __future__ import annotations

import os

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import plugin
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.process import (
    Process,
)


def test_messages_are_taken_whole() -> None:
    read, write = os.pipe()
    relay = plugin.Relay(write)
    relay.send(plugin.RESULT, {"status": "ok"})
    relay.send_display("display", "text")
    os.close(write)
    data = os.read(read, 65536)
    os.close(read)
    output = bytearray(data[:-3])
    assert plugin.messages(output) == [(plugin.RESULT, {"status": "ok"})]
    output += data[-3:]
    assert plugin.messages(output) == [(plugin.SHOWN, ("display", ("text",), {}))]
    assert not output


def test_a_worker_that_says_too_much_has_failed() -> None:
    worker = plugin.Worker("m1", dict)
    worker.process = Process(0, ())
    worker.process.output = {1: bytearray(b"\xff" * (plugin.MAX_OUTPUT + 1))}
    worker.look()
    assert worker.has_failed
    assert worker.death()
