# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet is told, judged by release. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...safe_io import yaml_nodes
from .. import cpu_manager_options as cpu_options
from ..cpu_manager import Node
from .config import KubeletConfig, Setting

Release = tuple[int, int]
OLDEST, NEWEST = (1, 14), cpu_options.NEWEST
# With one that is newer than what is known: what all of these refuse is always refused.
ALL = tuple((1, minor) for minor in range(OLDEST[1], NEWEST[1] + 2))
# Why a kubelet of this release refuses it, "" where it takes it, None where that is not known.
Judge = Callable[[Release], "str | None"]


@dataclass(frozen=True)
class Refusal:
    """A value that no kubelet of this release starts with. why: with the value, in one clause."""

    key: str
    why: str
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True)
class Unsure:
    """A value of which it is not known whether a kubelet of this release starts with it."""

    key: str
    why: str


Found = Refusal | Unsure


@dataclass(frozen=True)
class Told:
    """One kubelet's configuration with its release, and what the node has."""

    node: Node

    @property
    def config(self) -> KubeletConfig:
        """Return what its next start reads."""
        return self.node.config

    @property
    def release(self) -> Release | None:
        """Return its release; None where that is not known."""
        return self.node.release

    def scalar(self, key: str, flag: str, default: str) -> tuple[str, Setting | None]:
        """Return a value and what sets it. A file's empty value is the default, a flag's is not."""
        found = self.config.setting(key, flag)
        if found is None or (found.path is not None and not found.value):
            return default, None
        return found.value, found

    def gate(self, name: str, usual: bool, group: str) -> bool:
        """Return whether a gate is on: by its own word, by that of its stage, or as usual."""
        for one in (name, group):
            if one in self.node.gates:
                return on(self.node.gates[one])
        return usual

    def since(self, first: Release) -> tuple[Release, ...]:
        """Return the releases that it may be of and that know a key which came with first."""
        if self.release is None:
            return tuple(one for one in ALL if one >= first)
        return (self.release,) if self.release >= first else ()

    def refused(
        self, key: str, first: Release, judge: Judge, *settings: Setting | None
    ) -> list[Found]:
        """Return what all releases that it may be of say; Unsure where they do not agree."""
        answers = [judge(one) for one in self.since(first)]
        reasons = [one for one in answers if one]
        if reasons and len(reasons) == len(answers):
            return [Refusal(key, reasons[-1], tuple(one for one in settings if one is not None))]
        if reasons or None in answers:
            return [Unsure(key, f"{key}: {self._doubt()}")]
        return []

    def _doubt(self) -> str:
        if self.release is None:
            return "whether its kubelet takes that depends on its release, which is not known"
        return f"Kubernetes {name(self.release)} is newer than what is known here"


def on(text: str) -> bool:
    """Return whether a feature gate's value is true, in a flag or in YAML."""
    return text in cpu_options.TRUTHS or yaml_nodes.boolean(text) is True


def name(release: Release) -> str:
    """Return a release as people write it."""
    return ".".join(map(str, release))


def listed(values: tuple[str, ...]) -> str:
    """Return values as a list in words."""
    return " and ".join(filter(None, (", ".join(values[:-1]), values[-1])))
