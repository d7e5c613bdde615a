# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Origins of packages that unattended-upgrades takes, by its own two kinds of patterns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ..evidence.answers.node.next_start import Distribution, OriginPattern, PackageSource

KEYS = {
    "o": "origin",
    "origin": "origin",
    "l": "label",
    "label": "label",
    "a": "archive",
    "archive": "archive",
    "suite": "archive",
    "n": "codename",
    "codename": "codename",
    "c": "component",
    "component": "component",
    "site": "site",
}


def matches(pattern: OriginPattern, source: PackageSource, system: Distribution) -> bool:
    """Tell whether packages of a source are upgraded by a pattern."""
    wishes = _wishes(pattern, system)
    if not wishes:
        return False
    values = {
        "origin": source.origin,
        "label": source.label,
        "archive": source.archive,
        "codename": source.codename,
        "component": source.component,
        "site": source.site,
    }
    return all(fnmatchcase(values[name], wish) for name, wish in wishes.items())


def _wishes(pattern: OriginPattern, system: Distribution) -> Mapping[str, str]:
    """Return {name: pattern of its value}; {} of a text that is no pattern."""
    text = pattern.text.replace("${distro_id}", system.id)
    text = text.replace("${distro_codename}", system.codename)
    if pattern.old:
        origin, colon, archive = text.partition(":")
        if not colon:
            return {}
        return {"origin": origin.strip(), "archive": archive.strip()}
    wishes = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        name = KEYS.get(key.strip())
        if not equals or name is None:
            return {}
        wishes[name] = value.strip()
    return wishes
