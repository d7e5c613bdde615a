# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step that is stopped half way on its node, and what a power cut then leaves on the disk."""

from __future__ import annotations

import json

JOURNAL = "/var/lib/kubemend/journal"
# The moments of a step. Each is after the one before it.
BEGUN = "begun"  # its record is awaited, and nothing is written
INTENDED = "intended"  # its entry of the journal has no end yet
CHANGED = "changed"  # the file is another than before, and the entry has no end yet
ENDED = "ended"  # the step is over: a busy machine let it pass the moment
# Lets the program of a step go on for a millisecond at a time until the moment has come, and leaves
# it stopped. Who asks only now and then misses a moment of milliseconds.
_HOLD = """
import glob, json, os, signal, sys, time
remedy, moment, path, end = sys.argv[1], sys.argv[2], sys.argv[3], time.monotonic() + 300

def look():
    try:
        status = os.lstat(path)
        return status.st_ino, status.st_size, status.st_mtime_ns
    except FileNotFoundError:
        return None

def record():
    for name in sorted(glob.glob("JOURNAL/*/proof-*.json"), reverse=True):
        found = json.load(open(name))
        if found["remedy"] == remedy and name not in former:
            return found

def is_open(run_id):
    names = set(os.listdir("JOURNAL/" + run_id))
    entries = [name[:-5] for name in names if name[0].isdigit() and name.endswith(".json")
               and not name.endswith(".end.json")]
    return any(name + ".end.json" not in names for name in entries)

def has_come(found):
    return moment == "begun" or is_open(found["run_id"]) and (
        moment == "intended" or look() != before)

former, before = set(glob.glob("JOURNAL/*/proof-*.json")), look()
while time.monotonic() < end:
    found = record()
    if found is None:
        time.sleep(0.005)
        continue
    pid, told = found["by"]["pid"], {"run_id": found["run_id"], "step": found["step"]}
    try:
        while found["state"] == "awaited":
            os.kill(pid, signal.SIGSTOP)
            found = record()
            if found["state"] == "awaited" and has_come(found):
                print(json.dumps(dict(told, moment=moment)))
                raise SystemExit(0)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.0005)
    except ProcessLookupError:
        pass
    print(json.dumps(dict(told, moment="ended")))
    raise SystemExit(0)
raise SystemExit("no such step began")
""".replace("JOURNAL", JOURNAL)
# Names what a node's journal may never have after a power cut: a record that is no whole JSON.
_BROKEN = """
import glob, json
for name in sorted(glob.glob("JOURNAL/*/*.json")):
    try:
        json.load(open(name))
    except ValueError as error:
        print(name, error)
""".replace("JOURNAL", JOURNAL)
_OPEN = """
import glob, json, os
for name in sorted(glob.glob("JOURNAL/*/*.json")):
    if os.path.basename(name).startswith("proof-"):
        if json.load(open(name))["state"] == "awaited":
            print(name)
    elif not name.endswith(".end.json") and not os.path.exists(name[:-5] + ".end.json"):
        print(name)
for name in glob.glob("JOURNAL/*/.*"):
    print(name)
for folder, _folders, names in os.walk("/etc"):
    for name in names:
        if name.startswith(".kubemend-"):
            print(folder + "/" + name)
""".replace("JOURNAL", JOURNAL)


def hold(cluster, node: str, remedy: str, moment: str, path: str) -> dict:
    """Stop the program of the next step of that kind at a moment.

    The result is {run_id, step, moment}. path: the file that the step changes
    """
    done = cluster.exec(
        node, ["python3", "-I", "-S", "-c", _HOLD, remedy, moment, path], timeout=330
    )
    return json.loads(done.stdout)


def broken_records(cluster, node: str) -> list[str]:
    """Return the records of the node's journal that cannot be read."""
    return _lines(cluster, node, _BROKEN)


def open_records(cluster, node: str) -> list[str]:
    """Return the changes and steps that did not end, and the files that they left."""
    return _lines(cluster, node, _OPEN)


def ended_entries(cluster, node: str, run_id: str) -> list[str]:
    """Return the ends of a run's entries in the node's journal."""
    names = cluster.exec(node, f"ls {JOURNAL}/{run_id}").stdout.decode().split()
    return [name for name in names if name[0].isdigit() and name.endswith(".end.json")]


def _lines(cluster, node: str, program: str) -> list[str]:
    said = cluster.exec(node, ["python3", "-I", "-S", "-c", program]).stdout
    return said.decode().splitlines()
