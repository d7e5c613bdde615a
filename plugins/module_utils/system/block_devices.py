# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Block devices that have requests and complete none, by /sys/block.

Two looks at the kernel's counters tell them: no request is sent to a device, so nothing here waits
for one. A device of device-mapper that is suspended keeps its requests before they are counted.
"""

from . import files, procfs

BLOCK = "/sys/block"
MAX_DEVICES, MAX_SILENT, MAX_POINTS, LONGEST = 4096, 10, 5, 300
# Of Documentation/block/stat.rst: requests that are complete (reads, writes, discards, flushes; old
# kernels have fewer fields), and those under way.
COMPLETED, IN_FLIGHT = (0, 4, 11, 15), 8


def states(block=BLOCK):
    """Return {name: (whether it is suspended, requests under way, requests completed)}.

    Devices without a request are left out, unless they are suspended.
    """
    devices = {}
    for name in files.names(block)[:MAX_DEVICES]:
        counters = (files.text(f"{block}/{name}/stat", 1024) or "").split()
        if len(counters) <= IN_FLIGHT:
            continue
        is_suspended = (files.text(f"{block}/{name}/dm/suspended", 16) or "").strip() == "1"
        under_way = procfs.number(counters[IN_FLIGHT]) or 0
        if is_suspended or under_way:
            completed = tuple(counters[index] for index in COMPLETED if index < len(counters))
            devices[name] = (is_suspended, under_way, completed)
    return devices


def silent(before, after, mountinfo, block=BLOCK):
    """Return [{name, mapped, suspended, in_flight, points}] of what completed nothing in between.

    mapped: the name that device-mapper has for it; points: where it is mounted.
    """
    names = [name for name in sorted(after) if _is_silent(before.get(name), after[name])]
    mounts = procfs.mounts(mountinfo) if names else []
    return [_row(name, after[name], mounts, block) for name in names[:MAX_SILENT]]


def _is_silent(before, after):
    if before is None:
        return False
    if before[0] and after[0]:
        return True
    return bool(before[1] and after[1]) and before[2] == after[2]


def _row(name, state, mounts, block):
    numbers = _numbers(name, block)
    points = [point for number, _root, point in mounts if number in numbers]
    mapped = (files.text(f"{block}/{name}/dm/name", 256) or "").strip()
    return {
        "name": files.one_line(name, 64),
        "mapped": files.one_line(mapped, 128) or None,
        "suspended": state[0],
        "in_flight": state[1],
        "points": [files.one_line(point, LONGEST) for point in points[:MAX_POINTS]],
    }


def _numbers(name, block):
    """Return the numbers of a device and of its partitions, as mountinfo writes them."""
    paths = [f"{block}/{name}/dev"]
    paths += [f"{block}/{name}/{part}/dev" for part in files.names(f"{block}/{name}")]
    return {(files.text(path, 64) or "").strip() for path in paths} - {""}
