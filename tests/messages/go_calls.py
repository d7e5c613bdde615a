# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls in Go source, and the texts of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.messages.go_source import CLOSE, OPEN, Token, closing

UNKNOWN = "%v"


@dataclass(frozen=True)
class Call:
    """Call of a function.

    receiver: what stands before the dot, "()" for the result of another call
    arguments: their tokens
    launched: whether a statement `go` makes it
    """

    receiver: str
    name: str
    arguments: tuple[tuple[Token, ...], ...]
    line: int
    begin: int
    end: int
    launched: bool = False


def calls(tokens: Sequence[Token], begin: int, end: int) -> Iterator[Call]:
    """Yield the calls between two tokens, also those in arguments of others."""
    for index in range(begin, min(end, len(tokens) - 1)):
        token = tokens[index]
        if token.kind != "name" or tokens[index + 1].value != "(":
            continue
        if tokens[index + 1].kind != "mark" or (index and tokens[index - 1].value == "func"):
            continue
        last = closing(tokens, index + 1)
        receiver, first = _receiver(tokens, index)
        arguments = tuple(_split(tokens[index + 2 : last]))
        launched = first > 0 and tokens[first - 1].value == "go"
        yield Call(receiver, token.value, arguments, token.line, index, last, launched)


def _receiver(tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """Return what stands before the dot of a call, and where that begins."""
    if index < 2 or tokens[index - 1].value != ".":
        return "", index
    before = tokens[index - 2]
    if before.kind == "name":
        first = index - 2
        while first > 1 and tokens[first - 1].value == "." and tokens[first - 2].kind == "name":
            first -= 2
        return before.value, first
    return "()", index - 2


def _split(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Yield the arguments between the brackets of a call."""
    depth = 0
    part: list[Token] = []
    for token in tokens:
        if token.kind == "mark":
            if token.value == "," and depth == 0:
                yield tuple(part)
                part = []
                continue
            depth += (token.value in OPEN) - (token.value in CLOSE)
        part.append(token)
    if part:
        yield tuple(part)


def text_of(tokens: Sequence[Token], constants: Mapping[str, str]) -> str:
    """Return the text of an expression; what is not known stands there as %v."""
    parts: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "text":
            parts.append(token.value)
            index += 1
        elif token.value == "+":
            index += 1
        elif token.value == "(":
            last = closing(tokens, index)
            parts.append(text_of(tokens[index + 1 : last], constants))
            index = last + 1
        else:
            index = _unknown(tokens, index, constants, parts)
    return "".join(parts)


def _unknown(
    tokens: Sequence[Token], index: int, constants: Mapping[str, str], parts: list[str]
) -> int:
    """Add the part that begins here and is no plain text; return where the next one begins."""
    end, depth = index, 0
    while end < len(tokens):
        token = tokens[end]
        if token.kind == "mark":
            if token.value == "+" and depth == 0:
                break
            depth += (token.value in OPEN) - (token.value in CLOSE)
        end += 1
    part = tokens[index:end]
    formatted = _formatted(part, constants)
    if formatted is not None:
        parts.append(formatted)
    elif len(part) == 1 or (len(part) == 3 and part[1].value == "."):
        parts.append(constants.get(part[-1].value, UNKNOWN))
    else:
        parts.append(UNKNOWN)
    return end


def _formatted(tokens: Sequence[Token], constants: Mapping[str, str]) -> str | None:
    """Return the text of fmt.Sprintf(…) and of errors, else None."""
    if len(tokens) < 5 or tokens[1].value != "." or tokens[3].value != "(":
        return None
    name = f"{tokens[0].value}.{tokens[2].value}"
    if name not in {"fmt.Sprintf", "fmt.Errorf", "errors.New", "fmt.Sprint"}:
        return None
    first = next(iter(_split(tokens[4:-1])), ())
    return text_of(first, constants)
