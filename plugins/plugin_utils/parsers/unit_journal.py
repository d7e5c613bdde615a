# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit's journal as its starts, and the lines with which a kubelet says that it ends. Pure.

A line says that the process ends by its form, never by its words: each form below is one that the
process does not survive.

* `F1122 … x.go:1] …`, klog.Fatal, status 255: everything in older kubelets (measured with 1.18.4;
  1.20 in k/k#98150), later here and there.
* `E1122 … server.go:292] "Failed to run kubelet" err="…"`, between these two, status 1: os.Exit(1)
  follows (seen with 1.22: sealer#1447).
* `Error: …`, cobra, with 1.24, status 1 (k/website#34755, kubespray#8924, kubeadm#2945).
* `E1122 … run.go:72] "command failed" err="…"`, component-base/cli, status 1 (k/website#38385 with
  1.26; measured with 1.36.3).
* `panic: …`, `fatal error: …`, Go itself, status 2 (measured with 1.36.3: an unknown gate in the
  configuration).
* `time="…" level=fatal msg="…"`, `level=error msg="kubelet exited: …"`, k3s, status 1
  (pkg/daemons/executor/embed.go). rke2's "Kubelet exited" ends nothing.

A user who names pods can put words into a line, and by the output of a probe whole lines into the
journal of an old kubelet. Therefore a form is looked for only at the beginning of a line, quoted
text is removed before the search, and the pid in a header is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..evidence.document import ends, one_line
from . import component_log, klog

MAX_LINES = 5000
LONGEST = 4096  # last log lines are short; longer ones are dumps of configurations
MAX_ABOUT = 50
CONTINUED = 40  # lines of one value of klog that has several

_ENTRY = re.compile(
    r"(?:\d{4}-\S{1,40}|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?:\S{1,255})"
    r" ([^\s\[\]:]{1,80})(?:\[(\d{1,10})\])?: (.*)",
    re.DOTALL,
)
_BOOT = re.compile(r"-- (?:Boot [0-9a-f]{32}|Reboot) --\s*")
# "Main process" since systemd 229, "main process" in 219
_EXIT = re.compile(
    r"(?:\S{1,255}: )?[Mm]ain process exited, code=(exited|killed|dumped),"
    r" status=(\d{1,3})(?:/\S+)?\s*"
)
_RESULT = re.compile(r"\S{1,255}: Failed with result '([a-z-]{1,40})'\.\s*")
_AGAIN = re.compile(
    r"(?:\S{1,255}: )?Scheduled restart job\b|\S{1,255} (?:Service )?hold-?off time over,"
    r" scheduling restart|"
    r"\S{1,255} Service \S+ expired, scheduling restart|(?:Start|Stopp)(?:ed|ing) "
)
_HEADER = re.compile(
    r"([IWEF])\d{4} \d\d:\d\d:\d\d\.\d{1,9} +(\d{1,10}) [\w.-]{1,80}\.go:\d{1,6}\] "
)
_LOGRUS = re.compile(r'time="[^"]{1,64}" level=(fatal|error) msg="((?:[^"\\]|\\.)*)"')
_MILDER = re.compile(r'time="[^"]{1,64}" level=(?:warning|info|debug|trace) ')
_PASSED = re.compile(r'time="[^"]{1,64}" level=error ')
# one that is not closed reaches to the end: no second try, whatever comes
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?$)', re.DOTALL)
_WORSE = re.compile(
    r"^(?:Error|panic|fatal error|error): |level=(?:error|fatal|panic)|"
    r"\b(?:[Ff]ailed|[Cc]annot|[Uu]nable)\b"
)
_CONTAINERD = ("containerd: exit status ", "containerd: signal: ")
_RUNE = re.compile(r"invalid character '\\?\"'")  # of a JSON parser: the one quote that is none
_MESSAGE = re.compile(r'"([^"\\]{1,80})"')
# Structured messages after which the kubelet calls os.Exit(1).
_ENDING = frozenset(
    (
        "command failed",
        "Failed to run kubelet",
        "Failed to parse kubelet flag",
        "Unknown command",
        "Failed to validate kubelet flags",
        "Failed to set feature gates from initial flags-based config",
        "Failed to load kubelet config file",
        "Failed to validate kubelet configuration",
        "Failed to construct kubelet dependencies",
        "Failed to start ContainerManager",
        "Failed to start cAdvisor",
        "Failed to listen and serve",
        "Failed to initialize internal modules",
    )
)


@dataclass(frozen=True)
class Said:
    """Line of the unit's own processes.

    text: the line without the prefix of journalctl
    name: what journald calls the process
    """

    raw: str
    pid: int | None
    text: str
    name: str = ""


@dataclass
class Start:
    """Start of the unit's process: its lines, and its end as systemd saw it.

    exit is (exited, killed or dumped; status).
    at_exit: how many lines it had then; a line that journald reads later follows
    has_stop_job: whether systemd stopped it; its last lines and its status then show no fault
    """

    lines: list[Said] = field(default_factory=list)
    pids: set[int | None] = field(default_factory=set)
    exit: tuple[str, int] | None = None
    exit_line: str = ""
    at_exit: int = 0
    result: str = ""
    has_stop_job: bool = False


@dataclass(frozen=True)
class Last:
    """Last line of a start that reports the end of its process.

    text: its message, each quoted part replaced by "<number>"
    quoted: those parts
    status: what its form ends with
    own: whether nothing speaks against the process itself having written it
    followed: how many later lines have a header of their own
    """

    text: str
    quoted: tuple[str, ...]
    line: str
    status: int
    own: bool
    followed: int


def starts(lines: Iterable[str]) -> list[Start]:
    """Return the starts that these lines show, oldest first. Never raises.

    journald reads a process's output later than systemd's own, so that a line may follow the end of
    its process: the pid assigns it. A child of a wrapper (microk8s) has another pid: only after
    systemd has reported a new start does a new pid begin one.
    """
    history, fresh = [Start()], False
    for raw in [line[:LONGEST] for line in lines][-MAX_LINES:]:
        entry = _ENTRY.fullmatch(raw)
        if entry is not None:
            fresh = _take(history, fresh, entry)
        elif _BOOT.fullmatch(raw):
            history.append(Start())
    return [start for start in history if start.lines or start.exit]


def _told(history: list[Start], fresh: bool, raw: str, text: str) -> bool:
    """Add systemd's own line to the starts; return whether a new start may begin after it."""
    ended, result = _EXIT.fullmatch(text), _RESULT.fullmatch(text)
    if ended:
        if history[-1].exit is not None:
            history.append(_next(history[-1]))
        start = history[-1]
        start.exit, start.exit_line = (ended.group(1), int(ended.group(2))), raw
        start.at_exit = len(start.lines)
        return False
    if result:
        history[-1].result = result.group(1)
    if text.startswith("Stopping ") and history[-1].exit is None:
        history[-1].has_stop_job = True
    return fresh or bool(_AGAIN.match(text))


def _next(start: Start) -> Start:
    """Return the start that ended without systemd's line about its begin, with its lines.

    They are those of new processes behind the end of the start before.
    """
    former = {line.pid for line in start.lines[: start.at_exit]}
    lines = [line for line in start.lines[start.at_exit :] if line.pid not in former]
    pids = {line.pid for line in lines}
    start.lines = [line for line in start.lines if line not in lines]
    start.pids -= pids
    return Start(lines, pids)


def _take(history: list[Start], fresh: bool, entry: re.Match[str]) -> bool:
    """Add an entry to its start; return whether a new start may begin after it."""
    name, number, text = entry.groups()
    pid = None
    if number:
        pid = int(number)
    if name == "systemd" and pid == 1:
        return _told(history, fresh, entry.string, text)
    entry_line = Said(entry.string, pid, text, name)
    home = next((start for start in history[-2:] if pid is not None and pid in start.pids), None)
    if home is not None:
        home.lines.append(entry_line)
        return fresh
    if fresh and (history[-1].lines or history[-1].exit):
        history.append(Start())
    history[-1].pids.add(pid)
    history[-1].lines.append(entry_line)
    return False


def last(start: Start) -> Last | None:
    """Return the last line of this start that its process does not survive, or None."""
    followed = 0
    for index in range(len(start.lines) - 1, -1, -1):
        line = start.lines[index]
        header = _HEADER.match(line.text)
        form = _form(start.lines, index, header)
        if form is not None:
            text, quoted = masked(form[0])
            is_own = header is None or line.pid == int(header.group(2))
            is_own = is_own or _is_of_wrapped(start, line)
            # a line of JSON names no pid: a probe may have printed the same line
            return Last(
                text, quoted, line.raw, form[1], is_own and not line.text.startswith("{"), followed
            )
        followed += header is not None
    return None


def _is_of_wrapped(start: Start, line: Said) -> bool:
    """Tell whether a line is of the one kubelet that another program runs and logs for.

    Then every header names this kubelet's pid, and no line is journald's of a kubelet.
    """
    headers = [(row.name, _HEADER.match(row.text)) for row in start.lines]
    kubelets = {(name, header.group(2)) for name, header in headers if header is not None}
    return len(kubelets) == 1 and line.name not in ("", "kubelet")


def is_logrus(raw: str) -> bool:
    """Return whether a line is one with which k3s or RKE2 tells of an error, and no kubelet."""
    entry = _ENTRY.fullmatch(raw[:LONGEST])
    return entry is not None and _LOGRUS.match(entry.group(3)) is not None


def about(start: Start, words: str) -> list[tuple[klog.Line, str]]:
    """Return (parsed line, raw line) of lines with a header of their own and these words.

    The newest is first.
    """
    rows = []
    for line in reversed(start.lines):
        header = None
        if words in line.text:
            header = _HEADER.match(line.text)
        if header is not None and line.pid == int(header.group(2)):
            rows.append((klog.parse(line.text), line.raw))
            if len(rows) == MAX_ABOUT:
                break
    return rows


def of_program(lines: Sequence[Said], argv: Sequence[str]) -> Sequence[Said]:
    """Return the lines of the unit's own program, all of them where it wrote none.

    A command of ExecStartPre that begins with "-" may fail: its lines do not show why a unit ended.
    """
    program = next(iter(argv), "").rpartition("/")[2]
    return [line for line in lines if line.name == program] or lines


def errors_before(lines: Sequence[str], last: str) -> Sequence[str]:
    """Return the raw lines that may say why a program wrote its last one, newest first.

    These are the errors of that program, and the lines of systemd. A warning ends nothing, nor does
    a line of a command of ExecStartPre, nor an error of k3s or RKE2 after which they went on.
    """
    entry = _ENTRY.fullmatch(last[:LONGEST])
    if entry is None:
        return lines[::-1]
    kept, is_end = [], _end_filter()
    for line in reversed(lines):
        match = _ENTRY.fullmatch(line[:LONGEST])
        is_own = match is not None and match.group(1) == entry.group(1)
        is_of_systemd = match is None or match.group(1) == "systemd"
        if is_of_systemd or (is_own and match is not None and is_end(match.group(3))):
            kept.append(line)
    return kept


def _end_filter() -> Callable[[str], bool]:
    """Return a test for lines, from the newest on: whether one is an error that may have ended it.

    Once a line shows that k3s or RKE2 went on, the errors before it ended nothing.
    """
    went_on = False

    def is_end(text: str) -> bool:
        nonlocal went_on
        went_on = went_on or _MILDER.match(text) is not None
        return _is_error(text) and not (went_on and _PASSED.match(text))

    return is_end


def last_error(start: Start) -> str:
    """Return the last line of this start that its program marks as an error, else "".

    It need not be why the process ended: it is quoted where no cause is known. What the end of the
    process cancelled comes after that, and counts only where there is no other error.
    """
    is_end = _end_filter()
    errors = [line for line in reversed(start.lines) if is_end(line.text)]
    causes = (line for line in errors if not component_log.follows_end(line.text))
    error = next(causes, next(iter(errors), None))
    if error is None:
        return ""
    return error.raw


def _is_error(text: str) -> bool:
    header = _HEADER.match(text)
    if header is not None:
        return header.group(1) in "EF"
    if _MILDER.match(text):
        return False
    return bool(_LOGRUS.match(text) or _WORSE.search(text)) or component_log.says_removed(text)


def quoted(line: str, unit: str) -> str:
    """Return a line and its log, for a sentence in which no cause is known."""
    text = line.partition("]: ")[2] or line
    if _LOGRUS.match(text):
        return f"the last error in the journal of {one_line(unit, 80)}: {_message(text)}"
    text = ends(text, 200)
    header = _HEADER.match(text)
    kind = "line"
    if (header is not None and header.group(1) in "EF") or _WORSE.search(text):
        kind = "error"
    return f"the last {kind} in the journal of {one_line(unit, 80)}: {text}"


def _message(text: str) -> str:
    """Return the message of a line of logrus with its error, without its time and level."""
    return ends(component_log.text(text) or text, 200)


def masked(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with each quoted part replaced by its number in quotes, and these parts.

    A quote that is not closed hides the rest.
    """
    parts: list[str] = []

    def number(match: re.Match[str]) -> str:
        parts.append(match.group(1))
        return f'"{len(parts) - 1}"'

    return _QUOTED.sub(number, _RUNE.sub("invalid character", text)), tuple(parts)


def _form(
    lines: Sequence[Said], index: int, header: re.Match[str] | None
) -> tuple[str, int] | None:
    """Return (message, exit status of the process), or None for a line that ends nothing."""
    text = lines[index].text
    if header is not None:
        return _form_of_klog(lines, index, header)
    if text.startswith("{"):  # --logging-format=json
        return _structured(lines, index)
    for word, status in (("Error: ", 1), ("panic: ", 2), ("fatal error: ", 2)):
        if text.startswith(word):
            return text[len(word) :].strip().removesuffix("[recovered]").strip(), status
    if text.startswith(_CONTAINERD):  # k3s up to 1.21; later ones log "containerd exited: …"
        return f"containerd exited: {text.partition(': ')[2].strip()}", 1
    logged = _LOGRUS.match(text)
    if logged and (logged.group(1) == "fatal" or logged.group(2).startswith("kubelet exited: ")):
        return re.sub(r"\\(.)", r"\1", logged.group(2)), 1
    return None


def _form_of_klog(
    lines: Sequence[Said], index: int, header: re.Match[str]
) -> tuple[str, int] | None:
    if header.group(1) == "F":
        return lines[index].text[header.end() :].strip(), 255
    if header.group(1) == "E":
        return _structured(lines, index, header.end())
    return None


def _structured(lines: Sequence[Said], index: int, begin: int = 0) -> tuple[str, int] | None:
    text = lines[index].text
    message = _MESSAGE.match(text, begin)
    if begin and (message is None or message.group(1) not in _ENDING):
        return None
    line = klog.parse(text)
    if line.message not in _ENDING:
        return None
    error = line.get("err", "error")
    if error == "<":
        error = _continued(lines, index)
    return f"{line.message}: {error}", 1


def _continued(lines: Sequence[Said], index: int) -> str:
    """Return a value of several lines, as klog v2 writes it: `err=<`, lines after a tab, ` >`."""
    parts = []
    for line in lines[index + 1 : index + 1 + CONTINUED]:
        if not line.text.startswith("\t"):
            break
        parts.append(line.text.strip())
    return " ".join(parts)
