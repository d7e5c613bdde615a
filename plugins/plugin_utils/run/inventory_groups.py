# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory's groups leave out of a run, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .settings import nearest

GROUP, PATTERN = "group", "pattern"  # why a host of the inventory is not of the run
OF_ANSIBLE = ("all", "ungrouped")
ALIKE = 0.8
# kubespray's former names; its newer ones are the defaults.
FORMER = {"kube_master": "kube_control_plane"}
SHOWN = 20


@dataclass(frozen=True)
class Used:
    """A group that the run uses. variable: what names it; given: whether the operator set that."""

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
    found = [*_absent(used, inventory), *_similar(used, inventory)]
    left = list(outside)
    if left and by_pattern:
        found.append(
            f"Not audited, because kubemend_hosts ({pattern}) does not name them: {_named(left)}."
        )
    elif left:
        names = ", ".join(one.group for one in used)
        found.append(
            f"Not audited, because they are in no group that kubemend uses ({names}): "
            f"{_named(left)}; kubemend_hosts names other hosts."
        )
    return found


def _absent(used: Sequence[Used], inventory: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Tell of groups that the operator named, and that are not there."""
    groups = [name for name in inventory if name not in OF_ANSIBLE]
    for one in used:
        if not one.given or inventory.get(one.group):
            continue
        what = "has no hosts" if one.group in inventory else "is no group of the inventory"
        near = nearest(one.group, (name for name in groups if name != one.group))
        hint = f"; the nearest group is {near}." if near else "."
        yield f"{one.variable} is {one.group}, which {what}{hint}"


def _similar(used: Sequence[Used], inventory: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Tell of groups that are named almost as one that is used, and whose hosts are not in that."""
    # Of a group that was named and is not there _absent tells.
    names = {one.group: one for one in used if inventory.get(one.group) or not one.given}
    mine = {one.group for one in used}
    for group, hosts in inventory.items():
        if group in mine or group in OF_ANSIBLE or not hosts:
            continue
        one = names.get(like(group, names))
        if one is None or set(hosts) <= set(inventory.get(one.group) or ()):
            continue
        yield (
            f"The inventory has the group {group} ({_named(hosts)}), which kubemend does not use: "
            f"it uses {one.group}. If {group} is meant, rename it or set {one.variable}: {group}."
        )


def like(group: str, names: Iterable[str]) -> str:
    """Return the name that this one is written almost as; empty where it is none."""
    plain = {_plain(name): name for name in names}
    mine = _plain(group)
    return plain.get(FORMER.get(mine, ""), "") or plain.get(nearest(mine, plain, ALIKE), "")


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _named(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
