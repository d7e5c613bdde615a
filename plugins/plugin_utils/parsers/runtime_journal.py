# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container runtime logged before it ended, as the collector runtime brings it. Pure.

`m` marks texts measured with containerd 1.6.20; others are those of docker's and CRI-O's sources,
which were looked up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..evidence.answers.node.runtime import Metadata, RuntimeUnit
from ..evidence.document import one_line
from . import component_log, errno_message, message_class

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
# (text, what it is, what is done about it). An errno whose path or operation is known comes before
# these: CRI-O opens its storage while it validates its
# configuration. What a file is to blame for comes first.
_TEXTS = tuple(
    (re.compile(text, re.IGNORECASE), summary, cure)
    for text, summary, cure in (
        # encoding/json, of docker's files and of CRI-O's older ones; "... volatile-containers.json:
        # []*storage.Container: decode slice: expect [ or n, but found
        # \x00" of CRI-O's newer ones (json-iterator), where a power cut left zeros
        (
            r"unexpected end of json input|invalid character '\\+x00'|expect [\[{] or n, but found",
            "a file of its own is empty or cut off, as a power cut leaves it",
            (
                "see which file its last log lines name (of docker /etc/docker/daemon.json, of"
                " CRI-O those below /var/lib/containers/storage, for which crio wipe is there, once"
                " none of its containers runs)"
            ),
        ),
        # pkg/config of CRI-O, RootConfig.Validate: containers/storage refuses
        (
            r"failed to get store to set defaults",
            "CRI-O cannot open its storage (/var/lib/containers/storage)",
            (
                "see what its last log lines say of it: a file system on which overlay does not"
                " work (xfs needs ftype=1), /etc/containers/storage.conf, or damage"
            ),
        ),
        # m "containerd: failed to load TOML: /etc/containerd/config.toml: (2, 2): ...", "failed to
        # unmarshal TOML: ..."; dockerd's loadDaemonCliConfig; CRI-O's
        # UpdateFromDropInFile and Validate, with the sections root, runtime, image, network, api
        # and NRI
        (
            (
                r"failed to (?:load|unmarshal|decode) toml|unable to configure the docker daemon"
                r" with file|unable to decode configuration|validating \w+ config"
            ),
            "it refuses its configuration",
            "fix the file that its last log lines name",
        ),
    )
)
# The tables of forms, by the names of the units.
_TABLES = (("containerd", "containerd"), ("crio", "cri-o"), ("cri-o", "cri-o"))
_WORSE = re.compile(
    r"level=(?:fatal|error|panic)|\bpanic: |\bfatal error: |\b(?:failed|cannot|unable|invalid)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Words:
    """Last log lines of a runtime.

    line: the most telling one
    what: its cause, else empty
    cure: advice
    instead: whether the line says more than the state of the unit
    meaning: the class of its message, where the table of messages tells the cause
    """

    line: str = ""
    what: str = ""
    cure: str = ""
    instead: bool = False
    meaning: str = ""


def last_words(record: RuntimeUnit) -> Words:
    """Return what one unit's evidence says about its end. Never raises."""
    lines, status = [one_line(line, 400) for line in record.said], record.exec_main_status
    if status is not None and status in _STATUS and record.result != "success":
        return Words(next(reversed(lines), ""), *_STATUS[status])
    for line in reversed(lines):
        cause = errno_message.explanation(line) or _cause(line)
        if cause:
            return Words(line, *cause)
    errors = (line for line in reversed(lines) if _WORSE.search(line))
    last = next(errors, next(reversed(lines), ""))
    return _by_table(lines, last, record.name)


def _by_table(lines: Sequence[str], last: str, unit: str | None) -> Words:
    """Return what the table of messages tells of the lines, else the last one alone."""
    component = next((table for name, table in _TABLES if (unit or "").startswith(name)), "")
    telling = component_log.telling(lines, last, component)
    if telling.reading is None:
        return Words(last)
    meaning = telling.reading.meaning
    words = message_class.CLASSES[meaning]
    cause = f"{words.clause}: {one_line(component_log.text(telling.line), 240)}"
    return Words(telling.line, cause, words.advice, meaning=meaning)


def _cause(line: str) -> tuple[str, str] | None:
    return next(((summary, cure) for text, summary, cure in _TEXTS if text.search(line)), None)


def damaged(metadata: Metadata | None) -> str:
    """Return the path of containerd's database where it is damaged, else ""."""
    if metadata is None or metadata.valid is not False:
        return ""
    return one_line(metadata.path, 200)
