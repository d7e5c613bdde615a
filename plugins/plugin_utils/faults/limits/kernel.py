# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about the kernel's limits.

What is exhausted, by whom, and what a reboot will make of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...models import (
    control_plane,
    shared_kernel,
)
from ...models import (
    limits as node_limits,
)
from ...models import (
    persistent_sysctl as lasting_settings,
)
from ...models.cluster import Host
from ...models.limits import (
    FILE_MAX,
    INSTANCES,
    PID_MAX,
    THREADS_MAX,
    WATCHES,
    Holder,
    Limits,
    Shortage,
)
from ...models.result import Missing, Proof
from ...parsers import errno_message as errno_words
from ..base import Hit, Outcome, node_check

SHOWN = 5
MORE_PIDS = 4194304  # as many as a kernel of 64 bits counts
WHO_THREADS = "ps -eo nlwp,pid,comm --sort=-nlwp | head"
# What a line of kubelet or runtime must be about: the same errno is of other matters too, a full
# disk or a process at its limit.
SAYS = {
    INSTANCES: errno_words.INSTANCES,
    FILE_MAX: errno_words.FILE_MAX,
    WATCHES: errno_words.WATCHES,
}
RAISE = (
    "raise it: the plan writes {0}={1}, or what -e {2}=NUMBER asks for, where it outlives a reboot,"
    " and tells the kernel (nothing restarts)"
)
WHO = (
    'for p in /proc/[0-9]*; do echo "$(ls $p/fd | wc -l) $(cat $p/comm) ${p#/proc/}"; done | sort'
    " -rn | head"
)


