# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether kernel settings last.

What a boot makes of them, against what runs and what was intended.
"""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...module_utils.shared import sysctl
from ..evidence.answers.file_record import FileRecord
from ..evidence.document import one_line
from ..parsers import conf_lines, sysctl_d, sysctl_overrides
from ..parsers.sysctl_d import Setting
from .limits import EVENTS, FILE_MAX, INSTANCES, PID_MAX, WATCHED, WATCHES, Limits

KERNEL_DEFAULT = {INSTANCES: 128}  # the others depend on the machine's memory, or on its init
# What the kernel takes: it refuses a greater number, and keeps what it has.
MOST = {
    INSTANCES: 2**31 - 1,
    WATCHES: 2**31 - 1,
    EVENTS: 2**31 - 1,
    FILE_MAX: 2**63 - 1,
    PID_MAX: 4194304,
}
VENDOR = ("/usr/", "/lib/")
# what systemd gives fs.file-max before it reads any file: it was not raised, and a file that says
# less is a wish
UNBOUNDED = 2**63 - 1
FILE = "/etc/sysctl.d/99-zz-kubemend.conf"


@dataclass(frozen=True)
class Lasting:
    """A setting that will not be, or is not, what was intended.

    Key, what the kernel has, what it should lastingly have, why, and where that stands.
    """

    key: str
    running: int
    wanted: int
    why: str
    places: tuple[tuple[str, int, str], ...]
    # this host's files contradict each other: no other host of its kernel can answer for that
    own: bool = False


@dataclass(frozen=True)
class Edit:
    """A line of a foreign file, and the number that it has to set."""

    path: str
    line: int
    old: str
    wanted: int

    @property
    def new(self) -> str:
        """Return the line that sets it."""
        line: str = sysctl.line_with(self.old, self.wanted)
        return line.strip()


@dataclass(frozen=True)
class Later:
    """What decides at boot in place of kubemend's file.

    why: what keeps that file from deciding, None where nothing does
    edit: how the deciding line is raised in its place, where it may be
    """

    why: str | None
    note: str
    edit: Edit | None = None

    @property
    def blocked(self) -> str | None:
        """Return why it cannot be set, or None."""
        if self.edit:
            return None
        return self.why


def lasting(limits: Limits) -> Iterator[Lasting]:
    """Find KM407: settings that a later file overrides, or that only run or are only written.

    Nothing is returned while a file is not known.
    """
    if limits.unread_sysctl():
        return
    boot, hand = limits.at_boot(), limits.by_hand()
    for key, running in sorted(limits.kernel.items()):
        setting = boot.get(key)
        if key in WATCHED and setting is None:
            yield from _untold(key, running, hand.get(key))
        elif key in WATCHED and setting and accepted_number(key, setting.value) is not None:
            yield from _told(key, running, setting, accepted_number(key, setting.value) or 0)


def says(limits: Limits, key: str, running: int) -> bool:
    """Return whether a file of this host sets at boot as much as the kernel has, or more."""
    setting = limits.at_boot().get(key)
    return (
        key in WATCHED
        and setting is not None
        and (accepted_number(key, setting.value) or 0) >= running
    )


def accepted_number(key: str, text: str) -> int | None:
    """Return the number, where the kernel would take it."""
    value = sysctl_d.number(text)
    if value is not None and 0 <= value <= MOST.get(key, value):
        return value
    return None


def _untold(key: str, running: int, hand: Setting | None) -> Iterator[Lasting]:
    """Nothing sets it at boot. /etc/sysctl.conf is read by hand only, where no link leads to it."""
    value, default = accepted_number(key, hand.value) if hand else None, KERNEL_DEFAULT.get(key)
    if hand and value is not None and running <= value:
        yield Lasting(
            key,
            running,
            value,
            f"{place(hand)} says {value}, which nothing reads at boot (sysctl --system and sysctl"
            f" -p do); the kernel has {running} now",
            ((hand.path, hand.line, f"{key} = {hand.value}"),),
        )
    elif default is not None and running > default:
        yield Lasting(
            key,
            running,
            running,
            f"the kernel has {running}, and no file of sysctl.d says so: a reboot restores"
            f" {default}, unless something else raises it again (tuned, a DaemonSet, a script)",
            (),
        )


def _told(key: str, running: int, setting: Setting, value: int) -> Iterator[Lasting]:
    won = (setting.path, setting.line, f"{key} = {setting.value}")
    beaten = [
        (path, line, text, accepted_number(key, text))
        for path, line, text in setting.overrides
        if path.startswith(("/etc/", "/run/"))
    ]
    higher = [
        (path, line, text, number)
        for path, line, text, number in beaten
        if number is not None and number > value
    ]
    if higher:
        path, line, text, most = max(higher, key=lambda row: row[3])
        yield Lasting(
            key,
            running,
            max(most, running),
            f"{path}:{line} says {most}, and {place(setting)}, which"
            f" {_precedence(setting, path, line)}, says {value}; the kernel has {running} now",
            ((path, line, f"{key} = {text}"), won),
            own=True,
        )
    elif running > value and not (key == FILE_MAX and running == UNBOUNDED):
        yield Lasting(
            key,
            running,
            running,
            f"the kernel has {running}, and {place(setting)} brings it back to {value} at the next"
            " boot",
            (won,),
        )
    # what a distribution ships was not set on purpose, and is not for every machine
    elif running < value and not setting.path.startswith(VENDOR):
        yield Lasting(
            key,
            running,
            value,
            f"{place(setting)} says {value}, and the kernel has {running}: it was never loaded, or"
            " something lowered it since",
            (won,),
        )


def _precedence(setting: Setting, path: str, line: int) -> str:
    """Return why a setting overrides this line."""
    if setting.who:
        return f"{setting.who} sets after sysctl.d"
    if (posixpath.basename(setting.path), setting.line) > (posixpath.basename(path), line):
        return "is read later"
    return "names it without a pattern"


def place(setting: Setting) -> str:
    """Return where a setting is, as an operator edits it."""
    text = f"{setting.path}:{setting.line}"
    if setting.real and setting.real != setting.path:
        text += f" ({setting.real})"
    return text


def asked_for(limits: Limits, key: str) -> Iterable[int]:
    """Return every value that kubemend's file must not go below.

    The values are those that decide at boot and by hand, and those that KM407 reports as meant.
    """
    return [
        *(accepted_number(key, setting.value) or 0 for setting in _deciding(limits, key)),
        *(entry.wanted for entry in lasting(limits) if entry.key == key),
    ]


def _deciding(limits: Limits, key: str) -> list[Setting]:
    """Return what decides at boot, and what `sysctl --system` decides."""
    return list(filter(None, (limits.at_boot().get(key), limits.by_hand().get(key))))


def above(limits: Limits, key: str, number: int) -> list[str]:
    """Return the lines of the host's own files, without kubemend's, that ask for more.

    A vendor's default counts only where it overrides kubemend's.
    """
    last = sysctl_overrides.at_boot(
        limits.answer.late,
        sysctl_d.at_boot(_with_ours(limits, key, number), (key,)),
        (key,),
    ).get(key)
    settings = _deciding(limits, key)
    places = [(setting.path, setting.line, setting.value) for setting in settings]
    places += itertools.chain.from_iterable(setting.overrides for setting in settings)
    places = [place for place in places if not place[0].startswith(VENDOR)]
    if last:
        places.insert(0, (last.path, last.line, last.value))
    lines = [
        f"{path}:{line}"
        for path, line, value in places
        if path != FILE and (accepted_number(key, value) or 0) > number
    ]
    return list(dict.fromkeys(lines))


def _with_ours(limits: Limits, key: str, target: int) -> list[FileRecord]:
    """Return the files as they are, and kubemend's with this alone."""
    own_file = FileRecord(FILE, kind="file", text=f"{key} = {target}\n")
    return [*(file for file in limits.records if file.path != FILE), own_file]


