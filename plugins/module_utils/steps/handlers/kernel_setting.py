# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings of this node raised, in one file of ours and in the running kernel.

Where a line of another file is read after ours and decides, it is raised where it stands instead,
and nothing else of that file changes. The file first: what is in it holds after a reboot, and a
program that is killed between the two is ended by doing the second. Nothing is lowered: where the
kernel, or our own file, holds more already, that stays; unless a step says so (lower), which has
the number be exactly that, and nothing else than it saw before.
"""

import os

from ...shared.sysctl import LETTERS, key_of, line_with
from ...state import step_record as proof
from ...state.storage import ChangeError
from ...system import files
from .. import managed_file as own_file
from .. import preconditions as guard

REMEDY = "kernel_setting"
SECONDS = 30
KERNEL = "/proc/sys"
HEADER = (
    b"# Made by kubemend: kernel settings that were raised because they were exhausted, or would"
    b" not have outlived a reboot.\n"
)


def do(step, wanted, host, dummy_params=None, kernel=KERNEL):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted.

    The plan's step, its change {path, settings {key: number}, line}.

    line: of another's file, {number, text}, that is raised there; None for our own file. lower: its
    one setting gets exactly its number, where the kernel has `running` still.
    """
    path, line, lower = (
        wanted["change"]["path"],
        wanted["change"].get("line"),
        bool(wanted["change"].get("lower")),
    )
    try:
        former = {key: read(key, kernel, host) for key in sorted(wanted["change"]["settings"])}
        if lower and any(
            now not in (wanted["change"].get("running"), int(wanted["change"]["settings"][key]))
            for key, now in former.items()
        ):
            raise guard.Refused(
                "the evidence is old: {} of {} is {}, not {}; {}".format(
                    ", ".join(former),
                    host,
                    ", ".join(map(str, former.values())),
                    wanted["change"].get("running"),
                    guard.OLD,
                )
            )
        raised = {
            key: int(value) if lower else max(former[key], int(value))
            for key, value in wanted["change"]["settings"].items()
        }
        record = {
            "lower": lower,
            "component": None,
            "host": host,
            "remedy": REMEDY,
            "limit": SECONDS,
            "kind": "none",
            "path": path,
            "line": line,
            "settings": raised,
            "former_settings": former,
            "expect": {},
            "guard": wanted.get("guard"),
            "former": None,
        }
        if step.check and line:
            own_file.write(path, _merging(record), step)  # which compares, and writes nothing
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    try:
        present = own_file.write(path, _merging(record), step)
    except (ChangeError, OSError) as error:
        state = proof.FAILED if getattr(error, "changed", False) else proof.NOT_DONE
        return proof.ended(
            step,
            state,
            f"{path} of {host} could not be written ({files.one_line(error)}): the kernel was told"
            " nothing; see what lies there",
        )
    reason = run(raised, kernel, host, lower)
    if reason is None:
        return proof.ended(
            step,
            proof.PROVEN,
            None,
            {"settings": {key: [former[key], raised[key]] for key in raised}},
        )
    return _back(step, record, present, kernel, reason)


def place(key, kernel=KERNEL):
    """The file of a setting; guard.Refused where the name is none."""
    parts = key.split(".")
    if not all(parts) or not LETTERS.issuperset(key):
        raise guard.Refused(f"{files.one_line(key, 80)} is no name of a kernel setting")
    return os.path.join(kernel, *parts)


def read(key, kernel, host):
    """What the kernel has now, a number; guard.Refused."""
    text = (files.text(place(key, kernel), 128) or "").strip()
    if not text.isdigit():
        raise guard.Refused(
            "{} of {} cannot be read, or is no number ({}): nothing was changed".format(
                key, host, files.one_line(text, 40) or "no answer"
            )
        )
    return int(text)


def merged(present, raised, lower=False):
    """The bytes of our file with these settings.

    What else it holds stays, and a higher value of ours too, unless it is to be lowered.
    """
    lines, left = (present or HEADER).splitlines(True), dict(raised)
    for index, line in enumerate(lines):
        key, equal, value = line.partition(b"=")
        name = key.strip().decode("utf-8", "replace").replace("/", ".")
        if equal and name in raised:
            left.pop(name, None)
            # each of them: the last one counts
            if (
                not value.strip().isdigit()
                or int(value) < raised[name]
                or (lower and int(value) != raised[name])
            ):
                lines[index] = b"%s = %d\n" % (name.encode(), raised[name])
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    return b"".join(
        lines + [b"%s = %d\n" % (key.encode(), number) for key, number in sorted(left.items())]
    )


