# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's swap beside what its kubelet makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...parsers import systemd_unit as kubelet_unit
from ...parsers.swap_files import Line
from ...safe_io import yaml_nodes
from .. import control_plane
from ..kubelet import config as kubelet_config
from ..kubelet.config import Setting
from . import policy as swap_policy
from . import sources as swap_sources
from .evidence import Seen, Source, Undo
from .policy import Wanted
from .sources import Forecast, Running


@dataclass(frozen=True)
class NodeSwap:
    """seen: of collector swap. on: None where /proc/swaps is not known; answers.

    Whether the kubelet runs and answers; setting: what sets failSwapOn.
    """

    seen: Mapping[str, Any]
    on: list[Running] | None
    later: Forecast
    wanted: Wanted
    answers: bool
    setting: Setting | None = None

    @property
    def refused(self) -> bool:
        """Is it proven that this kubelet does not start while swap is on?"""
        return self.wanted.refuses is True

    @property
    def container(self) -> bool:
        """Does the node run in a container, and show the swap of its machine?"""
        return self.seen.get("container") is True

    def own(self, one: Running) -> bool:
        """Whether a swap is this node's own.

        Everybody's but a container's, of which only the files are that lie in it.
        """
        listed = self.seen.get("own")
        return not self.container or (
            one.active.kind == "file"
            and isinstance(listed, (list, tuple))
            and one.active.path in listed
        )

    def coming(self) -> list[Source]:
        """What will switch swap on, each source once.

        At the next boot, or, in a container, with the next `swapon -a`.
        """
        found = [source for source in self.later.sources if source.on]
        return found + [source for source in self._named() if source not in found]

    def _named(self) -> Iterator[Source]:
        """Lines of fstab that name a swap of this container which is on.

        Systemd takes it up in no container, and swapon -a does in each.
        """
        if not self.container:
            return
        here = {one.active.path for one in self.on or () if self.own(one)}
        for line in Seen(self.seen).lines:
            if line.device in here and not line.noauto:
                yield named(line)


def named(line: Line) -> Source:
    """A line of fstab that whoever says swapon -a follows."""
    place = f"{line.path}:{line.line}"
    return Source(
        "fstab", place, line.device, "", True, "swapon -a follows it", (Undo("comment", place),)
    )


def read(document: Mapping[str, Any]) -> NodeSwap:
    """The evidence of a host. Never raises."""
    kubelet, seen = control_plane.data(document, "kubelet"), control_plane.data(document, "swap")
    config = kubelet_config.read(kubelet)
    version = (
        str(control_plane.data(document, "pinning").get("kubelet_version") or "").rpartition(" ")[2]
        or None
    )
    known = None if config.problem else nested(config.values)
    argv = config.argv if config.argv and not config.problem.startswith("it is part of") else None
    gates = None if known is None else known.get("featureGates", {})
    return NodeSwap(
        seen,
        swap_sources.running(seen),
        swap_sources.after_boot(seen),
        swap_policy.wanted(version, known, argv, gates),
        _answers(kubelet),
        config.switch("failSwapOn", "fail-swap-on")[1],
    )


def nested(values: Mapping[tuple[str, ...], Setting]) -> dict[str, Any]:
    """The configuration as mappings again; what is null is not set."""
    found: dict[str, Any] = {}
    for path, setting in values.items():
        inner = found
        for key in path[:-1]:
            below = inner.setdefault(key, {})
            inner = inner[key] = below if isinstance(below, dict) else {}
        if setting.value not in yaml_nodes.NULL:
            inner[path[-1]] = setting.value
    return found


def _answers(kubelet: Mapping[str, Any]) -> bool:
    """Whether the kubelet is past its start.

    One that refuses swap ends before its healthz answers, and systemd starts it again and again.
    """
    healthz = kubelet.get("healthz")
    if isinstance(healthz, Mapping) and healthz.get("error") == "switched off":
        return (
            isinstance(kubelet.get("process"), Mapping)
            or kubelet_unit.unit(kubelet.get("unit")).runs
        )
    return isinstance(healthz, Mapping) and healthz.get("status") == 200