def later(limits: Limits, key: str, target: int) -> Later:
    """Return what overrides kubemend's file at boot, and what else is to be known of it.

    `sysctl --system`, files that were not read.
    """
    every = _with_ours(limits, key, target)
    boot, hand = (
        sysctl_d.at_boot(every, (key,)).get(key),
        sysctl_d.by_hand(every, (key,)).get(key),
    )
    notes = _unread_notes(limits)
    if boot is None:
        line = sysctl_d.excluding(every[:-1], key)
        reason = (
            f"{line or 'a line'} (-{key}, without a value) is read after {FILE} and keeps it from"
            " being set at boot: put a # before that line"
        )
        return Later(reason, "; ".join(notes))
    if _is_less(boot, target):
        return _over(
            limits, boot, target, f"is read after {FILE} and says {one_line(boot.value, 80)}", notes
        )
    over = _later_setting(limits, key, boot, target)
    if over:
        return _over(
            limits,
            over,
            target,
            f"says {one_line(over.value, 80)}, which {over.who} sets after sysctl.d",
            notes,
        )
    if hand and _is_less(hand, target):
        notes.insert(0, _last_by_hand(limits, hand, target))
    return Later(None, "; ".join(notes))


def _unread_notes(limits: Limits) -> list[str]:
    """Return a sentence on the unread files that may be read after kubemend's."""
    name = posixpath.basename(FILE)
    unread = [
        path
        for path in limits.unread_sysctl()
        if path != FILE and not (path.endswith(".conf") and posixpath.basename(path) < name)
    ]
    if not unread:
        return []
    return [f"{', '.join(unread[:3])} could not be read: whether that overrides it is not known"]


