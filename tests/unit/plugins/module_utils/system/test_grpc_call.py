# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A call on an open connection: what the answer says, and what all else may be."""

import socket
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import grpc_call
from tests.unit.support.grpc_answers import BEGIN, HUFFMAN, SETTINGS, done, refused, trailer

OF_HTTP = SETTINGS + grpc_call.frame(1, 4, 1, b"\x8d")  # HTTP/2 of another kind: 404


@pytest.fixture
def ends():
    near, far = socket.socketpair()
    yield near, far
    near.close()
    far.close()


def replied(ends, answer, most=grpc_call.MAX_REPLY, seconds=5.0):
    near, far = ends
    far.sendall(answer)
    far.shutdown(socket.SHUT_WR)
    return grpc_call.reply(near, time.monotonic() + seconds, most)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (done(b"0", b"abc"), (0, b"abc")),
        (done(b"0", b""), (0, b"")),
        (refused(b"14"), (14, b"")),
        (OF_HTTP + grpc_call.frame(0, 1, 1, b"404 page not found"), (grpc_call.ODD, b"")),
        (OF_HTTP + grpc_call.frame(3, 0, 1, b"\0" * 4), (grpc_call.CLOSED, b"")),
        (SETTINGS + BEGIN, (grpc_call.CLOSED, b"")),
    ],
)
def test_a_reply(ends, answer, expected):
    assert replied(ends, answer) == expected


@pytest.mark.parametrize(
    "message",
    [b"\0\0\0\0\x02a", b"\0\0\0\0\x01ab", b"\1\0\0\0\x01a", b"\0\0", b"\0\xff\xff\xff\xffa"],
)
def test_a_message_of_another_length_or_a_compressed_one_is_none(ends, message):
    answer = SETTINGS + BEGIN + grpc_call.frame(0, 0, 1, message)
    answer += grpc_call.frame(1, 5, 1, trailer(b"0"))
    assert replied(ends, answer) == (grpc_call.ODD, b"")


def test_a_reply_is_bounded(ends):
    endless = SETTINGS + BEGIN + grpc_call.frame(0, 0, 1, b"x" * 10000) * 8
    assert replied(ends, endless, most=60000) == (grpc_call.ODD, b"")


def test_who_sends_without_an_end_has_no_more_time(ends):
    near, far = ends
    far.sendall(SETTINGS + BEGIN)
    assert grpc_call.reply(near, time.monotonic() + 0.2) == (grpc_call.SILENT, b"")
    assert grpc_call.final_status(near, time.monotonic() - 1) == grpc_call.SILENT


def test_a_request_names_its_scheme_and_how_much_it_takes():
    data = grpc_call.request("/a/b", b"question", 262144, "https")
    assert data.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"\x05https" in data
    assert (262144).to_bytes(4, "big") in data
    assert data.endswith(b"\0\0\0\0\x08question")


@pytest.mark.parametrize(
    ("block", "number"),
    [
        (trailer(b"0"), 0),
        (trailer(b"12"), 12),
        (b"", None),
        (HUFFMAN, None),
        (HUFFMAN + b"\x82\x08\x82", None),
        (HUFFMAN + b"\x02\x31", None),
        (HUFFMAN + b"\x01x", None),
    ],
)
def test_a_status_that_is_not_as_servers_write_it_is_none(block, number):
    assert grpc_call.status(block) == number


def test_settings_are_acknowledged_once_and_nothing_else_is(ends):
    near, far = ends
    far.sendall(refused(b"12"))
    assert grpc_call.final_status(near, time.monotonic() + 5) == grpc_call.UNIMPLEMENTED
    near.shutdown(socket.SHUT_WR)
    assert far.recv(100) == grpc_call.frame(4, 1, 0, b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        grpc_call.frame(10, 0, 0, b""),
        (grpc_call.MAX_ANSWER + 1).to_bytes(3, "big") + b"\0\0",
    ],
)
def test_what_begins_as_no_frame_is_not_waited_for(ends, answer):
    near, far = ends
    far.sendall(answer)
    assert grpc_call.reply(near, time.monotonic() + 30) == (grpc_call.ODD, b"")


def test_a_window_is_said_in_the_settings_and_of_the_connection():
    data = grpc_call.request("/a/b", window=262144)
    setting = (4).to_bytes(2, "big") + (262144).to_bytes(4, "big")
    assert grpc_call.frame(4, 0, 0, setting) in data
    assert grpc_call.frame(8, 0, 0, (262144 - 65535).to_bytes(4, "big")) in data
    assert grpc_call.frame(4, 0, 0, b"") in grpc_call.request("/a/b")


def test_a_message_that_looks_like_a_trailer_is_none(ends):
    near, far = ends
    far.sendall(SETTINGS + BEGIN + grpc_call.frame(0, 0, 1, trailer(b"9")))
    far.sendall(grpc_call.frame(1, 5, 1, trailer(b"0")))
    assert grpc_call.final_status(near, time.monotonic() + 5) == 0
