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
        process["pid"]: process["metrics"]["git_version"]
        for process in (context.data.get("component_http") or {}).get("components") or ()
    }
    return {
        "logs": [
            _log(process, versions.get(process["pid"]))
            for process in (context.data.get("instances") or {}).get("processes") or ()
            if process["component"] == COMPONENT and process["static"] and process["pod_uid"]
        ]
    }


def _log(process, version):
    record = {
        "pid": process["pid"],
        "level": level(process["argv"]),
        "path": None,
        "whole": False,
        "events": [],
    }
    if record["level"] < LEVEL or not may_lose(version):
        return record
    record["path"], whole = newest(PODS, process["pod_uid"])
    if record["path"]:
        try:
            with open(record["path"], "rb") as log:
                record["events"], ended = events(log)
            record["whole"] = whole and ended
        except OSError as error:
            record["error"] = files.reason(error)
    return record


def may_lose(version):
    """Return whether a scheduler of this version may lose nodes for good.

    A prerelease of 1.19 may, and so may an unknown version.
    """
    numbers = (version or "").lstrip("v").split("-")[0].split("+")[0].split(".")
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        return True
    release = tuple(int(number) for number in numbers)
    return (1, 18, 0) <= release < (1, 18, 8) or (release == (1, 19, 0) and "-" in version)


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
    rows, read = [], 0
    for line in lines:
        read += len(line)
        if read > MAX_READ or len(rows) >= MAX_EVENTS:
            return rows, False
        if TREE in line:
            event = _of_tree(line)
            if event:
                rows.append(event)
        elif (not rows or rows[-1][0] != "round") and any(words in line for words in ROUNDS):
            rows.append(["round", "", ""])
    return rows, True


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
