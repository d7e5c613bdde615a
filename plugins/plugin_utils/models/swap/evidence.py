# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node said of its swap, put in order; and what a source of swap is. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...parsers import conf_lines, swap_files
from ...parsers.swap_files import Unit

TARGET = "swap.target"
IN_CONTAINER = "systemd takes up no swap in a container"
EARLY, LATE = (
    (
        "/run/systemd/generator/",
        "/run/systemd/generator.early/",
    ),
    "/run/systemd/generator.late/",
)


@dataclass(frozen=True)
class Undo:
    """What keeps a source off. kind.

    Comment (a line), mask or disable (a unit), generator (masked by a link to /dev/null), edit;
    target: on what.
    """

    kind: str
    target: str
    note: str = ""


@dataclass(frozen=True)
class Source:
    """Where swap comes from. origin.

    Fstab, gpt-auto, zram-generator, unit, kernel, generator, service, script, hand or unknown.

    place: file:line or the unit. on: whether it is on after a boot; why: what that rests on, where
    it is not plain.
    """

    origin: str
    place: str
    device: str
    unit: str = ""
    on: bool | None = True
    why: str = ""
    undo: tuple[Undo, ...] = ()


class Seen:
    """The evidence, each part None or a problem where it is missing or no part at all."""

    def __init__(self, evidence: Any) -> None:
        self.of: Mapping[str, Any] = evidence if isinstance(evidence, Mapping) else {}
        self.lines, self.malformed, self.fstab_problem = swap_files.fstab(self.of.get("fstab"))
        self.units = swap_files.units(self.of.get("units"))
        self.words = swap_files.words(self.of.get("cmdline"))
        self.files = {record["path"]: record for record in conf_lines.usable(self.of.get("files"))}
        self.links_known = isinstance(self.of.get("links"), Mapping)
        self.container = self.of.get("container") is True
        version = self.of.get("systemd")
        self.version = (
            version if isinstance(version, int) and not isinstance(version, bool) else None
        )

    @cached_property
    def by_name(self) -> dict[str, Unit]:
        """The units by their names."""
        return {unit.name: unit for unit in self.units or ()}

    @property
    def swaps(self) -> list[Unit]:
        """The units of swap."""
        return [unit for unit in self.units or () if unit.name.endswith(".swap")]

    @cached_property
    def _devices(self) -> dict[str, str]:
        links = self.of.get("links")
        return {
            _plain(link): device
            for link, device in (links.items() if isinstance(links, Mapping) else ())
            if isinstance(link, str) and isinstance(device, str)
        }

    @cached_property
    def _links(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for link, device in self._devices.items():
            found.setdefault(device, {device}).add(link)
        return found

    def names(self, path: str) -> set[str]:
        """All paths of what a path leads to, itself among them."""
        plain = _plain(path)
        return {path, plain, *self._links.get(self._devices.get(plain, plain), ())}

    def said(self, key: str) -> bool | None:
        """What the command line says of a yes-or-no."""
        return swap_files.switch(self.words or (), key)

    def masked(self, name: str) -> bool | None:
        """Is a unit masked for good, by a file or by the command line? None where systemd was
        not asked.
        """
        if ("systemd.mask", name) in (self.words or ()):
            return True
        unit = self.by_name.get(name)
        # whatever swap.target wants is loaded, so that a mask of it would show; the target itself
        # has to be asked for by name
        return unit.masked if unit else None if self.units is None or name == TARGET else False

    def held(self, name: str) -> tuple[bool | None, str]:
        """(on, why) of a unit that swap.target pulls in."""
        if self.container:
            return False, IN_CONTAINER
        for unit in (name, TARGET):
            if self.masked(unit):
                return False, f"{unit} is masked"
        if self.words is None:
            return None, "the kernel's command line is not known"
        unasked = next((unit for unit in (name, TARGET) if self.masked(unit) is None), None)
        return (
            (True, "") if unasked is None else (None, f"whether {unasked} is masked is not known")
        )


def _plain(path: str) -> str:
    """UUIDs are written in either case."""
    return (
        path.lower() if path.startswith(("/dev/disk/by-uuid/", "/dev/disk/by-partuuid/")) else path
    )


def origin(unit: Unit) -> str:
    """What made a unit; empty for one that is masked, or that only mirrors what somebody
    switched on.
    """
    if not unit.fragment or "masked" in (unit.load, unit.state):
        return ""
    if unit.fragment.startswith(LATE):
        return "gpt-auto"
    if not unit.fragment.startswith(EARLY):
        return "unit"
    if unit.source in (swap_files.FSTAB, "/proc/cmdline"):
        return "fstab" if unit.source == swap_files.FSTAB else "kernel"
    return (
        "zram-generator"
        if posixpath.basename(unit.what).startswith("zram") or unit.name.startswith("dev-zram")
        else "generator"
    )
