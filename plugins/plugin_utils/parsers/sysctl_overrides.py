# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings as they are once a boot is over.

Who sets them after systemd-sysctl has read sysctl.d. Pure.

ufw gives its own file to `sysctl -p` when it starts. systemd-networkd switches forwarding on where
a network asks for it (it never switches it off again), and from 256 on to what networkd.conf says.
tuned sets those of its profile, and then, unless reapply_sysctl is off, what sysctl.d of /etc and
/run and /etc/sysctl.conf say once more: so it decides only what nobody wrote there. Its part for
sysctl does both: a profile without settings of the kernel leaves what ufw and systemd-networkd made
of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from . import conf_lines
from . import sysctl_d as sysctl_files
from .conf_lines import NO, YES
from .sysctl_d import Setting

UFW, NETWORKD, TUNED = "ufw", "systemd-networkd", "tuned"
IP_FORWARD, FORWARDING = "net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"
SAME = {IP_FORWARD: FORWARDING, FORWARDING: IP_FORWARD}  # one setting by two names
SYSTEM = ("/etc/", "/run/")


def at_boot(late: Any, boots: Mapping[str, Setting], keys: Iterable[str]) -> dict[str, Setting]:
    """boots, which systemd-sysctl sets, as it is in the end; late: of collector limits."""
    found, told, wanted = dict(boots), _mapping(late), frozenset(keys)
    for one in (*_ufw(told, wanted), *_networkd(told), *_tuned(told)):
        if one.key in wanted:
            _set(found, one)
    if _reapplies(told):
        for key, setting in boots.items():
            if setting.path.startswith(SYSTEM) and found.get(key) != setting:
                found[key] = setting
                found.pop(SAME.get(key, ""), None)
    return found


def records(late: Any) -> list[Any]:
    """The files that `sysctl -p` is given."""
    return [_mapping(_mapping(late).get(UFW)).get("sysctl")]


def unread(late: Any) -> list[str]:
    """Where settings may stand that nobody could read."""
    told = _mapping(late)
    tuned = _mapping(told.get(TUNED))
    rows = [
        record["path"]
        for record in conf_lines.usable(records(late))
        if conf_lines.why_unread(record)
    ]
    names = tuned.get("unknown")
    return rows + [
        f"the profile {str(name)[:80]} of tuned"
        for name in (names if isinstance(names, (list, tuple)) else ())
    ]


def _set(found: dict[str, Setting], one: Setting) -> None:
    """It over what was there before.

    A value that only raises or lowers leaves what is beyond it.
    """
    before = found.get(one.key) or found.get(SAME.get(one.key, ""))
    had, sign = sysctl_files.number(before.value) if before else None, one.value[:1]
    if sign in ("<", ">"):
        number = sysctl_files.number(one.value[1:])
        if (
            number is not None
            and had is not None
            and (had >= number if sign == ">" else had <= number)
        ):
            return
        # more or less than what the kernel has by itself, which nobody knows
        one = replace(one, value=one.value[1:] if before else "?")
    if one.who == NETWORKD and one.value == "1" and had == 1:
        return
    beaten = ((before.path, before.line, before.value), *before.overrides) if before else ()
    found.pop(SAME.get(one.key, ""), None)
    found[one.key] = replace(one, overrides=beaten)


def _ufw(told: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Setting]:
    for record in conf_lines.usable(records(told)):
        yield from (replace(one, who=UFW) for one in sysctl_files.of_file(record, keys).values())


def _networkd(told: Mapping[str, Any]) -> Iterator[Setting]:
    rows = _rows(told.get("networkd"))
    system = [one for one in rows if one.path.endswith(".conf") and ".network.d/" not in one.path]
    for one in system:
        if one.key == "IPv4Forwarding" and one.value.lower() in YES + NO:
            yield replace(
                one, key=FORWARDING, value="1" if one.value.lower() in YES else "0", who=NETWORKD
            )
    for one in rows:
        asks = (one.key == "IPForward" and one.value.lower() in (*YES, "ipv4")) or (
            one.key == "IPMasquerade" and one.value.lower() in (*YES, "ipv4", "both")
        )
        if asks and one not in system:
            yield replace(one, key=IP_FORWARD, value="1", who=NETWORKD)


def _tuned(told: Mapping[str, Any]) -> Iterator[Setting]:
    for one in _rows(_mapping(told.get(TUNED)).get("rows")):
        yield replace(
            one, key=sysctl_files.canonical(one.key), value=one.value.strip("\"'"), who=TUNED
        )


def _reapplies(told: Mapping[str, Any]) -> bool:
    """Whether tuned lets what sysctl.d says stand.

    Of a profile that is not known nobody can tell, which unread says.
    """
    tuned = _mapping(told.get(TUNED))
    return bool(_rows(tuned.get("rows"))) and str(tuned.get("reapply") or "1").lower() not in NO


def _rows(rows: Any) -> list[Setting]:
    found = []
    for one in rows if isinstance(rows, (list, tuple)) else ():
        words = (
            [one.get(name) for name in ("key", "value", "path")] if isinstance(one, Mapping) else []
        )
        if (
            len(words) == 3
            and all(isinstance(word, str) and len(word) <= sysctl_files.MAX_KEY for word in words)
            and isinstance(one.get("line"), int)
        ):
            found.append(Setting(words[0], words[1], words[2], one["line"]))
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
