# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a trial start of containerd proves about its next start.

An error that the private root of the trial may bring about itself proves nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..evidence.answers.node.next_start import Trial
from ..evidence.document import ends, one_line
from ..parsers import component_log, runtime_journal

PRESENT, CLEAR, UNKNOWN = "present", "clear", "unknown"
# What a program does not meet at a real start: file systems that it may not write to, no device,
# no network, no cgroup of its own, an empty root, bounds of memory and of files.
_OF_PRIVATE_ROOT = re.compile(
    r"read-only file system|not permitted|permission denied|no such device|no space left"
    r"|cannot allocate|too many open|file too large|resource temporarily|address already in use"
    r"|network (?:is unreachable|address)|no route to host|connection refused|dial unix|dial tcp"
    r"|deadline exceeded|/dev/|/proc/|/sys/|/var/lib/|/(?:var/)?run/|/tmp/"
    r"|snapshotter[^a-z]+(?:zfs|btrfs|devmapper|blockfile|erofs|aufs)\b",
    re.IGNORECASE,
)
# With which containerd ends; a stack of Go, or no word at all, says nothing of its configuration.
_END = re.compile(r"^containerd: |\blevel=fatal\b|\"level\":\"fatal\"")
PROGRAM = "containerd: "
_AT_ONCE = {
    "refused": "nothing was started",
    "silent": "it neither served nor ended within the time limit",
}


@dataclass(frozen=True)
class Proof:
    """What a trial proves: present, clear or unknown.

    line: the line of containerd's log that says it
    text: what it says, or why nothing is known
    is_cri: whether containerd starts, and serves no CRI
    cure: advice, where the reason has one of its own
    """

    verdict: str
    text: str = ""
    line: str = ""
    is_cri: bool = False
    cure: str = ""


def proof(trial: Trial, needs_cri: bool) -> Proof:
    """Return what a trial start proves. needs_cri: whether the kubelet uses this containerd."""
    if trial.state in _AT_ONCE:
        return Proof(UNKNOWN, one_line(trial.reason) or _AT_ONCE[trial.state])
    if trial.state == "ended":
        return _of_end(trial)
    if trial.state != "served":
        return Proof(UNKNOWN, "its answer is not known")
    if needs_cri:
        return _of_cri(trial)
    return Proof(CLEAR)


def _of_end(trial: Trial) -> Proof:
    """Return what the line proves with which containerd ended."""
    line = next((row for row in reversed(trial.lines) if _END.search(row)), "")
    if not line:
        return Proof(UNKNOWN, "it ended without a reason")
    text = ends(component_log.text(line).removeprefix(PROGRAM), 300)
    return _decided(trial, Proof(PRESENT, text, ends(line.removeprefix(PROGRAM), 400)))


def _of_cri(trial: Trial) -> Proof:
    """Return what the plugins prove of a containerd that serves."""
    failure = runtime_journal.plugin_failure(trial.failures)
    if failure is not None:
        text, line = ends(failure.reason, 300), ends(failure.line, 400)
        return _decided(trial, Proof(PRESENT, text, line, is_cri=True, cure=failure.cure))
    if trial.cri is None:
        return Proof(UNKNOWN, "its answer says nothing of its CRI")
    if not trial.cri:
        return Proof(PRESENT, "it loads no plugin that serves the CRI", is_cri=True)
    return Proof(CLEAR)


def _decided(trial: Trial, result: Proof) -> Proof:
    """Return the proof, unknown where the trial itself may be the reason."""
    # the configuration itself was there
    if _OF_PRIVATE_ROOT.search(result.text.replace(trial.path or "\0", "")):
        return Proof(UNKNOWN, f"the trial itself may be the reason of: {result.text}", result.line)
    return result
