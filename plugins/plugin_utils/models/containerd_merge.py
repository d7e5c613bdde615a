# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd 2 drops of the CRI's table of version 2. Pure.

containerd 2.0 to 2.2 merges a file and its imports as they are, and the last version counts for all
of them (cmd/containerd/server/config/config.go). Where that is 3, nothing is migrated, and the
CRI's table of version 2 is not read, but for its streaming server. Up to 1.7 containerd refuses
version 3, and from 2.3 on an import with a higher version than the first file. Tried with 2.2.1:
`config dump`.

In one file, all releases of containerd 2 read nothing of that table next to version = 3. With
version = 2 they move it, but not its runtimes where the file has runtimes in the table of version 3
(configMigration in plugins/cri/runtime/plugin.go); registries and the image of sandboxes move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cri import ConfigFile, ConfigLine, Cri
from ..evidence.answers.node.next_start import NextStart
from ..evidence.document import one_line
from ..parsers import release_number
from . import containerd_tables

FIRST, FIXED = "2.0.0-rc.0", "2.3.0-rc.0"
NEXT = "3.0.0-rc.0"
OLD, NEW = 2, 3
# Where 2.2 looks for hosts.toml without a setting; before, it looks nowhere.
WITH_DEFAULT = "2.2.0-rc.0"
DEFAULT_FOLDERS = frozenset(("/etc/containerd/certs.d", "/etc/docker/certs.d"))
REGISTRY, _RUNTIMES = ".registry", ".containerd.runtimes"
MOST = 20
_TABLE = containerd_tables.CRI[OLD]
_REGISTRIES = (f"{_TABLE}{REGISTRY}", f"{containerd_tables.IMAGES}{REGISTRY}")


@dataclass(frozen=True)
class Dropped:
    """A line of the CRI's table of version 2 that has no effect.

    newer: the file of version 3 that is the reason, or its own file
    version: that of its own file
    """

    path: str
    line: ConfigLine
    newer: str
    version: int = OLD

    @property
    def place(self) -> str:
        """Return the key with its place, for a sentence."""
        return f"{one_line(self.line.key, 80)} in {self.file}:{self.line.line}"

    @property
    def file(self) -> str:
        """Return the path of the file of version 2."""
        return one_line(self.path, 200)

    @property
    def by(self) -> str:
        """Return the path of the file of version 3."""
        return one_line(self.newer, 200)

    @property
    def reason(self) -> str:
        """Return why the line has no effect, as a clause."""
        if self.is_of_one_file:
            return self._in_one_file
        return (
            f"{self.file} has version = {OLD}, {self.by} is merged into it and has version ="
            f' {NEW}, and containerd before 2.3 then drops what is below [plugins."{_TABLE[8:]}"]'
        )

    @property
    def is_of_one_file(self) -> bool:
        """Tell whether the file itself, and none that is merged into it, is the reason."""
        return self.newer == self.path

    @property
    def _in_one_file(self) -> str:
        """Return why a line has no effect in its own file, as a clause."""
        old, new = _TABLE[8:], containerd_tables.RUNTIME[8:]
        if self.version == NEW:
            return (
                f'[plugins."{old}"] is the table of containerd 1, and containerd 2 does not read it'
                f" in a file with version = {NEW}"
            )
        return (
            f'[plugins."{old}"] is the table of containerd 1, and containerd 2 does not read its'
            f" runtimes where the file has runtimes below [plugins.'{new}']"
        )

    @property
    def is_of_registries(self) -> bool:
        """Tell whether it is how registries are asked: mirrors, or the folder of hosts.toml."""
        return _is_within(self.line.table, _REGISTRIES[0])


def extract(document: Mapping[str, Any]) -> tuple[Dropped, ...]:
    """Return what a host's containerd drops of its files, if it has read them as they are."""
    read = contract.answer(document, NextStart).runtime_files
    if read is not None and any(file.newer for file in read.files):
        return ()
    return dropped(contract.answer(document, Cri))


def dropped(cri: Cri) -> tuple[Dropped, ...]:
    """Return the lines that have no effect, without those that a file of version 3 sets too.

    A line that sets what is the default anyway is none of them.
    """
    newer, ignored = _newer(cri), _in_own_files(cri)
    if newer is None or ignored:
        return ignored
    lines = list(_lines(cri))
    kept = {_kind(line) for file, line in lines if _is_new(file, line)}
    return tuple(
        Dropped(file.path, line, newer.path)
        for file, line in lines
        if _is_old(file, line) and _kind(line) not in kept and not _is_default(cri, line)
    )[:MOST]


