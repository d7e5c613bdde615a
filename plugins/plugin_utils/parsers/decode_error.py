# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error of a decoder means: a value of another type than its field, or broken YAML. Pure.

Go's encoding/json, json-iterator (kubelets up to 1.22) and sigs.k8s.io/yaml write these texts,
whatever program reads the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2048  # characters of a text that are read
_FIELD = r"(?P<field>[\w.\[\]]{1,160})"
# encoding/json: the field is that of the Go structure, or, as here, its path by names of JSON
_MISMATCH = re.compile(
    r"cannot unmarshal (?P<given>string|number(?: [-\w.+]{1,40})?|bool|array|object) into Go"
    r" (?:struct field " + _FIELD + r"|value) of type (?P<wanted>[\w.*\[\]/]{1,160})"
)
# json-iterator: "CgroupDriver: ReadString: expects \" or n, but found 1, error found in …"
_ITERATOR = re.compile(
    r"(?P<field>\w{1,80}): (?P<reader>Read(?:String|Int\w{0,4}|Uint\w{0,4}|Bool|Float\w{0,4}"
    r"|ArrayCB|Object\w{0,12}|MapCB\w{0,12})|readFieldHash|decode slice|decode map): expects? ?"
    r"(?P<rest>[^\n]{0,60}?), but found (?P<given>\S)"
)
_YAML = re.compile(
    r"yaml: (?:unmarshal errors: )?(?:line (?P<line>\d{1,6}): )?(?P<reason>did not find expected"
    r" [\w' -]{3,40}|mapping values are not allowed in this context|found character that cannot"
    r" start any token|found a tab character[\w ]{0,60}|could not find expected ':'"
    r"|found unexpected end of stream|found unknown escape character"
    r"|control characters are not allowed|mapping key \S{1,120} already defined at line \d{1,6})"
)
_TYPES = (
    (re.compile(r"^\*?(?:string|\w+\.\w*(?:Mode|Policy|Type|Driver|String)\w*)$"), "a text"),
    (re.compile(r"^\*?(?:u?int\d*|float\d*)$"), "a number"),
    (re.compile(r"^\*?bool$"), "true or false"),
    (re.compile(r"^\*?\[\]"), "a list"),
    (re.compile(r"^\*?map\["), "a map of names and values"),
)
_GIVEN = {
    "string": "a text",
    "number": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a map of names and values",
}
_READERS = (
    ("ReadString", "a text"),
    ("ReadBool", "true or false"),
    ("ReadArray", "a list"),
    ("decode slice", "a list"),
    ("ReadInt", "a number"),
    ("ReadUint", "a number"),
    ("ReadFloat", "a number"),
)
_MAP = "a map of names and values"
_CURES = {
    "a text": "put the value in quotes",
    "a number": "write the number without quotes and without a unit",
    "true or false": "write true or false without quotes",
    "a list": "write each value as an item of a list (- value) below the name",
    _MAP: "write names with values below the field, each with the same number of spaces",
}


@dataclass(frozen=True)
class DecodeError:
    """Error of a decoder: what it means, and what is done about it."""

    clause: str
    advice: str


def find(text: str) -> DecodeError | None:
    """Return the error of a decoder in a text, or None."""
    text = text[:LONGEST]
    mismatch = _MISMATCH.search(text)
    if mismatch is not None:
        value = _GIVEN[mismatch.group("given").partition(" ")[0]]
        kind = next((name for form, name in _TYPES if form.match(mismatch.group("wanted"))), _MAP)
        return _of_type(_name(mismatch.group("field") or ""), value, kind)
    iterator = list(_ITERATOR.finditer(text))
    if iterator:
        reader = iterator[-1].group("reader")
        kind = next((name for word, name in _READERS if reader.startswith(word)), _MAP)
        return _of_type(iterator[-1].group("field"), _by_sign(iterator[-1].group("given")), kind)
    return _of_yaml(_YAML.search(text))


def _of_type(field: str, value: str, kind: str) -> DecodeError | None:
    if value == kind:
        return None
    subject = f"the field {field}" if field else "a field"
    clause = f"{subject} of the file has {value} where {kind} has to be"
    return DecodeError(clause, f"in the file that the line names: {_CURES[kind]}")


def _name(field: str) -> str:
    """Return the path of a field without the structure that has it."""
    first, _dot, rest = field.partition(".")
    return rest if rest and first[:1].isupper() else field


def _by_sign(sign: str) -> str:
    """Return the type of a value of JSON by its first character."""
    if sign in "tf":
        return "true or false"
    return {'"': "a text", "[": "a list", "{": _MAP, "n": "nothing"}.get(sign, "a number")


def _of_yaml(match: re.Match[str] | None) -> DecodeError | None:
    if match is None:
        return None
    place = f", near line {match.group('line')}" if match.group("line") else ""
    return DecodeError(
        f"the file is no valid YAML{place}: {match.group('reason')}",
        "look at that line and the one before it: spaces in place of tabs, the same indentation for"
        " the fields of one object, a space behind each colon, quotes around a value with a colon"
        " or a #, and each name once",
    )
