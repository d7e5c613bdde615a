# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The webhook to which an API server sends its audit events, and whether it keeps up. Pure.

In mode batch, the default, each batch is sent by a goroutine of its own
(apiserver/plugin/pkg/audit/buffered), and nothing bounds how many wait: ten batches of 400 events a
second, each for up to 30 seconds and five tries. An answer that comes at once, such as a refused
connection, costs no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..evidence.document import ends, one_line
from ..parsers import pflag
from . import api_server
from .api_server import SERVER
from .control_plane import ControlPlane
from .result import EvidenceRef

FILE, DYNAMIC = "audit-webhook-config-file", "audit-dynamic-configuration"
MODE, BATCH, BUFFER = "audit-webhook-mode", "batch", "audit-webhook-batch-buffer-size"
BUFFER_DEFAULT = 10000  # events
_FLAGS = ("--audit-webhook", "--audit_webhook", f"--{DYNAMIC}")
_LOST = re.compile(
    r"Error in audit plugin '(?P<plugin>[\w ]{1,40})' affecting \d{1,8} audit events: "
    r"(?P<reason>[^\n]{1,300})"
)
_SLOW = re.compile(
    r"deadline exceeded|[Tt]imed? ?out|queue blocked|[Tt]oo [Mm]any [Rr]equests|connection reset"
)
# What a log file does not take: the buffer is that of either of the two.
_LOG, _BUFFERED = "log", "buffered"


@dataclass(frozen=True)
class AuditWebhook:
    """The webhook that the flags of an API server name.

    flag: that names it
    buffer: how many events wait in front of it, None where that is the default or less
    reason: of the API server's log, for which events were not sent; "" where none is said
    proofs: its flags and that line
    """

    flag: str
    mode: str
    buffer: int | None
    reason: str
    proofs: tuple[EvidenceRef, ...]

    @property
    def clause(self) -> str:
        """Return what it does to the memory of the API server, for a summary."""
        kept = "what is not answered in time stays in its memory"
        if self.mode != BATCH:
            kept = "each request waits for the answer, and stays in its memory until then"
        if self.buffer is not None:
            kept += f", and so do up to {self.buffer} events of its buffer (--{BUFFER})"
        sends = f"; it sends its audit events to a webhook (--{self.flag}, mode {self.mode})"
        if self.reason:
            return f"{sends}, which does not keep up ({self.reason}): {kept}"
        return f"{sends}: {kept}"

    @property
    def advice(self) -> str:
        """Return how to see whether it keeps up, and what relieves it."""
        see = "see whether the audit webhook keeps up"
        if self.reason:
            see = "give the audit webhook what it lacks"
        return (
            f"{see}: its limit of CPU and its log, the time of an answer (curl -w"
            " '%{time_total}' to the server that its kubeconfig or the AuditSink names),"
            " apiserver_audit_error_total of /metrics. Leave out more in the file of"
            " --audit-policy-file (get, list and watch of components, the stage RequestReceived),"
            " send less at a time"
            f" (--audit-webhook-batch-throttle-qps, --{BUFFER}), or write a log (--audit-log-path)"
            " that an agent sends"
        )


def find(document: Mapping[str, Any], plane: ControlPlane, host: str) -> AuditWebhook | None:
    """Return the webhook of a host's API server, None where its flags name none."""
    row = next((row for row in _command_lines(plane, host) if _named(row[0])), None)
    if row is None:
        return None
    argv, proof = row
    mode = pflag.string_flag(argv, MODE) or BATCH
    line, reason = _slow(document, argv)
    proofs = [proof]
    if line:
        proofs.append(EvidenceRef("log", host, object=SERVER, text=ends(line, 400)))
    return AuditWebhook(
        _named(argv), one_line(mode, 20), _buffer(argv, mode), reason, tuple(proofs)
    )


def _command_lines(plane: ControlPlane, host: str) -> Iterator[tuple[Sequence[str], EvidenceRef]]:
    """Yield the command lines of API servers, with the place of their flags of auditing."""
    for process in plane.processes:
        if process.component == SERVER and process.ours is not False:
            text = _flags(process.argv)
            yield process.argv, EvidenceRef("process", host, pid=process.pid, text=text)
    for use in plane.files:
        if use.component == SERVER and use.usual:
            yield use.words, EvidenceRef("file", host, path=use.path, text=_flags(use.words))


def _flags(argv: Sequence[str]) -> str:
    return ends(" ".join(word for word in argv if word.startswith(_FLAGS)), 300)


def _named(argv: Sequence[str]) -> str:
    """Return the flag that names a webhook, "" where none does."""
    if pflag.string_flag(argv, FILE):
        return FILE
    dynamic = pflag.bool_flag(argv, DYNAMIC)
    if dynamic is not None and dynamic.value:
        return DYNAMIC
    return ""


def _buffer(argv: Sequence[str], mode: str) -> int | None:
    size = pflag.string_flag(argv, BUFFER) or ""
    if mode != BATCH or not size.isdecimal() or len(size) > 12:
        return None
    if int(size) > BUFFER_DEFAULT:
        return int(size)
    return None


def _slow(document: Mapping[str, Any], argv: Sequence[str]) -> tuple[str, str]:
    """Return the newest line that says that events waited too long, and its reason."""
    foreign = {_LOG}
    if pflag.string_flag(argv, "audit-log-mode") == BATCH:
        foreign.add(_BUFFERED)
    for line in reversed(api_server.log_of(document).lines):
        match = _LOST.search(line)
        if match is None or match.group("plugin") in foreign:
            continue
        if _SLOW.search(match.group("reason")):
            return line, ends(one_line(match.group("reason"), 400), 160)
    return "", ""
