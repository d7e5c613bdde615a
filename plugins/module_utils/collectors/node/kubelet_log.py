# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector kubelet_log: recent lines of the kubelet and the runtime about a few matters."""

import os
import re

from ...logs import repeated_lines
from ...system import command, files, rancher
from ..base import Denied, Failed

RUNTIMES = (
    "containerd.service",
    "crio.service",
    "docker.service",
    "cri-docker.service",
    "cri-dockerd.service",
)
PLEG = "pleg is not healthy"
MATTERS = (
    "unable to freeze",
    "cpu manager",
    "cpumanager",
    "memory manager",
    "memorymanager",
    "static policy",
    "failed to start containermanager",
    "failed to run kubelet",
    "failed to initialize cpu manager",
    "expected cgroupspath to be of format",
    "receive slice as parent",
    "received slice as parent",
    "is not allowed to modify node",
    "cannot modify node",
    "only its own node object",
    "successfully registered node",
    "failed to reload cni configuration",
    "failed to load plugin",
    "is not a known field selector",
    "creating driver directory",
    "compact failed: ",
    PLEG,
)
# What runs out repeats itself in many words (one line per pod or image): it must not push out the
# others.
OPEN_FILES = (
    "too many open files",
    "no space left on device",
    "failed to allocate directory watch",
    "status=205/limits",
    "failed at step limits",
)
# One line for each kind of object that a client lists.
CERTIFICATES, KEPT_CERTIFICATES = "x509: certificate has expired or is not yet valid", 10
# The kubelet's image collection, one line per image.
IMAGES, KEPT_IMAGES = "removing image ", 3
# What goes past the logger of a program, which has no level; systemd's own lines have none either.
_PLAIN = re.compile(
    r"\S{20,40} \S{1,255} (?!systemd\[)[\w.-]{1,80}\[\d{1,10}\]: "
    + repeated_lines.PLAIN.decode("ascii")
)
KEPT_PLAIN = 12
READ_LINES, READ_BYTES, KEPT, LONGEST = 5000, 4 * 1024 * 1024, 60, 600
# What a kubelet says once when it starts, and then runs on.
START_SECONDS, START_BYTES, KEPT_AT_START = 90, 512 * 1024, 40
# RKE2 runs the kubelet as a process of its own, and says before what it gives it.
SUPERVISED_SECONDS = 180
# Warnings and errors of klog, and of the logrus of K3s and RKE2.
_COMPLAINT = re.compile(
    r"\]: (?:[WEF]\d{4} \d\d:|time=\"[^\"]{10,64}\" level=(?:warning|error|fatal) )"
)
_NUMBER = re.compile(r"\d+")


def collect(context):
    """Return {lines, at_start} of the journal, each line once with its time, the oldest first.

    lines: the last ones of MATTERS, OPEN_FILES, CERTIFICATES or IMAGES, and errors that have no
    level. at_start: the first warnings and errors since the kubelet that runs was started, for
    START_SECONDS.
    """
    kubelet = context.data.get("kubelet") or {}
    unit = (kubelet.get("unit") or {}).get("name") or "kubelet.service"
    context.source = f"journalctl of {unit} and the runtime"
    text = _newest(context, unit)
    if not text.strip() and os.geteuid() != 0:
        raise Denied(f"journald shows this user nothing of {unit} and the runtime")
    return {
        "lines": chosen("\n".join(text.split("\n")[::-1])),
        "at_start": _said_at_start(context, unit, kubelet.get("process") or {}),
    }


def _newest(context, unit):
    """Return the journal of the kubelet and the runtimes, the newest line first."""
    units = [word for name in (unit, *RUNTIMES) for word in ("-u", name)]
    try:
        # the newest first, so that the limit of bytes costs the oldest
        return command.run(
            [
                "journalctl",
                "--no-pager",
                "--all",
                "-q",
                "-r",
                "-o",
                "short-iso",
                "-n",
                str(READ_LINES),
                *units,
            ],
            context.seconds(8),
            READ_BYTES,
        )
    except command.Silent:
        return ""
    except command.CommandError as error:
        raise Failed(str(error)) from error


def start(unit, started):
    """Return (first, last): the seconds of the start of a kubelet's process that count."""
    before = SUPERVISED_SECONDS if rancher.program(unit) == "rke2" else 1
    return int(started) - before, int(started) + START_SECONDS


def _said_at_start(context, unit, process):
    """Return what the unit of a kubelet that runs complained of at its start."""
    started = process.get("started_at")
    if started is None:
        return []
    first, last = start(unit, started)
    argv = ["journalctl", "--no-pager", "--all", "-q", "-o", "short-iso", "-u", unit]
    argv += [f"--since=@{first}", f"--until=@{last}"]
    try:
        return complaints(command.run(argv, context.seconds(3), START_BYTES))
    except command.CommandError:
        # its journal may begin later; the lines that matter are there without it
        return []


def complaints(text):
    """Return the first warnings and errors of a journal, each once."""
    rows = {}
    for line in text.splitlines():
        if len(rows) == KEPT_AT_START:
            break
        if _COMPLAINT.search(line[:400]):
            key = _NUMBER.sub("#", line.partition("]: ")[2])
            rows.setdefault(key, files.masked_ends(line, LONGEST))
    return list(rows.values())


def chosen(text):
    """Return the lines that matter, the last KEPT of each kind, fewer of the other kinds.

    The last one stays of several lines that differ in their time only.
    """
    rows = {}
    for line in text.splitlines():
        lower = line.lower()
        kind = _kind(lower) or ("plain" if _PLAIN.match(line) else "")
        if kind:
            message = line.partition("]: ")[2]
            # klog's own header counts the time too
            # a PLEG line also has a number of seconds in its text
            if PLEG in lower:
                key = PLEG
            else:
                key = message.partition("] ")[2] or message or line
            rows.pop(key, None)
            rows[key] = (kind, files.masked_ends(line, LONGEST))
    return _last_of_each(list(rows.values()))


def _kind(lower):
    """Return what a line is about, in lower case; "" where it does not matter."""
    if any(matter in lower for matter in MATTERS):
        return "matter"
    if any(matter in lower for matter in OPEN_FILES):
        return "open_files"
    if CERTIFICATES in lower:
        return "certificates"
    if IMAGES in lower and " to free " in lower:
        return "images"
    return ""


def _last_of_each(rows):
    """Return the lines of (kind, line) pairs, the last ones of each kind, in their order."""
    room, chosen_lines = {"matter": KEPT, "open_files": KEPT}, []
    room.update(images=KEPT_IMAGES, certificates=KEPT_CERTIFICATES, plain=KEPT_PLAIN)
    for kind, line in reversed(rows):
        if room[kind]:
            room[kind] -= 1
            chosen_lines.append(line)
    return chosen_lines[::-1]
