# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's swap, and what its kubelet makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ....module_utils.shared.kubelet_health import SWITCHED_OFF
from ...evidence import contract
from ...evidence.answers.http_answer import HttpAnswer
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.pinning import Pinning
from ...evidence.answers.node.swap import Swap
from ...parsers import systemd_unit
from ...parsers.swap_files import Line
from ...safe_io import yaml_nodes
from ..kubelet import config as kubelet_config
from ..kubelet.config import Setting
from . import policy, sources
from .evidence import Seen, Source, Undo
from .policy import SwapPolicy
from .sources import Forecast, Running


@dataclass(frozen=True)
class NodeSwap:
    """Swap of a node.

    seen: evidence of collector swap
    setting: what sets failSwapOn
    on: None where /proc/swaps is not known
    answers: whether the kubelet runs and answers
    """

    seen: Seen
    on: list[Running] | None
    later: Forecast
    wanted: SwapPolicy
    answers: bool
    setting: Setting | None = None

    @property
    def refused(self) -> bool:
        """Return whether this kubelet verifiably does not start while swap is on."""
        return self.wanted.refuses is True

    @property
    def container(self) -> bool:
        """Return whether the node runs in a container and shows the swap of its host."""
        return self.seen.container

    def owns_swap(self, running: Running) -> bool:
        """Return whether a swap belongs to this node.

        A container owns only the files that lie in it.
        """
        if not self.container:
            return True
        own_paths = self.seen.answer.own or ()
        return running.active.kind == "file" and running.active.path in own_paths

    def coming(self) -> list[Source]:
        """Return what will activate swap, each source once.

        It will do so at the next boot, or, in a container, with the next `swapon -a`.
        """
        sources = [source for source in self.later.sources if source.on]
        return sources + [source for source in self._named() if source not in sources]

    def _named(self) -> Iterator[Source]:
        """Yield the lines of fstab that name an active swap of this container.

        systemd activates it in no container, and `swapon -a` does in each.
        """
        if not self.container:
            return
        paths = {running.active.path for running in self.on or () if self.owns_swap(running)}
        for line in self.seen.lines:
            if line.device in paths and not line.noauto:
                yield named(line)


def named(line: Line) -> Source:
    """Return a line of fstab as the source that `swapon -a` follows."""
    place = f"{line.path}:{line.line}"
    return Source(
        "fstab", place, line.device, "", True, "swapon -a follows it", (Undo("comment", place),)
    )


def read(document: Mapping[str, Any]) -> NodeSwap:
    """Return the swap of a host from its evidence. Never raises."""
    evidence = Seen(contract.answer(document, Swap))
    config = kubelet_config.read(contract.answer(document, Kubelet))
    reported = contract.answer(document, Pinning).kubelet_version or ""
    values = argv = gates = None
    if not config.problem:
        values = nested(config.values)
        gates = values.get("featureGates", {})
    if config.argv and not config.problem.startswith("it is part of"):
        argv = config.argv
    return NodeSwap(
        evidence,
        sources.running(evidence),
        sources.after_boot(evidence),
        policy.swap_policy(reported.rpartition(" ")[2] or None, values, argv, gates),
        _answers(document),
        config.switch("failSwapOn", "fail-swap-on")[1],
    )


def nested(values: Mapping[tuple[str, ...], Setting]) -> dict[str, Any]:
    """Return the configuration as mappings again; what is null is not set."""
    root: dict[str, Any] = {}
    for path, setting in values.items():
        inner = root
        for key in path[:-1]:
            if not isinstance(inner.get(key), dict):
                inner[key] = {}
            inner = inner[key]
        if setting.value not in yaml_nodes.NULL:
            inner[path[-1]] = setting.value
    return root


def _answers(document: Mapping[str, Any]) -> bool:
    """Return whether the kubelet is past its start.

    One that refuses swap exits before its healthz answers, and systemd starts it again and again.
    """
    kubelet = contract.answer(document, Kubelet)
    healthz = kubelet.healthz or HttpAnswer()
    if healthz.error != SWITCHED_OFF:
        return healthz.status == 200
    if kubelet.process is not None:
        return True
    return kubelet.unit is not None and systemd_unit.unit(kubelet.unit).runs
