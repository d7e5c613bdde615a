# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that only their owner reads, written as a whole, even if the controller is killed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def replace(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Replace a file by a text, in one step."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".writing-")  # of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise
