# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module_utils as one program that a node's Python reads on its standard input.

The sources travel compressed behind an importer that keeps them in memory under their real names:
no file on the node, and a source is unpacked and compiled only when it is imported. The answer is
one line of ASCII JSON behind a mark with a nonce, so that whatever a login script prints is not
taken for it.
"""

from __future__ import annotations

import binascii
import functools
import json
import marshal
import re
import secrets
import zlib
from pathlib import Path
from typing import Any

COLLECTION = Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections.kubemend.remediation."
# Relative imports, as node code writes them. tests/unit holds this expression and ast together.
IMPORT = re.compile(r"^[ \t]*from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)", re.M)

# Read by whatever Python the node has: nothing here may be a syntax error for an old one.
HEAD = """import sys
_mark, _entry, _params = %(mark)r, %(entry)r, %(params)s
if sys.version_info < (3, 6):
    sys.stdout.write("\\n" + _mark + ' {"python": "%%d.%%d"}\\n' %% sys.version_info[:2])
    sys.exit(0)
"""
BODY = """
import binascii, marshal, os, zlib
import _frozen_importlib


class _Importer:
    sources = marshal.loads(binascii.a2b_base64(b"%(sources)s"))

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.sources:
            return None
        return _frozen_importlib.ModuleSpec(name, cls, origin=name, is_package=not cls.sources[name])

    @staticmethod
    def create_module(spec):
        return None

    @classmethod
    def exec_module(cls, module):
        packed = cls.sources[module.__name__]
        if packed:
            exec(compile(zlib.decompress(packed), module.__name__, "exec", 0, True), module.__dict__)


def _answer():
    try:
        module, function = _entry.split(":")
        answer = getattr(__import__(module, fromlist=[function]), function)(_params)
        if not isinstance(answer, str):
            import json
            answer = json.dumps(answer)
        return answer
    except Exception as error:
        import json
        return json.dumps({"failed": "%%s: %%s" %% (type(error).__name__, str(error)[:300])})


sys.meta_path.insert(0, _Importer)
sys.stdout.write("\\n" + _mark + " " + _answer() + "\\n")
sys.stdout.flush()
os._exit(0)
"""


def build(entry: str, ship: tuple[str, ...], params: dict[str, Any], mark: str) -> bytes:
    """The program that calls `entry` ("plugins.module_utils.x:function") with params and prints
    its answer behind mark.
    """
    head = HEAD % {"mark": mark, "entry": PACKAGE + entry, "params": ascii(_plain(params))}
    return head.encode("ascii") + body(entry, ship)


@functools.cache
def body(entry: str, ship: tuple[str, ...]) -> bytes:
    """The part that every call shares.

    Made once in the controller's first process, which its workers are forked from.
    """
    sources = {
        name: zlib.compress(source.encode("utf-8"), 9) if source else b""
        for name, source in _sources(entry.partition(":")[0], ship).items()
    }
    packed = binascii.b2a_base64(marshal.dumps(sources, 2), newline=False).decode("ascii")
    return (BODY % {"sources": packed}).encode("ascii")


def mark() -> str:
    """A word that nothing but this call's answer begins with."""
    return "KUBEMEND-" + secrets.token_hex(16)


def _sources(entry: str, ship: tuple[str, ...]) -> dict[str, str | None]:
    """Full module name -> source (None for a package) of the entry, of what is shipped with it,
    and of all they import.
    """
    found: dict[str, str | None] = {}
    waiting = [entry]
    for pattern in ship:
        folder = COLLECTION.joinpath(*pattern.split("."))
        waiting += [f"{pattern}.{path.stem}" for path in sorted(folder.glob("[!_]*.py"))]
    while waiting:
        name = waiting.pop()
        path = COLLECTION.joinpath(*name.split(".")).with_suffix(".py")
        if PACKAGE + name in found or not path.is_file():
            continue
        found[PACKAGE + name] = source = path.read_text(encoding="utf-8")
        waiting += _imported(name, source)
    for name in list(found):
        parts = name.split(".")
        found.update((".".join(parts[:count]), None) for count in range(1, len(parts)))
    return found


def _imported(name: str, source: str) -> list[str]:
    """The modules that a module of node code imports, and each name that may be a module of a
    package.
    """
    found = []
    for dots, tail, names in IMPORT.findall(source):
        parts = name.split(".")[: -len(dots)] + (tail.split(".") if tail else [])
        module = ".".join(parts)
        found.append(module)
        found += [
            f"{module}.{part.split()[0]}" for part in names.strip("()").split(",") if part.strip()
        ]
    return found


def _plain(value: Any) -> Any:
    """Plain JSON types only: Ansible's own string classes would not survive as a literal."""
    return json.loads(json.dumps(value))
