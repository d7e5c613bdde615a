# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The expression that finds the imports of node code must agree with Python's own parser."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

MODULE_UTILS = node_program.COLLECTION / "plugins" / "module_utils"


def module_name(path: Path) -> str:
    """plugins.module_utils.x.y of a file."""
    return ".".join(path.relative_to(node_program.COLLECTION).with_suffix("").parts)


NODE_MODULES = [module_name(path) for path in sorted(MODULE_UTILS.rglob("[!_]*.py"))]


def imported_according_to_ast(name: str, source: str) -> set[str]:
    """Return the modules, and the names that may be modules, of all relative imports."""
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = name.split(".")[: -node.level]
            module = ".".join([*parts, node.module] if node.module else parts)
            imported.add(module)
            imported.update(f"{module}.{alias.name}" for alias in node.names)
    return imported


def test_node_modules_are_found() -> None:
    assert len(NODE_MODULES) > 50
    assert "plugins.module_utils.collectors.runner" in NODE_MODULES


@pytest.mark.parametrize("name", NODE_MODULES)
def test_imports_found_by_expression_equal_those_of_ast(name: str) -> None:
    path = node_program.COLLECTION.joinpath(*name.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    assert set(node_program._imported(name, source)) == imported_according_to_ast(name, source)


def tree_without_docstrings(source: str) -> str:
    """Return the tree of a source in which each docstring is empty."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Expr(ast.Constant(""))
    return ast.dump(tree)


@pytest.mark.parametrize("name", NODE_MODULES)
def test_a_module_is_the_same_without_its_documentation(name: str) -> None:
    path = node_program.COLLECTION.joinpath(*name.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    sent = node_program._undocumented(source)
    assert tree_without_docstrings(sent) == tree_without_docstrings(source)
    assert "SPDX-License-Identifier" not in sent


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ('x = "# no comment"  # one\n', 'x = "# no comment"\n'),
        ("x = '\"#'  # one\n# two\n", "x = '\"#'\n\n"),
        ('x = b"\\"#"\n', 'x = b"\\"#"\n'),
        ('def f():\n    """Do."""\n', 'def f():\n    ""\n'),
        ('class A:\n    r"""Be "a" \\d\n\n    # b\n    """\n', 'class A:\n    ""\n'),
        ('x = """a\n# b\n"""\n', 'x = """a\n# b\n"""\n'),
    ],
)
def test_forms_of_documentation(text: str, sent: str) -> None:
    assert node_program._undocumented(text) == sent


@pytest.mark.parametrize("name", NODE_MODULES)
def test_node_module_imports_no_other_part_of_the_collection(name: str) -> None:
    """An absolute import of the collection would not be sent to the node."""
    path = node_program.COLLECTION.joinpath(*name.split(".")).with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            assert not (node.module or "").startswith("ansible_collections")
        if isinstance(node, ast.Import):
            assert not [item.name for item in node.names if item.name.startswith("ansible_")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from . import a, b\n", {"p.q", "p.q.a", "p.q.b"}),
        ("from .x import y  # noqa\n", {"p.q.x", "p.q.x.y"}),
        ("from ..x import (\n    y,\n    z as w,\n)\n", {"p.x", "p.x.y", "p.x.z"}),
        ("from .x import (  # a (b) c\n    y,\n)\n", {"p.q.x", "p.q.x.y"}),
        ("def f():\n    from .x.y import z\n", {"p.q.x.y", "p.q.x.y.z"}),
        ("from os import path\nimport json\n", set()),
    ],
)
def test_forms_of_relative_imports(text: str, expected: set[str]) -> None:
    assert set(node_program._imported("p.q.r", text)) == expected
    assert imported_according_to_ast("p.q.r", text) == expected
