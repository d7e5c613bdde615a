# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets kernel settings of this node, in one managed file and in the running kernel.

Where a later line of another file decides a setting, only that line is changed. The file is written
first: its content applies after a reboot, and an interrupted step is completed by setting the
running kernel. No value is lowered: a higher value of the kernel or of the managed file stays. A
step with `lower` is the exception: it sets exactly its number, and only over the number that it saw
before.
"""

import os

from ...shared.errors import PreconditionFailed
from ...shared.sysctl import LETTERS, key_of, line_with
from ...state import step_record
from ...state.storage import ChangeError
from ...system import files
from .. import managed_file, preconditions
from ..base import StepHandler

KERNEL = "/proc/sys"
HEADER = (
    b"# Made by kubemend: kernel settings that were raised because they were exhausted, or would"
    b" not have outlived a reboot.\n"
)


class SetKernelSetting(StepHandler):
    """Sets kernel settings.

    The change of a step is {path, settings {key: number}, line, lower, running}.

    line: {number, text} of the line of a foreign file that is changed; None for the managed file.
    lower: the one setting gets exactly its number, if the kernel still has `running`.
    """

    kernel = KERNEL

    def check(self, step):
        """Return the present and the future settings; refuse where they are not as planned."""
        lower = bool(step.change.get("lower"))
        settings = step.change["settings"]
        former = {key: read(key, self.kernel, step.host) for key in sorted(settings)}
        if lower:
            _require_as_planned(step, former)
        facts = {
            "lower": lower,
            "line": step.change.get("line"),
            "settings": {key: _target(former[key], int(settings[key]), lower) for key in settings},
            "former_settings": former,
        }
        if step.context.check and facts["line"]:
            # compares, and writes nothing
            managed_file.write(step.path, _merging(facts), step.context)
        return facts

    def apply(self, step, record):
        """Write the file, and return its former bytes."""
        return managed_file.write(step.path, _merging(record), step.context)

    def explain_unwritten(self, step, error):
        """Return the sentence about a file that could not be written."""
        return (
            f"{step.path} of {step.host} could not be written ({files.one_line(error)}): the kernel"
            " was given nothing; see what lies there"
        )

    def verify(self, step, record):
        """Set the running kernel; return why it does not have the settings, or None."""
        return set_running(record["settings"], self.kernel, step.host, record["lower"])

    def describe(self, _step, record, _applied):
        """Return the settings before and after."""
        former, settings = record["former_settings"], record["settings"]
        return {"settings": {key: [former[key], settings[key]] for key in settings}}

    def roll_back(self, step, record, applied, reason):
        """Restore the file, and the former settings: nothing had the time to need others."""
        path = record["path"]
        try:
            managed_file.put_back(path, applied, step.context)
        except (ChangeError, OSError) as error:
            reason = f"{reason}; and {path} was not put back: {files.one_line(error)}"
            return step_record.FAILED, reason, None
        for key, number in sorted(record["former_settings"].items()):
            trouble = self._restore(key, number, step.host)
            if trouble:
                return step_record.FAILED, f"{reason}; and {trouble}", None
        return step_record.ROLLED_BACK, f"{reason}; {path} is as it was", None

    def _restore(self, key, number, host):
        """Set a setting to its former number; return why it does not have it, or None."""
        try:
            if read(key, self.kernel, host) != number:
                write(key, number, self.kernel)
        except (OSError, PreconditionFailed) as error:
            return f"{key} of {host} is not {int(number)} again: {files.one_line(error)}"
        return None

    def recover(self, record, context=None, params=None):
        """Set the kernel too where the file has the settings."""
        try:
            if not managed_file.says(record["path"], _merging(record)):
                return step_record.NOT_DONE, "nothing of it was written"
        except ChangeError as error:
            return step_record.NOT_DONE, str(error)
        reason = _changed_since(record, self.kernel) or set_running(
            record["settings"], self.kernel, record["host"], bool(record.get("lower"))
        )
        if reason:
            return step_record.FAILED, reason
        return step_record.PROVEN, "the kernel has what {} says".format(record["path"])


def _target(former, number, lower):
    if lower:
        return number
    return max(former, number)


def _require_as_planned(step, former):
    """Raise PreconditionFailed where the kernel has neither the planned former nor new number."""
    running = step.change.get("running")
    for key, number in former.items():
        if number not in (running, int(step.change["settings"][key])):
            raise PreconditionFailed(
                "the evidence is old: {} of {} is {}, not {}; {}".format(
                    ", ".join(former),
                    step.host,
                    ", ".join(map(str, former.values())),
                    running,
                    preconditions.OLD,
                )
            )


def place(key, kernel=KERNEL):
    """Return the file of a setting; raise PreconditionFailed for what is no setting."""
    parts = key.split(".")
    if not all(parts) or not LETTERS.issuperset(key):
        raise PreconditionFailed(f"{files.one_line(key, 80)} is no name of a kernel setting")
    return os.path.join(kernel, *parts)


def read(key, kernel, host):
    """Return the number that the kernel has now; raise PreconditionFailed."""
    text = (files.text(place(key, kernel), 128) or "").strip()
    if not text.isdigit():
        raise PreconditionFailed(
            "{} of {} cannot be read, or is no number ({}): nothing was changed".format(
                key, host, files.one_line(text, 40) or "no answer"
            )
        )
    return int(text)


def write(key, number, kernel):
    """Set a setting of the running kernel; raise OSError."""
    with open(place(key, kernel), "wb", buffering=0) as file:
        file.write(b"%d\n" % number)


def merged(present, settings, lower=False):
    """Return the bytes of the managed file with these settings.

    The rest of the file stays. A higher value stays too, unless it is to be lowered.
    """
    lines, missing = (present or HEADER).splitlines(True), dict(settings)
    for index, line in enumerate(lines):
        key, equal, value = line.partition(b"=")
        name = key.strip().decode("utf-8", "replace").replace("/", ".")
        if not equal or name not in settings:
            continue
        missing.pop(name, None)
        # each of them: the last one counts
        if _is_other(value, settings[name], lower):
            lines[index] = _line(name, settings[name])
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    return b"".join(lines + [_line(key, number) for key, number in sorted(missing.items())])


def _line(key, number):
    return b"%s = %d\n" % (key.encode(), number)


def _is_other(value, number, lower):
    """Return whether a value of the file has to be replaced by this number."""
    if not value.strip().isdigit():
        return True
    return _is_missed(int(value), number, lower)


def _is_missed(present, number, lower):
    """Return whether a number is too low, or, where it is lowered, another one."""
    if lower:
        return present != number
    return present < number


def _merging(record):
    """Return the function that makes the new bytes of a step's file of the present ones."""
    if not record.get("line"):
        return lambda present: merged(present, record["settings"], bool(record.get("lower")))
    ((key, number),) = record["settings"].items()
    return lambda present: edited(present, record["line"], key, number)


