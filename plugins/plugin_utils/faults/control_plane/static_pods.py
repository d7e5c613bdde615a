# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM114: a component whose manifest the kubelet has, and whose process is not there, or never
for long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence.document import one_line
from ...models import control_plane
from ...models.cluster import Host, moment
from ...models.control_plane import ControlPlane, FileUse
from ...models.result import Missing, Proof
from ...parsers import pflag as flags
from ..base import Hit, Outcome, causes, node_check
from .manifests import SETTLE_SECONDS

# After its own start a kubelet brings everything up at once, and what waits for what is not up yet
# ends a few times.
STARTING_SECONDS = 180
# One that is younger than SHORT, behind two others of which the last ended by its own word within
# LIVED: it is alive by chance while somebody looks. One that
# somebody ended (a restart, an edit, a lock that was lost) has lived on, or says nothing of its
# end.
SHORT_SECONDS, STARTS, LIVED_SECONDS = 120, 2, 10
# Three ends within an hour are no accident: two starts within 40 minutes, with a third before them,
# are that rate. Where the log does not say why it ended, an
# operator or a repair may have stopped it a few times in a row; ten times are not plausible.
AGAIN_SECONDS, AGAIN_STARTS, QUIET_STARTS = 2400, 3, 10
BOOT_SECONDS = 600  # behind a boot, what waits for what is not up yet ends a few times
# Words by which a program of Kubernetes, etcd or Go says that it ends.
_LAST = re.compile(
    r"F\d{4} |E\d{4} .*(?:command failed|failed to run|Failed to run)|[Ee]rror: |panic: |fatal"
    r" error: |unknown (?:shorthand )?flag|"
    r'.*"level":"(?:fatal|panic)"'
)
# A component that cannot renew its lock ends itself, so that another one leads.
_LOST = re.compile(r"leader ?election lost|[Ff]ailed to renew lease|leaderelection\.go.*lost")


