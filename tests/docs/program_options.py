# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write program_options.tsv: python -m tests.docs.program_options NODE.

It asks the programs of a node of the lab for their help; crictl comes from this machine.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.page_commands import OPTIONS, pages, shell_texts
from tests.docs.shell_commands import OPTION, WORD, commands

# The words of a usage line, or of the line with the name, that name the subcommand.
USAGE = r"(?:[Uu]sage|USAGE|NAME):\s+(%s(?: [a-z][a-z-]*)*)"
# An option in the help of Go's pflag, of urfave's cli, and of systemd's programs.
PFLAG = re.compile(
    r"^ +(?:(-\w), )?(--[\w.-]+)(=(?!\[?(?:false|true)\b))?",
    re.MULTILINE,
)
CLI = re.compile(r"^ +(-{1,2}[\w-]+)(?: value)?(?:, (-{1,2}[\w-]+))*.*$", re.MULTILINE)
SYSTEMD = re.compile(r"^ +(?:(-\w) )?(--[\w-]+|-\w\b)?(\[?=)?", re.MULTILINE)
VERB = re.compile(r"^  ([a-z][a-z-]+)", re.MULTILINE)
PARSERS = {
    "kubectl": "pflag",
    "kubeadm": "pflag",
    "etcdctl": "pflag",
    "crictl": "cli",
    "ctr": "cli",
    "systemctl": "systemd",
    "journalctl": "systemd",
}
"""How each program that is checked writes its help."""


def options_of(kind: str, text: str) -> set[str]:
    """Read the options in a help text; = marks those that take a value."""
    if kind == "pflag":
        return set(_pflag_options(text))
    if kind == "cli":
        lines = [match[0] for match in CLI.finditer(text)]
        return {option for line in lines for option in _cli_options(line)}
    found = set()
    for short, long, mark in SYSTEMD.findall(text):
        value = "=" if mark == "=" else ""
        found |= {f"{name}{value}" for name in (short, long) if name}
    return found


def _pflag_options(text: str) -> Iterator[str]:
    for match in PFLAG.finditer(text):
        typed = match[3] == "=" or text[match.end() : match.end() + 2].strip().isalpha()
        for name in filter(None, (match[1], match[2])):
            yield f"{name}=" if typed else name


def _cli_options(line: str) -> Iterator[str]:
    """Yield the options of a line such as `--name value, -n value   what it does`."""
    names = re.split(r" {2,}", line.strip())[0]
    value = "=" if " value" in names or '"' in names else ""
    for name in re.findall(r"(?:^|, )(-{1,2}[\w-]+)", names):
        yield f"{name}{value}"


def harvest(node: str) -> dict[str, set[str]]:
    """Ask the programs of a node for the options of each subcommand on the pages."""
    found: dict[str, set[str]] = {}
    for text in pages().values():
        for shell in shell_texts(text):
            for command in commands(shell):
                name = Path(command.program).name
                if name in PARSERS:
                    _add_help(node, name, command.words[1:], found)
    return found


def _add_help(node: str, name: str, words: list[str], found: dict[str, set[str]]) -> None:
    if name not in found:
        own = ["options"] if name == "kubectl" else ["--help"]
        text = _output(node, [name, *own])
        found[name] = options_of(PARSERS[name], text)
        if name == "systemctl":
            found |= {f"{name} {verb}": set() for verb in VERB.findall(text)}
    positional = [word for word in _positional(words, found[name]) if WORD.fullmatch(word)]
    for count in range(1, min(len(positional), 4) + 1):
        asked = " ".join([name, *positional[:count]])
        if asked in found:
            continue
        text = _output(node, [*asked.split(), "--help"])
        usage = re.search(USAGE % name, text)
        if usage and len(usage[1].split()) == count + 1:
            found[asked] = options_of(PARSERS[name], text)


def _positional(words: list[str], options: set[str]) -> Iterator[str]:
    """Yield the words that are no option and no value of an option of the program itself."""
    remaining = iter(words)
    for word in remaining:
        if not OPTION.match(word):
            yield word
        elif f"{word}=" in options:
            next(remaining, None)


def _output(node: str, command: list[str]) -> str:
    here = command[0] == "crictl"
    prefix = [] if here else ["podman", "exec", node]
    done = subprocess.run(
        [*prefix, *command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.stdout + done.stderr


def main(node: str) -> None:
    """Write program_options.tsv."""
    rows = [
        f"{name}\t{' '.join(sorted(options))}" for name, options in sorted(harvest(node).items())
    ]
    head = (
        "# Written by `python -m tests.docs.program_options NODE`: subcommand, a tab, its options."
    )
    OPTIONS.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
