# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker sends, and how it is taken."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

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
    assert plugin.messages(output) == [(plugin.SHOWN, {"args": ["text"], "named": {}})]
    assert not output


def test_a_worker_that_says_too_much_has_failed() -> None:
    worker = plugin.Worker("m1", dict)
    worker.process = Process(0, ())
    worker.process.output = {1: bytearray(b"\xff" * (plugin.MAX_OUTPUT + 1))}
    worker.look()
    assert worker.has_failed
    assert worker.death()


def test_a_warning_is_handed_on_as_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    relay = plugin.Relay(write)
    relay.send_display("warning", "a text")
    relay.send_display("_warning", SimpleNamespace(event=SimpleNamespace(msg="an object")))
    relay.send_display("_deprecated", object())
    os.close(write)
    output = bytearray(os.read(read, 65536))
    os.close(read)
    shown: list[str] = []
    monkeypatch.setattr(plugin.Display, "warning", lambda _self, text: shown.append(text))
    for message in plugin.messages(output):
        plugin.show(*message)
    assert shown == ["a text", "an object"]
