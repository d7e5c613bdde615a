# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A denial of SELinux, as a line of the audit log has it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2048  # characters of a line that are read
_FIELD = re.compile(
    r'\b(comm|name|path|scontext|tcontext|tclass|permissive)=(?:"([^"]*)"|([^\s"]+))'
)
_PERMISSIONS = re.compile(r"\bavc: {1,2}denied {1,2}\{ ?([a-z_ ]{1,200}?) ?\}")


@dataclass(frozen=True)
class AvcDenial:
    """What SELinux denied a program.

    program: its name, as the kernel cuts it (15 characters)
    name, path: of the file, where the line has them; the name has no folder
    source, target: the contexts of the program and of the file
    kind: the class of the object (file, dir, sock_file, capability)
    is_enforced: whether the domain of the program is not permissive by itself
    """

    permissions: tuple[str, ...]
    program: str
    name: str
    path: str
    source: str
    target: str
    kind: str
    is_enforced: bool

    @property
    def domain(self) -> str:
        """Return the type of the program."""
        return part(self.source, 2)

    @property
    def label(self) -> str:
        """Return the type of the file."""
        return part(self.target, 2)

    @property
    def file(self) -> str:
        """Return the name of the file without its folder, or ""."""
        return self.name or self.path.rsplit("/", 1)[-1]


def read(line: str) -> AvcDenial:
    """Return the denial of a line; what the line lacks is empty."""
    line = line[:LONGEST]
    fields = {key: quoted or bare for key, quoted, bare in _FIELD.findall(line)}
    permissions = " ".join(_PERMISSIONS.findall(line)[:1])
    return AvcDenial(
        tuple(permissions.split()),
        fields.get("comm", ""),
        fields.get("name", ""),
        fields.get("path", ""),
        fields.get("scontext", ""),
        fields.get("tcontext", ""),
        fields.get("tclass", ""),
        fields.get("permissive") != "1",
    )


def part(context: str, number: int) -> str:
    """Return a part of a context: user, role, type, level with categories (0 to 3)."""
    return [*context.split(":", 3), "", "", "", ""][number]
