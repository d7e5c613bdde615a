# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the measures of the code from growing.

A limit may only become smaller. The aim of each is 0, but of conditional expressions (20).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import measures

LIMITS = {
    "loose files": 0,
    "import cycles": 0,
    "lines over 100 columns": 0,
    "conditional expressions per 1,000 statements": 11.2,
    "dense statements": 0,
    "dense expressions": 0,
    "functions of complexity over 10": 0,
    "names that are no noun and no verb": 0,
    "words of the list to replace": 0,
    "words in texts for operators": 0,
    "sections of long sentences": 0,
    "modules without a test file of the same name": 0,
}


@pytest.fixture(scope="module")
def values() -> dict[str, float]:
    return measures.values()


@pytest.mark.parametrize("name", LIMITS)
def test_a_measure_is_within_its_limit(name: str, values: dict[str, float]) -> None:
    assert values[name] <= LIMITS[name], f"{name}: `python3 -m tests.measures` prints the values"


def test_every_measure_has_a_limit(values: dict[str, float]) -> None:
    assert set(values) == set(LIMITS)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("x = 1 if a else 2", 0),
        ("x = (1 if a else 2, 1 if b else 2)", 1),
        ("x = 1 if a else 2 if b else 3", 2),
    ],
)
def test_dense_statements_are_counted(tmp_path: Path, source: str, count: int) -> None:
    path = tmp_path / "source.py"
    path.write_text(source, encoding="utf-8")
    assert len(list(measures.dense_statements([path]))) == count


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("a and b and c", 0),
        ("a and b and c and d", 1),
        ("[x for x in y if x]", 0),
        ("[x for x in y if x if z]", 1),
        ("{x for y in z for x in y if x}", 1),
    ],
)
def test_dense_expressions_are_counted(tmp_path: Path, source: str, count: int) -> None:
    path = tmp_path / "source.py"
    path.write_text(source, encoding="utf-8")
    assert len(list(measures.dense_expressions([path]))) == count


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("for pod in pods:\n    found = pod", ["found"]),
        ("def told(one):\n    return one", ["told", "one"]),
        ("class Pod:\n    held: bool = False\n    def held_by(self): ...", []),
        ("try:\n    pass\nexcept OSError as why:\n    pass", ["why"]),
        ("[one for one in pods]", ["one"]),
    ],
)
def test_vague_names_are_found(tmp_path: Path, source: str, names: list[str]) -> None:
    path = tmp_path / "source.py"
    path.write_text(source, encoding="utf-8")
    assert sorted(place.text for place in measures.vague_names([path])) == sorted(names)


def test_complexity_counts_conditional_expressions_and_operands() -> None:
    source = "def f(a, b):\n    if a and b:\n        return 1 if a else 2\n"
    assert measures.complexity(ast.parse(source).body[0]) == 4


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert measures.cycles(graph) == [["b", "c"]]


