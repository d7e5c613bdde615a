# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the commands on the pages of faults, and check their programs, options and placeholders.

programs.tsv names each program with the package that has it, placeholders.tsv what a reader writes
for a word in capitals. program_options.tsv has the options of programs (program_options.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs import ROOT, page_sections
from tests.docs.shell_commands import (
    OPTION,
    QUOTED_OR_COMMENT,
    WORD,
    Command,
    commands,
)

PROGRAMS = ROOT / "tests" / "docs" / "programs.tsv"
OPTIONS = ROOT / "tests" / "docs" / "program_options.tsv"
PLACEHOLDERS = ROOT / "tests" / "docs" / "placeholders.tsv"
# A word in capitals that the reader replaces; a number behind it is one of several.
CAPITALS = re.compile(r"(?<![\w.$])(?:[A-Z]+-)*[A-Z]{2,}(?=[0-9]?(?!\w))")
# Words in capitals that stay as they are: names of variables, columns, units, and what logs say.
LITERALS = frozenset(
    [
        "ALL",
        "CALICO",
        "CHECK",
        "CRI",
        "ECC",
        "EF",
        "ERROR",
        "KUBE",
        "KUBE-NWPLCY",
        "KUBE-POD-FW",
        "KUBE-ROUTER",
        "KUBELET",
        "NF",
        "NR",
        "NUMA",
        "OPTIONS",
        "PATH",
        "REV",
        "SELINUX",
        "TARGET",
        "THAWED",
    ]
)
COLUMNS = re.compile(r"custom-columns=\S+")
# What runs on any machine with an administrator's kubeconfig or the inventory.
ANYWHERE = frozenset(
    ["kubectl", "ansible", "ansible-playbook", "ansible-inventory", "helm", "echo", "sleep"]
)
MACHINE = re.compile(
    r"\b[Oo]n (?:the|each|a|an|any|that|this|one|another|its|your)\b[^.:]*"
    r"\b(?:node|nodes|host|hosts|machine|member|master|controller)\b"
)
FENCED = re.compile(r"^( *)```(?P<language>\w*)\n(?P<text>.*?)^ *```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:[a-z]|\$E )[^`\n]* [^`\n]*)`")
SHELL = ("", "sh")
# The headings below which blocks are commands; others quote logs.
HEADINGS = ("Check by hand", "Fix by hand", "What kubemend can do", "Undo")


def pages() -> dict[str, str]:
    """Return the text of each page of a fault, by its code."""
    paths = sorted(page_sections.DIRECTORY.glob("KM*.md"))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def blocks(text: str) -> Iterator[str]:
    """Yield each block of commands on a page."""
    for heading in HEADINGS:
        for match in FENCED.finditer(page_sections.own(text, heading)):
            if match["language"] in SHELL:
                yield match["text"]


def shell_texts(text: str) -> Iterator[str]:
    """Yield each block of commands on a page, and each text in a sentence that may be a command."""
    yield from blocks(text)
    for heading in HEADINGS:
        yield from INLINE.findall(FENCED.sub("", page_sections.own(text, heading)))


def read_programs() -> dict[str, str]:
    """Read programs.tsv: the package of each program."""
    return dict(_rows(PROGRAMS))


def read_placeholders() -> dict[str, str]:
    """Read placeholders.tsv: what the reader writes for each word in capitals."""
    return dict(_rows(PLACEHOLDERS))


def placeholders(text: str) -> list[str]:
    """List the words in capitals that the reader of a page replaces, in the order of the page."""
    found: dict[str, None] = {}
    for shell in shell_texts(text):
        plain = QUOTED_OR_COMMENT.sub(lambda match: match[1] or "", COLUMNS.sub("", shell))
        found |= dict.fromkeys(CAPITALS.findall(plain))
    return [word for word in found if word not in LITERALS]


def without_machine(text: str) -> list[str]:
    """Return the first line of each block of a node's commands that no words place on a machine."""
    found = []
    for heading in HEADINGS:
        own = page_sections.own(text, heading)
        for match in FENCED.finditer(own):
            programs = {one.program for one in commands(match["text"]) if not one.is_inner}
            said = own[: match.end()]
            if match["language"] in SHELL and programs - ANYWHERE and not MACHINE.search(said):
                found.append(f"{heading}: {match['text'].strip().splitlines()[0]}")
    return found


def read_options() -> dict[str, set[str]]:
    """Read program_options.tsv: the options of each subcommand, with = where one takes a value."""
    return {command: set(options.split()) for command, options in _rows(OPTIONS)}


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _tab, value = line.partition("\t")
            yield name, value


def problems(command: Command, programs: dict[str, str], options: dict[str, set[str]]) -> list[str]:
    """Return what is wrong with a command: its program, its subcommand or its options."""
    name = _name(command)
    if name not in programs and not command.program.startswith(("/proc/", "$")):
        return [f"{command.program} is in no package of programs.tsv: {command}"]
    if name not in options:
        return []
    subcommand, given = _parsed(command, options)
    known = {option.rstrip("=") for option in options[subcommand] | options[name]}
    asks = any(WORD.fullmatch(word) for word in command.words[1:])
    if asks and subcommand == name and any(key.startswith(f"{name} ") for key in options):
        return [f"{name} has no such subcommand: {command}"]
    return [f"{subcommand} has no option {option}: {command}" for option in given - known]


def _name(command: Command) -> str:
    """Return the name of a program without its folder."""
    return command.program.rpartition("/")[2]


def _parsed(command: Command, options: dict[str, set[str]]) -> tuple[str, set[str]]:
    """Return the subcommand of a command as the table names it, and the options given to it."""
    name = _name(command)
    subcommand, given = name, set()
    words = iter(command.words[1:])
    for word in words:
        if word == "--":
            break
        if OPTION.match(word):
            option, has_value = _option(word)
            given.add(option)
            if f"{option}=" in options[subcommand] | options[name] and not has_value:
                next(words, None)
        elif f"{subcommand} {word}" in options:
            subcommand = f"{subcommand} {word}"
    return subcommand, given


def _option(word: str) -> tuple[str, bool]:
    """Return the name of an option, and whether its value is in the same word."""
    if word.startswith("--"):
        name, mark, _value = word.partition("=")
        return name, bool(mark)
    return word[:2], len(word) > 2
