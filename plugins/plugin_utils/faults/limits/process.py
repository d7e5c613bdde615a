# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about the open files that one process may have.

Of services by their unit, of logins by pam_limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared.unit_limits import ROLES
from ...evidence.document import one_line
from ...models import control_plane
from ...models import limits as node_limits
from ...models.cluster import Host
from ...models.limits import NOFILE as LOGINS
from ...models.limits import NR_OPEN, UNLIMITED, VARIABLES, Holder, Limits
from ...models.result import Proof
from ...parsers.limits_conf import Entry
from ..base import Hit, Outcome
from .kernel import uncounted, unless

SHOWN = 10
EXIT_LIMITS = 205  # of a unit whose limits the kernel refuses
RUNTIMES = frozenset(name for name, role in ROLES if role == "runtime")
DROPIN = (
    "a drop-in with LimitNOFILE= (systemctl edit UNIT) and a restart of it, when that is convenient"
)
# the setting of a unit; how the unit of a user's own manager begins
NOFILE, USER = "LimitNOFILE", "user@"
UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9@:._-]*\.service\Z")  # what an operator may copy
MAX_OPEN_FILES = 1000000  # what a kubelet sets for itself, unless its configuration says otherwise
# Their pam_limits passes over a limit that the kernel refuses, and the login goes on without it
# (seen on Debian 12).
FORGIVING = ("debian", "ubuntu")
IGNORED = ("optional", "sufficient")  # PAM lets the login go on when such a line fails


