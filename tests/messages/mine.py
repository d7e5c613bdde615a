# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Table of forms, from the sources of every release."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.messages import go_sites
from tests.messages.go_reach import Reach
from tests.messages.go_source import Function, Source, read
from tests.messages.tables import Row, left_out, packages, releases, roots

_LEFT_OUT = re.compile(
    r"_test\.go$|zz_generated|_windows\.go$|_darwin\.go$|_(?:free|open|net|dragonfly)bsd\.go$"
    r"|_(?:unsupported|others|other|nolinux|plan9|solaris)\.go$|\.pb(?:\.gw)?\.go$"
)
_FOLDERS = frozenset(
    ("testing", "testdata", "fake", "mock", "mocks", "test", "integration", "testutil", "vendor")
)
_VERB = re.compile(r"%[-+# 0]*\d*(?:\.\d+)?(?:\[\d+\])?[a-zA-Z]")
_QUOTES = re.compile(r"[\"'`\u201c\u201d]")
_WORDS = re.compile(r"[a-zA-Z]{2,}")


@dataclass(frozen=True)
class Found:
    """Site of one release.

    place: the file of the module, and the line
    """

    kind: str
    form: str
    nested: bool
    key: str
    place: str


def found(component: str, release: str, modules: Iterable[str], folder: Path) -> list[Found]:
    """Return the sites of one release of one component."""
    sources = [source for module in modules for source in _sources(component, module, folder)]
    wanted, cuts = roots(component)
    reach = Reach(sources, cuts)
    reached = reach.from_roots(wanted)
    constants = _constants(sources)
    sites = [
        site
        for source in sources
        for function in source.functions
        for site in _of_function(source, function, (source.path, function) in reached, constants)
    ] + [site for source in sources for site in _of_variables(source, constants)]
    unread = left_out(component)
    return [site for site in sites if not _is_left_out(site, unread)]


def _is_left_out(site: Found, unread: Iterable[tuple[re.Pattern[str], bool]]) -> bool:
    ends = site.kind in {go_sites.FATAL, go_sites.EXIT, go_sites.PANIC}
    return any(path.search(site.place) for path, whole in unread if whole or not ends)


def _constants(sources: Iterable[Source]) -> dict[str, str]:
    """Return plain texts by their names, without those that have several."""
    texts: dict[str, set[str]] = {}
    for source in sources:
        for name, text in source.constants.items():
            texts.setdefault(name, set()).add(text)
    return {name: next(iter(values)) for name, values in texts.items() if len(values) == 1}


def _sources(component: str, module: str, folder: Path) -> Iterator[Source]:
    path, version = module.split("@")
    root = folder / f"{path}@{version}"
    if not root.is_dir():
        raise SystemExit(f"messages: {root} is not there")
    for part in packages(component, path):
        for file in sorted(_files(root, part)):
            relative = file.relative_to(root)
            if _LEFT_OUT.search(file.name) or _FOLDERS & set(relative.parts[:-1]):
                continue
            yield read(str(Path(path) / relative), file.read_text(errors="replace"))


def _files(root: Path, part: str) -> Iterator[Path]:
    if part == "**":
        return root.rglob("*.go")
    if part.endswith("/**"):
        return (root / part.removesuffix("/**")).rglob("*.go")
    return (root / part).glob("*.go")


def _of_function(
    source: Source, function: Function, reached: bool, constants: dict[str, str]
) -> Iterator[Found]:
    here = {**constants, **source.constants}
    if function.name == "Error" and function.owner:
        for site in go_sites.told(source.tokens, function.begin, function.end, here):
            yield from _row(source, site)
    for site in go_sites.sites(source.tokens, function.begin, function.end, here):
        if reached or site.kind in {go_sites.FATAL, go_sites.EXIT}:
            yield from _row(source, site)


def _of_variables(source: Source, constants: dict[str, str]) -> Iterator[Found]:
    """Yield the errors that are variables of a package."""
    for name, begin in source.errors.items():
        if "err" not in name.lower():
            continue
        for site in go_sites.sites(source.tokens, begin, begin + 12, constants):
            if site.kind == go_sites.RETURNED:
                yield from _row(source, site)


def _row(source: Source, site: go_sites.Site) -> Iterator[Found]:
    form = " ".join(site.form.split())
    if _WORDS.search(_VERB.sub("", form)) is None:
        return
    nested = site.nested or bool(re.search(r"%w", form))
    yield Found(site.kind, form, nested, site.key, f"{source.path}:{site.line}")


def folded(form: str) -> str:
    """Return a form as those that differ by quoting, verbs or spaces alone have it in common."""
    plain = _QUOTES.sub("", _VERB.sub("%", form.replace("%%", "percent")))
    return re.sub(r"\s+", " ", plain).strip().rstrip(".!").lower()


def rows(component: str, scanned: dict[str, list[Found]]) -> list[Row]:
    """Return the rows of one component, of all its releases."""
    table: dict[str, Row] = {}
    kinds: dict[str, Counter[str]] = {}
    for release, sites in scanned.items():
        for site in sites:
            name = folded(site.form)
            kinds.setdefault(name, Counter())[site.kind] += 1
            before = table.get(name)
            first = before.first if before else release
            table[name] = Row(
                component,
                site.form,
                site.kind,
                first,
                release,
                site.place,
                (before is not None and before.nested) or site.nested,
                site.key or (before.key if before else ""),
            )
    order = (go_sites.FATAL, go_sites.EXIT, go_sites.PANIC, go_sites.FIELD, go_sites.RETURNED)
    return [
        replace(row, kind=next(kind for kind in order if kind in kinds[name]))
        for name, row in sorted(table.items())
    ]


def scan(component: str, folder: Path) -> dict[str, list[Found]]:
    """Return the sites of every release of a component, oldest first."""
    return {
        release: found(component, release, modules, folder)
        for release, modules in releases(component).items()
    }
