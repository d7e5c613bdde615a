# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which swap is on, which will be on after a boot, where each comes from and what would undo it
there. Pure.

systemd is taken at its word for what it made of this boot, files for what it will make of the next.
Whatever is not known leaves a source unknown, never clear: off is said only of what has a reason to
stay off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...parsers import swap_files
from ...parsers.swap_files import Active, Line, Unit
from . import generators as swap_makers
from .evidence import IN_CONTAINER, TARGET, Seen, Source, Undo, origin

# below this the kubelet evicts pods, by its own default of memory.available
RESERVE_KIB = 100 * 1024
_RUNTIME = ("/run/systemd/system/", "/run/systemd/transient/")


@dataclass(frozen=True)
class Running:
    """A swap that is on, and what switched it on.

    Unknown where nothing tells, hand where nothing on the machine would.
    """

    active: Active
    source: Source


@dataclass(frozen=True)
class Forecast:
    """What a boot brings. unknown: what is not known of it, in clauses; malformed.

    (line, why) of lines of fstab that nobody can read.
    """

    sources: tuple[Source, ...]
    unknown: tuple[str, ...] = ()
    malformed: tuple[tuple[int, str], ...] = ()

    @property
    def on(self) -> bool | None:
        """Will any swap be on? No only where everything is known."""
        if any(source.on for source in self.sources):
            return True
        return None if self.unknown or any(source.on is None for source in self.sources) else False


def running(evidence: Any) -> list[Running] | None:
    """Every swap that is on, with its source; None where /proc/swaps is not known.

    evidence: swaps (text of /proc/swaps), fstab (file record), units (`systemctl show` of *.swap,
    swap.target and swap_makers.SERVICES), cmdline, files (records of the files of
    swap_makers.SERVICES, of SCRIPTS, of zram-generator's configuration and of zram-generator in all
    GENERATORS, missing ones too), links ({link: device} of /dev/disk/by-*, /dev/mapper and volume
    groups), container (does systemd run in one?), systemd (its version, a number).
    """
    seen = Seen(evidence)
    found = swap_files.active(seen.of.get("swaps"))
    return None if found is None else [Running(one, _switched_on(seen, one)) for one in found]


def after_boot(evidence: Any) -> Forecast:
    """What the next boot switches on, with the kernel's command line of this one. evidence.

    As running() has it.
    """
    seen = Seen(evidence)
    lines = [_from_line(seen, line) for line in seen.lines]
    mine = {source.unit for source in lines}
    units = [
        _from_unit(seen, unit)
        for unit in seen.swaps
        if unit.name not in mine or origin(unit) == "unit"
    ]
    made = [
        *swap_makers.from_zram(seen),
        *swap_makers.from_kernel(seen),
        *swap_makers.from_services(seen),
        *swap_makers.from_scripts(seen),
    ]
    told: dict[tuple[str, str], Source] = {}
    for source in (*lines, *units, *made):
        if source is not None:
            told.setdefault((source.origin, source.place), source)
    return Forecast(tuple(told.values()), tuple(_unknown(seen)), tuple(seen.malformed))


def off_is_safe(swap_used_kib: Any, mem_available_kib: Any) -> bool | None:
    """Whether memory takes what lies in swap, and leaves the kubelet enough not to evict.

    None where a number is not known.
    """
    used, free = (
        number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
        for number in (swap_used_kib, mem_available_kib)
    )
    if used == 0:
        return True
    return None if used is None or free is None else used + RESERVE_KIB < free


def _from_line(seen: Seen, line: Line) -> Source:
    name = swap_files.unit_name(line.device)
    made = any(unit.name == name and origin(unit) == "fstab" for unit in seen.swaps)
    on, why = seen.held(name)
    if line.noauto:
        on, why = False, "noauto"
    elif seen.said("fstab") is False:
        on, why = False, "fstab=no on the kernel's command line"
    elif (
        on is not False
        and seen.said("systemd.swap") is False
        and not made
        and (seen.version is None or seen.version >= 246)
    ):
        on, why = (
            (None if seen.version is None else False),
            "systemd.swap=0 on the kernel's command line, which systemd heeds since 246",
        )
    undo = Undo("comment", f"{line.path}:{line.line}", _taken_up(seen, line))
    return Source("fstab", f"{line.path}:{line.line}", line.device, name, on, why, (undo,))


def _gpt_may(seen: Seen) -> bool:
    """Whether systemd-gpt-auto-generator might take up swap partitions, once fstab names no
    swap.
    """
    return (
        not seen.container
        and seen.said("systemd.gpt_auto") is not False
        and not seen.masked(TARGET)
    )


def _taken_up(seen: Seen, line: Line) -> str:
    """What comes in the place of a line.

    While fstab names any swap, the generator for GPT leaves swap partitions alone.
    """
    if not line.device.startswith("/dev/") or not _gpt_may(seen):
        return ""
    return (
        "without any swap line in fstab, systemd-gpt-auto-generator takes up swap partitions of"
        f" the root disk: mask {TARGET} as well"
    )


