# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a kubelet's configuration, evaluated for each release. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...safe_io import yaml_nodes
from .. import cpu_manager_options
from ..cpu_manager import Node
from .config import KubeletConfig, Setting

Release = tuple[int, int]
OLDEST, NEWEST = (1, 14), cpu_manager_options.NEWEST
# With one that is newer than what is known: what all of these refuse is always refused.
ALL = tuple((1, minor) for minor in range(OLDEST[1], NEWEST[1] + 2))
# Why a kubelet of this release refuses it, "" where it takes it, None where that is not known.
Judge = Callable[[Release], "str | None"]


@dataclass(frozen=True)
class Refusal:
    """Value that no kubelet of this release starts with.

    why: the reason with the value, in one clause
    """

    key: str
    why: str
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True)
class Unsure:
    """Value of which it is not known whether a kubelet of this release starts with it."""

    key: str
    why: str


Found = Refusal | Unsure


@dataclass(frozen=True)
class ConfiguredKubelet:
    """Kubelet with its configuration, its release, and what the node has."""

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
        setting = self.config.setting(key, flag)
        if setting is None or (setting.path is not None and not setting.value):
            return default, None
        return setting.value, setting

    def gate(self, name: str, default: bool, group: str) -> bool:
        """Return whether a gate is on: by its own value, by that of its stage, or by default."""
        for gate in (name, group):
            if gate in self.node.gates:
                return is_true(self.node.gates[gate])
        return default

    def since(self, first: Release) -> tuple[Release, ...]:
        """Return its possible releases that know a key which came with first."""
        releases = ALL
        if self.release is not None:
            releases = (self.release,)
        return tuple(release for release in releases if release >= first)

    def refused(
        self, key: str, first: Release, judge: Judge, *settings: Setting | None
    ) -> list[Found]:
        """Return the answer of all its possible releases; Unsure where they do not agree."""
        answers = [judge(release) for release in self.since(first)]
        reasons = [answer for answer in answers if answer]
        if reasons and len(reasons) == len(answers):
            known_settings = tuple(setting for setting in settings if setting is not None)
            return [Refusal(key, reasons[-1], known_settings)]
        if reasons or None in answers:
            return [Unsure(key, f"{key}: {self._doubt()}")]
        return []

    def _doubt(self) -> str:
        if self.release is None:
            return "whether its kubelet takes that depends on its release, which is not known"
        return f"Kubernetes {release_name(self.release)} is newer than what is known here"


def is_true(text: str) -> bool:
    """Return whether a feature gate's value is true, in a flag or in YAML."""
    return text in cpu_manager_options.TRUTHS or yaml_nodes.boolean(text) is True


def release_name(release: Release) -> str:
    """Return a release such as 1.30."""
    return ".".join(map(str, release))


def listed(values: tuple[str, ...]) -> str:
    """Return values as a list in words."""
    return " and ".join(filter(None, (", ".join(values[:-1]), values[-1])))
