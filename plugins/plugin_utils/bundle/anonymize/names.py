# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of hosts and people that evidence holds: gathered, and replaced by numbered ones.

A name of a host is replaced label by label, so that `m1` and `m1.corp.example.com` still are the
same machine in the same domain; numbers follow the order of the names, by which hosts are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .words import FILES, INSIDE, PUBLIC_DOMAINS, TOP, USERS, WORDS

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?")
DIGITS_AND_DOTS = re.compile(r"[0-9.]+")
DOTTED = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
PARTS = re.compile(r"[A-Za-z0-9]+")
HOST_KEYS = ("host", "node", "hostname", "nodeName", "address", "kubernetes.io/hostname")
SITES = tuple(
    re.compile(form)
    for form in (
        r"[a-z][a-z0-9+.-]*://(?:[^\s/@\"']*@)?([A-Za-z0-9][A-Za-z0-9._-]*)",
        r"\blookup ([A-Za-z0-9][A-Za-z0-9._-]*)(?: on |:)",
    )
)
SPOKEN = tuple(
    re.compile(form, re.M)
    for form in (
        r"hostname-override[= ]\"?([A-Za-z0-9][A-Za-z0-9._-]*)",
        r"nodeName: *\"?([A-Za-z0-9][A-Za-z0-9._-]*)",
        r"controlPlaneEndpoint: *\"?([A-Za-z0-9][A-Za-z0-9._-]*)",
        r"^--name=([A-Za-z0-9][A-Za-z0-9._-]*)",
        r"^\s*- --name=([A-Za-z0-9][A-Za-z0-9._-]*)",
        r"[=,]([A-Za-z0-9][A-Za-z0-9._-]*)=https?://",
        (
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9:]+) ([A-Za-z0-9][A-Za-z0-9._-]*)"
            r" [\w./-]+\[[0-9]+\]:"
        ),
        r"^[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} ([A-Za-z0-9][A-Za-z0-9._-]*) [\w./-]+\[[0-9]+\]:",
        r"system:node:([A-Za-z0-9][A-Za-z0-9._-]*)",
    )
)
PEOPLE = tuple(
    re.compile(form, re.M)
    for form in (
        r"(?:/home|/Users|/export/home|/home/users)/([A-Za-z0-9_][A-Za-z0-9_.-]*)",
        (
            r"\b(?:User|SUDO_USER|LOGNAME|USERNAME|user|ruser|username)[=:]"
            r" ?\"?([A-Za-z_][A-Za-z0-9_.-]*)(?![A-Za-z0-9_.:(-])"
        ),
        r"\bfor (?:invalid )?user \"?([A-Za-z_][A-Za-z0-9_.-]*)",
        r"\bAccepted \w+ for ([A-Za-z_][A-Za-z0-9_.-]*) from ",
        r"([A-Za-z0-9_][A-Za-z0-9_.+-]*)@(?:[A-Za-z0-9-]+\.)+(?:" + "|".join(sorted(TOP)) + r")\b",
        r"current-context: *\"?([A-Za-z_][A-Za-z0-9_.-]*)@",
    )
)
# a line of limits.conf
LIMITED = re.compile(r"^[ \t]*@?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]+(?:soft|hard|-)[ \t]", re.M)


class Gathered:
    """What there is to replace. hosts: names of hosts. sites: those of which only a text speaks.

    People: of users and groups. ids: of machines, boots.
    """

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.sites: set[str] = set()
        self.people: set[str] = set()
        self.ids: set[str] = set()

    def structured(self, document: Mapping[str, Any]) -> None:
        """By where a name stands in a document."""
        waiting: list[tuple[str, Any]] = [("", document)]
        while waiting:
            key, value = waiting.pop()
            if isinstance(value, Mapping):
                if (
                    key == "nodes"
                    and value
                    and all(isinstance(item, Mapping) for item in value.values())
                ):
                    self._hosts(value)  # by node
                for name, item in value.items():
                    below = (
                        f"{key}[]" if key in ("members", "nodes") and name == "name" else str(name)
                    )
                    waiting.append((below, item) if name not in {"items", "data"} else (key, item))
            elif isinstance(value, list):
                waiting += [(key, item) for item in value]
            elif isinstance(value, str) and value:
                self._place(key, value)

    def spoken(self, text: str) -> None:
        """By how a text speaks of it."""
        for form in SITES:
            found = {name.rstrip(".") for name in form.findall(text)}
            self.sites.update(
                name
                for name in found
                if "." in name and not public(name) and not DIGITS_AND_DOTS.fullmatch(name)
            )
            self._hosts(name for name in found if "." not in name)
        for form in SPOKEN:
            self._hosts(name.rstrip(".") for name in form.findall(text))
        for form in (*PEOPLE, LIMITED):
            self.people.update(name.rstrip(".") for name in form.findall(text))

    def _place(self, key: str, value: str) -> None:
        if key in HOST_KEYS or key.endswith("[]"):
            self._hosts([value if key == "host" else re.sub(r":[0-9]+\Z", "", value)])
        elif key == "holder":
            self._hosts([value.rpartition("_")[0]])
        elif key in ("machine_id", "system_uuid", "boot_id") and len(value) >= 32:
            self.ids.add(value)
        elif key in ("user", "username", "login"):
            self.people.add(value)

    def _hosts(self, names: Iterable[str]) -> None:
        self.hosts.update(
            name
            for name in names
            if name and not DIGITS_AND_DOTS.fullmatch(name) and ":" not in name
        )