def _from_unit(seen: Seen, unit: Unit) -> Source | None:
    """What a unit will be that comes neither from fstab nor from the kernel's command line nor
    from zram-generator, which are judged by their text.
    """
    made_by = origin(unit)
    if not made_by and "masked" in (unit.load, unit.state) and not seen.masked(unit.name):
        return Source(
            "unknown",
            unit.name,
            unit.what,
            unit.name,
            None,
            "it is masked until the next boot only",
            (Undo("mask", unit.name),),
        )
    if made_by == "unit":
        on, why = _own(seen, unit)
        return Source(
            made_by, unit.fragment, unit.what, unit.name, on, why, (Undo("mask", unit.name),)
        )
    if made_by not in ("gpt-auto", "generator"):
        return None
    on, why = seen.held(unit.name)
    if made_by == "generator":
        return Source(made_by, unit.name, unit.what, unit.name, on, why, (Undo("mask", unit.name),))
    if on and (seen.lines or seen.fstab_problem):
        on, why = (
            None,
            (
                "systemd-gpt-auto-generator leaves swap partitions alone where fstab has a swap"
                " line, unless systemd is old"
            ),
        )
    undo = (
        Undo("mask", unit.name, "a partition may have another name after a boot"),
        Undo("mask", TARGET),
    )
    return Source(made_by, unit.name, unit.what, unit.name, on, why, undo)


def _own(seen: Seen, unit: Unit) -> tuple[bool | None, str]:
    """(on, why) of a unit file that somebody wrote: what pulls it in need not be swap.target."""
    if seen.container:
        return False, IN_CONTAINER
    if seen.masked(unit.name):
        return False, f"{unit.name} is masked"
    if unit.fragment.startswith(_RUNTIME) or unit.state in (
        "enabled-runtime",
        "transient",
        "linked-runtime",
    ):
        return False, "it is gone with the next boot"
    if unit.wanted is not None:
        others = [name for name in unit.wanted if not seen.masked(name)]
        return (
            (True, f"{', '.join(others[:5])} wants it")
            if others
            else (False, "nothing wants it that is not masked")
        )
    if unit.state == "enabled":
        return (
            (None, f"{TARGET} is masked, and nobody asked what else wants it")
            if seen.masked(TARGET)
            else (True, "")
        )
    return (
        (False, "it is disabled")
        if unit.state == "disabled"
        else (None, f"it is {unit.state or 'of unknown state'}, and nobody asked what wants it")
    )


def _unknown(seen: Seen) -> Iterator[str]:
    if seen.fstab_problem:
        yield f"{swap_files.FSTAB}: {seen.fstab_problem}"
    if seen.units is None:
        yield "systemd's units are not known"
    if seen.words is None:
        yield "the kernel's command line is not known"
    yield from swap_makers.unknown(seen)
    partitions = [
        unit.what
        for unit in seen.swaps
        if origin(unit) == "fstab" and unit.what.startswith("/dev/")
    ]
    if partitions and not seen.lines and _gpt_may(seen):
        yield (
            f"fstab names no swap any more: systemd-gpt-auto-generator may take up {partitions[0]}"
        )


def _switched_on(seen: Seen, one: Active) -> Source:
    """The source of a running swap.

    Systemd's unit, a service, a line of fstab that somebody followed by hand.
    """
    if seen.container:
        return Source(
            "unknown", "", one.path, on=None, why="a container shows the swap of its host"
        )
    if not one.path.startswith("/"):
        return Source("unknown", "", one.path, on=None, why="it names no path")
    names = seen.names(one.path)
    units = {swap_files.unit_name(name) for name in names}
    units |= {unit.following for unit in seen.swaps if unit.name in units and unit.following}
    mine = [
        unit for unit in seen.swaps if (unit.name in units or unit.what in names) and origin(unit)
    ]
    mine.sort(key=lambda unit: unit.active != "active")
    names = names.union(*(seen.names(unit.what) for unit in mine))
    line = next(
        (
            line
            for line in seen.lines
            if line.device in names or swap_files.unit_name(line.device) in units
        ),
        None,
    )
    if mine and mine[0].active in ("active", "activating", "deactivating"):
        return _of_unit(seen, mine[0], line, one)
    found = swap_makers.service_of(seen, one) or (_from_line(seen, line) if line else None)
    if found or mine:
        return found or _of_unit(seen, mine[0], None, one)
    known = (
        seen.units is not None
        and not seen.fstab_problem
        and not list(swap_makers.unknown(seen))
        and (seen.links_known or not one.path.startswith("/dev/"))
    )
    return (
        Source("hand", "", one.path, on=False)
        if known
        else Source("unknown", "", one.path, on=None, why="not all of its sources are known")
    )


def _of_unit(seen: Seen, unit: Unit, line: Line | None, one: Active) -> Source:
    made_by = origin(unit)
    if made_by == "fstab":
        if line:
            return _from_line(seen, line)
        on, why = (
            (None, f"{swap_files.FSTAB}: {seen.fstab_problem}")
            if seen.fstab_problem
            else (False, "its line is no longer in fstab")
        )
        return Source(made_by, swap_files.FSTAB, one.path, unit.name, on, why)
    made = (*swap_makers.from_zram(seen), *swap_makers.from_kernel(seen))
    found = _from_unit(seen, unit) or next(
        (source for source in made if source.unit == unit.name), None
    )
    return found or Source(
        made_by,
        unit.name,
        one.path,
        unit.name,
        None,
        "what made it is not known any more",
        (Undo("mask", unit.name),),
    )
