# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of this folder, which are written as lines with tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

HERE = Path(__file__).parent
FORMS = HERE / "forms"
COMPONENTS = (
    *("kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"),
    *("containerd", "cri-o", "runc", "library", "k3s"),
)
# Their forms are read by hand: the modules of k3s and RKE2 are not those that Go resolves.
BY_HAND = frozenset(("k3s",))


@dataclass(frozen=True)
class Row:
    """Form of a text with which a component ends or refuses to work.

    first, last: the oldest and the newest release of those read that has it
    place: file and line, in the newest
    nested: whether the text of another error stands in it
    key: what it names of the configuration
    """

    component: str
    form: str
    kind: str
    first: str
    last: str
    place: str
    nested: bool = False
    key: str = ""
    meaning: str = ""


_COLUMNS = ("component", "form", "kind", "first", "last", "place", "nested", "key", "class")


def lines(path: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of a table as mappings."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)


def applies(cell: str, component: str) -> bool:
    """Return whether a cell names a component; * names each."""
    return cell == "*" or component in cell.split()


def packages(component: str, module: str) -> list[str]:
    """Return the folders of a module that the start of a component runs through."""
    return [
        line["folder"]
        for line in lines(HERE / "packages.tsv")
        if applies(line["component"], component) and line["module"] == module
    ]


def releases(component: str) -> dict[str, list[str]]:
    """Return the modules of each release of a component, oldest release first."""
    return {
        line["release"]: line["modules"].split()
        for line in lines(HERE / "releases.tsv")
        if applies(line["component"], component)
    }


def roots(component: str) -> tuple[list[str], list[str]]:
    """Return (patterns of functions that a start begins with, of those that it does not enter)."""
    wanted: dict[str, list[str]] = {"root": [], "cut": []}
    for line in lines(HERE / "roots.tsv"):
        if applies(line["component"], component):
            wanted[line["kind"]].append(line["names"])
    return wanted["root"], wanted["cut"]


def left_out(component: str) -> list[tuple[re.Pattern[str], bool]]:
    """Return (files that are not read, whether also where the process ends in them)."""
    return [
        (re.compile(line["path"]), line["kinds"] == "all")
        for line in lines(HERE / "left_out.tsv")
        if applies(line["component"], component)
    ]


def forms(component: str) -> list[Row]:
    """Return the table of a component as it is checked in."""
    return [_row(line) for line in lines(FORMS / f"{component}.tsv")]


def _row(line: dict[str, str]) -> Row:
    component, form, kind, first, last, place, nested, key, meaning = (
        line[column] for column in _COLUMNS
    )
    return Row(component, form, kind, first, last, place, nested == "yes", key, meaning)


def write(component: str, rows: Iterable[Row]) -> None:
    """Write the table of a component."""
    FORMS.mkdir(exist_ok=True)
    text = ["\t".join(_COLUMNS)]
    for row in rows:
        cells = [_cell(value) for value in astuple(row)]
        text.append("\t".join(cells))
    (FORMS / f"{component}.tsv").write_text("\n".join(text) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


assert len(_COLUMNS) == len(fields(Row))
