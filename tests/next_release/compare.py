# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that real programs list, against those that were read in their sources."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.next_release import flags, mine

SECONDS = 60
_LISTED = re.compile(r"(?m)^\s+(?:-\w, )?--([a-z][\w-]*)")


class Difference(NamedTuple):
    """How the flags that a program lists differ from those of its sources.

    missed: flags that the sources seem not to have; each would be claimed to be gone
    unlisted: hidden flags, names that are no flag, and flags that are gone without being noticed
    """

    missed: frozenset[str]
    unlisted: frozenset[str]


def differences(sources: Path, release: str, programs: Path) -> dict[str, Difference]:
    """Return by component how its program differs from its sources."""
    modules = mine.releases()[int(release.partition(".")[2])]
    folders = mine.folders(modules, sources)
    found = {}
    for component in flags.PACKAGES:
        read, told = flags.of_component(component, folders), listed(programs / component)
        found[component] = Difference(told - read, read - told)
    return found


def listed(program: Path) -> frozenset[str]:
    """Return the flags that a program lists itself."""
    answer = subprocess.run(
        [str(program), "--help"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    names = _LISTED.findall(answer.stdout + answer.stderr)
    return frozenset(name.replace("_", "-") for name in names)
