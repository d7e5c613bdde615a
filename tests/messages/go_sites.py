# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sites at which a Go program ends, or returns an error, with the form of their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.messages.go_calls import Call, calls, text_of
from tests.messages.go_source import OPEN, Token, closing

FATAL, PANIC, EXIT, RETURNED, FIELD = "fatal", "panic", "exit", "returned", "field"
NEAR = 5  # lines between a message and the os.Exit that follows it

_ENDS = re.compile(r"(?:Fatal|Exit)(?:f|ln|S|Depth)?")
_PANICS = re.compile(r"(?:Panic|panic)(?:f|ln)?")
_RETURNS = frozenset(("Errorf", "New", "Wrap", "Wrapf", "WithMessage", "WithMessagef", "Error"))
_MAKERS = frozenset(
    ("fmt", "errors", "pkgerrors", "xerrors", "status", "grpcstatus", "cli", "errdefs", "cgerrors")
)
_TOLD = frozenset(
    (
        *("Errorf", "Error", "ErrorS", "Errorln", "Warn", "Warnf", "Info", "Fprintf", "Fprintln"),
        *("Fprint", "Println", "Printf", "Print", "Warningf", "Warning"),
    )
)
_FORMATS = (["fmt", ".", "Sprintf"], ["fmt", ".", "Errorf"], ["errors", ".", "New"])
_OF_TESTS = frozenset(("t", "b", "tb", "os", "flag"))
# Method of package field -> what stands between the path and the detail.
_FIELDS = {
    "Invalid": "Invalid value: %v",
    "TypeInvalid": "Invalid value: %v",
    "Required": "Required value",
    "NotSupported": "Unsupported value: %v: supported values: %v",
    "Forbidden": "Forbidden",
    "Duplicate": "Duplicate value: %v",
    "NotFound": "Not found: %v",
    "TooLong": "Too long: may not be more than %d bytes",
    "TooMany": "Too many: %d: must have at most %d items",
    "InternalError": "Internal error: %v",
}
_DETAIL = {"Invalid": 2, "TypeInvalid": 2, "Required": 1, "Forbidden": 1}


@dataclass(frozen=True)
class Site:
    """Place in the source, and the form of its text.

    nested: whether another error stands in it
    key: the path of a field, if it is one of a configuration
    """

    kind: str
    form: str
    line: int
    nested: bool = False
    key: str = ""


def sites(
    tokens: Sequence[Token], begin: int, end: int, constants: Mapping[str, str]
) -> Iterator[Site]:
    """Yield the sites between two tokens."""
    told: Call | None = None
    paths: dict[str, str] = {}
    here, given = dict(constants), list(_given(tokens, begin, end, constants))
    for call in sorted(calls(tokens, begin, end), key=lambda call: call.begin):
        while given and given[0][0] < call.begin:
            _at_token, name, text = given.pop(0)
            here[name] = text
        _note_path(tokens, call, paths, here)
        if call.name in _TOLD:
            told = call
        if (call.receiver == "os" and call.name == "Exit") or call.name == "FlushAndExit":
            if told is not None and 0 <= call.line - told.line <= NEAR:
                yield _site(EXIT, told, here)
            continue
        kind = _kind(call) or _collected(tokens, call)
        if kind == FIELD:
            yield _field(call, here, paths)
        elif kind:
            yield _site(kind, call, here)


def _given(
    tokens: Sequence[Token], begin: int, end: int, constants: Mapping[str, str]
) -> Iterator[tuple[int, str, str]]:
    """Yield (token, name, text) for each text that a function gives a name."""
    for index in range(begin + 1, min(end, len(tokens) - 4)):
        if tokens[index].value not in {":=", "="} or tokens[index - 1].kind != "name":
            continue
        words = [token.value for token in tokens[index + 1 : index + 4]]
        if tokens[index + 1].kind == "text" or words in _FORMATS:
            last = _end_of_line(tokens, index + 1, end)
            text = text_of(tokens[index + 1 : last], constants)
            yield last - 1, tokens[index - 1].value, text


def told(
    tokens: Sequence[Token], begin: int, end: int, constants: Mapping[str, str]
) -> Iterator[Site]:
    """Yield the texts of a method Error of a type."""
    for call in calls(tokens, begin, end):
        if (call.receiver, call.name) == ("fmt", "Sprintf"):
            yield _site(RETURNED, Call(**{**vars(call), "name": "Errorf"}), constants)


def _end_of_line(tokens: Sequence[Token], begin: int, end: int) -> int:
    """Return where the expression that begins here ends."""
    index = begin
    while index < end:
        token, before = tokens[index], tokens[index - 1]
        if index > begin and token.line > before.line and before.value not in {"+", ",", "("}:
            return index
        if token.kind == "mark" and token.value in OPEN:
            index = closing(tokens, index)
        elif token.value in {";", "{", "}"}:
            return index
        index += 1
    return end


