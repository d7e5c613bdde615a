# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a test audit this machine without the processes of other tests.

The lab's nodes are containers. Their kubelets and API servers are processes of this machine, so
that an audit of it finds a node while the lab runs.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAME = "python-alone"  # the file of the interpreter


def interpreter(folder: Path) -> str:
    """Return a Python that sees only its own processes; the usual one without root."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        return sys.executable
    script = folder / NAME
    script.write_text(
        f'#!/bin/sh\nexec {unshare} --pid --fork --kill-child --mount-proc {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return str(script)
