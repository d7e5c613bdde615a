# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a step writes for this node's kubelet, and the restart that loads them."""

import base64
import contextlib
import os

from ..system import command, files
from . import file_change, kubelet_restart

MOMENTARY = "/run/"  # A reboot removes it; directories that were made there are removed again.


def write(file, step):
    """Create one file of a plan's step, or replace its bytes."""
    if file["kind"] == "create":
        file_change.create_file(
            file["path"],
            base64.b64decode(file["data"]),
            step,
            file_change.Attributes(int(file.get("mode") or "0644", 8)),
            make_folder=True,
        )
        return
    file_change.compare_and_swap(
        file["path"], file["sha256"], file_change.decode_splices(file["splices"]), step
    )


def ask_restart(reload_units):
    """Ask systemd to restart the kubelet; return why that failed, or None."""
    try:
        kubelet_restart.restart(reload_units)
        return None
    except command.CommandError as error:
        return f"it could not be restarted ({files.one_line(error)})"


def tidy(paths):
    """Remove the directories under /run that only these files needed."""
    for folder in {os.path.dirname(path) for path in paths if path.startswith(MOMENTARY)}:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
