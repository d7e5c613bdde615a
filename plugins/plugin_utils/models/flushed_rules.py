# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which services of a host remove the rules of kube-proxy and of network plugins, and when. Pure.

What they do is from their packages: nftables.service and netfilter-persistent of Debian 12,
iptables-services of RHEL 8, ufw 0.36, and src/firewall/core/fw.py of firewalld 0.9.11 to 2.4.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from ...module_utils.shared import firewall_files
from ..evidence import contract
from ..evidence.answers.node.boot import Boot, Firewall, LoaderLine
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import firewall
from ..parsers.firewall import Wall
from .moments import moment

START, STOP, RELOAD = "start", "stop", "reload"
ALL = "the whole ruleset of nftables"
TABLES = "the tables {} of iptables"
RELOAD_SECONDS = 5.0  # by which the last change of a unit is later than its start
# A family that iptables-nft has no table in leaves the rules of iptables alone.
_FLUSH = re.compile(r"\bflush\s+ruleset\b(?!\s+(?:inet|arp|bridge|netdev)\b)")
_EXEC = re.compile(r"(Exec(?:Start|Reload|Stop))[ \t]*=(.*)\Z")
_PATH = re.compile(r"/[\w.@/-]{2,200}")
_INCLUDE = re.compile(r"\binclude\s+[\"']([^\"'\n]{1,200})[\"']")
_NO_FLUSH = re.compile(r"\s*(IP6?TABLES)_RESTORE_NOFLUSH=[\"']?yes\b")
_RED_HAT = ("almalinux", "centos", "ol", "rhel", "rocky")
# Whose firewalld has one release for all of its life.
_RELEASE_OF = {"7": (0, 6), "8": (0, 9)}
# Since then firewalld leaves iptables alone without direct rules, in RHEL 9 since its 1.2.5:
# https://github.com/firewalld/firewalld/pull/1082
_KEEPS: tuple[int, ...] = (2, 0)
_KEEPS_OF_RED_HAT: tuple[int, ...] = (1, 2, 5)
# Since then it drops what the kernel takes for invalid before it asks its zones (dc972aed).
_DROPS = (1, 2, 1)


@dataclass(frozen=True)
class Line:
    """A line of a file."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Flush:
    """A service that is active and removes rules of others.

    at: when its start or its reload did so last; None: not known, or it may have removed none
    by: what of it did so
    scope: which rules
    lines: what says so
    """

    service: str
    at: datetime | None
    by: str
    scope: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Firewalld:
    """firewalld, where it is active.

    version: as it is known, "" where it is not
    drops_invalid: whether it drops what the kernel takes for invalid, None where not known
    """

    version: str = ""
    drops_invalid: bool | None = None


@dataclass(frozen=True)
class HostFirewall:
    """What the firewalls of a host do to the rules of others."""

    flushes: tuple[Flush, ...] = ()
    firewalld: Firewalld | None = None


def extract(document: Mapping[str, Any]) -> HostFirewall:
    """Return what a host's evidence shows of its firewalls."""
    records = contract.answer(document, Boot).firewall or {}
    active = {name: record for name, record in records.items() if record.active is True}
    system = contract.answer(document, System)
    booted = _booted(system)
    flushes = [
        flush for name, record in sorted(active.items()) for flush in _flushes(name, record, booted)
    ]
    record = active.get(firewall.FIREWALLD)
    if record is None:
        return HostFirewall(tuple(flushes))
    release = _release(record, system)
    flushes += _of_firewalld(record, release, system)
    drops = None
    if release:
        drops = release >= _DROPS
    return HostFirewall(tuple(flushes), Firewalld(one_line(record.version or "", 20), drops))


def _booted(system: System) -> float | None:
    """Return when the machine was booted, by its own clock."""
    if system.clock is None or system.uptime_s is None:
        return None
    return system.clock - system.uptime_s


def _flushes(name: str, record: Firewall, booted: float | None) -> Iterator[Flush]:
    if name == firewall_files.NFTABLES:
        yield from _of_nftables(record, booted)
    elif name in (firewall_files.IPTABLES, firewall_files.IP6TABLES, firewall_files.PERSISTENT):
        yield from _of_restore(name, record)
    elif name == firewall.UFW:
        yield from _of_ufw(record)


def _line(row: LoaderLine) -> Line:
    return Line(one_line(row.path, 253), row.line or 0, one_line(row.text, 200))


# -- nftables.service ----------------------------------------------------------------------------


def _of_nftables(record: Firewall, booted: float | None) -> Iterator[Flush]:
    """Yield the last flush: of a reload, of a start, or of the stop that is a part of a restart."""
    commands = _commands(record.lines)
    started, reloaded = moment(record.since), _reloaded(record)
    on_reload = _flushing(commands, "ExecReload", record.lines)
    if reloaded is not None and on_reload:
        yield Flush(firewall_files.NFTABLES, reloaded, RELOAD, ALL, on_reload)
        return
    on_start = _flushing(commands, "ExecStart", record.lines)
    if on_start:
        yield Flush(firewall_files.NFTABLES, started, START, ALL, on_start)
        return
    on_stop = _flushing(commands, "ExecStop", record.lines)
    if on_stop and _was_started_at_boot(record, booted):
        yield Flush(firewall_files.NFTABLES, started, STOP, ALL, on_stop)


def _reloaded(record: Firewall) -> datetime | None:
    """Return when it was reloaded, where that went well and is later than its start."""
    if record.changed_at is None or record.since is None or record.reload_failed is not False:
        return None
    if record.changed_at - record.since < RELOAD_SECONDS:
        return None
    return moment(record.changed_at)


