# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of a client, and what its output stands for."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import client
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.process import (
    Process,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.question import (
    NoAnswer,
)
from tests.unit.support import fake_fleet


def ended(code: int, out: bytes = b"", err: bytes = b"") -> Any:
    asked = fake_fleet.Client(fake_fleet.Host("m1"))
    asked.process = Process(0, ())
    asked.process.code = code
    asked._out, asked._err = 1, 2
    asked.process.output = {1: bytearray(out), 2: bytearray(err)}
    return asked


def test_no_master_and_no_compression() -> None:
    line = client._without_master([b"ssh", b"-C", b"-o", b"ControlMaster=auto", b"m1", b"-C x"])
    assert line == [
        b"ssh", b"-o", b"ControlMaster=no", b"-o", b"ControlMaster=auto", b"m1", b"-C x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("out", "status"),
    [
        (b'KUBEMEND-1 {"collectors": {}}\n', "ok"),
        (b'motd\nKUBEMEND-1 {"collectors": {}}\n', "ok"),
        (b'KUBEMEND-1 {"python": null}\n', "error"),
        (b'KUBEMEND-1 {"failed": "x"}\n', "error"),
    ],
)
def test_an_answer_counts_whatever_the_exit_code(out: bytes, status: str) -> None:
    assert ended(0, out).ended()[0] == status
    assert ended(255, out).ended()[0] == status
    assert ended(255, out).pause(jumps=True) is None


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [
        (0, b"", b""),
        (127, b"", b"not found"),
        (0, b"KUBEMEND-1 [", b""),
        (255, b"", b"Traceback (most recent call last):"),
        (0, b"", b"Unknown option: -I"),
    ],
)
def test_what_is_no_answer_is_left_to_a_worker(code: int, out: bytes, err: bytes) -> None:
    with pytest.raises(NoAnswer):
        ended(code, out, err).ended()


def test_only_a_jump_host_gets_retries_of_its_own() -> None:
    dropped = ended(255, b"", b"kex_exchange_identification: Connection closed by remote host")
    dropped.attempts = 1
    assert dropped.pause(jumps=False) is None
    assert dropped.pause(jumps=True)
    dropped.attempts = 100
    assert dropped.pause(jumps=True) is None
    refused = ended(255, b"", b"Permission denied")
    refused.attempts = 1
    assert refused.pause(jumps=True) is None


def test_the_placeholder_of_an_omitted_variable_is_seen() -> None:
    asked = ended(0)
    asked.line = [b"ssh", b"-o", b"User=__omit_place_holder__12"]
    assert asked.names("__omit_place_holder__12")
    assert not asked.names("__omit_place_holder__13")
    assert not asked.names(None)
    assert not asked.names(object())
