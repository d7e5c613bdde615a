# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads a kernel module that files of this node name, also at the next boot.

The managed file is written first, as with kernel settings. A module is never unloaded, neither by a
revert nor after a failure, because something may use it by then.
"""

from ...collectors.node import boot
from ...shared.errors import PreconditionFailed
from ...shared.step_kinds import KERNEL_MODULE, kind_of
from ...state import step_record, storage
from ...system import command, files
from .. import managed_file
from ..base import StepHandler

SECONDS = kind_of(KERNEL_MODULE).seconds
HEADER = (
    b"# Made by kubemend: modules that Kubernetes needs, and that were not loaded, or would not"
    b" have been after the next boot.\n"
)
PRESENT = (boot.LOADED, boot.BUILTIN)


class LoadKernelModule(StepHandler):
    """Names a kernel module for the next boot, then loads it.

    The change of a step is {path, module}.
    """

    states = staticmethod(boot.modules)

    def check(self, step):
        """Refuse a module that no collector reads; return its name and the file's digest."""
        name = step.change["module"]
        if name not in boot.MODULES:
            raise PreconditionFailed(
                f"{files.one_line(name, 80)} is no module that is loaded by this"
            )
        self.former = self.states()[name]
        return {"module": name, "held": digest_of_file(step.path)}

    def apply(self, step, record):
        """Write the managed file, and return its former bytes."""
        return managed_file.write(
            step.path, lambda present: merged(present, record["module"]), step.context
        )

    def explain_unwritten(self, step, error):
        """Return the sentence about a file that could not be written."""
        return (
            f"{step.path} of {step.host} could not be written ({files.one_line(error)}): nothing"
            " was loaded; see what lies there"
        )

    def verify(self, step, record):
        """Load the module; return why it is not loaded, or None."""
        return self.load(record["module"], step.host)

    def describe(self, _step, record, _applied):
        """Return the states of the module before and after."""
        name = record["module"]
        return {"module": [name, self.former, self.states()[name]]}

    def roll_back(self, step, record, applied, reason):
        """Restore the file: a module that cannot be loaded would only fail the next boot."""
        state, reason = managed_file.rolled_back(record["path"], applied, step.context, reason)
        return state, reason, None

    def load(self, name, host):
        """Load the module where it is absent; return why it is absent then, or None."""
        if self.states()[name] in PRESENT:
            return None
        complaint = files.one_line(command.complaint(["modprobe", name], SECONDS))
        if self.states()[name] in PRESENT:
            return None
        return "{} was not loaded on {} ({})".format(
            name,
            host,
            complaint or "modprobe succeeded, and the kernel does not show it",
        )

    def recover(self, record, context=None, params=None):
        """Load the module that the file names, or restore the file."""
        try:
            present = managed_file.read(record["path"])
        except OSError:
            present = None
        if present is None or merged(present, record["module"]) != present:
            return step_record.NOT_DONE, "nothing of it was written"
        reason = self.load(record["module"], record["host"])
        if reason is None:
            return step_record.PROVEN, "{} is loaded, as {} says".format(
                record["module"], record["path"]
            )
        is_known, former = without(present, record["module"], record.get("held", ""))
        if not is_known or context is None:
            return (
                step_record.FAILED,
                "{}; {} names it, and what it held before is not known: take that line away, or"
                " make the module loadable".format(reason, record["path"]),
            )
        entry = _entry_of(record)
        return managed_file.rolled_back(record["path"], former, context, reason, entry)


def digest_of_file(path):
    """Return the file's digest, None without a file, "" where it cannot be read."""
    try:
        present = managed_file.read(path)
    except OSError:
        return ""
    return None if present is None else storage.digest(present)


def _entry_of(record):
    entry = record.get("entry")
    return "{}/{}".format(record["run_id"], entry["entry"]) if entry else None


def without(present, name, former_digest):
    """Return (whether the file is known, its bytes before this module; None: no file).

    former_digest: the digest in the record.
    """
    if former_digest is None:
        return present == merged(None, name), None
    line = name.encode() + b"\n"
    shorter = present
    if present.endswith(b"\n" + line) or present == line:
        shorter = present[: -len(line)]
    for candidate in (present, shorter, shorter[:-1]):
        if storage.digest(candidate) == former_digest:
            return True, candidate
    return False, None


def merged(present, name):
    """Return the bytes of the managed file with this module: the rest of it stays."""
    data = HEADER if present is None else present
    if any(line.strip().replace(b"-", b"_") == name.encode() for line in data.split(b"\n")):
        return data
    if data and not data.endswith(b"\n"):
        data += b"\n"
    return data + name.encode() + b"\n"
