# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of a node's swap by its parts, and the sources of swap. Pure."""

from __future__ import annotations

import copy
import posixpath
import shlex
from dataclasses import dataclass
from functools import cached_property

from ...evidence.answers.file_record import FileRecord
from ...evidence.answers.node.swap import Swap
from ...evidence.document import one_line
from ...parsers import conf_lines, swap_files
from ...parsers.swap_files import Unit

TARGET = "swap.target"
UNITS = "/etc/systemd/system"  # files of it come before those of packages
IN_CONTAINER = "systemd takes up no swap in a container"
EARLY = ("/run/systemd/generator/", "/run/systemd/generator.early/")
LATE = "/run/systemd/generator.late/"
_ORIGINS = {swap_files.FSTAB: "fstab", "/proc/cmdline": "kernel"}  # of units of a generator


@dataclass(frozen=True)
class Undo:
    """Step that keeps a source off.

    target: the object of the step
    kind: comment (a line), mask or disable (a unit), generator (masked by a link to /dev/null),
    edit
    """

    kind: str
    target: str
    note: str = ""

    @property
    def operand(self) -> str:
        """Return the target as a command takes it: names of units may have a backslash."""
        target = one_line(self.target, 120)
        if self.kind in ("mask", "disable", "generator"):
            return shlex.quote(target)
        return target

    @property
    def link(self) -> str:
        """Return the command that masks a generator; few machines have its folder."""
        folder = shlex.quote(posixpath.dirname(self.target))
        return f"mkdir -p {folder} && ln -s /dev/null {self.operand}"


@dataclass(frozen=True)
class Source:
    """Source of swap.

    place: file:line or the unit
    origin: fstab, gpt-auto, zram-generator, unit, kernel, generator, service, script, hand or
    unknown
    on: whether it is on after a boot
    why: the reason, where it is not plain
    """

    origin: str
    place: str
    device: str
    unit: str = ""
    on: bool | None = True
    why: str = ""
    undo: tuple[Undo, ...] = ()

    @property
    def lies_where_a_mask_would(self) -> bool:
        """Return whether the unit's own file is in the way: systemctl refuses to mask it."""
        return self.place.startswith(f"{UNITS}/")


class Seen:
    """Evidence of a host's swap; a part is None or a problem where it is missing.

    answer: that of the collector swap: swaps (text of /proc/swaps), fstab (file record), units
    (`systemctl show` of *.swap, swap.target and generators.SERVICES), cmdline, files (records of
    the files of generators.SERVICES, of SCRIPTS, of zram-generator's configuration and of
    zram-generator in all GENERATORS, missing ones too), links ({link: device} of /dev/disk/by-*,
    /dev/mapper and volume groups), container (whether systemd runs in one), systemd (its version, a
    number)
    """

    def __init__(self, answer: Swap) -> None:
        self.answer = answer
        self.lines, self.malformed, self.fstab_problem = swap_files.fstab(answer.fstab)
        self.units = swap_files.units(self.answer.units)
        self.words = swap_files.words(self.answer.cmdline)
        self.files = {file.path: file for file in conf_lines.usable(answer.files or ())}

    def with_file(self, file: FileRecord) -> Seen:
        """Return the evidence of the same host with another record of one file."""
        changed = copy.copy(self)
        changed.files = {**self.files, file.path: file}
        return changed

    @property
    def container(self) -> bool:
        """Return whether systemd runs in a container."""
        return self.answer.container is True

    @cached_property
    def by_name(self) -> dict[str, Unit]:
        """Return the units by their names."""
        return {unit.name: unit for unit in self.units or ()}

    @property
    def swaps(self) -> list[Unit]:
        """Return the units of swap."""
        return [unit for unit in self.units or () if unit.name.endswith(".swap")]

    @cached_property
    def _devices(self) -> dict[str, str]:
        return {_plain(link): device for link, device in (self.answer.links or {}).items()}

    @cached_property
    def _links(self) -> dict[str, set[str]]:
        by_device: dict[str, set[str]] = {}
        for link, device in self._devices.items():
            by_device.setdefault(device, {device}).add(link)
        return by_device

    def names(self, path: str) -> set[str]:
        """Return all paths of what a path leads to, itself among them."""
        plain = _plain(path)
        return {path, plain, *self._links.get(self._devices.get(plain, plain), ())}

    def switch(self, key: str) -> bool | None:
        """Return the boolean that the command line gives to a key, or None."""
        return swap_files.switch(self.words or (), key)

    def masked(self, name: str) -> bool | None:
        """Return whether a unit is masked on the disk or by the command line; None if unknown."""
        if ("systemd.mask", name) in (self.words or ()):
            return True
        unit = self.by_name.get(name)
        if unit:
            return unit.masked
        # whatever swap.target wants is loaded, so that a mask of it would show; the target itself
        # has to be queried by name
        if self.units is None or name == TARGET:
            return None
        return False

    def activation(self, name: str) -> tuple[bool | None, str]:
        """Return (on, reason) of a unit that swap.target pulls in."""
        if self.container:
            return False, IN_CONTAINER
        masks = {unit: self.masked(unit) for unit in (name, TARGET)}
        for unit, masked in masks.items():
            if masked:
                return False, f"{unit} is masked"
        if self.words is None:
            return None, "the kernel's command line is not known"
        for unit, masked in masks.items():
            if masked is None:
                return None, f"whether {unit} is masked is not known"
        return True, ""


def _plain(path: str) -> str:
    """Return the path of a device in the one case of its UUID, which is written in either."""
    if path.startswith(("/dev/disk/by-uuid/", "/dev/disk/by-partuuid/")):
        return path.lower()
    return path


def origin(unit: Unit) -> str:
    """Return what created a unit; empty for a masked one, or one that mirrors a `swapon`."""
    if not unit.fragment or "masked" in (unit.load, unit.state):
        return ""
    if unit.fragment.startswith(LATE):
        return "gpt-auto"
    if not unit.fragment.startswith(EARLY):
        return "unit"
    if unit.source in _ORIGINS:
        return _ORIGINS[unit.source]
    if posixpath.basename(unit.what).startswith("zram") or unit.name.startswith("dev-zram"):
        return "zram-generator"
    return "generator"
