# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector scheduler_log: the order in which a scheduler saw nodes come and go, by its own log.

Only a scheduler at level 2 or higher writes it. The collector opens only the log of a scheduler
whose version may lose nodes.
"""

import os

from ...system import files, procfs

COMPONENT, PODS = "kube-scheduler", "/var/log/pods"
LEVEL = 2
MAX_READ, MAX_EVENTS, MAX_NAME = 32 * 1024 * 1024, 20000, 320
TREE, ADDED, REMOVED = b"NodeTree", b'Added node "', b'Removed node "'
# A pod was looked at, so that the list of nodes was made if it had to be.
ROUNDS = (b"bound successfully on node", b"Unable to schedule ")


def collect(context):
    """Return {logs: [{pid, level, path, whole, events}]}, a log for each scheduler in a static pod.

    events: [[kind, node, zone]], the oldest first; whole: whether the log begins with its
    process and was read to its end; path: None where no log was looked for or none was found.
    """
    versions = {
        one["pid"]: one["metrics"]["git_version"]
        for one in (context.data.get("component_http") or {}).get("components") or ()
    }
    return {
        "logs": [
            _log(one, versions.get(one["pid"]))
            for one in (context.data.get("instances") or {}).get("processes") or ()
            if one["component"] == COMPONENT and one["static"] and one["pod_uid"]
        ]
    }


def _log(process, version):
    found = {
        "pid": process["pid"],
        "level": level(process["argv"]),
        "path": None,
        "whole": False,
        "events": [],
    }
    if found["level"] < LEVEL or not may_lose(version):
        return found
    found["path"], whole = newest(PODS, process["pod_uid"])
    if found["path"]:
        try:
            with open(found["path"], "rb") as log:
                found["events"], ended = events(log)
            found["whole"] = whole and ended
        except OSError as error:
            found["error"] = files.reason(error)
    return found


def may_lose(version):
    """Return whether a scheduler of this version may lose nodes for good.

    A prerelease of 1.19 may, and so may an unknown version.
    """
    numbers = (version or "").lstrip("v").split("-")[0].split("+")[0].split(".")
    if len(numbers) != 3 or not all(one.isdigit() for one in numbers):
        return True
    found = tuple(int(one) for one in numbers)
    return (1, 18, 0) <= found < (1, 18, 8) or (found == (1, 19, 0) and "-" in version)


def level(argv):
    """Return the level of a command line; 0 where it has none that is a number."""
    value = procfs.flag(argv, "v")
    if value and value.isdigit():
        return int(value)
    return 0


def newest(root, pod_uid):
    """Return (the log of the newest container, whether nothing of it was rotated away)."""
    try:
        folders = [name for name in os.listdir(root) if name.endswith("_" + pod_uid)]
        if len(folders) == 1:
            names = os.listdir(os.path.join(root, folders[0], COMPONENT))
        else:
            names = []
    except OSError:
        return None, False
    numbers = [
        int(name[: -len(".log")])
        for name in names
        if name.endswith(".log") and name[: -len(".log")].isdigit()
    ]
    if not numbers:
        return None, False
    name = f"{max(numbers)}.log"
    return os.path.join(root, folders[0], COMPONENT, name), not any(
        other.startswith(name + ".") for other in names
    )


def events(lines):
    """Return (the events of the lines, whether all of them were kept)."""
    found, read = [], 0
    for line in lines:
        read += len(line)
        if read > MAX_READ or len(found) >= MAX_EVENTS:
            return found, False
        if TREE in line:
            one = _of_tree(line)
            if one:
                found.append(one)
        elif (not found or found[-1][0] != "round") and any(words in line for words in ROUNDS):
            found.append(["round", "", ""])
    return found, True


def _of_tree(line):
    """Return [add or remove, the node, its zone as region/zone] of a line, or None."""
    line = line.replace(b'\\"', b'"').replace(b"\\\\", b"\\")  # as docker writes it
    for kind, words in (("add", ADDED), ("remove", REMOVED)):
        _before, there, rest = line.partition(words)
        name, quote, rest = rest.partition(b'"')
        group = rest.partition(b' in group "')[2].partition(b'"')
        if there and quote and group[1]:
            region, _dummy, zone = group[0].decode("utf-8", "replace").partition(":\\x00:")
            return [
                kind,
                name.decode("utf-8", "replace")[:MAX_NAME],
                f"{region[:MAX_NAME]}/{zone[:MAX_NAME]}" if region or zone else "",
            ]
    return None
