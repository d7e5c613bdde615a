# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of hosts and people in evidence: gathered, and replaced by numbered names.

A host's name is replaced label by label, so that `m1` and `m1.corp.example.com` still are the same
host in the same domain; numbers follow the order of the names, by which hosts are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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
IN_TEXT = tuple(
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
LIMITS_LINE = re.compile(r"^[ \t]*@?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]+(?:soft|hard|-)[ \t]", re.M)


MAX_PARTS = 16  # of a word, that one name may have


class Gathered:
    """The names to replace.

    Attributes:
        hosts: names of hosts.
        sites: names of hosts that occur only in texts.
        people: names of users and groups.
        ids: of machines and boots.
    """

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.sites: set[str] = set()
        self.people: set[str] = set()
        self.ids: set[str] = set()

    def add_document(self, document: Mapping[str, Any]) -> None:
        """Gather names by their place in a document."""
        waiting: list[tuple[str, Any]] = [("", document)]
        while waiting:
            key, value = waiting.pop()
            if isinstance(value, Mapping):
                if key == "nodes" and value and _are_mappings(value.values()):
                    self._add_hosts(value)  # by node
                waiting += _children(key, value)
            elif isinstance(value, list):
                waiting += [(key, item) for item in value]
            elif isinstance(value, str) and value:
                self._add(key, value)

    def add_text(self, text: str) -> None:
        """Gather names by the words around them."""
        for form in SITES:
            names = {name.rstrip(".") for name in form.findall(text)}
            self._add_hosts(name for name in names if "." not in name)
            self.sites.update(name for name in names if "." in name and _is_site(name))
        for form in IN_TEXT:
            self._add_hosts(name.rstrip(".") for name in form.findall(text))
        for form in (*PEOPLE, LIMITS_LINE):
            self.people.update(name.rstrip(".") for name in form.findall(text))

    def add_certificate_name(self, name: str, is_host: bool) -> None:
        """Gather a name of a certificate."""
        names = self.people
        if is_host:
            names = self.hosts
        names.add(name.lstrip("*."))

    def _add(self, key: str, value: str) -> None:
        if key == "host":
            self._add_hosts([value])
        elif key in HOST_KEYS or key.endswith("[]"):
            self._add_hosts([re.sub(r":[0-9]+\Z", "", value)])
        elif key == "holder":
            self._add_hosts([value.rpartition("_")[0]])
        elif key in ("machine_id", "system_uuid", "boot_id") and len(value) >= 32:
            self.ids.add(value)
        elif key in ("user", "username", "login"):
            self.people.add(value)

    def _add_hosts(self, names: Iterable[str]) -> None:
        self.hosts.update(
            name
            for name in names
            if name and not DIGITS_AND_DOTS.fullmatch(name) and ":" not in name
        )


def _are_mappings(values: Iterable[Any]) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _children(key: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the items of a mapping with their keys; a name in a list of members has key `[]`."""
    for name, item in value.items():
        if name in {"items", "data"}:
            yield key, item
        elif name == "name" and key in ("members", "nodes"):
            yield f"{key}[]", item
        else:
            yield str(name), item


def _is_site(name: str) -> bool:
    return not public(name) and not DIGITS_AND_DOTS.fullmatch(name)


class Names:
    """The replacements of one bundle.

    Attributes:
        odd: replacements of host names that are no host name by their form.
    """

    def __init__(self, gathered: Gathered) -> None:
        self._domains: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self.odd: dict[str, str] = {}
        proper = sorted(name for name in gathered.hosts if NAME.fullmatch(name))
        self._below = _known_domains(proper, gathered.sites)
        self._add_hosts(proper, sorted(gathered.hosts - set(proper)))
        for name in [*proper, *sorted(gathered.sites)]:
            if "." in name and not public(name, self._below):
                self._known.setdefault(name.lower(), self._dotted(name.lower()))
        self._add_people(sorted(gathered.people))
        matches = filter(None, map(PARTS.match, self._known))
        self._firsts = {match.group() for match in matches}

    def _add_hosts(self, proper: Iterable[str], odd: list[str]) -> None:
        proper = list(proper)
        labels = list(dict.fromkeys(name.lower().partition(".")[0] for name in proper))
        width = len(str(len(labels) + len(proper) + len(odd)))
        for number, label in enumerate(labels, 1):
            if generic(label):
                continue
            self._known[label] = f"host-{number:0{width}d}"
            if "_" in label:
                self._known[label] += "_"
        for number, name in enumerate(odd, len(labels) + 1):
            self.odd[name] = f"host-{number:0{width}d}"

    def _add_people(self, names: Iterable[str]) -> None:
        people = [name.lower() for name in names if self._is_person(name)]
        width = len(str(len(people)))
        for number, name in enumerate(people, 1):
            self._known.setdefault(name, f"user-{number:0{width}d}")

    def _is_person(self, name: str) -> bool:
        return not generic(name) and name.lower() not in USERS and name.lower() not in self._known

    def word(self, text: str, in_path: bool = False) -> str:
        """Replace the names in a word of letters, digits and - . _, the longest first.

        In a path it is the name of a directory or file.
        """
        parts = list(PARTS.finditer(text))
        replaced, done = "", 0
        for place, part in enumerate(parts):
            if part.start() < done:
                continue
            match = self._longest(text, parts, place)
            if match is not None:
                end, name = match
                replaced += self._rest(text[done : part.start()], in_path) + name
                done = end
        return replaced + self._rest(text[done:], in_path)

    def _longest(self, text: str, parts: list[re.Match[str]], place: int) -> tuple[int, str] | None:
        """Return the end and the replacement of the longest name that begins with a part."""
        if parts[place].group().lower() not in self._firsts:
            return None
        start = parts[place].start()
        for part in reversed(parts[place : place + MAX_PARTS]):
            for end in _ends(text, part.end()):
                name = text[start:end]
                replacement = self._known.get(name.lower())
                if replacement is not None:
                    return end, _in_case_of(name, replacement)
        return None

    def _rest(self, text: str, in_path: bool) -> str:
        """Replace names of hosts that were not gathered, known by their domain."""
        if "." not in text:
            return text
        return DOTTED.sub(lambda match: self._ungathered(match.group(), in_path), text)

    def _ungathered(self, name: str, in_path: bool) -> str:
        low = name.lower()
        if public(low, self._below) or DIGITS_AND_DOTS.fullmatch(low):
            return name
        if _is_likely_host(low, in_path) or low in self._below or self._has_known_suffix(low):
            return self._dotted(low)
        return name

    def _has_known_suffix(self, name: str) -> bool:
        labels = name.split(".")
        suffixes = (".".join(labels[place:]) for place in range(1, len(labels)))
        return not self._below.isdisjoint(suffixes)

    def _dotted(self, name: str) -> str:
        """Replace every label of a name with a domain, except labels that state its kind."""
        if name in self._below:
            return ".".join(map(self._domain_label, name.split(".")))
        first, _dot, domain = name.partition(".")
        # The domain is numbered before its host.
        labels = list(map(self._domain_label, domain.split(".")))
        return ".".join([self._host_label(first), *labels])

    def _domain_label(self, label: str) -> str:
        if label in TOP or label.isdigit():
            return label
        return self._domain(label)

    def _host_label(self, label: str) -> str:
        if label in self._known:
            return self._known[label]
        if generic(label):
            return label
        return self._domain(label, "other")

    def _domain(self, label: str, kind: str = "domain") -> str:
        return self._domains.setdefault(label, f"{kind}-{len(self._domains) + 1}")


def _known_domains(hosts: Iterable[str], sites: Iterable[str]) -> set[str]:
    """Return the domains of hosts and sites."""
    domains = {name.lower().partition(".")[2] for name in hosts}
    host_domains = {domain for domain in domains if domain and domain not in FILES}
    host_domains = {domain for domain in host_domains if not DIGITS_AND_DOTS.fullmatch(domain)}
    return host_domains | ({name.lower().partition(".")[2] for name in sites} - TOP)


def _ends(text: str, end: int) -> tuple[int, ...]:
    """Return the ends of a name: an underscore after it may belong to it."""
    if text[end : end + 1] == "_":
        return end + 1, end
    return (end,)


def _in_case_of(name: str, replacement: str) -> str:
    if name != name.lower():
        return replacement.upper()
    return replacement


def _is_likely_host(name: str, in_path: bool) -> bool:
    """Return whether a name with a domain is rather a host's than a file's."""
    last = name.rpartition(".")[2]
    if last not in TOP:
        return False
    return name.count(".") > 1 or (not in_path and last not in INSIDE)


def generic(name: str) -> bool:
    """Return whether a name is a word of running text: it is not replaced and reveals nothing."""
    low = name.lower()
    if len(low) < 2 or low.isdigit() or low in FILES:
        return True
    return all(part in WORDS for part in PARTS.findall(low))


def public(name: str, known_domains: Iterable[str] = ()) -> bool:
    """Return whether a name is a project's or vendor's site, or exists inside every cluster.

    Names below the known domains of this bundle are not public.
    """
    low = name.lower().rstrip(".")
    if any(low == domain or low.endswith(f".{domain}") for domain in known_domains):
        return False
    return any(low == domain or low.endswith(f".{domain}") for domain in PUBLIC_DOMAINS)
