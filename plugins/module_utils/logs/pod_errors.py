# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error lines of the cluster's own pods, whose programs have loggers of many kinds."""

import re

from ..system import files
from . import lines as log_lines
from . import repeated_lines, wrapped_lines

WINDOW = 600  # seconds
# After its start, a program waits for what is not up yet, and says so as an error.
SETTLE = 120
LOG_BYTES = 64 * 1024  # of the end of a log
TOLD = 3  # lines of a device plugin
# klog, logrus and slog, JSON of zap and others, Calico and CoreDNS, the logger of Go, Open vSwitch,
# Weave, BIRD, nginx (whose level error is about one request), Rook, and keepalived, which has no
# levels. A level of a warning is no error: most programs warn of what is usual.
_ERRORS = (
    rb"(?:[EF]\d{4} \d\d:"
    rb'|(?:(?:time|ts)=\\?"?[^"\s]{8,64}\\?"? )?(?:level|lvl)=\\?"?(?:error|fatal|panic|eror)\b'
    rb'|\{[^\n]{0,400}?\\?"(?:level|severity)\\?": ?\\?"(?i:error|fatal|panic|critical)\\?"'
    rb"|(?:[\d/-]{8,10}[ T][\d:.,]{8,15}Z? )?(?:\[\d+\] )?\[?(?:ERRO?R?|FATAL?|PANIC|CRITICAL)\b"
    rb"|(?:[\d/-]{8,10} [\d:.]{8,15} )?(?:[\w./-]{1,40}: )?"
    rb"(?:[Ee]rror|[Ff]atal|panic|[Ff]ailed|[Ff]ailure|[Uu]nable|[Cc]ould not|[Cc]annot)\b"
    # what the compiler of Cilium's programs says
    rb'|level=warning msg=\\?"/[^\s"]{1,200}: error: '
    # Felix starts again and again, and tells of it as an information
    rb"|[\d/-]{8,10} [\d:.]{8,15} \[INFO\]\[\d+\] felix/int_dataplane\.go \d+: kube-proxy mode"
    rb" changed"
    # what it tries again and again, and tells of as a warning or an information
    rb"|[\d/-]{8,10} [\d:.]{8,15} \[(?:WARNING|INFO)\]\[\d+\] felix/\w+\.go \d+: Failed to"
    rb" (?:complete ipset restore|(?:add|configure) [\w ]{0,12}tunnel device)"
    rb"|[\d/-]{8,10} [\d:.]{8,15} \[INFO\]\[\d+\] felix/wireguard\.go \d+: Unable to create"
    # Open vSwitch and OVN: what they try again is a warning, until it works
    rb"|[\d-]{10}T[\d:.]{8,15}Z\|\d{1,6}\|(?:[\w()-]{1,60}\|(?:ERR|EMER)\|"
    rb"|(?:reconnect|rconn|bridge|dpif)[\w()-]{0,60}\|WARN\|[^\n]{1,160}?(?:attempt failed"
    rb"|connection failed|failed to add|could not add network device|family '?ovs_))"
    # Weave tells as an information why its nodes do not join
    rb"|INFO: [\d/]{10} [\d:.]{8,15} ->\[[^\n]{1,120}\]: connection shutting down due to error"
    rb"[^\n]{0,60}?(?:password|seeded by|range I own|Inconsistent|limit reached|decrypt)"
    rb"|(?:[\d/-]{8,10} [\d:.]{8,15} )?bird6?: [^\n]{0,120}?"
    rb"(?: is down|[Ee]rror|denied|refused|unreachable|No route|Unexpected|[Ii]nvalid)"
    rb"|[\d/]{10} [\d:]{8} \[(?:alert|emerg)\]"
    rb"|[\d-]{10} [\d:.]{8,15} [EC] \| "
    rb"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}: [^\n]{0,160}?"
    rb"(?:WARNING|received an invalid|bogus VRRP packet|not present in MASTER))"
)
_HEAD = rb'^(?:\S{20,40} std(?:err|out) [FP]\S* |\{"log":")'
_IN_FILE = _HEAD + _ERRORS + rb"[^\n]*"  # compiled where there is a log to read
# What a device plugin says of the machine that it looks at, at whatever level.
_SAID = re.compile(
    rb"(?i)error|fail|could not|cannot|unable|no devices|no such|not found|non-rdma|not supported"
    rb"|unhealthy"
)
# The name that a resolver was asked for stands in no quotes.
_ASKED = re.compile(rb"(plugin/errors: \d) \S{1,255} (\w{1,10}):")


def read(path, now):
    """Return {since, lines, errors, cut, error, entries} of the end of a container's log.

    since: from when on its lines count; entries: rows of repeated_lines.
    """
    counter, since, lines, error = repeated_lines.Counter(), now - WINDOW, 0, None
    is_cut = False
    try:
        data, is_whole = files.last_lines(path, LOG_BYTES)
    except OSError as problem:
        data, is_whole, error = b"", True, files.reason(problem)
    begun = _moment(data)
    if begun is not None:
        since, is_cut = max(since, begun + SETTLE * is_whole), not is_whole and begun > since
    for match in reversed(list(re.finditer(_IN_FILE, data, re.MULTILINE))):
        piece = log_lines.written(match.group())
        if piece and piece[0] >= since:
            lines += 1
            text = _whole(data, match, piece[3])
            counter.add(piece[0], text, _ASKED.sub(rb"\1 # \2:", text))
    return {
        "since": round(since, 3),
        "lines": data.count(b"\n"),
        "errors": lines,
        "cut": is_cut or counter.cut,
        "error": error,
        "entries": counter.most_frequent(),
    }


def _whole(data, match, text):
    """Return an error of klog with the lines in which its value goes on."""
    text = text.rstrip()
    if not text.endswith(wrapped_lines.BEGIN):
        return text
    return wrapped_lines.joined(text, wrapped_lines.file_texts(data, match))


def complaints(path):
    """Return the last lines in which a device plugin says what it misses, oldest first."""
    try:
        data, _is_whole = files.last_lines(path, LOG_BYTES)
    except OSError:
        return []
    lines = []
    for raw in reversed(data.split(b"\n")):
        piece = log_lines.written(raw)
        if piece and _SAID.search(piece[3]):
            line = _cleaned(piece[3])
            if line not in lines:
                lines.append(line)
        if len(lines) >= TOLD:
            break
    return lines[::-1]


def _cleaned(raw):
    text = log_lines.Cleaner().clean(raw[: log_lines.LONGEST], False)
    return repeated_lines.printable(log_lines.ends(text, len(raw), repeated_lines.LONGEST))


def _moment(data):
    """Return when the first line was written, or None."""
    piece = log_lines.written(data.partition(b"\n")[0]) or (None,)
    return piece[0]
