# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error lines of a component, counted by their text without numbers, ids and names of pods."""

import re

from . import lines as log_lines

# How the loggers of components begin an error: klog's text and its JSON, which has no level and no
# verbosity of an error; zap and capnslog of etcd, which warns of what keeps it from its work;
# logrus of runtimes. A quote of JSON within docker's JSON has a backslash.
_LEVELS = (
    rb'(?:[EF]\d{4} \d\d:|\{\\?"ts\\?":[\d.]+,(?![^\n]*"v\\?":\d)[^\n]*?"err\\?":'
    rb'|\{\\?"level\\?":\\?"(?:warn|error|dpanic|panic|fatal)\\?"'
    rb"|\d{4}-\d\d-\d\d [\d:.]{8,20} [WEC] \| "
    rb'|time=\\?"[^"\n]{10,64}" level=(?:error|fatal|panic) '
)
# An API server warns of its etcd and of webhooks: gRPC's client, and the dispatcher of admission.
_WARNINGS = rb"|W\d{4} [^\n\]]{1,60} (?:logging|dispatcher)\.go:)"
IN_FILE = re.compile(
    rb'^(?:\S{20,40} std(?:err|out) [FP]\S* |\{"log":")' + _LEVELS + _WARNINGS + rb"[^\n]*",
    re.MULTILINE,
)
IN_JOURNAL = re.compile(
    rb"^(\S{20,40}) \S{1,255} ([\w.-]{1,80})\[\d{1,10}\]: (" + _LEVELS + rb")[^\n]*)",
    re.MULTILINE,
)
# klog's head, and the times of other loggers: a line is the same one at another time.
_HEAD = re.compile(
    rb'^(?:[WEF]\d{4} [\d:.]+ +\d+ [^\s\]]{1,80}\] ?|time="[^"]*" level=\w+ '
    rb"|[\d-]+ [\d:.]+ [WEC] \| )"
)
# What differs between lines about the same. Each branch begins with a literal or a word's start: a
# branch that is tried at each byte costs ten times as much.
_DIFFERENCES = re.compile(
    # pod="ns/name", podUID="...", but not err="..." or msg="...", which tell what is wrong
    rb'="(?<!err=")(?<!error=")(?<!msg=")(?<!message=")(?<!reason=")[^"]*"'
    # a name of one word in quotes, unless it is one of those that tell who refuses what
    rb'|"(?<!err=")(?<!webhook ")(?<!User ")(?<!resource ")(?<!group ")[^"\s:]{1,253}"'
    rb'|://[^\s"]*'
    # numbers, times, addresses, UIDs, hashes, durations of Go, names of pods of ReplicaSets
    rb"|\b[a-f]*\d[\w.-]*|\d[\w.-]*"
    # what Kubernetes generates at the end of a name
    rb"|-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9.-])"
)
FOLDED = b"#"
# Who the line is about: of klog's fields and of the runtime's metadata.
_POD = re.compile(
    rb'\bpods?=\\*"([^"\\]{1,300})|\bPodSandboxMetadata\{Name:([^,}]{1,253})'
    rb'|\bsync \\*"([^"\\]{1,300})'
)
MAX_PODS = 9  # that are counted, of one error
MAX_FOLDS = 1500  # texts of one component that are folded; the rest differs in every line
FOLDED_BYTES = 500  # of a line, by which it is compared
LONGEST = 900  # bytes of the ends of the line that are kept
SHOWN = 8  # errors of one component, the most frequent ones


class Counter:
    """Counts the error lines of one component, newest first.

    lines: how many; cut: whether some were left out, because each has a text of its own.
    """

    def __init__(self):
        self.lines, self.cut = 0, False
        self._texts, self._errors = {}, {}

    def add(self, moment, raw):
        """Count a line of this time, in seconds since the epoch."""
        self.lines += 1
        text = raw[:FOLDED_BYTES]
        head = _HEAD.match(text)
        if head:
            text = text[head.end() :]
        key = self._texts.get(text)
        if key is None:
            if len(self._texts) >= MAX_FOLDS:
                self.cut = True
                return
            key = self._texts[text] = fold(text)
        error = self._errors.get(key)
        if error is None:
            error = self._errors[key] = _Error(moment, raw)
        error.add(moment, raw)

    def most_frequent(self):
        """Return the rows of the most frequent errors, without secrets."""
        errors = sorted(self._errors.values(), key=lambda error: (-error.count, -error.last))
        return [error.row() for error in errors[:SHOWN]]


class _Error:
    """Lines with the same text."""

    __slots__ = ("count", "first", "last", "minutes", "pods", "raw")

    def __init__(self, moment, raw):
        self.count, self.first, self.last, self.raw = 0, moment, moment, raw
        self.minutes, self.pods = set(), set()

    def add(self, moment, raw):
        self.count += 1
        self.first, self.last = min(self.first, moment), max(self.last, moment)
        self.minutes.add(int(moment // 60))
        if len(self.pods) < MAX_PODS:
            name = _POD.search(raw)
            if name:
                self.pods.add(next(filter(None, name.groups())))

    def row(self):
        """Return {count, minutes, first, last, pods, line}; line is the newest one."""
        raw = log_lines.Cleaner().clean(self.raw[: log_lines.LONGEST], False)
        line = log_lines.ends(raw, len(self.raw), LONGEST)
        return {
            "count": self.count,
            "minutes": len(self.minutes),
            "first": round(self.first, 3),
            "last": round(self.last, 3),
            "pods": len(self.pods),
            "line": "".join(char if char.isprintable() else " " for char in line),
        }


def fold(text):
    """Return a text without what differs between lines about the same, and without escapes."""
    return _DIFFERENCES.sub(FOLDED, text.replace(b"\\", b""))
