# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings as they are once a boot is over.

Who sets them after systemd-sysctl has read sysctl.d. Pure.

ufw gives its own file to `sysctl -p` when it starts. systemd-networkd switches forwarding on where
a network asks for it (it never switches it off again), and from 256 on to what networkd.conf says.
tuned sets those of its profile, and then, unless reapply_sysctl is off, what sysctl.d of /etc and
/run and /etc/sysctl.conf say once more: so it decides only what is not written there. Its part for
sysctl does both: a profile without settings of the kernel leaves what ufw and systemd-networkd made
of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..evidence.answers.file_record import Assignment, FileRecord
from ..evidence.answers.node.limits import SysctlOverrides, Tuned
from . import conf_lines, sysctl_d
from .conf_lines import NO, YES
from .sysctl_d import Setting

UFW, NETWORKD, TUNED = "ufw", "systemd-networkd", "tuned"
IP_FORWARD, FORWARDING = "net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"
SAME = {IP_FORWARD: FORWARDING, FORWARDING: IP_FORWARD}  # one setting by two names
SYSTEM = ("/etc/", "/run/")
_SWITCHES = {**dict.fromkeys(YES, "1"), **dict.fromkeys(NO, "0")}
# Keys of a network's file that switch forwarding on, and their values.
_FORWARDS = {"IPForward": (*YES, "ipv4"), "IPMasquerade": (*YES, "ipv4", "both")}


def at_boot(
    late: SysctlOverrides | None, boots: Mapping[str, Setting], keys: Iterable[str]
) -> dict[str, Setting]:
    """Return the final settings of a boot.

    boots: what systemd-sysctl sets; late: sysctl overrides of the collector limits.
    """
    settings, overrides, target_keys = dict(boots), late or SysctlOverrides(), frozenset(keys)
    for setting in (*_ufw(overrides, target_keys), *_networkd(overrides), *_tuned(overrides)):
        if setting.key in target_keys:
            _set(settings, setting)
    if _reapplies(overrides.tuned):
        for key, setting in boots.items():
            if setting.path.startswith(SYSTEM) and settings.get(key) != setting:
                settings[key] = setting
                settings.pop(SAME.get(key, ""), None)
    return settings


def records(late: SysctlOverrides | None) -> list[FileRecord]:
    """Return the files that `sysctl -p` is given."""
    if late is None or late.ufw is None or late.ufw.sysctl is None:
        return []
    return [late.ufw.sysctl]


def unread(late: SysctlOverrides | None) -> list[str]:
    """Return the files and profiles with settings that could not be read."""
    files = conf_lines.usable(records(late))
    paths = [file.path for file in files if conf_lines.why_unread(file)]
    if late is None or late.tuned is None:
        return paths
    return paths + [f"the profile {name[:80]} of tuned" for name in late.tuned.unknown]


def _set(settings: dict[str, Setting], setting: Setting) -> None:
    """Set a value over the former one.

    A value that only raises or lowers leaves what is beyond it.
    """
    former = settings.get(setting.key) or settings.get(SAME.get(setting.key, ""))
    number = None
    if former:
        number = sysctl_d.number(former.value)
    value = setting.value
    if value[:1] in ("<", ">"):
        if _is_met(value, number):
            return
        value = value[1:]
        if former is None:
            value = "?"  # more or less than the kernel's own value, which is not known
    if setting.who == NETWORKD and value == "1" and number == 1:
        return
    overrides: tuple[sysctl_d.Place, ...] = ()
    if former:
        overrides = ((former.path, former.line, former.value), *former.overrides)
    settings.pop(SAME.get(setting.key, ""), None)
    settings[setting.key] = replace(setting, value=value, overrides=overrides)


def _is_met(bound: str, number: int | None) -> bool:
    """Return whether a number is at or beyond a bound such as >1024."""
    limit = sysctl_d.number(bound[1:])
    if limit is None or number is None:
        return False
    if bound[0] == ">":
        return number >= limit
    return number <= limit


def _ufw(overrides: SysctlOverrides, keys: Iterable[str]) -> Iterator[Setting]:
    for file in conf_lines.usable(records(overrides)):
        settings = sysctl_d.of_file(file, keys).values()
        yield from (replace(setting, who=UFW) for setting in settings)


def _networkd(overrides: SysctlOverrides) -> Iterator[Setting]:
    rows = _rows(overrides.networkd or ())
    system = [row for row in rows if row.path.endswith(".conf") and ".network.d/" not in row.path]
    for row in system:
        if row.key == "IPv4Forwarding" and row.value.lower() in _SWITCHES:
            yield replace(row, key=FORWARDING, value=_SWITCHES[row.value.lower()], who=NETWORKD)
    for row in rows:
        if row not in system and row.value.lower() in _FORWARDS.get(row.key, ()):
            yield replace(row, key=IP_FORWARD, value="1", who=NETWORKD)


def _tuned(overrides: SysctlOverrides) -> Iterator[Setting]:
    for row in _rows((overrides.tuned or Tuned()).rows):
        yield replace(row, key=sysctl_d.canonical(row.key), value=row.value.strip("\"'"), who=TUNED)


def _reapplies(tuned: Tuned | None) -> bool:
    """Return whether tuned lets the values of sysctl.d stand.

    For an unknown profile that is not known, and `unread` reports the profile.
    """
    if tuned is None or not _rows(tuned.rows):
        return False
    return (tuned.reapply or "1").lower() not in NO


def _rows(rows: Iterable[Assignment]) -> list[Setting]:
    """Return the rows as settings, without those of a length that no setting has."""
    return [
        Setting(row.key, row.value, row.path, row.line)
        for row in rows
        if row.line is not None
        and all(len(text) <= sysctl_d.MAX_KEY for text in (row.key, row.value, row.path))
    ]
