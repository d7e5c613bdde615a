# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads, extends and restores small managed files (sysctl.d, limits.d, modules-load.d, drop-ins).

The rest of such a file stays. Each step has a function that returns the wanted bytes of the file
from its present bytes (None where there is no file).
"""

from ..state import step_record, storage
from ..state.storage import ChangeError
from ..system import files
from . import file_change

MAX_FILE = 65536


def read(path):
    """Return the bytes of a file, None where there is none; raise OSError for another error."""
    try:
        return files.read(path, MAX_FILE)
    except OSError as error:
        if files.reason(error) != "missing":
            raise
        return None


def write(path, merged, step):
    """Write merged(the present bytes), and return the present bytes, None where there was no file.

    ChangeError or OSError is raised where the file cannot be written.
    """
    present = read(path)
    data = merged(present)
    if present is None:
        file_change.create_file(path, data, step, file_change.Attributes(0o644), make_folder=True)
    elif data != present:
        file_change.replace(path, storage.digest(present), data, step)
    return present


def says(path, merged):
    """Return whether it is already what merged makes of it; False where that is not known."""
    try:
        present = read(path)
    except OSError:
        return False
    return present is not None and merged(present) == present


def put_back(path, former, step, reverts=None):
    """Restore the former bytes of a file, None for no file; raise ChangeError or OSError."""
    now = read(path)
    again = step.also(what=f"roll back: {path}", reverts=reverts)
    if now == former:
        return
    if now is None:
        raise ChangeError("it is gone: it was removed meanwhile")
    if former is None:
        file_change.move_out(path, storage.digest(now), again)
    else:
        file_change.replace(path, storage.digest(now), former, again)


def rolled_back(path, former, step, reason, reverts=None):
    """Restore the file after a failure; return (state of the record, reason)."""
    try:
        put_back(path, former, step, reverts)
    except (ChangeError, OSError) as error:
        return (
            step_record.FAILED,
            f"{reason}; and {path} was not put back: {files.one_line(error)}",
        )
    return step_record.ROLLED_BACK, f"{reason}; {path} is as it was"