class Names:
    """One replacement for one bundle."""

    def __init__(self, gathered: Gathered) -> None:
        self._domains: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self.odd: dict[str, str] = {}
        proper = sorted(name for name in gathered.hosts if NAME.fullmatch(name))
        labels = list(dict.fromkeys(name.lower().partition(".")[0] for name in proper))
        width = len(str(len(labels) + len(gathered.hosts)))
        for number, label in enumerate(labels, 1):
            if not generic(label):
                self._known[label] = f"host-{number:0{width}d}" + ("_" if "_" in label else "")
        self._below = {name.lower().partition(".")[2] for name in proper if "." in name}
        self._below = {
            domain
            for domain in self._below
            if domain and domain not in FILES and not DIGITS_AND_DOTS.fullmatch(domain)
        }
        self._below |= {name.lower().partition(".")[2] for name in gathered.sites} - TOP
        for name in [*proper, *sorted(gathered.sites)]:
            if "." in name and not public(name, self._below):
                self._known.setdefault(name.lower(), self._dotted(name.lower()))
        for number, name in enumerate(sorted(gathered.hosts - set(proper)), len(labels) + 1):
            self.odd[name] = f"host-{number:0{width}d}"
        people = [
            name
            for name in sorted(gathered.people)
            if not generic(name) and name.lower() not in USERS and name.lower() not in self._known
        ]
        for number, name in enumerate(people, 1):
            self._known.setdefault(name.lower(), f"user-{number:0{len(str(len(people)))}d}")
        self._firsts = {PARTS.match(name).group() for name in self._known if PARTS.match(name)}

    def word(self, text: str, in_path: bool = False) -> str:
        """A word of letters, digits and - . _ with the names in it replaced, the longest first.

        In_path: it is a name of a folder or file.
        """
        parts = list(PARTS.finditer(text))
        made, done, place = [], 0, 0
        while place < len(parts):
            found = self._longest(text, parts, place)
            if found is None:
                place += 1
                continue
            end, name = found
            made += [self._rest(text[done : parts[place].start()], in_path), name]
            done, place = (
                end,
                next((n for n in range(place, len(parts)) if parts[n].start() >= end), len(parts)),
            )
        return (
            "".join(made) + self._rest(text[done:], in_path) if made else self._rest(text, in_path)
        )

    def _longest(self, text: str, parts: list[re.Match[str]], place: int) -> tuple[int, str] | None:
        if parts[place].group().lower() not in self._firsts:
            return None
        start = parts[place].start()
        for last in range(min(len(parts), place + 16) - 1, place - 1, -1):
            end = parts[last].end()
            for stop in (end + 1, end) if text[end : end + 1] == "_" else (end,):
                known = self._known.get(text[start:stop].lower())
                if known is not None:
                    return stop, (
                        known.upper() if text[start:stop] != text[start:stop].lower() else known
                    )
        return None

    def _rest(self, text: str, in_path: bool) -> str:
        """Names of hosts that nobody gathered, known by the domain in which they are."""
        return (
            DOTTED.sub(lambda found: self._ungathered(found.group(), in_path), text)
            if "." in text
            else text
        )

    def _ungathered(self, name: str, in_path: bool) -> str:
        low = name.lower()
        last = low.rpartition(".")[2]
        likely = last in TOP and (low.count(".") > 1 or (not in_path and last not in INSIDE))
        if (
            public(low, self._below)
            or not (likely or low in self._below or self._suffixes(low))
            or DIGITS_AND_DOTS.fullmatch(low)
        ):
            return name
        return self._dotted(low)

    def _suffixes(self, name: str) -> list[str]:
        labels = name.split(".")
        return [
            domain
            for domain in (".".join(labels[place:]) for place in range(1, len(labels)))
            if domain in self._below
        ]

    def _dotted(self, name: str) -> str:
        """A name with a domain: every label another, but what says of what kind the domain is."""
        if name in self._below:
            first, rest = "", name
        else:
            first, _dot, rest = name.partition(".")
        labels = rest.split(".")
        kept = [
            label if label in TOP or label.isdigit() else self._domain(label) for label in labels
        ]
        return ".".join(
            (
                [
                    self._known.get(first)
                    or (first if generic(first) else self._domain(first, "other"))
                ]
                if first
                else []
            )
            + kept
        )

    def _domain(self, label: str, kind: str = "domain") -> str:
        return self._domains.setdefault(label, f"{kind}-{len(self._domains) + 1}")


def generic(name: str) -> bool:
    """Is this a word, or several, that would be one in running text.

    Not replaced, and telling nothing?
    """
    low = name.lower()
    return (
        len(low) < 2
        or low.isdigit()
        or low in FILES
        or all(part in WORDS for part in PARTS.findall(low))
    )


def public(name: str, ours: Iterable[str] = ()) -> bool:
    """Is this a name of a project's or vendor's site, or of something inside every cluster?"""
    low = name.lower().rstrip(".")
    if any(low == domain or low.endswith(f".{domain}") for domain in ours):
        return False
    return any(low == domain or low.endswith(f".{domain}") for domain in PUBLIC_DOMAINS)