def _merging(record):
    """What a step makes of its file: our lines in ours, the one line in another's."""
    if not record.get("line"):
        return lambda present: merged(present, record["settings"], bool(record.get("lower")))
    ((key, number),) = record["settings"].items()
    return lambda present: edited(present, record["line"], key, number)


def edited(present, line, key, number):
    """The bytes of somebody else's file, of which this one line gives the key more.

    ChangeError where it is not that line any more.
    """
    rows = (present or b"").split(b"\n")
    index = line["number"] - 1
    row = rows[index].decode("utf-8", "replace") if 0 <= index < len(rows) else None
    if row not in (line["text"], line_with(line["text"], number)) or key_of(line["text"]) != key:
        raise ChangeError(
            "its line %d is no longer %s; %s"
            % (line["number"], files.one_line(line["text"], 120), guard.OLD)
        )
    return b"\n".join(
        [*rows[:index], line_with(line["text"], number).encode("utf-8"), *rows[index + 1 :]]
    )


def run(raised, kernel, host, lower=False):
    """Tell the kernel, as far as it has less, or anything else.

    Why it does not have it, or None.
    """
    for key, number in sorted(raised.items()):
        try:
            now = read(key, kernel, host)
            if now < number or (lower and now != number):
                with open(place(key, kernel), "wb", buffering=0) as file:
                    file.write(b"%d\n" % number)
            now = read(key, kernel, host)
        except (OSError, guard.Refused) as error:
            return "%s of %s was not brought to %d: %s" % (key, host, number, files.one_line(error))
        if now < number or (lower and now != number):
            return (
                "%s of %s is %d after %d was written: the kernel, or something that watches it,"
                " does not take it" % (key, host, now, number)
            )
    return None


def _back(step, record, present, kernel, reason):
    """Our file as it was, and what was raised lowered again: nothing had the time to need it."""
    path, host = record["path"], record["host"]
    try:
        own_file.put_back(path, present, step)
    except (ChangeError, OSError) as error:
        return proof.ended(
            step,
            proof.FAILED,
            f"{reason}; and {path} was not put back: {files.one_line(error)}",
        )
    for key, number in sorted(record["former_settings"].items()):
        try:
            if read(key, kernel, host) != number:
                with open(place(key, kernel), "wb", buffering=0) as file:
                    file.write(b"%d\n" % number)
        except (OSError, guard.Refused) as error:
            return proof.ended(
                step,
                proof.FAILED,
                "%s; and %s of %s is not %d again: %s"
                % (reason, key, host, number, files.one_line(error)),
            )
    return proof.ended(step, proof.ROLLED_BACK, f"{reason}; {path} is as it was")


def resumed(record, dummy_step=None, kernel=KERNEL):
    """What was interrupted, ended: (how its proof ends, why).

    Where our file holds the settings, the kernel gets them too.
    """
    try:
        if not own_file.says(record["path"], _merging(record)):
            return proof.NOT_DONE, "nothing of it was written"
    except ChangeError as error:
        return proof.NOT_DONE, str(error)
    reason = _changed_since(record, kernel) or run(
        record["settings"], kernel, record["host"], bool(record.get("lower"))
    )
    return (
        (proof.FAILED, reason)
        if reason
        else (proof.PROVEN, "the kernel has what {} says".format(record["path"]))
    )


def _changed_since(record, kernel):
    """Why an interrupted step lowers nothing any more.

    The kernel has what neither the plan saw nor the step wrote. What raises needs no such look.
    """
    if not record.get("lower"):
        return None
    for key, number in sorted(record["settings"].items()):
        try:
            now, former = read(key, kernel, record["host"]), record["former_settings"][key]
        except guard.Refused as error:
            return str(error)
        if now not in (former, number):
            return (
                "%s of %s is %d, neither what was before (%d) nor what was asked for (%d): somebody"
                " changed it since, and it stays; %s says %d"
                % (key, record["host"], now, former, number, record["path"], number)
            )
    return None