def _in_own_files(cri: Cri) -> tuple[Dropped, ...]:
    """Return the lines that have no effect in the very file where they stand.

    Only files of one version are judged, of which containerd reads each alike.
    """
    if not _is_of_one_version(cri):
        return ()
    kept = {_kind(line) for _file, line in _lines(cri) if _has_new_table(line)}
    return tuple(
        Dropped(file.path, line, file.path, file.version or OLD)
        for file, line in _lines(cri)
        if _is_ignored(file, line) and _kind(line) not in kept and not _is_default(cri, line)
    )[:MOST]


def _is_of_one_version(cri: Cri) -> bool:
    """Tell whether containerd 2 reads files that all have one version."""
    is_two = release_number.is_within(cri.version, FIRST, NEXT)
    versions = {file.version or 0 for file in cri.files}
    if cri.name != "containerd" or not is_two or any(file.error for file in cri.files):
        return False
    return versions in ({OLD}, {NEW})


def _is_ignored(file: ConfigFile, line: ConfigLine) -> bool:
    """Tell whether a line stands in a table that containerd 2 does not read in this file."""
    if file.version == NEW:
        return _is_within(line.table, _TABLE)
    return _is_within(line.table, f"{_TABLE}{_RUNTIMES}") and any(
        _is_within(row.table, f"{containerd_tables.RUNTIME}{_RUNTIMES}") for row in file.lines
    )


def of_line(rows: tuple[Dropped, ...], file: ConfigFile, line: ConfigLine) -> Dropped | None:
    """Return what drops a line of a file, or None."""
    return next((row for row in rows if (row.path, row.line) == (file.path, line)), None)


def _newer(cri: Cri) -> ConfigFile | None:
    """Return the file whose version 3 counts for all of them, None where another one counts.

    A file without a version does not change that of those before it.
    """
    is_merging = release_number.is_within(cri.version, FIRST, FIXED)
    if cri.name != "containerd" or not is_merging or any(file.error for file in cri.files):
        return None
    versions = [file for file in cri.files if (file.version or 0) >= OLD]
    if versions and versions[-1].version == NEW:
        return versions[-1]
    return None


def _lines(cri: Cri) -> Iterator[tuple[ConfigFile, ConfigLine]]:
    """Yield the lines that set something, with their file."""
    for file in cri.files:
        yield from ((file, line) for line in file.lines if _is_set(line))


def _is_old(file: ConfigFile, line: ConfigLine) -> bool:
    """Tell whether a line is the CRI's in a file of version 2."""
    return file.version == OLD and _is_within(line.table, _TABLE)


def _is_new(file: ConfigFile, line: ConfigLine) -> bool:
    """Tell whether a line is read in a file of version 3."""
    return file.version == NEW and _has_new_table(line)


def _has_new_table(line: ConfigLine) -> bool:
    """Tell whether a line stands in a table that containerd 1 does not have."""
    new = (containerd_tables.RUNTIME, containerd_tables.IMAGES)
    return any(_is_within(line.table, table) for table in new)


def _kind(line: ConfigLine) -> str:
    """Return what a line sets, the same for the tables of both versions."""
    if any(_is_within(line.table, table) for table in _REGISTRIES):
        return REGISTRY
    if line.key in (containerd_tables.SANDBOX, containerd_tables.SANDBOX_IMAGE):
        return containerd_tables.SANDBOX
    for plugin in (_TABLE, containerd_tables.RUNTIME, containerd_tables.IMAGES):
        if _is_within(line.table, plugin):
            return f"{line.table[len(plugin) :]} {line.key}"
    return f"{line.table} {line.key}"


def _is_set(line: ConfigLine) -> bool:
    """Tell whether a value is another one than that of an empty setting."""
    return line.value.strip("[]\"' ") not in ("", "false")


def _is_default(cri: Cri, line: ConfigLine) -> bool:
    """Tell whether a line sets the folders of hosts.toml that containerd has without it."""
    if line.key != "config_path" or not release_number.is_within(cri.version, WITH_DEFAULT, FIXED):
        return False
    return DEFAULT_FOLDERS.issuperset(line.value.strip("\"'").split(":"))


def _is_within(table: str, plugin: str) -> bool:
    return table == plugin or table.startswith(f"{plugin}.")
