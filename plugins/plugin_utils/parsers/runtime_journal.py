# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container runtime logged before it ended, as the collector runtime brings it. Pure.

`m` marks texts measured with containerd 1.6.20; others are those of docker's and CRI-O's sources,
which were looked up.

A line of an earlier start, and one that its program survives, is no reason of its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..evidence.answers.node.runtime import Metadata, RuntimeUnit
from ..evidence.document import ends, one_line
from . import component_log, errno_message, go_error, message_class
from .component_log import Telling
from .message_form import Reading

_STATUS = {
    203: (
        "systemd cannot execute its program (203/EXEC)",
        (
            "see whether the program of ExecStart is there and may be executed (ls -lZ), and"
            " install it again"
        ),
    ),
    205: (
        "a limit of its unit is above what it can have, 205/LIMITS (KM409)",
        "lower LimitNOFILE= and its like where systemctl cat shows them",
    ),
}
CONFIGURATION, STATE = "configuration", "state_file"
# (text, class, what it is, what is done about it). An errno whose path or operation is known comes
# before these: CRI-O opens its storage while it validates its configuration. What a file is to
# blame for comes first. Where the table of messages gives a line another class than
# configuration, that is what it is: CRI-O writes "validating … config" around any of its errors.
_TEXTS = tuple(
    (re.compile(text, re.IGNORECASE), meaning, summary, cure)
    for text, meaning, summary, cure in (
        # encoding/json, of docker's files and of CRI-O's older ones; "... volatile-containers.json:
        # []*storage.Container: decode slice: expect [ or n, but found
        # \x00" of CRI-O's newer ones (json-iterator), where a power cut left zeros
        (
            r"unexpected end of json input|invalid character '\\+x00'|expect [\[{] or n, but found",
            STATE,
            "a file of its own is empty or cut off, as a power cut leaves it",
            (
                "see which file its last log lines name (of docker /etc/docker/daemon.json, of"
                " CRI-O those below /var/lib/containers/storage, for which crio wipe is there, once"
                " none of its containers runs)"
            ),
        ),
        # containerd, restart.go of its CRI: it ends for one such sandbox (containerd#10848)
        (
            r"failed to recover state: |failed to get metadata for stored sandbox",
            STATE,
            "it cannot recover what it stored of pods, as after a power cut",
            (
                "containerd 2.0.4 and later go on without such a sandbox: update it. Else drain"
                " the node, stop what runs containerd, move its folder aside (/var/lib/containerd,"
                " with k3s and RKE2 agent/containerd below their data-dir) and start it: images"
                " are pulled, and pods made, again"
            ),
        ),
        # pkg/config of CRI-O, RootConfig.Validate: containers/storage refuses
        (
            r"failed to get store to set defaults",
            STATE,
            "CRI-O cannot open its storage (/var/lib/containers/storage)",
            (
                "see what its last log lines say of it: a file system on which overlay does not"
                " work (xfs needs ftype=1), /etc/containers/storage.conf, or damage"
            ),
        ),
        # m "containerd: failed to load TOML: /etc/containerd/config.toml: (2, 2): ...", "failed to
        # unmarshal TOML: ..."; dockerd's loadDaemonCliConfig; CRI-O's
        # UpdateFromDropInFile and Validate, with the sections root, runtime, image, network, api
        # and NRI; "config validation: …" and "runtime config: …" of CRI-O up to 1.16 (cri-o#2903)
        (
            (
                r"failed to (?:load|unmarshal|decode) toml|unable to configure the docker daemon"
                r" with file|unable to decode configuration|validating \w+ config"
                r"|\bconfig validation: |\b(?:root|runtime|network) config: "
            ),
            CONFIGURATION,
            "it refuses its configuration",
            "fix the file that its last log lines name",
        ),
    )
)
# The tables of forms, by the names of the units.
_TABLES = (("containerd", "containerd"), ("crio", "cri-o"), ("cri-o", "cri-o"))
# The programs whose last lines these are, in the journal of their units.
_PROGRAM = re.compile(r"\S{1,40} \S{1,255} (?:containerd|crio|dockerd|cri-dockerd)\[(\d{1,10})\]: ")
# What a program does not survive; containerd and dockerd go on behind level=error.
_END = re.compile(
    r"level=(?:fatal|panic)|\]: (?:panic|fatal error|containerd|crio|dockerd): "
    r"|\]: (?:failed to (?:start daemon|load listeners|start containerd|dial|create pidfile)"
    r"|unable to (?:configure|decode)|unknown (?:shorthand )?flag)\b"
)
_WORSE = re.compile(
    r"level=(?:fatal|error|panic)|\bpanic: |\bfatal error: |\b(?:failed|cannot|unable|invalid)\b",
    re.IGNORECASE,
)


# Of the CRI plugin and what it needs, the first cause comes first: a plugin that lacks another one
# says only that.
_PLUGIN = re.compile(
    r"failed to load plugin(?: (?P<old>io\.containerd\.\S+?))?\"? +"
    r"error=\"(?P<error>(?:[^\"\\]|\\.)*)\""
)
_NEW_ID = re.compile(r"\bid=\"?(?P<id>io\.containerd\.[\w.-]+)")
_CRI = re.compile(r"\.cri\b|podsandbox|\bcri\.v1")
_DEPENDS = re.compile(r"unable to (?:load|get|find) .*(?:dependency|plugin)|no plugins registered")
_MIRRORS = "`mirrors` cannot be set when `config_path` is provided"


@dataclass(frozen=True)
class PluginFailure:
    """A plugin of containerd that was not loaded.

    cure: advice, empty where only the reason says what is wrong
    """

    line: str
    plugin: str
    reason: str
    cure: str = ""


