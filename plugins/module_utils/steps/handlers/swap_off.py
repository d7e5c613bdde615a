# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches swap of this node off: first in the file that activates it at boot, then the swap.

The file is changed first, so that a reboot after a killed run does no harm. systemd is not
reloaded, because a reload can take devices away from containers: it reads the files at the next
boot. A unit is masked by an empty file, which systemd treats like a link to /dev/null, and which
the journal can restore. Swap is never switched on, neither by a revert nor after a failure.
"""

import time

from ...collectors.node import swap
from ...shared.errors import PreconditionFailed
from ...shared.step_kinds import SWAP_OFF, kind_of
from ...state import journal, step_record, storage
from ...system import command, files, procfs
from .. import file_change
from ..base import StepHandler, outcome

SECONDS = kind_of(SWAP_OFF).seconds
# as plugin_utils/models/swap/sources.py has it: below this the kubelet evicts pods
RESERVE_KIB = 100 * 1024
PROC = "/proc"


class KeepSwapOff(StepHandler):
    """Writes the file that keeps swap off at the next boot; the compare and swap verifies it.

    The change of a step is {path, sha256, splices}. Without a sha256 the file must not exist, and
    is created empty.
    """

    def check(self, step):
        """Compare the file in check mode."""
        if step.context.check:
            _write(step)  # which compares, and writes nothing
        return {}

    def apply(self, step, record):
        """Write the file."""
        return _write(step)

    def explain_unwritten(self, step, error):
        """Return the sentence about a file that could not be written."""
        return (
            f"{step.path} of {step.host} could not be written ({files.one_line(error)}): nothing"
            " was switched off"
        )

    def describe(self, step, _record, applied):
        """Return the file and its entry of the journal."""
        return {"path": step.path, "sha256": applied["sha256_after"], "entry": applied["entry"]}

    def recover(self, record, context=None, params=None):
        """Return whether the file was written."""
        item = record.get("entry")
        if item and item["end"] and item["end"]["result"] == journal.COMMITTED:
            return step_record.PROVEN, "{} is written".format(record["path"])
        return step_record.NOT_DONE, "nothing of it was written"


def _write(step):
    if step.change.get("sha256") is None:
        return file_change.create_file(
            step.path, b"", step.context, file_change.Attributes(0o644), make_folder=True
        )
    return file_change.compare_and_swap(
        step.path,
        step.change["sha256"],
        file_change.decode_splices(step.change["splices"]),
        step.context,
    )


class SwitchSwapOff(StepHandler):
    """Switches one swap off, if memory has room for its content.

    The change of a step is {path, config}.
    """

    proc = PROC

    def check(self, step):
        """Refuse where the kubelet's configuration changed, or memory is short."""
        require_same_config(step.change, step.host)
        used = self.used(step.path, step.host)
        if used:
            self.require_room(step.path, used, step.host)
        return {}

    def perform(self, step, record):
        """Switch the swap off, and read the result from the kernel."""
        path, context = step.path, step.context
        if self.used(path, step.host) is None:
            return outcome(context, step_record.PROVEN, None, {"off": path, "already": True})
        begin = time.monotonic()
        seconds = step.change.get("seconds") or SECONDS
        complaint = files.one_line(command.complaint(["swapoff", path], seconds))
        try:
            used = self.used(path, step.host)
        except PreconditionFailed as error:
            return outcome(context, step_record.FAILED, str(error))
        if used is not None:
            return outcome(
                context,
                step_record.FAILED,
                "{} of {} is still on ({}); it is used as before, and what was written before so"
                " that no boot brings it back stays".format(
                    path, step.host, complaint or "swapoff succeeded nevertheless"
                ),
            )
        duration = round(time.monotonic() - begin, 2)
        return outcome(context, step_record.PROVEN, None, {"off": path, "proof_seconds": duration})

    def recover(self, record, context=None, params=None):
        """Return whether it is off; the next run sees what is still on."""
        try:
            used = self.used(record["path"], record["host"])
        except PreconditionFailed as error:
            return step_record.FAILED, storage.one_line(error)
        if used is None:
            return step_record.PROVEN, "{} is off".format(record["path"])
        return step_record.NOT_DONE, "{} is still on".format(record["path"])

    def used(self, path, host):
        """Return how many KiB lie in a swap, None where it is off; raise PreconditionFailed."""
        text = files.whole(self.proc + "/swaps") or ""
        if not text.startswith("Filename"):
            raise PreconditionFailed(
                f"/proc/swaps of {host} cannot be read: nothing was switched off"
            )
        rows = [line.split() for line in text.split("\n")[1:] if line.strip()]
        listed = [row for name, row in zip(swap.paths(text), rows) if name == path]
        if not listed:
            return None
        count = None
        if len(listed[0]) == 5:
            count = procfs.number(listed[0][3])
        if count is None:
            raise PreconditionFailed(
                f"/proc/swaps of {host} does not say how much of {files.one_line(path)} is used:"
                " nothing was switched off"
            )
        return count

    def require_room(self, path, count, host):
        """Raise PreconditionFailed unless memory takes it, and leaves the kubelet enough."""
        meminfo = files.text(self.proc + "/meminfo", 16384, "")
        free = swap.memory(meminfo)["mem_available_kib"]
        if free is not None and count + RESERVE_KIB < free:
            return
        raise PreconditionFailed(
            "{} KiB of {} on {} are used, and memory has {} KiB: nothing was switched off; make"
            " room first (stop or drain what needs so much), then swapoff".format(
                int(count),
                files.one_line(path),
                host,
                "an unknown number of" if free is None else free,
            )
        )


def require_same_config(change, host):
    """Raise PreconditionFailed where the kubelet's configuration changed since the evidence."""
    for file in change.get("config") or []:
        if files.record(file["path"])["sha256"] != file["sha256"]:
            raise PreconditionFailed(
                "{} of {} was changed since evidence was collected: whether its kubelet refuses"
                " swap is not known any more; run again".format(file["path"], host)
            )
