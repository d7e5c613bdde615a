# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports of this collection with Python's bytecode cache, which Ansible's own loader does not use.

Without it each task compiles what it imports again: half a second. The cache is Python's own:
`__pycache__` next to the sources, or where PYTHONPYCACHEPREFIX says; where none can be written,
a private directory of the user. PYTHONDONTWRITEBYTECODE is honoured.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Not resolved: modules keep the path by which the collection was found.
PLUGINS = Path(__file__).absolute().parents[2]
PREFIX = __name__[: -len("plugin_utils.transport.bytecode")]
# Action plugins and modules are found by Ansible alone.
PACKAGES = ("plugin_utils.", "module_utils.")
HOME = "~/.ansible"
ANSIBLES_FINDER = "_AnsibleCollectionFinder"


class Finder:
    """Find the modules of this collection before Ansible's finder does; packages are Ansible's."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module file of this collection; None for everything else."""
        if not name.startswith(PREFIX) or not name[len(PREFIX) :].startswith(PACKAGES):
            return None
        source = PLUGINS.joinpath(*name[len(PREFIX) :].split(".")).with_suffix(".py")
        if not source.is_file():
            return None
        spec = ModuleSpec(name, _loader(name, str(source)), origin=str(source))
        spec.has_location = True
        return spec


class UserLoader(SourceFileLoader):
    """Load a module whose bytecode is in the user's own directory."""

    def __init__(self, name: str, path: str, cache: Path) -> None:
        super().__init__(name, path)
        self.cache = cache

    def get_data(self, path: str) -> bytes:
        """Read a source, or the bytecode of it from the user's directory."""
        if path == cache_from_source(self.path):
            path = str(self.cache)
        return super().get_data(path)

    def set_data(self, path: str, data: Buffer, *, _mode: int = 0o666) -> None:
        """Write bytecode to the user's directory; Python does it by a rename."""
        super().set_data(str(self.cache), data, _mode=0o600)


def _loader(name: str, source: str) -> SourceFileLoader:
    if sys.pycache_prefix is not None or _is_usable(Path(cache_from_source(source))):
        return SourceFileLoader(name, source)
    directory = None if sys.dont_write_bytecode else user_directory()
    if directory is None:
        return SourceFileLoader(name, source)
    # Python's own name has its release and its level of optimisation.
    file = f"{name[len(PREFIX) :]}.{Path(cache_from_source(source)).name}"
    return UserLoader(name, source, directory / file)


def _is_usable(cache: Path) -> bool:
    """Return whether bytecode of a source lies next to it, or can be written there."""
    if cache.is_file():
        return True
    directory = cache.parent
    if not directory.exists():
        directory = directory.parent
    return directory.is_dir() and os.access(directory, os.W_OK)


def user_directory() -> Path | None:
    """Return the user's own directory of bytecode; None where another user could write to it.

    Bytecode is code: a directory that another user owns or may write to is not used.
    """
    home = Path(os.environ.get("ANSIBLE_HOME") or HOME).expanduser()
    digest = hashlib.sha256(os.fsencode(PLUGINS)).hexdigest()[:16]
    directory = home / "kubemend" / digest
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.parent.mkdir(mode=0o700, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        is_private = all(_is_private(path) for path in (directory, directory.parent, home))
    except OSError:
        return None
    return directory if is_private else None


def _is_private(directory: Path) -> bool:
    """Return whether a directory is this user's, and no other user may write to it."""
    status = directory.lstat()
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def install() -> None:
    """Use the cache for the following imports of this process that Ansible's loader would do."""
    if Finder in sys.meta_path or sys.implementation.cache_tag is None:
        return
    for index, finder in enumerate(sys.meta_path):
        if type(finder).__name__ == ANSIBLES_FINDER:
            sys.meta_path.insert(index, Finder)
            return
