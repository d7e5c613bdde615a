# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/known-messages.md and its parts: messages of others whose cause is known.

Galaxy takes no page of the folder docs that has more than 512 KiB.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs import ROOT
from tests.gate import venvs

PAGE = ROOT / "docs" / "known-messages.md"
PARTS = ROOT / "docs" / "known-messages"
EXAMPLES = (
    ROOT / "tests" / "unit" / "plugins" / "plugin_utils" / "parsers" / "known_messages_examples"
)
OF_COMPONENTS = ("KM114", "KM116", "KM117", "KM118")
# The findings that quote what is said at a place; any other place is a pod of the cluster itself.
FINDINGS = {
    "event": ("KM223", "KM225", "KM600", "KM606", "KM610"),
    "kubelet": ("KM114", "KM502", "KM525", "KM529", "KM600", "KM610"),
    "kernel": ("KM562",),
    "node": ("KM564",),
    **dict.fromkeys(
        ("containerd", "crio", "dockerd", "cri-dockerd", "runc"),
        ("KM508", "KM529", "KM600", "KM610"),
    ),
    **dict.fromkeys(("etcd", "kube-controller-manager", "kube-scheduler"), OF_COMPONENTS),
    "kube-apiserver": (*OF_COMPONENTS, "KM177", "KM223"),
    **dict.fromkeys(("k3s", "rke2"), (*OF_COMPONENTS, "KM502", "KM529")),
    **dict.fromkeys(("k0s", "kubelite"), (*OF_COMPONENTS, "KM502")),
    "kubeadm": ("KM564",),  # where cloud-init or a unit runs it
}
# Findings about a program itself, which no workload keeps from its work.
OF_PROGRAMS = frozenset(("KM502", "KM508", "KM529"))
OF_PODS = ("KM550", "KM560", "KM561")
TABLES = "plugins/plugin_utils/parsers/known_messages"
MARK = f"<!-- Generated from {TABLES}: run `python -m tests.docs`. -->"
BACK = f"What this page is, and messages of other programs: [known messages](../{PAGE.name}).\n"
HEAD = f"""\
# Known messages

{MARK}

Where a finding quotes one of these messages of other programs, it says the cause and what to do.
Search the pages that this one leads to for a part of a message. Names, addresses and versions in
your message may be others. A cause is here only if a public thread or the source of the program
confirms it; the link leads there. Words in `CAPITALS` stand for what your message names, or for
what you fill in.
"""
CONTENTS = """\
## By who says it

A message of one program can be in the log of another one: those of the kubelet are in that of k3s,
and those of a runtime in events of pods.
"""
SHARED = """\
## Advice that several messages share
"""


def examples(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of a row, who says it and the whole line, of the rows of one file."""
    path = EXAMPLES / f"{name}.tsv"
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            row, place, text = line.split("\t", 2)
            yield row, place, text


def pages() -> dict[Path, str]:
    """Return the list of contents and a page for each file of rows."""
    files = load().files()
    found = {PAGE: _index(files)}
    for name, rows in files.items():
        found[PARTS / f"{name}.md"] = _part(name, rows)
    return found


def _index(files) -> str:
    parts = [HEAD, CONTENTS, *_contents(files), "", SHARED]
    for name, row in load().shared().items():
        advice = _escaped(row.advice[:1].upper() + row.advice[1:])
        parts.append(f"### {name}\n\n{advice}.\n")
    return "\n".join(parts)


def _part(name: str, rows) -> str:
    """Return the page of the rows of one file."""
    lines = {row: (place, text) for row, place, text in examples(name)}
    parts = [f"# Known messages: {name}\n\n{MARK}\n\n{BACK}"]
    for row in rows:
        advice = _linked(_escaped(_capitals(row, row.wording)))
        parts.append(_entry(row, advice, *lines.get(row.id, ("", ""))))
    return "\n".join(parts)


def _linked(advice: str) -> str:
    """Return an escaped advice with links to what it shares with others."""
    for name, row in load().shared().items():
        link = f"[{row.title}](../{PAGE.name}#{name})"
        advice = advice.replace(_escaped(f"[[{name}]]"), link)
    return advice


def _contents(files) -> Iterator[str]:
    """Yield for each place the messages that are said there, with links to their headings."""
    rows = [(name, row) for name, of_file in files.items() for row in of_file]
    for place in sorted({place for _name, row in rows for place in row.places}):
        title = "any program" if place == "any" else place
        links = [
            f"[{row.id}]({PARTS.name}/{name}.md#{row.id})"
            for name, row in rows
            if place in row.places
        ]
        yield f"- {title}: {', '.join(links)}"


@functools.cache
def load():
    """Return the module of the table, under the collection's name."""
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import known_message

    return known_message


def _entry(row, advice: str, place: str, text: str) -> str:
    return (
        f"## {row.id}\n\n```text\n{text}\n```\n\n{_escaped(_capitals(row, row.cause))}.\n\n"
        f"What to do: {advice}.\n\n{_places(row)}.{_releases(row)}"
        f" [Source]({row.source}).\n"
    )


def _capitals(row, words: str) -> str:
    return _filled(words, {name: name.upper() for name in row.pattern.groupindex})


def _filled(words: str, groups: dict[str, str]) -> str:
    """Return a text with its groups in capitals; of groups side by side only one has a value."""
    words = re.sub(r"(\{[a-z_]+\})(?:\{[a-z_]+\})+", r"\1", words)
    for name, value in groups.items():
        words = words.replace(f"{{{name}}}", value)
    return words


def _escaped(words: str) -> str:
    """Return a text in which Markdown sees no mark."""
    for mark in "\\`*_<>[]{}|":
        words = words.replace(mark, f"\\{mark}")
    return words


def _places(row) -> str:
    if "any" in row.places:
        return "Said by any program"
    codes = {code for place in row.places for code in FINDINGS.get(place, OF_PODS)}
    if row.id in load().OF_WORKLOADS:
        codes -= OF_PROGRAMS
    found = ", ".join(f"[{code}](../faults/{code}.md)" for code in sorted(codes))
    told = f"Said by {', '.join(sorted(row.places))}"
    return f"{told}; quoted by {found}" if found else told


def _releases(row) -> str:
    if row.since and row.until:
        return f" Releases {row.since} to {row.until}."
    if row.since:
        return f" From release {row.since} on."
    return f" Up to release {row.until}." if row.until else ""