def test_words_and_wide_lines_are_found(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("Nobody mends it.\n" + "x" * 101 + "\n", encoding="utf-8")
    assert [place.text for place in measures.words([path])] == ["Nobody", "mends"]
    assert [place.line for place in measures.wide_lines([path])] == [2]


@pytest.mark.parametrize(
    "source",
    [
        "It ends without\na word.",
        "It ends without a\n  word.",
        "x = (\n    'it ends without'\n    ' a word'\n)",
        'x = (\n    f"it ends {y} without "\n    f"a word"\n)',
        "# It ends without a\n# word.",
    ],
    ids=["prose", "list", "string", "format", "comment"],
)
def test_words_on_two_lines_are_found(tmp_path: Path, source: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"First.\n{source}\n", encoding="utf-8")
    (place,) = measures.words([path])
    assert place.text == "without a word"
    line = path.read_text(encoding="utf-8").splitlines()[place.line - 1]
    assert "without" in line


def test_words_of_two_paragraphs_are_not_one_phrase(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("It was told\n\nby then.\n", encoding="utf-8")
    assert list(measures.words([path])) == []


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.py", 'x = "told"\n', []),
        (
            "a.py",
            'def f():\n    """It tells."""\n    told = "is " + f"{f} was told"\n',
            [(3, "told")],
        ),
        ("a.py", 'x = (\n    "of"\n    " late, it"\n)\n', [(2, "of late")]),
        ("a.tsv", "id\tcause\tpattern\tadvice\nx\ta\tbeside\tb\ny\ta\tp\ttells\n", [(3, "tells")]),
        ("a.md", "```\nbeside\n```\nIt stands\nbeside.\n", [(5, "beside")]),
    ],
)
def test_words_of_texts_for_operators_are_found(
    tmp_path: Path, name: str, text: str, found: list[tuple[int, str]]
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    places = measures.said_words([path])
    assert [(place.line, place.text) for place in places] == found


def test_the_example_of_a_fault_is_no_prose_and_the_lines_below_it_keep_their_numbers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "page.md"
    begin, end = "<!-- generated: begin example -->", "<!-- generated: end -->"
    path.write_text(f"{begin}\npod nobody\n{end}\nNobody\n{end}\n", encoding="utf-8")
    assert [(place.line, place.text) for place in measures.words([path])] == [(4, "Nobody")]


@pytest.mark.parametrize(
    ("text", "average"),
    [
        ("", 0),
        ("One two three.", 0),  # a label
        ("One: two three: four five six.", 6),
        ("One two three four. One two three four five six.", 5),
        ("One two three four:\n\n- one two three four five six\n  seven eight\n", 6),
        ("One two three four.\n\n1. Do:\n\n   ```\n   a b c d e f g h\n   ```\n", 4),
        ("# A b c d e f\n\n| a b c d e f g |\n\nOne two three four.", 4),
    ],
)
def test_what_counts_as_a_sentence(text: str, average: float) -> None:
    assert measures.words_a_sentence(text) == average


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("# A\n\n{ok}\n\n## B\n\n{long}\n", [5]),
        ("# A\n\n```\n# a comment\n```\n\n{long}\n", [1]),
        ("{long}\n\n# A\n\n- {ok}\n- {ok}\n", [1]),
        ("# A\n\n<!-- generated: begin x -->\n{long}\n<!-- generated: end -->\n\n{ok}\n", []),
        ("<!-- rows: begin -->\n{long}\n<!-- rows: end -->\n# A\n{long}\n# B\n{ok}\n", [4]),
    ],
)
def test_sections_of_long_sentences_are_found(tmp_path: Path, page: str, lines: list[int]) -> None:
    path = tmp_path / "page.md"
    ok, long = ("word " * count + "end." for count in (19, 20))
    path.write_text(page.format(ok=ok, long=long), encoding="utf-8")
    assert [place.line for place in measures.long_sections([path])] == lines


def test_pages_written_by_hand_are_measured() -> None:
    names = {path.relative_to(measures.ROOT).as_posix() for path in measures.written_pages()}
    assert {"README.md", "docs/faults/KM101.md", "roles/open_files/README.md"} <= names
    assert not {"docs/faults.md", "docs/known-messages.md", "docs/zh-CN/faq.md"} & names


def test_english_words_are_looked_for_in_no_chinese_page() -> None:
    names = {path.relative_to(measures.ROOT).as_posix() for path in measures.prose()}
    assert {"README.md", "docs/quickstart.md"} <= names
    assert not [name for name in names if "zh-CN" in name]


@pytest.mark.parametrize(
    ("test", "is_missing"),
    [
        ("steps/test_base.py", False),
        ("steps/test_base_kill.py", False),
        ("steps/base/test_kill.py", False),
        ("steps/test_baseline.py", True),
        ("test_base.py", True),
    ],
)
def test_a_module_without_a_test_file_is_found(tmp_path: Path, test: str, is_missing: bool) -> None:
    plugins, tests = tmp_path / "plugins", tmp_path / "tests"
    for path in (
        plugins / "steps" / "base.py",
        plugins / "steps" / "__init__.py",
        plugins / "doc_fragments" / "attributes.py",
        tests / test,
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = measures.untested_modules(plugins, tests)
    assert found == ([plugins / "steps" / "base.py"] if is_missing else [])
