# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of a component's last log lines tells why it ended, and what that line means. Pure.

The line with which a program ends often tells only that something took too long; what it waited for
stands a few lines above. Any other last line tells itself why: an error above it did not end the
program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import klog, message_form, message_table
from .message_form import Reading

_JOURNAL = re.compile(r"\S{1,40} \S{1,255} [^\s\[\]:]{1,80}\[\d{1,10}\]: ")
# etcd up to 3.4: "2020-05-26 14:05:31.201337 C | etcdmain: …"
_CAPNSLOG = re.compile(r"\d{4}-\d\d-\d\d [\d:.]{8,20} [A-Z] \| [\w/-]{1,40}: ")
_LOGRUS = re.compile(r'time="[^"]{1,64}" level=\w{1,10} ')
# k0s logs what its components write: msg="E1031 …] …" component=kube-apiserver stream=stderr
_COMPONENT = re.compile(
    r'time="[^"]{1,64}" level=\w{1,10} msg=(?:"(?:[^"\\]|\\.)*"|[^\s"]*) component=([a-z-]{1,40})'
    r"(?= |$)"
)
_WRAPPED = re.compile(r'[IWEF]\d{4} \d\d:|\{"')
_FIELD = re.compile(r'(msg|error)=("(?:[^"\\]|\\.)*"|\S+)')
# Of etcd, where the line is cut off.
_JSON_FIELD = re.compile(r'"(msg|error)":("(?:[^"\\]|\\.)*)"?')
# Classes of what a program waits for.
_WAITED_FOR = frozenset(("credential", "network", "dependency", "api", "runtime"))
_WORDS = ("Error: ", "error: ", "panic: ", "fatal error: ")
_MILD = re.compile(
    r'[IW]\d{4} \d\d:|time="[^"]{1,64}" level=(?:info|debug|warning) '
    r'|\{"level":"(?:info|debug|warn)"'
)
_INFORMATION = re.compile(r'I\d{4} |.*"level":"(?:info|debug)"|.* level=(?:info|debug) ')
# The phrases by which a program of Kubernetes, etcd or Go logs that it exits.
_LAST = re.compile(
    r"F\d{4} |E\d{4} .*(?:command failed|failed to run|Failed to run)|[Ee]rror: |panic: |fatal"
    r" error: |unknown (?:shorthand )?flag|flag provided but not defined|"
    r'.*"level":"(?:fatal|panic)"'
)
# A component that cannot renew its lock ends itself, so that another one leads.
_LOST = re.compile(r"leader ?election lost|[Ff]ailed to renew lease|leaderelection\.go.*lost")
# etcd exits with 0 behind these lines, and again at each start.
_PERMANENTLY = "member has been permanently removed from the cluster"
_REMOVED = re.compile(rf"{_PERMANENTLY}|data-dir used by this member must be removed")
# What its end brings about: whatever waits at that moment is cancelled or closed.
_BY_END = re.compile(
    r"(?:request cancell?ed|(?:context|operation was) canceled|etcdserver: server stopped"
    r"|raft: stopped|use of closed network connection|http: Server closed|file already closed"
    r"|database not open|grpc: the (?:server has been stopped|client connection is closing))"
    r"[\s.)\]}\"]*$"
)
_SIGNAL = re.compile(
    r"\b(?:[Rr]eceived (?:signal|SIG[A-Z]+|termination)|[Rr]equested to terminate|[Cc]aught signal)"
)
# Of a client of the component, which does not end it.
_OF_CLIENTS = re.compile(
    r"Unable to authenticate the request|TLS handshake error from|rejected connection"
)


# klog v2 writes a value of several lines as `err=<`, the lines, and ` >`.
_OPENED, _CLOSED, CONTINUED = re.compile(r" (?:err|error)=<$"), ">", 40
# A shell with `set -x` writes each command, at last `+ exit 1`, whose reason is the one before.
_TRACED, _TRACED_EXIT, TRACED = re.compile(r"\++ \S"), re.compile(r"\++ exit [1-9]\d{0,2}"), 2
_HEADER = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.")
_ERROR = re.compile(
    r'[EF]\d{4} \d\d:|.{0,200}(?:"level":"(?:error|fatal|panic)"|\blevel=(?:error|fatal|panic)\b'
    r"|\[(?:ERROR|FATAL|PANIC)\])"
)
# What a program says when it ends, whatever the reason is.
_FAREWELL = re.compile(
    r"(?:Stopping|Stopped|Shutting down|Shutdown|Terminating|Exiting|Quitting|Cleaning up)\b"
    r"|.{1,60} failed to start\.?$",
    re.IGNORECASE,
)
# A line of a program without a logger that tells of an error, and how such an error begins.
_WORDED = re.compile(
    r"error|fail|fatal|cannot|can't|could not|couldn't|unable|denied|refused|not found|no such"
    r"|invalid|unexpected|missing|unknown|timed? ?out|exception|not permitted|must ",
    re.IGNORECASE,
)
_PLAIN_ERROR = re.compile(
    r"(?:\[?(?:fatal|error)\b|failed (?:to|:)|cannot |unable to |could not )", re.IGNORECASE
)


