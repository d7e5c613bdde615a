# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that real programs list, against those that were read in their sources."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.next_release import flags, mine

SECONDS = 60
_LISTED = re.compile(r"(?m)^\s+(?:-\w, )?--([a-z][\w-]*)")


def missed(sources: Path, release: str, programs: Path) -> dict[str, frozenset[str]]:
    """Return by component what its program lists and its sources seem not to have."""
    modules = mine.releases()[int(release.partition(".")[2])]
    folders = mine.folders(modules, sources)
    return {
        component: listed(programs / component) - flags.of_component(component, folders)
        for component in flags.PACKAGES
    }


def listed(program: Path) -> frozenset[str]:
    """Return the flags that a program lists itself."""
    answer = subprocess.run(
        [str(program), "--help"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    names = _LISTED.findall(answer.stdout + answer.stderr)
    return frozenset(name.replace("_", "-") for name in names)
