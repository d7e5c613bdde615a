# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module of the kernel that files of this node ask for, named in a file of ours for the next
boot, and loaded.

The file first, as with kernel settings. A module is never taken out again, neither by a revert nor
after a failure: something may use it by then.
"""

from ...collectors.node import boot
from ...state import step_record as proof
from ...state import storage as durable
from ...state.storage import ChangeError
from ...system import command, files
from .. import managed_file as own_file
from .. import preconditions as guard

REMEDY = "kernel_module"
SECONDS = 30
HEADER = (
    b"# Made by kubemend: modules that Kubernetes needs, and that were not loaded, or would not"
    b" have been after the next boot.\n"
)


def do(step, wanted, host, dummy_params=None, look=boot.modules):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted.

    The plan's step, its change {path, module}.
    """
    path, name = wanted["change"]["path"], wanted["change"]["module"]
    try:
        if name not in boot.MODULES:
            raise guard.Refused(f"{files.one_line(name, 80)} is no module that is loaded by this")
        former = look()[name]
        record = {
            "component": None,
            "host": host,
            "remedy": REMEDY,
            "limit": SECONDS,
            "kind": "none",
            "path": path,
            "module": name,
            "held": _held(path),
            "expect": {},
            "guard": wanted.get("guard"),
            "former": None,
        }
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    try:
        present = own_file.write(path, lambda present: merged(present, name), step)
    except (ChangeError, OSError) as error:
        state = proof.FAILED if getattr(error, "changed", False) else proof.NOT_DONE
        return proof.ended(
            step,
            state,
            f"{path} of {host} could not be written ({files.one_line(error)}): nothing was loaded;"
            " see what lies there",
        )
    reason = load(name, host, look)
    if reason is None:
        return proof.ended(step, proof.PROVEN, None, {"module": [name, former, look()[name]]})
    return proof.ended(step, *_restored(step, record, present, reason))


def _held(path):
    """The digest of what the file holds, None where there is none.

    An empty one where that is not known, and nothing will be written.
    """
    try:
        present = own_file.read(path)
    except OSError:
        return ""
    return None if present is None else durable.digest(present)


def without(present, name, held):
    """(could it be told, the bytes that our file held before this module.

    None where there was no file). held: by the record.
    """
    if held is None:
        return present == merged(None, name), None
    shorter = (
        present[: -len(name) - 1]
        if present.endswith(b"\n" + name.encode() + b"\n") or present == name.encode() + b"\n"
        else present
    )
    for one in (present, shorter, shorter[:-1]):
        if durable.digest(one) == held:
            return True, one
    return False, None


def merged(present, name):
    """The bytes of our file with this module: what else it holds stays."""
    data = HEADER if present is None else present
    if any(line.strip().replace(b"-", b"_") == name.encode() for line in data.split(b"\n")):
        return data
    return data + (b"" if not data or data.endswith(b"\n") else b"\n") + name.encode() + b"\n"


def load(name, host, look):
    """Load it where it is not: why it is not there then, or None."""
    if look()[name] in (boot.LOADED, boot.BUILTIN):
        return None
    said = files.one_line(command.complaint(["modprobe", name], SECONDS))
    if look()[name] in (boot.LOADED, boot.BUILTIN):
        return None
    return "{} was not loaded on {} ({})".format(
        name,
        host,
        said or "modprobe ended well, and the kernel does not show it",
    )


def _restored(step, record, present, reason, reverts=None):
    """(how its proof ends, why).

    A module that cannot be loaded would only be in the way of the next boot.
    """
    path = record["path"]
    try:
        own_file.put_back(path, present, step, reverts)
    except (ChangeError, OSError) as error:
        return proof.FAILED, f"{reason}; and {path} was not put back: {files.one_line(error)}"
    return proof.ROLLED_BACK, f"{reason}; {path} is as it was"


def resumed(record, step=None, look=boot.modules):
    """What was interrupted, ended: (how its proof ends, why).

    Where our file names the module, it is loaded too, or the file put back as it was.
    """
    try:
        present = own_file.read(record["path"])
    except OSError:
        present = None
    if present is None or merged(present, record["module"]) != present:
        return proof.NOT_DONE, "nothing of it was written"
    reason = load(record["module"], record["host"], look)
    if reason is None:
        return proof.PROVEN, "{} is loaded, as {} says".format(record["module"], record["path"])
    known, former = without(present, record["module"], record.get("held", ""))
    if not known or step is None:
        return (
            proof.FAILED,
            "{}; {} names it, and what it held before is not known: take that line away, or make"
            " the module loadable".format(reason, record["path"]),
        )
    entry = record.get("entry")
    return _restored(
        step,
        record,
        former,
        reason,
        "{}/{}".format(record["run_id"], entry["entry"]) if entry else None,
    )
