# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sentences about the hosts that an inventory's groups exclude from a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .settings import nearest

GROUP, PATTERN = "group", "pattern"  # the reasons why a host of the inventory is not in the run
OF_ANSIBLE = ("all", "ungrouped")
ALIKE = 0.8
# kubespray's former names; its newer ones are the defaults.
FORMER = {"kube_master": "kube_control_plane"}
SHOWN = 20


@dataclass(frozen=True)
class Used:
    """A group that the run uses.

    variable: what names it
    given: whether the operator set that variable
    """

    variable: str
    group: str
    given: bool


def notices(
    used: Sequence[Used],
    inventory: Mapping[str, Sequence[str]],
    outside: Iterable[str],
    pattern: str,
    by_pattern: bool,
) -> list[str]:
    """Return what the operator may not know of the hosts that the run has and has not."""
    sentences = [*_absent(used, inventory), *_similar(used, inventory)]
    excluded = list(outside)
    if not excluded:
        return sentences
    if by_pattern:
        sentences.append(
            f"Not audited, because kubemend_hosts ({pattern}) does not name them:"
            f" {_named(excluded)}."
        )
    else:
        names = ", ".join(item.group for item in used)
        sentences.append(
            f"Not audited, because they are in no group that kubemend uses ({names}): "
            f"{_named(excluded)}; kubemend_hosts names other hosts."
        )
    return sentences


def _absent(used: Sequence[Used], inventory: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Tell of groups that the operator named, and that are not there."""
    groups = [name for name in inventory if name not in OF_ANSIBLE]
    for item in used:
        if not item.given or inventory.get(item.group):
            continue
        state, hint = "is no group of the inventory", "."
        if item.group in inventory:
            state = "has no hosts"
        near = nearest(item.group, (name for name in groups if name != item.group))
        if near:
            hint = f"; the nearest group is {near}."
        yield f"{item.variable} is {item.group}, which {state}{hint}"


def _similar(used: Sequence[Used], inventory: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Tell of groups that are named almost as one that is used, and whose hosts are not in that."""
    # Of a group that was named and is not there _absent tells.
    by_name = {item.group: item for item in used if inventory.get(item.group) or not item.given}
    ignored = {*OF_ANSIBLE, *(item.group for item in used)}
    for group, hosts in inventory.items():
        if group in ignored or not hosts:
            continue
        item = by_name.get(like(group, by_name))
        if item is None or set(hosts) <= set(inventory.get(item.group) or ()):
            continue
        yield (
            f"The inventory has the group {group} ({_named(hosts)}), which kubemend does not use: "
            f"it uses {item.group}. If {group} is meant, rename it or set {item.variable}: {group}."
        )


def like(group: str, names: Iterable[str]) -> str:
    """Return the name that this one is written almost as; empty where it is none."""
    plain_names = {_plain(name): name for name in names}
    plain = _plain(group)
    former = plain_names.get(FORMER.get(plain, ""), "")
    return former or plain_names.get(nearest(plain, plain_names, ALIKE), "")


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _named(names: Sequence[str]) -> str:
    text, more = ", ".join(names[:SHOWN]), len(names) - SHOWN
    if more > 0:
        text += f" and {more} more"
    return text