def _later_setting(limits: Limits, key: str, boot: Setting, target: int) -> Setting | None:
    """Return what sets less than the target after the files of sysctl.d are read."""
    keys: tuple[str, ...] = (key,)
    if key in sysctl_overrides.SAME:
        keys = (key, sysctl_overrides.SAME[key])
    late = sysctl_overrides.at_boot(limits.answer.late, {key: boot}, keys)
    return next(
        (setting for setting in late.values() if setting.who and _is_less(setting, target)), None
    )


def _last_by_hand(limits: Limits, hand: Setting, target: int) -> str:
    """Return a sentence on the line that `sysctl --system` reads after kubemend's file."""
    edit = _edit(limits, hand, target)
    must = "change that line too"
    if edit:
        must = f"that line must read {edit.new} too"
    says_less = f"{place(hand)} last, which says {one_line(hand.value, 80)}"
    return f"sysctl --system reads {says_less}: {must}"


def _over(
    limits: Limits, setting: Setting, target: int, phrase: str, notes: Sequence[str]
) -> Later:
    """Return how to change a line that overrides kubemend's.

    It is raised where it is in one of the host's own files, else it is for the operator to change.
    """
    edit = _edit(limits, setting, target)
    if edit:
        way = f"it must read {edit.new}"
    else:
        way = "raise it there, or take the line away"
    return Later(f"{place(setting)} {phrase}: {way}", "; ".join(notes), edit)


def _edit(limits: Limits, setting: Setting, target: int) -> Edit | None:
    """Return the line with this value in its place.

    A vendor's file is not kubemend's to change, nor one that is written at every boot, nor a
    pattern's other keys.
    """
    files = conf_lines.usable([*limits.records, *sysctl_overrides.records(limits.answer.late)])
    file = next((file for file in files if file.path == setting.path), None)
    old = None
    if file is not None:
        old = dict(conf_lines.lines(file)).get(setting.line)
    path = setting.real or setting.path
    if old is None or not path.startswith("/etc/") or sysctl.key_of(old) != setting.key:
        return None
    return Edit(path, setting.line, old, target)


def _is_less(setting: Setting, target: int) -> bool:
    return setting.path != FILE and (sysctl_d.number(setting.value) or 0) < target