def _was_started_at_boot(record: Firewall, booted: float | None) -> bool:
    """Tell whether a boot started it, so that a later start is a restart."""
    if booted is None or record.enabled_at is None or record.masked:
        return False
    return record.enabled_at < booted


def _commands(rows: Sequence[LoaderLine]) -> dict[str, list[Line]]:
    """Return the lines of each command that count: an empty one takes back those before it."""
    commands: dict[str, list[Line]] = {}
    for row in rows:
        match = _EXEC.match(row.text)
        if match is None:
            continue
        lines = commands.setdefault(match.group(1), [])
        if match.group(2).strip():
            lines.append(_line(row))
        else:
            lines.clear()
    return commands


def _flushing(
    commands: Mapping[str, Sequence[Line]], command: str, rows: Sequence[LoaderLine]
) -> tuple[Line, ...]:
    """Return the line of the unit or of a file that it loads which flushes, empty without one."""
    for line in commands.get(command, ()):
        if _FLUSH.search(line.text):
            return (line,)
        for row in _loaded(_PATH.findall(line.text), rows):
            if _FLUSH.search(row.text):
                return (_line(row),)
    return ()


def _loaded(paths: Sequence[str], rows: Sequence[LoaderLine]) -> Iterator[LoaderLine]:
    """Yield the lines of these files, and of those that they include."""
    pending, done = list(paths), set()
    while pending:
        path = pending.pop(0)
        if path in done:
            continue
        done.add(path)
        for row in rows:
            if row.path == path:
                yield row
                pending += _included(row, rows)


def _included(row: LoaderLine, rows: Sequence[LoaderLine]) -> list[str]:
    names = _INCLUDE.findall(row.text)
    patterns = [posixpath.join("/etc", name) for name in names]
    paths = dict.fromkeys(other.path for other in rows)
    return [path for path in paths if any(fnmatchcase(path, pattern) for pattern in patterns)]


# -- services of iptables-restore, and ufw -------------------------------------------------------


def _of_restore(name: str, record: Firewall) -> Iterator[Flush]:
    """Yield the start of a service that replaces the tables which its files have.

    iptables-restore flushes them without --noflush.
    """
    kept = {match.group(1) for row in record.lines if (match := _NO_FLUSH.match(row.text))}
    spared = set()
    if "IPTABLES" in kept:
        spared.add("/etc/iptables/rules.v4")
    if "IP6TABLES" in kept:
        spared.add("/etc/iptables/rules.v6")
    lines = [
        _line(row) for row in record.lines if row.text.startswith("*") and row.path not in spared
    ]
    if lines:
        tables = dict.fromkeys(line.text[1:].strip() for line in lines)
        scope = TABLES.format(" and ".join(tables))
        yield Flush(name, moment(record.since), START, scope, tuple(lines[:2]))


def _of_ufw(record: Firewall) -> Iterator[Flush]:
    """Yield the start of a ufw that is configured to manage the chains of the kernel."""
    text = next((file.text for file in record.files if file.path == firewall.POLICY), None)
    for number, line in enumerate((text or "").split("\n"), 1):
        if line.strip().replace('"', "") == "MANAGE_BUILTINS=yes":
            proof = Line(firewall.POLICY, number, line.strip())
            scope = TABLES.format("filter")
            yield Flush(firewall.UFW, moment(record.since), START, scope, (proof,))


# -- firewalld -----------------------------------------------------------------------------------


def _release(record: Firewall, system: System) -> tuple[int, ...]:
    """Return the release of firewalld by itself, else by the distribution; empty if unknown."""
    numbers = (record.version or "").split(".")[:3]
    if numbers and all(number.isdecimal() for number in numbers):
        return tuple(int(number) for number in numbers)
    if _is_red_hat(system) and system.os_release is not None:
        major = (system.os_release.version_id or "").partition(".")[0]
        return _RELEASE_OF.get(major, ())
    return ()


def _is_red_hat(system: System) -> bool:
    return system.os_release is not None and system.os_release.id in _RED_HAT


def _of_firewalld(record: Firewall, release: tuple[int, ...], system: System) -> Iterator[Flush]:
    """Yield firewalld where each start and reload of it flushes iptables.

    Its FlushAllOnReload changes nothing of that: it is about its own runtime settings.
    """
    (wall,) = firewall.walls({firewall.FIREWALLD: record})  # it is active, so that it is one
    conf = wall.text(firewall.CONF)
    if conf is None:
        return
    if firewall.setting(conf, "FirewallBackend") != firewall_files.IPTABLES:
        keeps = _KEEPS
        if _is_red_hat(system):
            keeps = _KEEPS_OF_RED_HAT
        if not release or (release >= keeps and not _has_direct_rules(wall)):
            return
    yield Flush(
        firewall.FIREWALLD,
        moment(record.since),
        START,
        "all rules of iptables",
        tuple(_lines_of_conf(conf)),
    )


def _has_direct_rules(wall: Wall) -> bool:
    text = wall.text(firewall.DIRECT) or ""
    return any(f"<{word}" in text for word in ("rule", "passthrough", "chain"))


def _lines_of_conf(conf: str) -> Iterator[Line]:
    for number, line in enumerate(conf.split("\n"), 1):
        if line.strip().startswith(("FirewallBackend=", "FlushAllOnReload=")):
            yield Line(firewall.CONF, number, one_line(line.strip(), 100))
