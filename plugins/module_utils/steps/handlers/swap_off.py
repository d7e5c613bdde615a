# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap of this node: what would bring it back taken away in its file, then the swap itself switched
off.

The file first: whoever finds a killed run has nothing to fear from a reboot. systemd is not told (a
daemon-reload can take devices away from containers): it reads the files at the next boot. A unit is
masked by an empty file, which systemd takes like a link to /dev/null, and which the journal can
take back. Swap is never switched on, neither by a revert nor after a failure.
"""

import base64
import time

from ...collectors.node import swap
from ...state import journal
from ...state import step_record as proof
from ...state import storage as durable
from ...state.storage import ChangeError
from ...system import command, files, procfs
from .. import file_change as change
from .. import preconditions as guard

PERSISTENCE, OFF = "swap_persistence", "swap_off"
REMEDIES = (PERSISTENCE, OFF)
SECONDS = 300
# as plugin_utils/models/swap/sources.py has it: below this the kubelet evicts pods
RESERVE_KIB = 100 * 1024
PROC = "/proc"


def do(step, wanted, host, dummy_params=None, proc=PROC):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted: the plan's step."""
    asked = wanted["change"]
    record = {
        "component": None,
        "host": host,
        "remedy": wanted["remedy"],
        "limit": SECONDS,
        "kind": "none",
        "path": asked["path"],
        "expect": {},
        "guard": wanted.get("guard"),
        "former": None,
    }
    try:
        if wanted["remedy"] == OFF:
            demand_same(asked, host)
            if used(asked["path"], proc, host) is not None:
                demand_room(asked["path"], proc, host)
        elif step.check:
            _written(asked, step)  # which compares, and writes nothing
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    return (
        _switched_off(step, asked, host, proc)
        if wanted["remedy"] == OFF
        else _kept_off(step, asked, host)
    )


def _kept_off(step, asked, host):
    """The file that keeps it off at the next boot, proven by the compare and swap itself."""
    try:
        done = _written(asked, step)
    except (ChangeError, OSError) as error:
        state = proof.FAILED if getattr(error, "changed", False) else proof.NOT_DONE
        return proof.ended(
            step,
            state,
            "{} of {} could not be written ({}): nothing was switched off".format(
                asked["path"], host, files.one_line(error)
            ),
        )
    return proof.ended(
        step,
        proof.PROVEN,
        None,
        {"path": asked["path"], "sha256": done["sha256_after"], "entry": done["entry"]},
    )


def _written(asked, step):
    if asked.get("sha256") is None:
        return change.create_file(
            asked["path"], b"", step, change.Attributes(0o644), make_folder=True
        )
    splices = [
        (begin, end, base64.b64decode(old), base64.b64decode(new))
        for begin, end, old, new in asked["splices"]
    ]
    return change.compare_and_swap(asked["path"], asked["sha256"], splices, step)


def _switched_off(step, asked, host, proc):
    path = asked["path"]
    if used(path, proc, host) is None:
        return proof.ended(step, proof.PROVEN, None, {"off": path, "already": True})
    begin = time.monotonic()
    said = files.one_line(command.complaint(["swapoff", path], asked.get("seconds") or SECONDS))
    try:
        left = used(path, proc, host)
    except guard.Refused as error:
        return proof.ended(step, proof.FAILED, str(error))
    if left is not None:
        return proof.ended(
            step,
            proof.FAILED,
            "{} of {} is still on ({}); it is used as before, and what was written before so that"
            " no boot brings it back stays".format(
                path, host, said or "swapoff ended well nevertheless"
            ),
        )
    return proof.ended(
        step, proof.PROVEN, None, {"off": path, "proof_seconds": round(time.monotonic() - begin, 2)}
    )


def used(path, proc, host):
    """How many KiB lie in it; None where it is not on. guard.Refused where that cannot be read."""
    text = files.whole(proc + "/swaps")
    if not (text or "").startswith("Filename"):
        raise guard.Refused(f"/proc/swaps of {host} cannot be read: nothing was switched off")
    rows = [line.split() for line in text.split("\n")[1:] if line.strip()]
    found = [row for name, row in zip(swap.paths(text), rows) if name == path]
    if not found:
        return None
    count = procfs.number(found[0][3]) if len(found[0]) == 5 else None
    if count is None:
        raise guard.Refused(
            f"/proc/swaps of {host} does not say how much of {files.one_line(path)} is used:"
            " nothing was switched off"
        )
    return count


def demand_room(path, proc, host):
    """guard.Refused unless memory takes what lies in it, and leaves the kubelet enough."""
    count = used(path, proc, host)
    free = swap.memory(files.text(proc + "/meminfo", 16384, ""))["mem_available_kib"]
    if count and (free is None or count + RESERVE_KIB >= free):
        raise guard.Refused(
            "%d KiB of %s on %s are used, and memory has %s KiB: nothing was switched off; make"
            " room first (stop or drain what needs so much), then swapoff"
            % (count, files.one_line(path), host, "an unknown number of" if free is None else free)
        )


def demand_same(asked, host):
    """guard.Refused where the kubelet's configuration is no longer what said that it refuses
    swap.
    """
    for one in asked.get("config") or []:
        if files.record(one["path"])["sha256"] != one["sha256"]:
            raise guard.Refused(
                "{} of {} was changed since evidence was collected: whether its kubelet refuses"
                " swap is not known any more; run again".format(one["path"], host)
            )


def resumed(record, dummy_step=None, proc=PROC):
    """What was interrupted, ended: (how its proof ends, why). Nothing is switched off by this.

    The next run sees what is left.
    """
    if record["remedy"] == PERSISTENCE:
        item = record.get("entry")
        done = item and item["end"] and item["end"]["result"] == journal.COMMITTED
        return (
            (proof.PROVEN, "{} is written".format(record["path"]))
            if done
            else (proof.NOT_DONE, "nothing of it was written")
        )
    try:
        on = used(record["path"], proc, record["host"]) is not None
    except guard.Refused as error:
        return proof.FAILED, durable.one_line(error)
    return (
        (proof.NOT_DONE, "{} is still on".format(record["path"]))
        if on
        else (proof.PROVEN, "{} is off".format(record["path"]))
    )