def plugin_failure(lines: Iterable[str]) -> PluginFailure | None:
    """Return why containerd did not load its CRI plugin, None where no line says it."""
    failures = [failure for line in lines if (failure := _plugin_failure(line)) is not None]
    return min(failures, key=lambda failure: bool(_DEPENDS.search(failure.reason)), default=None)


def _plugin_failure(line: str) -> PluginFailure | None:
    line = ends(line, 800)
    match, new = _PLUGIN.search(line), _NEW_ID.search(line)
    if match is None:
        return None
    name = match.group("old") or (new.group("id") if new else "")
    if not _CRI.search(name):
        return None
    reason = re.sub(r"\\(.)", r"\1", match.group("error"))
    cure = ""
    if _MIRRORS in reason:
        cure = (
            "move registry.mirrors (and registry.configs) of containerd's configuration to"
            " /etc/containerd/certs.d/HOST/hosts.toml, or take config_path away where this release"
            " still reads mirrors"
        )
    else:
        cause = errno_message.explanation(reason)
        if cause is not None:
            reason, cure = f"{reason} ({cause[0]})", cause[1]
    return PluginFailure(line, name, reason, cure)


@dataclass(frozen=True)
class Words:
    """Last log lines of a runtime.

    line: the most telling one
    what: its cause, else empty
    cure: advice
    instead: whether the line says more than the state of the unit
    meaning: the class of its cause, else empty
    ends: whether it is a line that its program does not survive
    """

    line: str = ""
    what: str = ""
    cure: str = ""
    instead: bool = False
    meaning: str = ""
    ends: bool = False


def last_words(record: RuntimeUnit) -> Words:
    """Return what one unit's evidence says about its end. Never raises."""
    lines = of_last_start([ends(line, 400) for line in record.said])
    status = record.exec_main_status
    if status is not None and status in _STATUS and record.result != "success":
        return Words(next(reversed(lines), ""), *_STATUS[status])
    component = _component(record.name)
    end = next((line for line in reversed(lines) if _END.search(line)), "")
    words = _of_end(lines, end, component)
    if words.what:
        return words
    return _of_any(lines, component) or Words(end or _newest_error(lines), ends=bool(end))


def _of_any(lines: Sequence[str], component: str) -> Words | None:
    """Return what the measured texts tell of the newest line that has one, or None."""
    measured = (_of_errno(line) or _by_texts(line, component) for line in reversed(lines))
    return next(filter(None, measured), None)


def _newest_error(lines: Sequence[str]) -> str:
    """Return the newest line that its program marks as an error, else the newest of all.

    What its end cancelled comes after the error for which it ended.
    """
    errors = [line for line in reversed(lines) if _WORSE.search(line)]
    causes = (line for line in errors if not component_log.follows_end(line))
    return next(causes, next(iter(errors or lines[-1:]), ""))


def _of_end(lines: Sequence[str], end: str, component: str) -> Words:
    """Return what the line tells with which a program ended, if there is one."""
    if not end:
        return Words()
    words = _of_errno(end) or _by_texts(end, component) or _by_table(lines, end, component)
    return replace(words, ends=True)


def of_last_start(lines: Sequence[str]) -> list[str]:
    """Return the lines of the process that wrote last, as far as they name one."""
    numbers = [_number(line) for line in lines]
    newest = next((number for number in reversed(numbers) if number), "")
    return [line for line, number in zip(lines, numbers, strict=True) if number in ("", newest)]


def _number(line: str) -> str:
    """Return the number of the process that wrote a line, or ""."""
    match = _PROGRAM.match(line)
    if match is None:
        return ""
    return match.group(1)


def _component(unit: str | None) -> str:
    """Return the name of the table of a unit's program, or ""."""
    return next((table for name, table in _TABLES if (unit or "").startswith(name)), "")


def _of_errno(line: str) -> Words | None:
    about, explanation = errno_message.about(line), errno_message.explanation(line)
    if about is None or explanation is None:
        return None
    return Words(line, *explanation, meaning=go_error.OF_ERRNO[about.kind])


def _by_texts(line: str, component: str) -> Words | None:
    """Return what a measured text tells of a line, or None."""
    for text, meaning, summary, cure in _TEXTS:
        if text.search(line) is None:
            continue
        reading = component_log.reading(line, component)
        if meaning == CONFIGURATION and _is_otherwise(reading):
            return _told(Telling(line, reading))
        quotation = ""
        if meaning == CONFIGURATION:
            quotation = f": {ends(component_log.text(line), 240)}"
        return Words(line, f"{summary}{quotation}", cure, meaning=meaning)
    return None


def _is_otherwise(reading: Reading | None) -> bool:
    """Return whether the table has the text of a line, and with another class."""
    return reading is not None and bool(reading.chain) and reading.meaning != CONFIGURATION


def _by_table(lines: Sequence[str], end: str, component: str) -> Words:
    """Return what the table of messages tells of the line with which a program ended."""
    return _told(component_log.telling(lines, end, component))


def _told(telling: Telling) -> Words:
    if telling.reading is None:
        return Words(telling.line)
    words = message_class.CLASSES[telling.reading.meaning]
    cause = f"{words.clause}: {ends(component_log.text(telling.line), 240)}"
    return Words(telling.line, cause, words.advice, meaning=telling.reading.meaning)


def damaged(metadata: Metadata | None) -> str:
    """Return the path of containerd's database where it is damaged, else ""."""
    if metadata is None or metadata.valid is not False:
        return ""
    return one_line(metadata.path, 200)
