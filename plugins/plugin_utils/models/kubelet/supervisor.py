# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where k3s or RKE2, which runs a kubelet, is configured: its files and its unit. Pure.

Its own keys are flags of its program too. `kubelet-arg`, `kube-apiserver-arg` and so on have flags
of the components that it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.component_units import ComponentUnit, ComponentUnits
from ...evidence.answers.node.kubelet import Distribution, Kubelet
from ...evidence.document import one_line
from ...parsers import systemd_unit
from ..result import EvidenceRef

_URL = re.compile(r"^\s*(?:K3S|RKE2)_URL=[\"']?(?P<url>https?://[^\s\"'*]{1,200})", re.MULTILINE)
TITLES = {"k3s": "k3s", "rke2": "RKE2"}
KUBELET_KEY = "kubelet-arg"
# The unit of an agent, and that of a server, which runs a kubelet too.
_SERVERS = {
    "k3s-agent.service": "k3s.service",
    "rke2-agent.service": "rke2-server.service",
}
SHOWN = 5
# What k3s writes before the error of a component that it runs, and the key with its flags.
_KEYS = {
    "kubelet": KUBELET_KEY,
    "apiserver": "kube-apiserver-arg",
    "controller-manager": "kube-controller-manager-arg",
    "scheduler": "kube-scheduler-arg",
    "kube-proxy": "kube-proxy-arg",
    "cloud-controller-manager": "kube-cloud-controller-manager-arg",
    "etcd": "etcd-arg",
}
_COMPONENT = re.compile(r"(?:^|[\s:\"])(" + "|".join(_KEYS) + r") exited: ")
# With one dash in what k3s says of a flag, or of a key of its file, that it does not know.
_FLAG = re.compile(r"(?:(?<![\w-])-|not defined: )-([a-z][\w-]*)")
_VALUE = re.compile(r'invalid argument \\?"([^"\\]{1,253})\\?" for ')


@dataclass(frozen=True)
class Place:
    """Where a key is set: a line of a file, or the command line of the unit.

    path: None where the unit's file is not known
    """

    key: str
    value: str
    path: str | None
    line: int | None = None

    @property
    def text(self) -> str:
        """Return the key with its place, for a sentence."""
        path = self.path or "the command line of its unit"
        if self.line:
            path += f":{self.line}"
        return f"{self.key} in {one_line(path, 200)}"


@dataclass(frozen=True)
class Supervisor:
    """The program that runs a kubelet.

    program: k3s or rke2; argv: of its unit; distribution: None where its files were not collected;
    url: the address of its server in a file of its unit's environment
    """

    program: str
    unit: str
    unit_file: str | None
    argv: tuple[str, ...]
    distribution: Distribution | None
    url: str = ""

    @property
    def server(self) -> str:
        """Return the address of the server that it is told to join, as HOST:PORT, or ""."""
        places = self.key("server")
        url = places[0].value if places else self.url
        return one_line(url.partition("://")[2].partition("/")[0], 200)

    @property
    def title(self) -> str:
        """Return its name in a sentence."""
        return TITLES[self.program]

    @property
    def file(self) -> str:
        """Return its first configuration file."""
        paths = [file.path for file in self._files if not file.path.endswith(".yml")]
        return next(iter(paths), f"/etc/rancher/{self.program}/config.yaml")

    @property
    def _files(self) -> tuple[Any, ...]:
        return self.distribution.files if self.distribution is not None else ()

    def flag(self, key: str, flag: str, value: str = "") -> list[Place]:
        """Return where a component is given a flag: by that key, with that value if any has it."""
        places = [place for place in self._places(key) if _flag_of(place.value) == flag]
        exact = [place for place in places if value and value in place.value.partition("=")[2]]
        return (exact or places)[:SHOWN]

    def key(self, *names: str) -> list[Place]:
        """Return where these keys of its own are set."""
        return [place for name in names for place in self._places(name)][:SHOWN]

    def _places(self, key: str) -> Iterator[Place]:
        for file in self._files:
            for row in file.settings:
                if row.key == key:
                    yield Place(key, row.value or "", file.path, row.line)
        for value in _given(self.argv, key):
            yield Place(key, value, self.unit_file)


def server_beside(document: Mapping[str, Any], agent: str) -> ComponentUnit | None:
    """Return the unit of a server that starts at boot or runs beside that of an agent, or None."""
    name = _SERVERS.get(agent)
    rows = (row for row in contract.answer(document, ComponentUnits).units if row.name == name)
    return next(filter(_is_started, rows), None)


def _is_started(row: ComponentUnit) -> bool:
    if row.active_state in ("active", "activating"):
        return True
    return systemd_unit.at_boot(systemd_unit.unit(row)).answer == systemd_unit.YES


def read(document: Mapping[str, Any]) -> Supervisor | None:
    """Return the program that runs the kubelet of a node; None where it is its own unit's."""
    kubelet = contract.answer(document, Kubelet)
    if kubelet.unit is None:
        return None
    unit = systemd_unit.unit(kubelet.unit)
    if unit.family not in TITLES:
        return None
    argv = kubelet.unit.start_words or kubelet.argv
    file = kubelet.unit.fragment_path
    texts = [record.text or "" for record in kubelet.unit.environment_files]
    urls = filter(None, map(_URL.search, texts))
    url = next((match.group("url") for match in urls), "")
    return Supervisor(unit.family, unit.name, file, argv, kubelet.distribution, url)


def named(supervisor: Supervisor, message: str, keys: Iterable[str]) -> list[Place]:
    """Return where that is set which a last log line names: flags, or keys of its own."""
    component = _COMPONENT.search(message)
    flags = list(dict.fromkeys(_FLAG.findall(message)))
    if component is None:
        return supervisor.key(*dict.fromkeys((*keys, *flags)))
    value = _VALUE.search(message)
    key = _KEYS[component.group(1)]
    places = [
        place
        for flag in flags
        for place in supervisor.flag(key, flag, value.group(1) if value else "")
    ]
    return places[:SHOWN]


def key_of(message: str) -> str:
    """Return the key with the flags of the component whose error a message is, or ""."""
    component = _COMPONENT.search(message)
    return _KEYS[component.group(1)] if component is not None else ""


def key_of_component(component: str) -> str:
    """Return the key with the flags of a component."""
    name = component.removeprefix("kube-")
    return _KEYS.get(component) or _KEYS.get(name) or f"{component}-arg"


def proofs(places: Iterable[Place], host: str) -> list[EvidenceRef]:
    """Return the places as evidence."""
    return [
        EvidenceRef(
            "file",
            host,
            path=place.path,
            line=place.line,
            text=one_line(f"{place.key}: {place.value}", 300),
        )
        for place in places
        if place.path
    ]


def _flag_of(value: str) -> str:
    return value.lstrip("-").partition("=")[0]


def _given(argv: tuple[str, ...], key: str) -> Iterator[str]:
    """Yield the values of a flag of the command line, "true" of one without any."""
    for index, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if not name.startswith("-") or name.lstrip("-") != key:
            continue
        following = next(iter(argv[index + 1 : index + 2]), "-")
        if equals:
            yield value
        elif following.startswith("-"):
            yield "true"
        else:
            yield following
