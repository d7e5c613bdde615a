# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells systemd-networkd to keep its hands off routes and rules of others, in one drop-in.

networkd reads the file at its next start, which is the moment of the harm. It is not restarted, and
no foreign file is changed. The file is read back as systemd reads it, with all others beside it.
"""

import base64

from ...shared.errors import PreconditionFailed
from ...shared.networkd_settings import KEYS, NO, SECTION, known_keys
from ...state import step_record
from ...state.storage import ChangeError
from ...system import command, files, network_services
from .. import managed_file, preconditions
from ..base import StepHandler

HEADER = (
    b"# Made by kubemend: systemd-networkd leaves routes and rules alone that the network plugin of"
    b" Kubernetes\n# adds, from its next start on.\n"
)
MAIN = "systemd/networkd.conf"  # as systemd-analyze calls it
SECONDS = 10


class KeepForeignRoutes(StepHandler):
    """Tells systemd-networkd to leave routes and rules of others alone.

    The change of a step is {path, keys}, the settings that get the value no.
    """

    def check(self, step):
        """Refuse a file of others, and a systemd that knows no such setting."""
        keys = step.change.get("keys")
        if not isinstance(keys, list) or not keys or not set(keys) <= set(KEYS):
            raise PreconditionFailed(
                f"the step names no setting that is written on {step.host}: nothing was changed"
            )
        _require_known(keys, step.host)
        _require_unset(keys, step.host)
        present, present_keys = _require_own(step.path, step.host)
        before = None if present is None else base64.b64encode(present).decode()
        return {"keys": sorted({*keys, *present_keys}), "before": before}

    def apply(self, step, record):
        """Write the drop-in, and return its former bytes."""
        former, data = _former(record), content(record["keys"])

        def merged(present):
            if present != former:
                raise ChangeError("another program wrote it just now")
            return data

        return managed_file.write(step.path, merged, step.context)

    def explain_unwritten(self, step, error):
        """Return the sentence about a file that could not be written."""
        return (
            f"{step.path} of {step.host} could not be written ({files.one_line(error)}): nothing"
            " was changed; see what lies there"
        )

    def verify(self, step, record):
        """Return why networkd would not read the settings at its next start, or None."""
        return unread(record["keys"], step.host)

    def describe(self, _step, record, _applied):
        """Return what networkd reads at its next start."""
        return {"next_start": dict.fromkeys(record["keys"], "no")}

    def roll_back(self, step, record, applied, reason):
        """Restore the file: one without an effect would only mislead."""
        state, reason = managed_file.rolled_back(record["path"], applied, step.context, reason)
        return state, reason, None

    def recover(self, record, context=None, params=None):
        """Return whether networkd reads the settings, or restore the file."""
        path, data = record["path"], content(record["keys"])
        if not managed_file.says(path, lambda _present: data):
            return step_record.NOT_DONE, "nothing of it was written"
        reason = unread(record["keys"], record["host"])
        if reason is None:
            return step_record.PROVEN, f"{path} holds it"
        if context is None:
            return step_record.FAILED, f"{reason}; {path} was left"
        entry = record.get("entry")
        reverts = "{}/{}".format(record["run_id"], entry["entry"]) if entry else None
        return managed_file.rolled_back(path, _former(record), context, reason, reverts)


def content(keys):
    """Return the bytes of the drop-in with these settings."""
    return HEADER + "".join(f"{line}\n" for line in [SECTION, *_lines(keys)]).encode()


def _former(record):
    """Return the bytes that the file had before the step, None where there was no file."""
    before = record.get("before")
    return None if before is None else base64.b64decode(before)


def _lines(keys):
    return [f"{key}=no" for key in sorted(keys)]


def _require_known(keys, host):
    version = network_services.systemd_version()
    if version is None:
        raise PreconditionFailed(
            f"which systemd {host} has is not known, nor whether it knows {' and '.join(keys)}:"
            " nothing was changed; see what systemctl --version prints there"
        )
    unknown = [key for key in keys if key not in known_keys(version)]
    if unknown:
        raise PreconditionFailed(
            f"systemd {version} of {host} does not know {' and '.join(unknown)}: nothing was"
            " changed; upgrade systemd, or keep systemd-networkd from managing these interfaces"
        )


def _require_unset(keys, host):
    """Refuse a setting on which another file decides."""
    service = network_services.networkd()
    if service is None:
        raise PreconditionFailed(
            f"the evidence is old: {host} has no systemd-networkd; {preconditions.OLD}"
        )
    if service["unread"]:
        raise PreconditionFailed(
            "{} of {} cannot be read ({}): what systemd-networkd reads is not known, and nothing"
            " was changed; make the file readable, or take it away".format(
                service["unread"][0]["path"], host, service["unread"][0]["error"]
            )
        )
    rows = network_services.counting(service["rows"])
    for key in keys:
        if key in rows and not _says_no(rows[key]):
            raise PreconditionFailed(
                "{path}:{line} of {host} says {key}={value}, and decides: change it there, or"
                " take the line away".format(host=host, **rows[key])
            )


def _says_no(row):
    return row is not None and row["value"].lower() in NO


def _require_own(path, host):
    """Return (the bytes of the file that kubemend made, None without one; its settings).

    PreconditionFailed is raised where the file says something else.
    """
    try:
        present = managed_file.read(path)
    except OSError as error:
        raise PreconditionFailed(
            f"{path} of {host} cannot be read ({files.one_line(error)}): nothing was changed"
        ) from error
    if present is None:
        return None, ()
    for keys in (*([key] for key in KEYS), KEYS):
        if present == content(keys):
            return present, keys
    raise PreconditionFailed(
        f"{path} of {host} has something else than kubemend writes there: nothing was changed; see"
        " what it says, and move it away"
    )


def unread(keys, host):
    """Return why systemd-networkd would not read these settings as no, or None.

    The files are read as the collector reads them, and by systemd-analyze where that is installed.
    """
    service = network_services.networkd()
    rows = [] if service is None else service["rows"]
    for reader, settings in (("its files", rows), ("systemd-analyze", _analyzed())):
        if settings is None:
            continue
        last = network_services.counting(settings)
        refused = [key for key in sorted(keys) if not _says_no(last.get(key))]
        if refused:
            return "systemd-networkd of {} would not read {} as no, {} says".format(
                host, " and ".join(refused), reader
            )
    return None


def _analyzed():
    """Return the settings that systemd-analyze prints, None where it prints nothing."""
    try:
        text = command.run(["systemd-analyze", "--no-pager", "cat-config", MAIN], SECONDS)
    except (command.CommandError, OSError):
        return None
    return network_services.rows_of(MAIN, text, KEYS)
