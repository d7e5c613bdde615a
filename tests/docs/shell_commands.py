# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the commands of a shell text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

QUOTED_OR_COMMENT = re.compile(r"('[^']*'|\"(?:\\.|[^\"\\])*\")|(?<!\S)#[^\n]*")
KEYWORDS = {"do", "then", "done", "else", "fi", "if", "until", "while", "!", "{", "}"}
ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
SUBSTITUTION = re.compile(r"\$\((?P<text>[^()]*)\)")
WORD = re.compile(r"[a-z][a-z-]*")
OPTION = re.compile(r"-[a-zA-Z-]")  # a dash and a number is the value of another option
# What KM140 names for its reader.
VARIABLES = {"$E": "etcdctl"}
# Programs whose first arguments, so many of them, are followed by another command.
WRAPPERS = {"timeout": 1, "xargs": 0, "ssh": 1, "flock": 1, "k3s": 0}
# Programs that run within a container.
EXECUTED = {"etcdctl", "sh"}
SHELLS = {"sh", "bash", "/bin/sh"}


@dataclass
class Command:
    """One program with its arguments, as a page has it."""

    words: list[str] = field(default_factory=list)
    # Behind a pipe, or started by another command: it runs where that one does, or in a container.
    is_inner: bool = False

    @property
    def program(self) -> str:
        """Return the name of the program."""
        return self.words[0]

    def __str__(self) -> str:
        return " ".join(self.words)


def commands(text: str) -> Iterator[Command]:
    """Yield the commands of a shell text, also those within substitutions and strings."""
    plain = QUOTED_OR_COMMENT.sub(lambda match: match[1] or "", text.replace("\\\n", " "))
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    outer: list[Command] = []
    current = Command()
    for token in _without_redirections(lexer):
        if set(token) <= set(";|&\n"):
            yield from _complete(current)
            current = Command(is_inner=token == "|")
        elif token == "(":
            outer.append(current)
            current = Command()
        elif token == ")" and outer:
            yield from _complete(current)
            current = outer.pop()
        else:
            current.words.append(token)
    yield from _complete(current)


def _without_redirections(tokens: Iterator[str]) -> Iterator[str]:
    """Yield tokens one parenthesis at a time, without the files of redirections."""
    tokens = iter(tokens)
    for token in tokens:
        if set(token) <= set("<>&") and set(token) & set("<>"):
            next(tokens, None)
        elif set(token) <= set("();|&\n"):
            yield from re.findall(r"[()]|[^()]+", token)
        else:
            yield token


def _complete(command: Command) -> Iterator[Command]:
    """Yield a command without keywords and assignments, and the commands in its arguments."""
    words = list(command.words)
    while words and (words[0] in KEYWORDS or ASSIGNMENT.fullmatch(words[0])):
        match = ASSIGNMENT.fullmatch(words.pop(0))
        if match and " " in match["value"]:
            yield from commands(match["value"])
    for word in words:
        for match in SUBSTITUTION.finditer(word):
            yield from commands(match["text"])
    if not words or words[0] == "for":
        return
    words[0] = VARIABLES.get(words[0], words[0])
    start = _start_of_inner(words)
    yield Command(words[:start], command.is_inner)
    if start < len(words):
        yield from _complete(Command(words[start:], is_inner=True))
    elif "-c" in words and SHELLS & set(words):
        yield from commands(words[words.index("-c") + 1])


def _start_of_inner(words: list[str]) -> int:
    """Return where the command begins that another one starts, or the number of words."""
    if "exec" in words:
        places = [place for place, word in enumerate(words) if word in EXECUTED]
    else:
        places = [
            place
            for place, word in enumerate(words)
            if place > WRAPPERS.get(words[0], len(words)) and WORD.fullmatch(word)
        ]
    return min(places, default=len(words))
