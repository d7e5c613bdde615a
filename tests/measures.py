# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how dense and how tangled the code is: `python3 -m tests.measures` prints each value."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ROOT / "plugins"
TESTS = ROOT / "tests" / "unit" / "plugins"
PACKAGE = "ansible_collections.kubemend.remediation.plugins"
MAX_COLUMNS = 100
MAX_COMPLEXITY = 10
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.comprehension,
    ast.Assert,
    ast.With,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Words that readers whose first language is not English do not know; the glossary has better ones.
# "nobody" alone in quotes is the user of that name.
# Between two words may be the end of a line: of prose, of a comment, or of a part of a string.
GAP = r"(?:[ \t]*[\"']?[ \t]*\n[ \t]*(?:#+[ \t]*)?(?:[a-z]?[\"'])?[ \t]*|[ \t]+)"
WORDS = re.compile(
    (
        r"\b(mend(?:s|ed|ing)?|(?<!\")nobody(?!\")|somebody|whoever|anew|of ours|told apart"
        r"|to be had|put right|brought back|ended well|last words|slips?|without a word|told by)\b"
    ).replace(" ", GAP),
    re.IGNORECASE,
)
# Words that texts for operators do not use; names in code and docstrings may.
SAID = re.compile(
    (
        r"\b(beside|told|tells|of late|br(?:ings?|ought) back|(?<!\|\s)a person|slips?"
        r"|without a word)\b"
    ).replace(" ", r"\s+"),
    re.IGNORECASE,
)
QUOTED = re.compile(r"^```.*?^```|\{[{%].*?[}%]\}|<[a-z][^<>]*>", re.DOTALL | re.MULTILINE)
# The diaries of developers; generated of tables, which are measured themselves, and of tests.
UNSAID = ("docs/decisions/", "docs/dev/", "docs/known-messages", "docs/verification.md")
KNOWN = "plugins/plugin_utils/parsers/known_messages/*.tsv"
SAID_COLUMNS = ("cause", "advice")  # the others quote programs
EXAMPLE = re.compile(r"<!-- generated: begin example -->\n.*?<!-- generated: end -->", re.DOTALL)
WORDS_A_SENTENCE = 20  # on average below a heading; a sentence of three words and less is a label
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
# A block of commands, a row of a table, a heading, the mark of an item: no sentences.
NO_PROSE = re.compile(r"^ *```.*?^ *```$|^[|#][^\n]*$|^ *(?:[-*]|\d+\.) ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^<!-- (\w+): begin.*?^<!-- \1: end -->$", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
GENERATED = "<!-- Generated from"  # in a page that no one writes by hand
HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
# What checks of English words leave out, for git: the Chinese pages, in this one place.
NO_ENGLISH = (":(exclude)docs/zh-CN", ":(exclude)README.zh-CN.md")

# Pronouns, participles and question words, which say nothing of a value. Fields of classes keep
# the names of the documents that they are read from.
VAGUE_NAMES = re.compile(
    r"asked|both|found|given|held|how|its|known|left|made|mine|needed|of|ones?|others|ours|own"
    r"|said|seen|taken|theirs|told|wanted|what|where|which|whose|who|why"
)


@dataclass(frozen=True)
class Place:
    """One place that a measure counts."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def sources(*patterns: str) -> list[Path]:
    """List the files of the checkout that match a pattern of git, without fixtures."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in done.stdout.splitlines() if not name.startswith("tests/fixtures/")]
    return [ROOT / name for name in sorted(set(names)) if (ROOT / name).is_file()]


def complexity(function: ast.AST) -> int:
    """Count the branches of a function, conditional expressions and boolean operands included."""
    nodes = list(ast.walk(function))
    operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + operands + sum(isinstance(node, BRANCHES) for node in nodes)


def wide_lines(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each line over 100 columns."""
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > MAX_COLUMNS:
                yield Place(path, number, f"{len(line)} columns")


def prose() -> list[Path]:
    """List the files whose English is measured."""
    folders = ("plugins", "roles", "playbooks", "docs", "examples", ".github", ":(glob)*.md")
    suffixes = (".py", ".yml", ".md", ".j2", ".js")
    return [path for path in sources(*folders, *NO_ENGLISH) if path.suffix in suffixes]


def words(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each word that the glossary replaces; the example of a fault quotes a cluster."""
    for path in paths:
        text = EXAMPLE.sub(_blank, path.read_text(encoding="utf-8"))
        for match in WORDS.finditer(text):
            yield Place(path, text.count("\n", 0, match.start()) + 1, re.sub(GAP, " ", match[0]))


def said_words(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each word of texts for operators that SAID does not allow."""
    for path in paths:
        for line, text in _said(path):
            for match in SAID.finditer(text):
                at = line + text.count("\n", 0, match.start())
                yield Place(path, at, " ".join(match[0].split()))


def said_paths() -> list[Path]:
    """List the files that have texts for operators."""
    pages = [path for path in prose() if not path.relative_to(ROOT).as_posix().startswith(UNSAID)]
    return pages + sources(KNOWN)


def _said(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (first line, text) of each text for operators in a file."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _said_strings(ast.parse(content))
    elif path.suffix == ".tsv":
        lines = content.splitlines()
        columns = [lines[0].split("\t").index(name) for name in SAID_COLUMNS]
        for number, row in enumerate(lines[1:], 2):
            cells = row.split("\t")
            yield number, "\t".join(cells[column] for column in columns)
    else:
        yield 1, QUOTED.sub(_blank, EXAMPLE.sub(_blank, content))


def _said_strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings that are no docstring and more than one word."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
        and isinstance(node.body[0] if node.body else None, ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for node in constants:
        if isinstance(node.value, str) and " " in node.value and id(node) not in docstrings:
            yield node.lineno, node.value


def written_pages() -> list[Path]:
    """List the pages for operators and contributors that are written by hand."""
    pages = [path for path in said_paths() if path.suffix == ".md"]
    return [path for path in pages if GENERATED not in path.read_text(encoding="utf-8")]


def long_sections(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each section of a page whose sentences are too long, without generated blocks."""
    for path in paths:
        text = COMMANDS.sub(_blank, BLOCK.sub(_blank, path.read_text(encoding="utf-8")))
        starts = [0, *(match.start() for match in HEADING.finditer(text)), len(text)]
        for start, end in pairwise(starts):
            average = words_a_sentence(text[start:end])
            if average > WORDS_A_SENTENCE:
                line = text.count("\n", 0, start) + 1
                yield Place(path, line, f"{average:.1f} words a sentence")


def words_a_sentence(text: str) -> float:
    """Return the average number of words of the sentences in a text."""
    prose = NO_PROSE.sub("\n\n", text)
    lengths = [len(sentence.split()) for sentence in SENTENCE_END.split(prose)]
    lengths = [length for length in lengths if length > 3]
    return sum(lengths) / max(len(lengths), 1)


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _nodes(paths: Iterable[Path]) -> Iterator[tuple[Path, ast.AST]]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path, node


def _conditionals(node: ast.AST) -> int:
    return sum(isinstance(child, ast.IfExp) for child in ast.walk(node))


def dense_statements(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each simple statement with two or more conditional expressions, and nested ones."""
    for path, node in _nodes(paths):
        simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
        if simple and _conditionals(node) > 1:
            yield Place(path, node.lineno, "two conditional expressions in one statement")
        if isinstance(node, ast.IfExp) and _conditionals(node) > 1:
            yield Place(path, node.lineno, "nested conditional expression")


def dense_expressions(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield comprehensions of three or more clauses and boolean expressions of four operands."""
    for path, node in _nodes(paths):
        if isinstance(node, ast.BoolOp) and len(node.values) > 3:
            yield Place(path, node.lineno, "boolean expression with four operands")
        if isinstance(node, COMPREHENSIONS):
            clauses = sum(1 + len(generator.ifs) for generator in node.generators)
            if clauses > 2:
                yield Place(path, node.lineno, "comprehension with three clauses")


def vague_names(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each variable, argument and function whose name is no noun and no verb."""
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        fields = {id(field) for field in _fields(tree)}
        for node in ast.walk(tree):
            name = _bound_name(node)
            if name and VAGUE_NAMES.fullmatch(name) and id(node) not in fields:
                yield Place(path, node.lineno, name)


def _fields(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign):
                    yield statement.target


def _bound_name(node: ast.AST) -> str | None:
    """Return the name that a node gives to a value or a function."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, (*FUNCTIONS, ast.ExceptHandler)) else None


def complex_functions(paths: Iterable[Path]) -> Iterator[Place]:
    """Yield each function whose complexity is over 10."""
    for path, node in _nodes(paths):
        if isinstance(node, FUNCTIONS) and complexity(node) > MAX_COMPLEXITY:
            yield Place(path, node.lineno, f"{node.name}: complexity {complexity(node)}")


def conditional_share(paths: Iterable[Path]) -> float:
    """Return the number of conditional expressions per 1,000 statements."""
    nodes = [node for _path, node in _nodes(paths)]
    statements = sum(isinstance(node, ast.stmt) for node in nodes)
    return 1000 * sum(isinstance(node, ast.IfExp) for node in nodes) / statements


def loose_files() -> list[Path]:
    """List the modules of module_utils and plugin_utils that are in no package."""
    folders = (PLUGINS / "module_utils", PLUGINS / "plugin_utils")
    return [
        path for folder in folders for path in folder.glob("*.py") if path.name != "__init__.py"
    ]


def untested_modules(plugins: Path = PLUGINS, tests: Path = TESTS) -> list[Path]:
    """List the modules whose name no test file or folder of the mirrored tree has.

    Modules that hold only constants or data classes count; __init__.py and doc_fragments do not.
    """
    return [
        path
        for path in sorted(plugins.rglob("*.py"))
        if _needs_test(path.relative_to(plugins))
        and not _has_test(path.relative_to(plugins), tests)
    ]


def _needs_test(module: Path) -> bool:
    return module.name != "__init__.py" and module.parts[0] != "doc_fragments"


def _has_test(module: Path, tests: Path) -> bool:
    """Return whether test_<name>.py, test_<name>_*.py or the folder <name> exists."""
    folder, name = tests / module.parent, module.stem
    if (folder / name).is_dir() or (folder / f"test_{name}.py").is_file():
        return True
    return any(folder.glob(f"test_{name}_*.py"))


def imports() -> dict[str, set[str]]:
    """Map each module of the plugins to the modules of the plugins that it imports."""
    paths = {_name(path): path for path in sources("plugins/*.py")}
    return {name: _imported(name, path, set(paths)) for name, path in paths.items()}


def _name(path: Path) -> str:
    parts = path.relative_to(PLUGINS).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(name: str, path: Path, known: set[str]) -> set[str]:
    """Return what a module imports, deferred imports included."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    targets = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = ".".join([*base, *(node.module.split(".") if node.module else ())])
            for alias in node.names:
                full = f"{module}.{alias.name}"
                targets.add(full if full in known else module)
    return (targets & known) - {name}


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """List the groups of modules of which each imports, over others, each other one."""
    reach = {name: _reachable(graph, name) for name in graph}
    groups = set()
    for name in graph:
        if name in reach[name]:
            groups.add(frozenset(other for other in reach[name] if name in reach[other]))
    return sorted(sorted(group) for group in groups)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def values() -> dict[str, float]:
    """Return every measure by its name."""
    plugins = sources("plugins/*.py")
    return {
        "loose files": len(loose_files()),
        "import cycles": len(cycles(imports())),
        "lines over 100 columns": len(list(wide_lines([*plugins, *sources("tests/*.py")]))),
        "conditional expressions per 1,000 statements": round(conditional_share(plugins), 1),
        "dense statements": len(list(dense_statements(plugins))),
        "dense expressions": len(list(dense_expressions(plugins))),
        "functions of complexity over 10": len(list(complex_functions(plugins))),
        "names that are no noun and no verb": len(list(vague_names(plugins))),
        "words of the list to replace": len(list(words(prose()))),
        "words in texts for operators": len(list(said_words(said_paths()))),
        "sections of long sentences": len(list(long_sections(written_pages()))),
        "modules without a test file of the same name": len(untested_modules()),
    }


if __name__ == "__main__":
    for name, value in values().items():
        print(f"{name}: {value}")
