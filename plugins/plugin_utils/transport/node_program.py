# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module_utils as one program that a node's Python reads on its standard input.

The sources are sent compressed with an importer that keeps them in memory under their real names:
no file on the node, and a source is unpacked and compiled only when it is imported. The answer is
one line of ASCII JSON after a mark with a nonce, so that the output of a login script is not taken
for it.
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
# Relative imports, as node code writes them. A unit test compares this expression with ast.
IMPORT = re.compile(
    r"^[ \t]*from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(\((?:[^)#]|#[^\n]*)*\)|[^\n#]*)", re.M
)
# What documents a source: a string that stands alone, and comments. Other strings are there so that
# none is taken apart. A unit test compares what is left with the source.
_DOC_BLOCK = re.compile(
    r'^([ \t]*)r?"""(?:[^"\\]|\\.|"(?!""))*"""$'
    r'|("""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')'
    r"|[ \t]*#[^\n]*",
    re.M | re.S,
)

# Read by any Python that the node has: nothing here may be a syntax error for an old one.
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
        package = not cls.sources[name]
        return _frozen_importlib.ModuleSpec(name, cls, origin=name, is_package=package)

    @staticmethod
    def create_module(spec):
        return None

    @classmethod
    def exec_module(cls, module):
        packed = cls.sources[module.__name__]
        if packed:
            code = compile(zlib.decompress(packed), module.__name__, "exec", 0, True)
            exec(code, module.__dict__)


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
    """Return the program that calls `entry` with params and prints its answer after the mark.

    entry: "plugins.module_utils.x:function".
    """
    head = HEAD % {"mark": mark, "entry": PACKAGE + entry, "params": ascii(_plain(params))}
    return head.encode("ascii") + body(entry, ship)


@functools.cache
def body(entry: str, ship: tuple[str, ...]) -> bytes:
    """Return the part that every call shares.

    Built once in the controller's first process, which its workers are forked from.
    """
    sources = {
        name: _packed(source) for name, source in _sources(entry.partition(":")[0], ship).items()
    }
    packed = binascii.b2a_base64(marshal.dumps(sources, 2), newline=False).decode("ascii")
    return (BODY % {"sources": packed}).encode("ascii")


def _packed(source: str | None) -> bytes:
    """Return a compressed source; empty for a package."""
    if not source:
        return b""
    return zlib.compress(_undocumented(source).encode("utf-8"), 9)


def _undocumented(source: str) -> str:
    """Return a source without docstrings and comments, a quarter of it, which a node compiles."""
    return _DOC_BLOCK.sub(_kept, source)


def _kept(match: re.Match[str]) -> str:
    indent, text = match.groups()
    if text:
        return text
    if indent is not None:
        return indent + '""'
    return ""


def mark() -> str:
    """Return a word that only the answer of this call begins with."""
    return "KUBEMEND-" + secrets.token_hex(16)


def _sources(entry: str, ship: tuple[str, ...]) -> dict[str, str | None]:
    """Return {full module name: source} of the entry, the shipped packages and all they import.

    The source of a package is None.
    """
    sources: dict[str, str | None] = {}
    waiting = [entry]
    for package in ship:
        folder = COLLECTION.joinpath(*package.split("."))
        waiting += [f"{package}.{path.stem}" for path in sorted(folder.glob("[!_]*.py"))]
    while waiting:
        name = waiting.pop()
        path = COLLECTION.joinpath(*name.split(".")).with_suffix(".py")
        if PACKAGE + name in sources or not path.is_file():
            continue
        sources[PACKAGE + name] = source = path.read_text(encoding="utf-8")
        waiting += _imported(name, source)
    for name in list(sources):
        parts = name.split(".")
        sources.update((".".join(parts[:count]), None) for count in range(1, len(parts)))
    return sources


def _imported(name: str, source: str) -> list[str]:
    """Return the modules that node code imports, with each imported name, which may be a module."""
    imported = []
    for dots, tail, names in IMPORT.findall(source):
        parts = name.split(".")[: -len(dots)]
        if tail:
            parts += tail.split(".")
        module = ".".join(parts)
        imported.append(module)
        plain = re.sub(r"#[^\n]*", "", names)
        for part in plain.strip("()").split(","):
            if part.strip():
                imported.append(f"{module}.{part.split()[0]}")
    return imported


def _plain(value: Any) -> Any:
    """Return plain JSON types only: Ansible's own string classes would not survive as a literal."""
    return json.loads(json.dumps(value))