def full(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM404: a process has as many files open as it may."""
    limits = node_limits.read(document)
    found = limits.full()
    name = host.node or host.host
    hits = []
    if found:
        first = next((one for one in found if one.role), found[0])
        more = (
            f", and {len(found) - 1} other process{'es' if len(found) > 2 else ''} likewise"
            if len(found) > 1
            else ""
        )
        proofs = tuple(
            Proof(
                "process",
                host.host,
                pid=one.pid,
                text=(
                    f"{one}: {one.open} open, soft limit {one.soft}, hard limit"
                    f" {'unlimited' if one.hard == UNLIMITED else one.hard}"
                ),
            )
            for one in found[:SHOWN]
        )
        told = limits.units()
        proofs += tuple(
            proof
            for name in dict.fromkeys(one.unit for one in found[:SHOWN])
            if name in told
            for proof in _set(host, told[name], f"{NOFILE}=")[:SHOWN]
        )
        hits = [
            Hit(
                f"{first} of {name} has {first.open} of {first.soft} files open{more}",
                proofs,
                f"see what it has open, for it may leak them (ls -l /proc/{first.pid}/fd); where it"
                f" needs more: {_more(first, told.get(first.unit))}",
                host=host.host,
                node=host.node,
                severity="critical" if any(one.role for one in found) else None,
            )
        ]
    missing = (
        host.missing("limits")
        or unless(host, _answered(limits))
        or unless(host, _counted(limits), "denied") + uncounted(host, limits)
    )
    yield Outcome(tuple(hits), missing, host=host.host)


def _more(one: Holder, unit: Mapping[str, Any] | None) -> str:
    """Where a process has its limit from. unit: what is known of its service."""
    if one.role == "kubelet":
        return "maxOpenFiles in the kubelet's configuration, and a restart of it"
    if one.container:
        return "the limit that its runtime gives the container"
    if UNIT.match(one.unit) and not one.unit.startswith(USER):
        next_start = _next_start(unit or {})
        if next_start == UNLIMITED or next_start > one.soft:
            return (
                f"its unit gives {'any number' if next_start == UNLIMITED else next_start} from its"
                " next start on; the plan gives the running process as much as the kernel lets it"
                " have (no more than its hard limit where PID 1 lacks CAP_SYS_RESOURCE, nothing"
                " beyond 1024 where it may use select()); the rest takes systemctl daemon-reload"
                f" and systemctl restart {one.unit}, by hand or by the plan with -e"
                " kubemend_allow=service_restart"
            )
        return (
            f"the plan raises it, in a drop-in of ours for {one.unit} and in the running process,"
            f" to what -e {VARIABLES[LOGINS]}=NUMBER asks for (by hand: LimitNOFILE= by systemctl"
            f" edit {one.unit}, and a restart of it)"
        )
    if one.session:
        return (
            "ulimit -Sn, up to the hard limit; above that the plan writes a line of ours in"
            " limits.d, which counts from the next login on"
        )
    return "the limit that whoever starts it gives it"


def _next_start(unit: Mapping[str, Any]) -> int:
    """The soft limit that systemd gives the unit's next process, or will once it has read our file.

    0 where nobody knows.
    """
    gives, ours = (
        node_limits.pair(unit.get("limit_nofile")),
        str(unit.get("ours") or "").partition(":")[0],
    )
    found = [gives[0] if gives else 0, int(ours) if ours.isdigit() and len(ours) < 20 else 0]
    return UNLIMITED if UNLIMITED in found else max(found)


def _answered(limits: Limits) -> bool:
    """Whether systemd answered: without it nobody knows which processes those of the units are."""
    return isinstance(limits.seen.get("units"), (list, tuple)) and isinstance(
        limits.seen.get("processes"), (list, tuple)
    )


def _counted(limits: Limits) -> bool:
    """Whether the open files and the limits of all of kubelet, runtimes and sshd are known."""
    return {
        one.get("pid")
        for one in node_limits.items(limits.seen.get("processes"))
        if node_limits.number(one.get("pid")) is not None
    } <= {one.pid for one in limits.processes()}


def locked_out(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM406: pam_limits asks for more open files than anybody can have here, and refuses the
    login.
    """
    limits = node_limits.read(document)
    asked, ceiling = (
        [one for one in node_limits.items(limits.seen.get("pam")) if _refuses(one)],
        limits.ceiling(),
    )
    silent = host.missing("limits") or unless(
        host, isinstance(limits.seen.get("pam"), (list, tuple))
    )
    if silent or not asked:
        yield Outcome((), silent, host=host.host, applies=bool(silent))
        return
    unread = limits.unread_limits()
    missing = unless(host, ceiling is not None, "denied") + unless(host, not unread)
    above = limits.impossible()
    told = control_plane.data(document, "system").get("os_release")
    forgiving = isinstance(told, Mapping) and told.get("id") in FORGIVING
    hits = [_lockout(host, above, asked, *ceiling, forgiving)] if above and ceiling else []
    yield Outcome(
        tuple(hits),
        missing,
        host=host.host,
        note=f"{unread[0]} could not be read" if unread else "",
    )


def _refuses(one: Mapping[str, Any]) -> bool:
    words = str(one.get("text")).lower().split()
    return isinstance(one.get("path"), str) and words[1:2] != [] and words[1] not in IGNORED


def _lockout(
    host: Host,
    above: list[Entry],
    asked: list[Mapping[str, Any]],
    ceiling: int,
    whose: str,
    forgiving: bool,
) -> Hit:
    """A number above the ceiling is refused by any version.

    No limit only by those before 1.5.2, which do not take fs.nr_open instead.
    """
    certain = [one for one in above if one.number != UNLIMITED or whose != NR_OPEN]
    names = sorted({one_line(one.domain, 40) for one in certain or above})
    who = ", ".join(
        "everybody (*; on Debian and Ubuntu not root)" if one == "*" else one
        for one in names[:SHOWN]
    )
    first = (certain or above)[0]
    proofs = [
        Proof(
            "file",
            host.host,
            path=one.path,
            line=one.line,
            text=f"{one.domain} {one.kind} nofile {one.value}",
        )
        for one in above[:SHOWN]
    ]
    proofs += [
        Proof(
            "file",
            host.host,
            path=str(one["path"]),
            line=node_limits.number(one.get("line")),
            text=str(one["text"]),
        )
        for one in asked[:SHOWN]
    ]
    value = f"nofile {one_line(first.value, 40)} is above {ceiling} ({whose})"
    if forgiving:
        return Hit(
            f"{host.node or host.host} gives logins of {who} another limit than its files say:"
            f" {value}, and is passed over",
            tuple(proofs),
            f"set these to {ceiling} or less, or let the plan say so in a file of ours that is read"
            " last: until then a login keeps the limit that it had before",
            host=host.host,
            node=host.node,
            severity="warning" if certain else "info",
        )
    return Hit(
        f"{host.node or host.host} refuses logins of {who}: {value}"
        + ("" if certain else ", where its pam_limits is older than 1.5.2"),
        tuple(proofs),
        f"keep the session that is open, set these to {ceiling} or less there, or let the plan say"
        " so in a file of ours that is read last, and try a second login before the first one is"
        " closed",
        host=host.host,
        node=host.node,
        severity=None if certain else "warning",
    )


def services(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM408: limits.conf says more than the services have, which it never reaches."""
    limits = node_limits.read(document)
    most = max(
        (one for one in limits.hard_limits() if one.domain in ("*", "root")),
        key=_rank,
        default=None,
    )
    below = [
        one
        for one in limits.processes()
        if one.role in ("kubelet", "runtime")
        and most
        and 0 < one.hard < _rank(most)
        and (one.role, one.hard) != ("kubelet", MAX_OPEN_FILES)
    ]
    hits = []
    if most and below:
        proofs = (
            Proof(
                "file",
                host.host,
                path=most.path,
                line=most.line,
                text=f"{most.domain} {most.kind} nofile {most.value}",
            ),
            *(
                Proof("process", host.host, pid=one.pid, text=f"{one}: hard limit {one.hard}")
                for one in below[:SHOWN]
            ),
        )
        hits = [
            Hit(
                f"{one_line(most.path, 80)} of {host.node or host.host} says"
                f" {one_line(most.value, 40)}, and {below[0]} has {below[0].hard}: it is for logins"
                " only",
                proofs,
                f"nothing, unless a service needs more: then {DROPIN}; for the kubelet maxOpenFiles"
                " in its configuration",
                host=host.host,
                node=host.node,
            )
        ]
    unread = limits.unread_limits() if host.statuses.get("limits") == "ok" else []
    missing = host.missing("limits") or unless(host, not unread and _answered(limits))
    yield Outcome(
        tuple(hits),
        missing,
        host=host.host,
        applies=bool(most or missing),
        note=f"{unread[0]} could not be read" if unread else "",
    )


def _rank(one: Entry) -> float:
    return float("inf") if one.number == UNLIMITED else one.number or 0


def refused(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM409: units do not start because their limits are above what the kernel gives."""
    limits = node_limits.read(document)
    ceiling = limits.ceiling()
    found = [
        one
        for one in _units(limits)
        if one.get("exec_main_status") == EXIT_LIMITS and one.get("active_state") != "active"
    ]
    hits = []
    if found:
        proofs: list[Proof] = []
        for one in found:
            proofs += [
                Proof(
                    "unit",
                    host.host,
                    object=_name(one),
                    text=f"{_word(one, 'active_state')}, {_word(one, 'result')}, status=205/LIMITS",
                ),
                *_set(host, one, "Limit"),
            ]
        names, most = (
            [_name(one) for one in found],
            (
                f"{ceiling[0]} ({ceiling[1]})"
                if ceiling
                else "what PID 1 itself has (/proc/1/limits)"
            ),
        )
        where = (
            "the file that is named"
            if any(proof.kind == "file" for proof in proofs)
            else f"the file where systemctl cat {names[0]} shows it"
        )
        hits = [
            Hit(
                f"{' and '.join(names)} of {host.node or host.host} cannot start: a limit of the"
                " unit is above what it can have (205/LIMITS)",
                tuple(proofs),
                f"set LimitNOFILE= to {most} or less in {where}, then systemctl daemon-reload and"
                f" systemctl restart {' '.join(names)}" + _lowered(limits),
                host=host.host,
                node=host.node,
            )
        ]
    yield Outcome(
        tuple(hits), host.missing("limits") or unless(host, _answered(limits)), host=host.host
    )


def _lowered(limits: Limits) -> str:
    """What else helps where PID 1 has more since the boot than the kernel gives anybody now.

    That alone is why systemd cannot give a unit what it has.
    """
    init, most = limits.seen.get("init"), limits.kernel.get(node_limits.NR_OPEN)
    own = node_limits.pair(init.get("nofile")) if isinstance(init, Mapping) else None
    if own is None or most is None or UNLIMITED < own[1] <= most:
        return ""
    return (
        f"; or raise fs.nr_open again, which is {most}: PID 1 may have"
        f" {'any number of' if own[1] == UNLIMITED else own[1]} files since the boot"
    )


def _units(limits: Limits) -> list[Mapping[str, Any]]:
    return [
        one
        for one in node_limits.items(limits.seen.get("units"))
        if isinstance(one.get("name"), str)
    ]


def _name(one: Mapping[str, Any]) -> str:
    return one_line(one["name"], 80)


def _word(one: Mapping[str, Any], key: str) -> str:
    return one_line(one.get(key) or "?", 40)


def _set(host: Host, unit: Mapping[str, Any], what: str) -> list[Proof]:
    """The lines that set its limits, as systemd reads them."""
    lines = [
        one
        for one in node_limits.items(unit.get("sets"))
        if isinstance(one.get("path"), str) and str(one.get("text") or "").startswith(what)
    ]
    return [
        Proof(
            "file",
            host.host,
            path=one["path"],
            line=node_limits.number(one.get("line")),
            text=str(one["text"]),
        )
        for one in lines[:SHOWN]
    ]


def infinite(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM410: a runtime without any limit of open files, which its containers inherit."""
    limits = node_limits.read(document)
    running = [
        one
        for one in _units(limits)
        if one["name"] in RUNTIMES and one.get("active_state") == "active"
    ]
    told = [(one, node_limits.pair(one.get("limit_nofile"))) for one in running]
    found = [one for one, pair in told if pair and pair[1] == UNLIMITED]
    proofs = [
        proof
        for one in found
        for proof in _set(host, one, "LimitNOFILE")
        or [Proof("unit", host.host, object=_name(one), text="LimitNOFILE=infinity")]
    ]
    hits = (
        [
            Hit(
                f"{' and '.join(_name(one) for one in found)} of {host.node or host.host} runs with"
                " LimitNOFILE=infinity, and so do its containers",
                tuple(proofs),
                "nothing has to be done; programs that visit every descriptor they could have (old"
                " Java, MySQL, rpm) are slow, or use much memory",
                host=host.host,
                node=host.node,
            )
        ]
        if found
        else []
    )
    missing = host.missing("limits") or unless(
        host, _answered(limits) and all(pair for dummy, pair in told)
    )
    yield Outcome(tuple(hits), missing, host=host.host, applies=bool(running or missing))
