# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of docs/schema/evidence-1.json about the data of collectors, by their types."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SCALARS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
}
RECORD = {"$ref": "#/$defs/record"}
WIDTH = 96
DATA = "data"  # what the names of generated definitions begin with


class Definitions:
    """The definitions of dataclasses, collected while their fields are described."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def of(self, hint: Any) -> dict[str, Any]:
        """Describe a type of evidence."""
        arguments = typing.get_args(hint)
        origin = typing.get_origin(hint)
        if hint in SCALARS:
            return {"type": SCALARS[hint]}
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if origin is tuple and arguments[-1] is ...:
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is tuple:
            return {
                "type": "array",
                "prefixItems": [self.of(argument) for argument in arguments],
                "minItems": len(arguments),
                "maxItems": len(arguments),
            }
        if origin is Mapping:
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        return {"$ref": f"#/$defs/{self._dataclass(hint)}"}

    def _union(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if all(argument in SCALARS for argument in arguments):
            return {"type": [SCALARS[argument] for argument in arguments]}
        return {"anyOf": [self.of(argument) for argument in arguments]}

    def _dataclass(self, kind: Any) -> str:
        """Define a dataclass, and return the name of its definition."""
        from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode

        name = f"{DATA}.{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
        if name not in self.found:
            self.found[name] = {}  # a unit needs units
            hints = decode.hints(kind)
            self.found[name] = {
                "description": inspect.getdoc(kind),
                "type": "object",
                "properties": {
                    decode.key_of(entry): self.of(hints[entry.name])
                    for entry in dataclasses.fields(kind)
                },
            }
        return name


def page(path: Path) -> str:
    """Return the schema with the data of all collectors."""
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
        registry,
    )

    schema = json.loads(path.read_text(encoding="utf-8"))
    definitions = Definitions()
    schema["properties"]["collectors"]["properties"] = {
        name: {
            "allOf": [
                RECORD,
                {"properties": {"data": {"anyOf": [definitions.of(kind), {"type": "null"}]}}},
            ]
        }
        for kind, name in registry.COLLECTORS.items()
    }
    written = {
        name: text for name, text in schema["$defs"].items() if not name.startswith(f"{DATA}.")
    }
    schema["$defs"] = {**written, **dict(sorted(definitions.found.items()))}
    return render(schema, "") + "\n"


def render(value: Any, indent: str) -> str:
    """Write JSON as text, in one line what fits into one."""
    line = json.dumps(value)
    if len(indent) + len(line) < WIDTH or not isinstance(value, dict | list):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        parts = [render(item, deeper) for item in value]
        return "[\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}]"
    parts = [f"{json.dumps(key)}: {render(item, deeper)}" for key, item in value.items()]
    return "{\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}}}"