@dataclass(frozen=True)
class Telling:
    """Line that tells why a component ended.

    reading: what it means, None where no table has it
    """

    line: str = ""
    reading: Reading | None = None

    @property
    def names_cause(self) -> bool:
        """Return whether it names a cause, and not only that something took too long."""
        return self.reading is not None and not self.reading.weak

    def before(self, lines: Sequence[str]) -> tuple[str, ...]:
        """Return the other lines, newest first, or none where this line's meaning is certain.

        A mere information or a warning ends no program.
        """
        if self.names_cause:
            return ()
        return tuple(line for line in reversed(lines) if not _MILD.match(line))


def entries(lines: Iterable[str]) -> list[str]:
    """Return the entries of a log: a value of several lines is joined to the line before it.

    Where the line before it is not there any more, each of its lines is an entry.
    """
    groups: list[list[str]] = []
    is_open = False
    for line in map(str.rstrip, lines):
        is_end = line.strip() == _CLOSED
        is_open = is_open and not is_end and _goes_on(line, groups[-1])
        if is_open:
            groups[-1].append(line.strip())
            continue
        is_open = _OPENED.search(line) is not None
        if not is_end:
            groups.append([line])
    return _with_trace([_entry(*group) for group in groups])


def _with_trace(lines: list[str]) -> list[str]:
    """Return a log in which the exit that a shell traces has the commands before it in its line."""
    if not lines or not _TRACED_EXIT.fullmatch(lines[-1]):
        return lines
    begin = len(lines) - 1
    while begin > 0 and len(lines) - begin <= TRACED and _TRACED.match(lines[begin - 1]):
        begin -= 1
    return [*lines[:begin], "; ".join(lines[begin:])]


def _goes_on(line: str, group: list[str]) -> bool:
    """Return whether a line may belong to a value that an earlier line began."""
    return len(group) <= CONTINUED and _HEADER.match(line) is None


def _entry(line: str, *rest: str) -> str:
    """Return an entry whose value of several lines is quoted as one of a single line is."""
    if not rest:
        return line
    value = " ".join(rest).replace("\\", "\\\\").replace('"', '\\"')
    return f'{line.removesuffix("<")}"{value}"'


def says_exit(line: str) -> bool:
    """Return whether a line says that the program exits."""
    return _LAST.match(line) is not None


def says_lock_lost(line: str) -> bool:
    """Return whether a line says that the component could not renew its lock."""
    return _LOST.search(line) is not None


def says_removed(line: str) -> bool:
    """Return whether a line of etcd says that its member was removed from the cluster."""
    return _REMOVED.search(line) is not None


def follows_end(line: str) -> bool:
    """Return whether a line tells only what the end of its program cancelled or closed."""
    return _BY_END.search(text(line)) is not None


def last_word(lines: Sequence[str]) -> str:
    """Return the last line that says that the program exits, else the last of all, or ""."""
    exits = [line for line in lines if says_exit(line)]
    lost = [line for line in lines if says_lock_lost(line)]
    removed = [line for line in lines if _PERMANENTLY in line]
    for candidates in (exits, lost, removed, lines):
        if candidates:
            return candidates[-1]
    return ""


def telling(lines: Sequence[str], last: str, component: str) -> Telling:
    """Return the line that tells why a component ended.

    That is its last one, unless that is vague and another names what it waited for.

    last: the line with which it ended, as far as one says so, else the last of all
    """
    if follows_end(last) and not says_exit(last):
        return _before_end(lines, last, component)
    final = Telling(last, reading(last, component))
    if not _is_vague(final):
        return final
    return _waited_for(lines, final, component)


