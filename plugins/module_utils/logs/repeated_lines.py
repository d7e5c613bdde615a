# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Error lines of a component, counted by their text without numbers, ids and names of pods."""

import re

from . import lines as log_lines

# How an error begins that goes past the logger: of a library that prints it, often with a stack in
# the next lines, of the Go runtime, and of a command line. A panic that a program recovered from
# stands in a line of its logger.
PLAIN = (
    rb"(?:panic: (?![^\n]{0,400}\[recovered\])|fatal error: |[Ff]ailed to |[Ee]rror: "
    rb"|[Uu]nable to |[Cc]ould not |[Cc]ouldn't |[Cc]annot )"
)
# How the loggers of components begin an error: klog's text and its JSON, which has no level and no
# verbosity of an error; zap and capnslog of etcd, which warns of what keeps it from its work;
# logrus of runtimes, and its JSON, whose keys stand in alphabetical order: a quote within a value
# has a backslash. A quote of JSON within docker's JSON has one too.
_LEVELS = (
    rb'(?:[EF]\d{4} \d\d:|\{\\?"ts\\?":[\d.]+,(?![^\n]*"v\\?":\d)[^\n]*?"err\\?":'
    rb'|\{\\?"level\\?":\\?"(?:warn|error|dpanic|panic|fatal)\\?"'
    rb"|\d{4}-\d\d-\d\d [\d:.]{8,20} [WEC] \| "
    rb'|time=\\?"[^"\n]{10,64}" level=(?:error|fatal|panic) '
    # k0s logs what its components say, with a level of its own
    rb'|time="[^"\n]{10,64}" level=info msg="[EF]\d{4} \d\d:'
    rb'|\{"(?!log":)[a-k][\w.-]{0,40}":[^\n]{0,2000}?,"level":"(?:error|fatal|panic)","'
    rb"|" + PLAIN
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
# branch that is tried at each byte costs ten times as much. Groups are kept: the kind of object
# that is listed, the code of an answer, and the key of what tells what is wrong in JSON.
_DIFFERENCES = re.compile(
    rb"(\*v\d\w{0,20}\.\w{1,80})|(\b(?:status|code)[ =:]{1,3}\d{3}\b)"
    rb'|("(?:msg|error|err|reason)":")'
    # pod="ns/name", podUID="...", but not err="..." or msg="...", which tell what is wrong
    rb'|="(?<!err=")(?<!error=")(?<!msg=")(?<!message=")(?<!reason=")[^"]*"'
    # a name of one word in quotes, unless it is one of those that tell who refuses what
    rb'|"(?<!err=")(?<!error=")(?<!webhook ")(?<!User ")(?<!resource ")(?<!group ")(?<!exec: ")'
    rb'(?<!\A")(?<!msg=")(?<!message=")(?<!reason=")(?<!path ")[^"\s:,}\]][^"\s,]{0,252}"'
    rb'|://[^\s"]*'
    # names of pods of the runtime's metadata, and of older releases: ns/name, name_ns(uid)
    rb"|\bName:[^,}]{1,253}|\b[Pp]od [a-z0-9-]{1,63}/[a-z0-9.-]{1,253}"
    rb"|\b(?<![.-])[a-z0-9][a-z0-9.-]{0,252}_[a-z0-9-]{1,63}(?=\()"
    # lists of pods, and addresses of IPv6
    rb"|\bpods=\[[^\]]*\]|\[[0-9a-f:.]{2,45}(?:%[\w.-]{1,16})?\]"
    rb"|\b[0-9a-f]{1,4}:[0-9a-f]{0,4}:[0-9a-f:.]*"
    # numbers, times, addresses, UIDs, hashes, durations of Go, names of pods of ReplicaSets
    rb"|\b[0-9a-f]{8,64}\b[\w.-]*"
    rb"|\b[a-f]*\d[\w.-]*(?:\xc2\xb5s)?|\d[\w.-]*(?:\xc2\xb5s)?"
    # what Kubernetes generates at the end of a name
    rb"|(?:-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}(?![a-z0-9.-])"
)
FOLDED = rb"\1\2\3#"
# Which pod, object of a controller or image the line is about: of klog's fields, as text and as
# JSON, of the runtime's metadata, and of messages.
_OBJECT = re.compile(
    rb'\bpods?\\*"?[=:]\[?\\*"([^"\\]{1,300})'
    rb'|"pod\\*":\{\\*"name\\*":\\*"([^"\\]{1,253})(?:\\*",\\*"namespace\\*":\\*"([^"\\]{1,63}))?'
    rb"|\bPodSandboxMetadata\{Name:([^,}]{1,253})(?:,Uid:[^,}]{0,63},Namespace:([^,}]{1,63}))?"
    rb'|\bfor name:\\*"([^"\\]{1,253})'
    rb'(?:\\*" +uid:\\*"[^"\\]{0,63}\\*" +namespace:\\*"([^"\\]{1,63}))?'
    rb'|\bsync \\*"([^"\\]{1,300})|\bPullImage \\*"([^"\\:@]{1,300})'
    rb'|\b[Pp]od (?:\\*"([^"\\]{1,300})\\*"|([a-z0-9-]{1,63}/[a-z0-9.-]{1,253}))'
    rb"|\b(?<![.-])([a-z0-9][a-z0-9.-]{0,252})_([a-z0-9-]{1,63})\([0-9a-f]{4}"
)
# What a controller adds to a workload's name: of a ReplicaSet or a Job and 5 characters, or a
# number of a StatefulSet.
_GENERATED = re.compile(
    rb"(?:-\d{1,10}|-[bcdfghjklmnpqrstvwxz2456789]{6,10})?"
    rb"-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|\d{1,10})\Z"
)
MAX_PODS = 9  # workloads that are counted, of one error
MAX_FOLDS = 1500  # texts of one component that are folded; the rest differs in every line
FOLDED_BYTES = 2048  # of a line, by which it is compared: its end has the cause
NAMED_BYTES = 4096  # of a line, in which the name of its object is looked for
LONGEST = 900  # bytes of the ends of the line that are kept
SHOWN = 12  # errors of one component, the most frequent ones
# What is said less often is no error that goes on. A kubelet tries an operation that has failed for
# two minutes again after 2m2s, and says so.
MINUTES, COUNT = 4, 5
_LONGEST_WAIT, TRIES = b"(durationBeforeRetry 2m", 3


class Counter:
    """Counts the error lines of one component, newest first.

    lines: how many.
    """

    def __init__(self):
        self.lines, self._is_full = 0, False
        self._texts, self._errors = {}, {}

    def add(self, moment, raw, compared=None):
        """Count a line of this time, in seconds since the epoch.

        compared: the line without what its program alone knows to differ.
        """
        self.lines += 1
        text = (compared or raw)[:FOLDED_BYTES]
        head = _HEAD.match(text)
        if head:
            text = text[head.end() :]
        key = self._texts.get(text)
        if key is None:
            if len(self._texts) >= MAX_FOLDS:
                self._is_full = True
                return
            key = self._texts[text] = fold(text)
        error = self._errors.get(key)
        if error is None:
            error = self._errors[key] = _Error(moment, raw)
        error.add(moment, raw)

    def most_frequent(self):
        """Return the rows of the most frequent errors, without secrets."""
        return [error.row() for error in self._sorted()[:SHOWN]]

    @property
    def cut(self):
        """Tell whether errors that may go on were left out, as too many differ."""
        return self._is_full or any(error.is_repeated for error in self._sorted()[SHOWN:])

    def _sorted(self):
        return sorted(
            self._errors.values(),
            key=lambda error: (not error.is_repeated, -error.count, -error.last),
        )


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
            name = _workload(raw)
            if name:
                self.pods.add(name)

    @property
    def is_repeated(self):
        """Tell whether it was said often enough, and for long enough, to be one that goes on."""
        if _LONGEST_WAIT in self.raw:
            return self.count >= TRIES
        return self.count >= COUNT and len(self.minutes) >= MINUTES

    def row(self):
        """Return {count, minutes, first, last, pods, line}; line is the newest one.

        pods: of how many workloads the lines name pods; or how many images.
        """
        raw = log_lines.Cleaner().clean(self.raw[: log_lines.LONGEST], False)
        line = log_lines.ends(raw, len(self.raw), LONGEST)
        return {
            "count": self.count,
            "minutes": len(self.minutes),
            "first": round(self.first, 3),
            "last": round(self.last, 3),
            "pods": len(self.pods),
            "line": printable(line),
        }


def _workload(raw):
    """Return the name of the workload whose pod a line is about, or None."""
    match = _OBJECT.search(raw, 0, NAMED_BYTES)
    if not match:
        return None
    name, *namespace = filter(None, match.groups())
    return b"/".join([_GENERATED.sub(b"", name), *namespace])


def printable(line):
    """Return a line with a blank for each character that cannot be shown."""
    return "".join(char if char.isprintable() else " " for char in line)


def fold(text):
    """Return a text without what differs between lines about the same, and without escapes."""
    return _DIFFERENCES.sub(FOLDED, text.replace(b"\\", b""))