@node_check(
    "KM401",
    "One process holds most inotify instances",
    severity="critical",
    applies="nodes whose processes were looked at",
    risk=1,
    needs=("limits", "descriptors"),
    tier="deep",
    sooner=True,
)
def one_holder(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM401: one process holds most of a user's inotify instances."""
    limits = node_limits.read(document)
    missing = (
        host.missing("limits")
        or host.missing("descriptors")
        or _untried(host, limits, INSTANCES) + uncounted(host, limits)
    )
    yield _outcome(
        host,
        document,
        limits,
        [short for short in _of(limits, INSTANCES) if short.culprit],
        missing,
    )


@node_check(
    "KM402",
    "Inotify instances are used up",
    severity="critical",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def too_small(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM402: they are used up, and nobody is known to hold most of them.

    Where somebody does, it is KM401 alone, and not clear.
    """
    limits = node_limits.read(document)
    found = _of(limits, INSTANCES)
    several = [short for short in found if not short.culprit]
    yield _outcome(
        host,
        document,
        limits,
        several,
        host.missing("limits") or _untried(host, limits, INSTANCES),
        applies=bool(several or not found),
        note="one process holds most of them: KM401" if found and not several else "",
    )


@node_check(
    "KM403",
    "Inotify watches are used up",
    severity="critical",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def watches(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM403: a user's inotify watches are used up."""
    limits = node_limits.read(document)
    error = node_limits.INOTIFY[INSTANCES][2]
    none_left = (limits.tried.get("instance"), limits.tried.get("watch")) == (error, "untried")
    yield _outcome(
        host,
        document,
        limits,
        _of(limits, WATCHES),
        host.missing("limits") or _untried(host, limits, WATCHES),
        note=(
            f"no inotify instance was to be had to try a watch with ({error}): see KM402 first"
            if none_left
            else ""
        ),
    )


@node_check(
    "KM405",
    "The machine's file handles are used up",
    severity="critical",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def file_max(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM405: the machine's file handles are used up."""
    limits = node_limits.read(document)
    told = node_limits.pair(limits.seen.get("file_nr"))
    missing = host.missing("limits") or unless(host, bool(told and told[0] >= 0 and told[1] > 0))
    yield _outcome(host, document, limits, _of(limits, FILE_MAX), missing)


@node_check(
    "KM411",
    "The machine's process ids are used up",
    severity="critical",
    applies="nodes",
    needs=("limits",),
)
def pids(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM411: as many threads run as the machine has numbers for.

    Each has one, a process with one thread too.
    """
    limits = node_limits.read(document)
    threads = node_limits.number(limits.seen.get("threads"))
    bounds = [(limits.kernel[key], key) for key in (PID_MAX, THREADS_MAX) if limits.kernel.get(key)]
    missing = host.missing("limits") or unless(host, threads is not None and len(bounds) == 2)
    most, key = min(bounds, default=(0, ""))
    hits = (
        [_crowded(host, document, threads, most, key, limits.most("threads"))]
        if threads is not None and most and threads >= node_limits.FULL * most
        else []
    )
    yield Outcome(tuple(hits), missing, host=host.host)


def _crowded(
    host: Host,
    document: Mapping[str, Any],
    threads: int,
    most: int,
    key: str,
    holders: tuple[Holder, ...],
) -> Hit:
    more = MORE_PIDS if key == PID_MAX else 2 * most
    higher = (
        f"; to raise it, sysctl -w {key}={more}, and a line {key} = {more} in a file of"
        " /etc/sysctl.d that nothing overrides: nothing here does either"
        if more > most
        else f"; {key} cannot be higher"
    )
    first = holders[0] if holders else None
    by = f", {first.threads} of them of {first}" if first and 2 * first.threads > threads else ""
    see = f"find out why {first} has so many" if by else f"see who has so many ({WHO_THREADS})"
    proofs = [
        Proof("process", host.host, text=f"/proc/loadavg counts {threads} threads"),
        Proof("process", host.host, text=f"/proc/sys/{key.replace('.', '/')} is {most}"),
    ]
    proofs += [
        Proof("process", host.host, pid=one.pid, text=f"{one}: {_count(one.threads, 'thread')}")
        for one in holders[:SHOWN]
    ]
    # Containers see their own processes alone: whoever sees the one with the most is named.
    return Hit(
        f"{threads} threads run on {host.node or host.host}{by}, and {key} is {most}: soon no"
        " process and no thread can be started",
        tuple(proofs),
        f"{see}, and restart it where it leaks; podPidsLimit of the kubelet's configuration bounds"
        f" a pod{higher}",
        host=host.host,
        node=host.node,
        component=key,
        kernel=shared_kernel.token(document, key, most),
        rank=-first.threads if first else 0,
    )


def unless(host: Host, told: bool, status: str = "error") -> tuple[Missing, ...]:
    """Missing where collector limits answered and this part of its answer is not to be had."""
    return (
        ()
        if told or host.statuses.get("limits") != "ok"
        else (Missing(host.host, "limits", status),)
    )


def uncounted(host: Host, limits: Limits) -> tuple[Missing, ...]:
    """Missing where processes were looked at and not all of them could be."""
    if host.statuses.get("descriptors", "not_asked") in ("not_asked", "absent"):
        return ()
    whole = host.statuses["descriptors"] == "ok" and bool(limits.walk) and not limits.uncounted
    return (
        ()
        if whole
        else host.missing("descriptors")
        or (
            Missing(host.host, "descriptors", "denied" if limits.walk.get("denied") else "timeout"),
        )
    )


def _of(limits: Limits, key: str) -> list[Shortage]:
    return [short for short in limits.shortages() if short.key == key]


def _untried(host: Host, limits: Limits, key: str) -> tuple[Missing, ...]:
    """Missing where root could not try it, so that nobody can tell whether there are more for
    the kubelet.
    """
    what, error = node_limits.INOTIFY[key][1:]
    uid = node_limits.number(limits.tried.get("uid"))
    if uid:
        return unless(host, False, "denied")
    return unless(
        host,
        limits.tried.get(what, "untried") in (None, error) and uid == 0 and key in limits.kernel,
    )


def _outcome(
    host: Host,
    document: Mapping[str, Any],
    limits: Limits,
    found: list[Shortage],
    missing: tuple[Missing, ...],
    **more: Any,
) -> Outcome:
    return Outcome(
        (_hit(host, document, limits, found),) if found else (), missing, host=host.host, **more
    )


def _hit(host: Host, document: Mapping[str, Any], limits: Limits, found: list[Shortage]) -> Hit:
    """One for all users, whose limit it is alike.

    Root's comes first, and it alone stops kubelet and runtime.
    """
    first, uids = (
        found[0],
        [node_limits.whose(short.uid) for short in found if short.key != FILE_MAX],
    )
    by = (
        f", most of them by {first.culprit} with {first.held(first.culprit)}"
        if first.culprit
        else ""
    )
    users = (
        f" for {', '.join(uids[:SHOWN])}"
        + (f" and {len(uids) - SHOWN} more" if len(uids) > SHOWN else "")
        if uids
        else ""
    )
    used_up = (
        f"{first.key}={first.limit} is {'nearly ' if first.left else ''}used up on"
        f" {host.node or host.host}{users}{by}"
    )
    return Hit(
        used_up,
        tuple(_proofs(host, document, limits, found)),
        _cure(first, first.culprit),
        host=host.host,
        node=host.node,
        component=first.key,
        severity=None if first.key == FILE_MAX or first.uid == 0 else "warning",
        kernel=_kernel(document, limits, first),
        rank=-first.held(first.holders[0]) if first.holders else 0,
    )


def _kernel(document: Mapping[str, Any], limits: Limits, short: Shortage) -> tuple[Any, ...] | None:
    """What every host of this kernel shares of it.

    Inotify is counted for a user of a user namespace: it is shared within that alone.
    """
    if short.key == FILE_MAX:
        return shared_kernel.token(document, short.key, short.limit)
    space = limits.seen.get("user_ns")
    return (
        shared_kernel.token(document, short.key, short.limit, short.uid, space)
        if isinstance(space, str) and space
        else None
    )


def _count(number: int, what: str, many: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else many}"


def _holds(short: Shortage, one: Holder) -> str:
    if short.key == FILE_MAX:
        return _count(one.open, "open descriptor")
    return f"{_count(one.instances, 'instance')}, {_count(one.watches, 'watch', 'es')}"


def _proofs(
    host: Host, document: Mapping[str, Any], limits: Limits, found: list[Shortage]
) -> Iterator[Proof]:
    for short in found[:SHOWN]:
        yield Proof("process", host.host, text=short.shown)
        yield from (
            Proof("process", host.host, pid=one.pid, text=f"{one}: {_holds(short, one)}")
            for one in short.holders[:SHOWN]
        )
    if found[0].key != FILE_MAX:
        yield from (
            Proof("process", host.host, text=text) for text in [_unseen(host, limits)] if text
        )
    said = control_plane.data(document, "kubelet_log").get("lines")
    lines = [line for line in (said if isinstance(said, list) else ()) if isinstance(line, str)]
    told = [
        line
        for line in lines
        for of in [errno_words.about(line)]
        if of is not None and of.kind == SAYS[found[0].key]
    ]
    yield from [Proof("log", host.host, text=line) for line in told[-2:]]


def _unseen(host: Host, limits: Limits) -> str:
    """Why it is not known who holds them, or not of everybody."""
    status = host.statuses.get("descriptors", "not_asked")
    if status in ("not_asked", "absent"):
        return (
            "who holds them was not looked at: the playbook too_many_open_files, or -e"
            " kubemend_deep=true, does"
        )
    if not limits.walk:
        return (
            f"who holds them could not be looked at ({status if status != 'ok' else 'no answer'})"
        )
    return (
        "not all processes could be looked at: others may hold more than those that are named"
        if limits.uncounted
        else ""
    )


def _cure(short: Shortage, culprit: Holder | None) -> str:
    target, variable = node_limits.TARGETS[short.key], node_limits.VARIABLES[short.key]
    raised = (
        RAISE.format(short.key, target, variable)
        if target > short.limit
        else (
            f"it is {short.limit} already, no less than what this collection raises it to: find out"
            f" who holds so many, or ask for more with -e {variable}=NUMBER"
        )
    )
    if culprit:
        named = (
            f" (crictl inspect {culprit.container} names its pod)"
            if culprit.container.isalnum() and not culprit.named
            else ""
        )
        return (
            f"find out why {culprit} holds so many{named}, and restart it when it leaks; raising"
            f" the limit only buys time; {raised}"
        )
    return (
        f"{raised}; to see who has so many open, as root: {WHO}"
        if short.key == FILE_MAX
        else raised
    )


@node_check(
    "KM407",
    "Kernel settings that do not last",
    severity="warning",
    applies="nodes",
    risk=1,
    needs=("limits",),
)
def lasting(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM407: a setting that a later file overrides, that a reboot takes back, or that was never
    loaded.
    """
    limits = node_limits.read(document)
    unread = limits.unread_sysctl() if host.statuses.get("limits") == "ok" else []
    found = list(lasting_settings.lasting(limits))
    hits = tuple(
        Hit(
            f"{one.key} of {host.node or host.host}: {one.why}",
            tuple(
                Proof("file", host.host, path=path, line=line, text=text)
                for path, line, text in one.places
            )
            or (
                Proof(
                    "process",
                    host.host,
                    text=f"/proc/sys/{one.key.replace('.', '/')} is {one.running}",
                ),
            ),
            _lasts(limits, one),
            host=host.host,
            node=host.node,
            component=one.key,
            kernel=_lasting_kernel(document, one),
        )
        for one in found
    )
    # Of hosts that share one kernel it is enough that the files of one of them say what it has.
    settled = [
        token
        for key, running in limits.kernel.items()
        for token in [shared_kernel.token(document, shared_kernel.LASTING, key, running)]
        if token and not unread and lasting_settings.says(limits, key, running)
    ]
    missing = host.missing("limits") or unless(
        host, not unread and limits.kernel.keys() >= set(node_limits.WATCHED)
    )
    yield Outcome(
        hits,
        missing,
        host=host.host,
        note=f"{unread[0]} could not be read" if unread else "",
        settled=tuple(settled),
    )


def _lasting_kernel(
    document: Mapping[str, Any], one: lasting_settings.Lasting
) -> tuple[Any, ...] | None:
    """What hosts of one kernel share of it.

    The kernel's value, which no file or too low a one says, or a wish of files that it does not
    have.
    """
    if one.own:
        return None
    if one.wanted == one.running:
        return shared_kernel.token(document, shared_kernel.LASTING, one.key, one.running)
    return shared_kernel.token(document, shared_kernel.WISH, one.key, one.running, one.wanted)


def _lasts(limits: node_limits.Limits, one: lasting_settings.Lasting) -> str:
    """What makes it last: the plan's file, or the line of another that is read after that and
    decides.
    """
    later = lasting_settings.later(limits, one.key, one.wanted)
    told = (
        later.why
        or f"write {one.key} = {one.wanted} where nothing overrides it: the plan does, in {lasting_settings.FILE}"
    )
    told += ": the plan makes it, and a revert takes it back" if later.edit else ""
    if one.wanted <= one.running:
        return told
    return (
        told
        + ("" if later.blocked else ", and tells the kernel")
        + f" (by hand, until the next boot: sysctl -w {one.key}={one.wanted})"
    )