def edited(present, line, key, number):
    """Return the bytes of a foreign file with another number for the key in this one line.

    ChangeError is raised where the line was changed meanwhile.
    """
    rows = (present or b"").split(b"\n")
    index = line["number"] - 1
    row = None
    if 0 <= index < len(rows):
        row = rows[index].decode("utf-8", "replace")
    if row not in (line["text"], line_with(line["text"], number)) or key_of(line["text"]) != key:
        raise ChangeError(
            "its line {} is no longer {}; {}".format(
                int(line["number"]), files.one_line(line["text"], 120), preconditions.OLD
            )
        )
    return b"\n".join(
        [*rows[:index], line_with(line["text"], number).encode("utf-8"), *rows[index + 1 :]]
    )


def set_running(settings, kernel, host, lower=False):
    """Set the running kernel where its value is too low, or too high if that is lowered.

    The result is the reason why the kernel does not have a value, or None.
    """
    for key, number in sorted(settings.items()):
        try:
            if _is_missed(read(key, kernel, host), number, lower):
                write(key, number, kernel)
            now = read(key, kernel, host)
        except (OSError, PreconditionFailed) as error:
            return f"{key} of {host} was not brought to {int(number)}: {files.one_line(error)}"
        if _is_missed(now, number, lower):
            return (
                f"{key} of {host} is {int(now)} after {int(number)} was written: the kernel, or"
                f" something that watches it,"
                " does not take it"
            )
    return None


def _changed_since(record, kernel):
    """Return why an interrupted step must not lower a setting any more, or None.

    The reason is a value that is neither the one that the plan saw nor the one that the step wrote.
    Raising needs no such check.
    """
    if not record.get("lower"):
        return None
    for key, number in sorted(record["settings"].items()):
        try:
            now, former = read(key, kernel, record["host"]), record["former_settings"][key]
        except PreconditionFailed as error:
            return str(error)
        if now not in (former, number):
            return (
                "{} of {} is {}, neither what was before ({}) nor what was asked for ({}):"
                " something"
                " changed it since, and it stays; {} says {}".format(
                    key,
                    record["host"],
                    int(now),
                    int(former),
                    int(number),
                    record["path"],
                    int(number),
                )
            )
    return None
