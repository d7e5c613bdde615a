# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokens of Go source, and the functions and constants that they form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r]+|//[^\n]*|/\*.*?\*/)
    |(?P<line>\n)
    |(?P<raw>`[^`]*`)
    |(?P<text>"(?:[^"\\\n]|\\.)*")
    |(?P<rune>'(?:[^'\\\n]|\\.)+')
    |(?P<name>[^\W\d]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<mark>:=|==|!=|<=|>=|&&|\|\||<-|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[0-7]{3}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}
OPEN, CLOSE = frozenset("([{"), frozenset(")]}")
MAX_HEADER = 400  # tokens between the name of a function and its body


@dataclass(frozen=True)
class Token:
    """Token of Go source; kind is text, name, number, rune or mark."""

    kind: str
    value: str
    line: int


@dataclass(frozen=True)
class Function:
    """Function with its body, as a range of tokens.

    owner: the type that a method belongs to
    """

    name: str
    owner: str
    begin: int
    end: int


@dataclass
class Source:
    """Go file, taken apart.

    imports: the name that stands before a dot -> the path of the package
    constants: name -> text, of constants and variables that are a plain string
    errors: name -> token at which the value of a package's variable begins
    """

    path: str
    tokens: list[Token]
    functions: list[Function] = field(default_factory=list)
    imports: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)


def read(path: str, text: str) -> Source:
    """Take one file apart."""
    tokens = list(_tokens(text))
    source = Source(path, tokens)
    source.imports = _imports(text)
    depth, index = 0, 0
    while index < len(tokens):
        token = tokens[index]
        if depth == 0 and token.value == "func" and token.kind == "name":
            function = _function(tokens, index)
            if function is not None:
                source.functions.append(function)
                index = function.end
                continue
        depth += (token.value in OPEN) - (token.value in CLOSE) if token.kind == "mark" else 0
        _note_value(source, index)
        index += 1
    return source


def _tokens(text: str) -> Iterator[Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup or "mark", match.group()
        if kind == "raw":
            yield Token("text", value[1:-1], line)
        elif kind == "text":
            yield Token("text", _ESCAPE.sub(_unescaped, value[1:-1]), line)
        elif kind not in {"skip", "line"}:
            yield Token(kind, value, line)
        line += value.count("\n")


def _unescaped(match: re.Match[str]) -> str:
    word = match.group(1)
    if word[0] in "xu":
        return chr(int(word[1:], 16))
    return _PLAIN.get(word, word)


def _imports(text: str) -> dict[str, str]:
    """Return the packages by the name that the file has for them."""
    found = {}
    for block in re.findall(r"(?ms)^import \((.*?)^\)|^import ([^\n(]+)$", text):
        for alias, path in re.findall(r'(?m)^\s*([\w.]+ )?"([^"]+)"', "\n".join(block)):
            parts = [part for part in path.split("/") if not re.fullmatch(r"v\d+", part)]
            found[alias.strip() or parts[-1].removeprefix("go-")] = path
    return found


def _function(tokens: list[Token], index: int) -> Function | None:
    """Return the function that begins at this `func`, or None for a type."""
    owner, at = "", index + 1
    if tokens[at].value == "(":
        end = closing(tokens, at)
        owner = next((t.value for t in reversed(tokens[at:end]) if t.kind == "name"), "")
        at = end + 1
    if at >= len(tokens) or tokens[at].kind != "name":
        return None
    name = tokens[at].value
    begin = _body(tokens, at + 1)
    if begin is None:
        return None
    return Function(name, owner, begin, closing(tokens, begin) + 1)


def _body(tokens: list[Token], at: int) -> int | None:
    """Return where the body begins: the first brace behind the parameters and results.

    A function of assembly has none: what follows is on another line.
    """
    index, end = at, min(at + MAX_HEADER, len(tokens))
    while index < end:
        token, before = tokens[index], tokens[index - 1]
        if token.line > before.line and before.value != ",":
            return None
        if token.kind == "mark" and token.value in {"(", "["}:
            index = closing(tokens, index)
        elif token.value == "{":
            if before.value not in {"interface", "struct"}:
                return index
            index = closing(tokens, index)
        index += 1
    return None


def closing(tokens: Sequence[Token], index: int) -> int:
    """Return where the bracket that opens here is closed."""
    depth = 0
    for at in range(index, len(tokens)):
        token = tokens[at]
        if token.kind == "mark":
            depth += (token.value in OPEN) - (token.value in CLOSE)
            if depth == 0:
                return at
    return len(tokens) - 1


def _note_value(source: Source, index: int) -> None:
    """Remember `name = "text"`, `name type = "text"` and `name = call(…)` of the package."""
    tokens = source.tokens
    if tokens[index].value != "=" or index + 1 >= len(tokens) or index < 1:
        return
    name = tokens[index - 1]
    before = tokens[max(index - 2, 0)]
    typed = before.kind == "name" and before.line == name.line
    if typed and before.value not in {"var", "const"}:
        name = before
    if name.kind != "name":
        return
    if tokens[index + 1].kind == "text":
        source.constants[name.value] = tokens[index + 1].value
    else:
        source.errors[name.value] = index + 1