def _collected(tokens: Sequence[Token], call: Call) -> str:
    """Return RETURNED for a text that is added to a list of errors."""
    first = call.begin - 2
    if call.name != "Sprintf" or first < 4 or tokens[first - 1].value != ",":
        return ""
    words = [token.value for token in tokens[first - 4 : first - 1]]
    if words[:2] == ["append", "("] and re.search(r"(?i)err|msg|problem", words[2]):
        return RETURNED
    return ""


def _kind(call: Call) -> str:
    name, receiver = call.name, call.receiver
    if receiver == "field" and name in _FIELDS:
        return FIELD
    if name == "panic" and not receiver:
        return PANIC
    if receiver in _OF_TESTS or not receiver:
        return ""
    if _ENDS.fullmatch(name) and receiver != "cli":
        return FATAL
    if _PANICS.fullmatch(name):
        return PANIC
    if receiver in _MAKERS and (name in _RETURNS or (receiver, name) in _EXITS):
        return RETURNED
    return ""


_EXITS = frozenset((("cli", "Exit"), ("cli", "NewExitError")))


def _site(kind: str, call: Call, constants: Mapping[str, str]) -> Site:
    form, nested = _form(call, constants)
    return Site(kind, form, call.line, nested or _wraps(call))


def _form(call: Call, constants: Mapping[str, str]) -> tuple[str, bool]:
    """Return the text of a call and whether an error stands in it that the text does not show."""
    arguments = list(call.arguments)
    if call.receiver in {"status", "grpcstatus"}:
        arguments = arguments[1:]
    if call.name.startswith(("Wrap", "WithMessage")):
        return text_of(_at(arguments, 1), constants) + ": %v", True
    if call.name.startswith("Fprint"):
        arguments = arguments[1:]
    if call.name in {"ErrorS", "FatalS"} or (call.name == "Error" and _is_error(arguments)):
        return text_of(_at(arguments, 1), constants) + ": %v", True
    if any(_zap(argument) for argument in arguments[1:]):
        nested = any(_value(argument) in {"Error", "NamedError"} for argument in arguments[1:])
        return text_of(_at(arguments, 0), constants), nested
    if call.name.endswith("f"):
        return text_of(_at(arguments, 0), constants), False
    return " ".join(text_of(argument, constants) for argument in arguments), False


def _is_error(arguments: Sequence[tuple[Token, ...]]) -> bool:
    """Return whether these are the arguments of a structured logger: error, text, pairs."""
    if len(arguments) < 2:
        return False
    first, second = arguments[0], arguments[1]
    return first[-1].value in {"err", "nil"} and second[0].kind == "text"


def _zap(argument: tuple[Token, ...]) -> bool:
    return bool(argument) and argument[0].value == "zap"


def _value(argument: tuple[Token, ...]) -> str:
    if len(argument) > 2 and argument[0].value == "zap":
        return argument[2].value
    return ""


def _at(arguments: Sequence[tuple[Token, ...]], index: int) -> tuple[Token, ...]:
    return next(iter(arguments[index : index + 1]), ())


def _wraps(call: Call) -> bool:
    """Return whether one of the arguments is an error."""
    return (
        call.receiver == "()"
        or any(
            argument and re.search(r"err$|Err(?:or)?$|^err", argument[-1].value) is not None
            for argument in call.arguments
        )
        or any(
            argument[-1].value == ")" and any(token.value == "err" for token in argument)
            for argument in call.arguments
            if argument
        )
    )


def _field(call: Call, constants: Mapping[str, str], paths: Mapping[str, str]) -> Site:
    path = _path(_at(call.arguments, 0), constants, paths)
    form = f"{path}: {_FIELDS[call.name]}"
    if call.name in _DETAIL:
        detail = text_of(_at(call.arguments, _DETAIL[call.name]), constants)
        form += f": {detail}"
    return Site(FIELD, form, call.line, False, path)


def _note_path(
    tokens: Sequence[Token], call: Call, paths: dict[str, str], constants: Mapping[str, str]
) -> None:
    """Remember `path := field.NewPath(…)` and `path := other.Child(…)`."""
    if call.name not in {"NewPath", "Child", "Index", "Key"}:
        return
    at = call.begin
    while at > 1 and tokens[at - 1].value == ".":
        at -= 2
    if at > 1 and tokens[at - 1].value in {":=", "="} and tokens[at - 2].kind == "name":
        name = tokens[at - 2].value
        paths[name] = _path(tokens[at : call.end + 1], constants, paths)


def _path(tokens: Sequence[Token], constants: Mapping[str, str], paths: Mapping[str, str]) -> str:
    """Return the path of a field; what is not known of it is %v."""
    if not tokens:
        return "%v"
    first = tokens[0].value
    found = [] if first == "field" else [paths.get(first, "%v")]
    for call in calls(tokens, 0, len(tokens)):
        if call.name in {"NewPath", "Child"}:
            found += [text_of(argument, constants) for argument in call.arguments]
        elif call.name in {"Index", "Key"} and found:
            found[-1] += "[%v]"
    return ".".join(part for part in found if part) or "%v"
