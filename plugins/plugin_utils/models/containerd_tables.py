# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables in which containerd's CRI reads a key, by the version of the file. Pure.

containerd takes a key of the CRI in another table, logs nothing, and works with its default. The
name of a runtime stands for itself. containerd 2 finds a plugin by the name of its table and moves
what a former name has, so that it reads the tables of version 3 in files of versions 1 and 2 too.
"""

from __future__ import annotations

import re

from ..evidence.answers.node.cri import ConfigFile, ConfigLine
from ..evidence.document import one_line
from ..parsers import release_number

CRI = {1: "plugins.cri", 2: "plugins.io.containerd.grpc.v1.cri"}
RUNTIME, IMAGES = "plugins.io.containerd.cri.v1.runtime", "plugins.io.containerd.cri.v1.images"
TWO = ("2.0.0-rc.0", "3.0.0-rc.0")
PLUGINS = (*CRI.values(), RUNTIME, IMAGES)
SYSTEMD, OLD_SYSTEMD = "SystemdCgroup", "systemd_cgroup"
SANDBOX_IMAGE, SANDBOX = "sandbox_image", "sandbox"
# A runtime of its own, or one of the two that containerd 1 has beside them.
_RUNTIME = r"containerd\.(?:runtimes\.(?P<runtime>.+)|default_runtime|untrusted_workload_runtime)"
# What comes after the plugin's name, in versions 1 and 2 of the file.
_OF_CRI = {
    SYSTEMD: _RUNTIME + r"\.options",
    OLD_SYSTEMD: "",
    SANDBOX_IMAGE: "",
    "bin_dir": "cni",
    "config_path": "registry",
    "runtime_type": _RUNTIME,
}
# The same in version 3, where two plugins share the keys: the plugin, and what comes after it.
_THREE = {
    SYSTEMD: (RUNTIME, _RUNTIME + r"\.options"),
    SANDBOX: (IMAGES, "pinned_images"),
    "bin_dir": (RUNTIME, "cni"),
    "config_path": (IMAGES, "registry"),
    "runtime_type": (RUNTIME, _RUNTIME),
}
# Where a person would write it.
_NAMES = {
    SYSTEMD: "containerd.runtimes.runc.options",
    "runtime_type": "containerd.runtimes.runc",
    **{key: rest for key, (_plugin, rest) in _THREE.items() if "\\" not in rest},
}
_INNER = re.compile(r"\.(?:options|cni)(?:\.|$)")


def not_read(file: ConfigFile, line: ConfigLine, release: str = "") -> str:
    """Return why a line has no effect in a file of this version, or "".

    Only a table that nothing but the CRI has, or none at all, is judged.

    release: of containerd, where it is known
    """
    version = _version(file, line, release)
    if not _is_of_cri(line.table) or _is_read(version, line):
        return ""
    is_of_other = any(_is_within(line.table, plugin) for plugin in _of_others(version))
    if is_of_other and version == 1:
        return "a table that is read only in a file with a line version = 2 above all tables"
    if is_of_other:
        return f"a table that version {version} of the configuration does not read"
    reason = f"a table where containerd does not read {one_line(line.key, 80)}"
    return f"{reason}{_instead(version, line.key)}"


def _version(file: ConfigFile, line: ConfigLine, release: str) -> int:
    """Return by which version of the configuration containerd reads a line."""
    is_new = any(_is_within(line.table, plugin) for plugin in (RUNTIME, IMAGES))
    version = file.version or 1
    if is_new and release_number.is_within(release, *TWO):
        return max(version, 3)
    return version


def _is_of_cri(table: str) -> bool:
    names = table.partition(".")[0]
    is_fragment = names in ("cri", "containerd", "runtimes", "options", "runc")
    return not table or is_fragment or any(_is_within(table, plugin) for plugin in PLUGINS)


def _is_within(table: str, plugin: str) -> bool:
    return table == plugin or table.startswith(f"{plugin}.")


def _is_read(version: int, line: ConfigLine) -> bool:
    """Tell whether containerd reads a key there; what is not known here may be read."""
    place = _place(version, line.key)
    if place is None:
        return line.key not in (SYSTEMD, SANDBOX_IMAGE) or version > 3
    plugin, rest = place
    if line.table == plugin:
        return not rest
    match = re.fullmatch(rest, line.table[len(plugin) + 1 :]) if rest else None
    if not line.table.startswith(f"{plugin}.") or match is None:
        return False
    runtime = match.groupdict().get("runtime") or ""
    return not _INNER.search(f".{runtime}")


def _place(version: int, key: str) -> tuple[str, str] | None:
    """Return the plugin of a key, and a pattern of what comes after it; None: it is not known."""
    if version == 3:
        return _THREE.get(key)
    plugin, rest = CRI.get(version), _OF_CRI.get(key)
    if plugin is None or rest is None:
        return None
    return plugin, rest


def _of_others(version: int) -> tuple[str, ...]:
    """Return the plugins that only other versions of the file have."""
    plugins = (CRI[version],) if version in CRI else (RUNTIME, IMAGES)
    return tuple(plugin for plugin in PLUGINS if plugin not in plugins)


def _instead(version: int, key: str) -> str:
    """Return where a key stands in a file of this version, as a clause, or ""."""
    name = SANDBOX if version == 3 and key == SANDBOX_IMAGE else key
    place = _place(version, name)
    if place is None:
        return ""
    plugin, rest = place
    rest = _NAMES.get(name, "") if rest else ""
    first, _dot, quoted = plugin.partition(".")
    quoted = f'"{quoted}"' if "." in quoted else quoted
    table = ".".join(part for part in (first, quoted, rest) if part)
    renamed = f", as {name}" if name != key else ""
    return f"; it belongs below [{table}]{renamed}"