@node_check(
    "KM114",
    "Control-plane component does not stay up",
    severity="critical",
    applies="manifests of control-plane components in the folder of a kubelet that runs",
    risk=2,
    needs=("system", "kubelet", "manifests", "instances", "component_end"),
    explained_by=causes("KM115")
    | causes("KM114", component="etcd")
    | causes("KM114", component="kube-apiserver"),
)
def down(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM114: a manifest whose component does not run, or ends again and again, while the kubelet
    is well.
    """
    plane = host.control_plane
    problem = plane.kubelet_problem if plane else ""
    missing = tuple(dict.fromkeys(host.missing("manifests") + host.missing("instances")))
    if plane is None or problem or missing:
        applies = host.status != "ok" or (
            host.statuses.get("manifests") != "absent" and not problem
        )
        yield Outcome((), missing, applies, host=host.host, note=problem)
        return
    ended = {
        row.get("component"): row
        for row in control_plane.data(document, "component_end").get("components") or ()
        if isinstance(row, Mapping)
    }
    hits, doubts, booted = [], [], _booted(document)
    for use in _one_each(plane):
        hit, doubt = _judged(host, plane, use, ended.get(use.component) or {}, booted)
        hits += [hit] if hit else []
        doubts += [doubt] if doubt else []
    missing = _unasked(host, plane)
    missing += (Missing(host.host, "instances", "timeout"),) if doubts else ()
    missing += (Missing(host.host, "manifests", "denied"),) if plane.unread else ()
    yield Outcome(
        tuple(hits),
        missing,
        bool(plane.files),
        host=host.host,
        note="" if hits else "; ".join(doubts),
    )


def _one_each(plane: ControlPlane) -> list[FileUse]:
    """One manifest of each component: a second one is a fault of its own (KM109)."""
    found: dict[str, FileUse] = {}
    for use in sorted(plane.files, key=lambda one: not one.usual):
        found.setdefault(use.component, use)
    return list(found.values())


def _booted(document: Mapping[str, Any]) -> float:
    """When its machine booted, by its own clock; 0 where it does not say."""
    system = control_plane.data(document, "system")
    clock, uptime = system.get("clock"), system.get("uptime_s")
    return clock - uptime if _number(clock) and _number(uptime) else 0.0


def _judged(
    host: Host, plane: ControlPlane, use: FileUse, ended: Mapping[str, Any], booted: float
) -> tuple[Hit | None, str]:
    """(the finding, else why it cannot be told)."""
    running = [one for one in plane.processes if one.component == use.component and one.static]
    if running:
        started = max(one.started_at for one in running)
        lived, restart = _lived(ended), ended.get("restart")
        spoke = _LAST.match(last_word(_lines(ended))) is not None
        again = (
            spoke
            and lived is not None
            and lived < LIVED_SECONDS
            and plane.clock - started < SHORT_SECONDS
        )
        if again and _number(restart) and restart >= STARTS:
            return _hit(host, use, ended, "ends again and again", lived), ""
        if _restarts(plane, ended, started, booted):
            return (
                replace(
                    _hit(host, use, ended, "restarts again and again", lived), severity="warning"
                ),
                "",
            )
        return None, ""
    if flags.component_of(use.words) != use.component:
        return (
            None,
            (
                f"what runs as {use.component} by {use.path} is not known: its command does not"
                " name it"
            ),
        )
    # Where nobody knows when the kubelet began, it is old.
    begun = host.kubelet_started.timestamp() if host.kubelet_started else 0.0
    if plane.clock - use.mtime < SETTLE_SECONDS or plane.clock - begun < STARTING_SECONDS:
        return None, f"the kubelet may still be at it: {use.component}"
    return (
        _hit(
            host, use, ended, "does not stay up" if ended.get("lines") else "does not start", None
        ),
        "",
    )


def _restarts(plane: ControlPlane, ended: Mapping[str, Any], started: float, booted: float) -> bool:
    """Whether it ends every few minutes, although it runs at the moment of the audit.

    A high lifetime count alone says nothing of the present.

    Its number counts starts of one manifest, so that a change of it is no restart.
    """
    first, restart = ended.get("first"), ended.get("restart")
    if not _number(first) or not _number(restart):
        return False
    now = [
        at
        for at in (first, started)
        if plane.clock - at < AGAIN_SECONDS and not 0 <= at - booted < BOOT_SECONDS
    ]
    spoke = any(_LAST.match(line) or _LOST.search(line) for line in _lines(ended))
    return len(now) > 1 and restart + 1 >= (AGAIN_STARTS if spoke else QUIET_STARTS)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _lines(ended: Mapping[str, Any]) -> list[str]:
    return [one_line(line, 600) for line in ended.get("lines") or () if isinstance(line, str)]


def _lived(ended: Mapping[str, Any]) -> float | None:
    first, last = ended.get("first"), ended.get("last")
    return last - first if _number(first) and _number(last) else None


def _unasked(host: Host, plane: ControlPlane) -> tuple[Missing, ...]:
    """Whether a component that was started of late was before, too, is in its log only."""
    young = any(
        one.static and plane.clock - one.started_at < SHORT_SECONDS for one in plane.processes
    )
    return host.missing("component_end") if young else ()


def _hit(host: Host, use: FileUse, ended: Mapping[str, Any], what: str, lived: float | None) -> Hit:
    word, kubelet = last_word(_lines(ended)), one_line(ended.get("kubelet") or "", 600)
    proofs = [Proof("file", host.host, path=use.path, text=_named(use, word))]
    if word:
        proofs.append(
            Proof("log", host.host, path=one_line(ended.get("path") or "", 300), text=word)
        )
    elif kubelet:
        proofs.append(Proof("log", host.host, object="kubelet", text=kubelet))
    told = one_line(_said(word or kubelet), 240)
    restart = ended.get("restart")
    begun = moment(ended.get("begun")) if _number(restart) and restart else None
    since = f" since {begun:%Y-%m-%dT%H:%M:%SZ}" if begun is not None else ""
    often = f" ({restart:.0f} starts before{since})" if _number(restart) and restart else ""
    short = f", its last start lived {lived:.0f} s" if lived is not None else ""
    refused = use.flag is not None and use.flag.value is None
    kept = "runs" if host.control_plane and host.control_plane.kubelet_unproven else "is well"
    return Hit(
        f"its manifest is there and the kubelet {kept}, but it"
        f" {what}{often}{short}{f': {told}' if told else ''}",
        tuple(proofs),
        _remedy(use, word, bool(kubelet)),
        host.host,
        host.node,
        use.component,
        because=("KM105",) if refused else (),
    )


def _named(use: FileUse, word: str) -> str:
    """The arguments that a last word names, else the whole command."""
    names = set(re.findall(r"--?[A-Za-z][\w-]*", word))
    named = [f"- {one}" for one in use.words if one.partition("=")[0] in names]
    return one_line(" ".join(named) or f"asks for {' '.join(use.words)}", 300)


def last_word(lines: list[str]) -> str:
    """The last of these lines that says that the program ends, else the last of all."""
    ends = (
        [line for line in lines if _LAST.match(line)]
        or [line for line in lines if _LOST.search(line)]
        or lines
    )
    return ends[-1] if ends else ""


def _said(line: str) -> str:
    """A line without what stands in front of its words."""
    return re.sub(r"^[IWEF]\d{4} \S+ +\d+ [\w.-]+:\d+\] ", "", line)


def _remedy(use: FileUse, word: str, kubelet: bool) -> str:
    if _LOST.search(word):
        return (
            "it could not renew its lock in time: the API server or its etcd is too slow, or takes"
            ' no writes. See etcd\'s log for "took too long" and "slow fdatasync", what its disk'
            " is shared with, and the CPU that the API server gets; the whole log: crictl ps -a"
            f" --name {use.component}"
        )
    if word:
        return (
            f"mend what its last words name, in {use.path} or in a file that it is given; the"
            " kubelet starts it again within five minutes. The whole log: crictl ps -a --name"
            f" {use.component}, then crictl logs of the newest"
        )
    if kubelet:
        return (
            f"mend what the kubelet says of starting it, in {use.path} or at the runtime (its"
            " image, a mount, its command)"
        )
    return (
        f"see why the kubelet starts none: journalctl -u kubelet | grep {use.component}, crictl ps"
        f" -a --name {use.component}, crictl images"
    )
