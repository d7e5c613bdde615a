# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that only their owner reads, and that are there as a whole whenever the controller is
killed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable


def replace(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Put a text in the place of whatever is there, in one step."""
    # 0600 by itself
    handle, name = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".writing-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