def _waited_for(lines: Sequence[str], final: Telling, component: str) -> Telling:
    """Return the newest line that names what a program waited for, else the vague last one."""
    rest = [line for line in reversed(lines) if line != final.line and not _is_aside(line)]
    candidates = [Telling(line, reading(line, component)) for line in rest]
    waited_for = [
        candidate
        for candidate in candidates
        if candidate.reading is not None and candidate.reading.meaning in _WAITED_FOR
    ]
    strong = [candidate for candidate in waited_for if candidate.names_cause]
    if not strong and final.reading is None:
        strong = waited_for
    return next(iter(strong), final)


def _before_end(lines: Sequence[str], last: str, component: str) -> Telling:
    """Return the line after which a program ended, else the last one, which has no meaning then.

    It is the newest one that is neither a mere information nor about what its end cancelled, and
    only where that is an error, a signal, or what it waited for.
    """
    rest = (line for line in reversed(lines) if not follows_end(line))
    line = next((line for line in rest if _SIGNAL.search(line) or not _is_aside(line)), "")
    before = Telling(line, reading(line, component))
    if _SIGNAL.search(line) or says_removed(line) or _ERROR.match(line):
        return before
    if before.names_cause and before.reading and before.reading.meaning in _WAITED_FOR:
        return before
    return Telling(last)


def decisive(lines: Sequence[str], telling_line: Telling, component: str) -> Telling:
    """Return the newest error where the line that would be quoted is a mere farewell."""
    line = telling_line.line
    if telling_line.reading is not None or not is_farewell(line):
        return telling_line
    errors = [row for row in lines if _ERROR.match(row) and not _OF_CLIENTS.search(row)]
    errors = [row for row in errors if not follows_end(row)] or errors
    if not errors:
        return telling_line
    return Telling(errors[-1], reading(errors[-1], component))


def worded(lines: Sequence[str], line: str) -> str:
    """Return the newest line that begins as an error does, where this one has no word of one.

    Programs that write to two streams without a logger end with a line of the other one.
    """
    if not line or says_exit(line) or _WORDED.search(line):
        return line
    return next((row for row in reversed(lines) if _PLAIN_ERROR.match(row)), line)


def is_farewell(line: str) -> bool:
    """Return whether a line says that a program ends or goes on, and nothing of a reason."""
    return is_information(line) or _FAREWELL.match(text(line)) is not None


def _is_vague(final: Telling) -> bool:
    """Return whether the last line tells only that something took too long."""
    if final.reading is None:
        return message_form.is_vague(text(final.line))
    return final.reading.weak


def is_information(line: str) -> bool:
    """Return whether a line is a mere information."""
    return _INFORMATION.match(line) is not None


def _is_aside(line: str) -> bool:
    """Return whether a line is a mere information, or about a client of the component."""
    return is_information(line) or bool(_OF_CLIENTS.search(line))


def reading(line: str, component: str) -> Reading | None:
    """Return what one line of a log means, or None.

    component: whose log it is; a line of k0s names the component that it runs
    """
    named = _COMPONENT.search(line[: message_form.LONGEST])
    if named is not None and named.group(1) in message_table.COMPONENTS:
        component = named.group(1)
    return message_form.read(text(line), component)


def text(line: str) -> str:
    """Return the message of a line with its error, without what the logger adds."""
    line = line[: message_form.LONGEST]
    prefix = _JOURNAL.match(line)
    if prefix is not None:
        line = line[prefix.end() :]
    prefix = _CAPNSLOG.match(line)
    if prefix is not None:
        return line[prefix.end() :]
    if _LOGRUS.match(line):
        fields = {name: _unquoted(value) for name, value in _FIELD.findall(line)}
        message = fields.get("msg", "")
        if _WRAPPED.match(message):  # k0s, around a line of a component
            message = text(message)
        return _joined(message, fields.get("error", ""))
    entry = klog.parse(line)
    if entry.text.startswith("{"):
        cut = {name: _unquoted(f'{value}"') for name, value in _JSON_FIELD.findall(line)}
        return _joined(cut.get("msg", ""), cut.get("error", ""))
    message = _joined(entry.message, entry.get("err", "error"))
    word = next((word for word in _WORDS if message.startswith(word)), "")
    return message[len(word) :]


def _joined(message: str, error: str) -> str:
    return ": ".join(filter(None, (message, error)))


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value
