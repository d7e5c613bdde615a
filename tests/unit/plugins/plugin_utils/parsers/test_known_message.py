# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

try:
    from re import _constants, _parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as _constants  # type: ignore[no-redef]
    import sre_parse as _parser  # type: ignore[no-redef]

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import known_message
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.known_message import Row
from tests import measures
from tests.docs import known_messages as page

FILES = known_message.files()
ROWS = [row for rows in FILES.values() for row in rows]
LINES = [line for name in FILES for line in page.examples(name)]
LONGEST_REPEAT = 400
SLOW = 0.05  # seconds of CPU for one pattern over the longest text
BY_ID = {row.id: row for row in ROWS}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_columns(name: str) -> None:
    lines = (known_message.FOLDER / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    assert tuple(lines[0].split("\t")) == known_message.COLUMNS
    assert all(len(line.split("\t")) == len(known_message.COLUMNS) for line in lines[1:])


def test_a_name_is_used_once() -> None:
    names = Counter(row.id for row in ROWS)
    assert [name for name, count in names.items() if count > 1] == []
    assert all(re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name) for name in names)


def test_each_row_has_an_example_and_each_example_a_row() -> None:
    assert {row for row, _place, _text in LINES} == {row.id for row in ROWS}


@pytest.mark.parametrize(("name", "place", "text"), LINES, ids=[line[0] for line in LINES])
def test_a_row_matches_its_own_example(name: str, place: str, text: str) -> None:
    found = known_message.find((place,), text)
    assert found is not None
    assert found.id == name


@pytest.mark.parametrize(("name", "place", "text"), LINES, ids=[line[0] for line in LINES])
def test_no_other_row_of_its_places_matches_an_example(name: str, place: str, text: str) -> None:
    whole = known_message.plain(text)
    rows = known_message._of_places(BY_ID[name].places)
    assert place in BY_ID[name].places or known_message.ANY in BY_ID[name].places
    assert [row.id for row in rows if row.pattern.search(whole)] == [name]


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_row_is_whole(row: Row) -> None:
    assert row.source.startswith("https://")
    assert row.places
    assert "" not in row.places
    for words in (row.cause, row.advice):
        assert 20 <= len(words) <= 900, words
        assert not measures.WORDS.search(words)
        assert words == words.strip(" .")
        for group in re.findall(r"\{([a-z_]{1,20})\}", words):
            assert group in row.pattern.groupindex, group


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_pattern_repeats_within_bounds(row: Row) -> None:
    parsed = _parser.parse(row.pattern.pattern)
    assert all(most <= LONGEST_REPEAT for most in _repeats(parsed))
    assert not row.pattern.search("")


def _repeats(parsed: Any) -> Iterator[int]:
    """Yield how often each part of a pattern may be repeated."""
    if isinstance(parsed, (_parser.SubPattern, list, tuple)):
        items = list(parsed)
        if len(items) == 2 and items[0] in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            yield int(items[1][1])
        for item in items:
            yield from _repeats(item)


def _hostile(row: Row) -> Iterator[str]:
    """Yield long texts that begin as a pattern wants it, again and again."""
    words = re.findall(r"[A-Za-z][A-Za-z .:/-]{2,}", row.pattern.pattern)
    yield from ("a" * 2048, " " * 2048, "/a" * 1024, '"a' * 1024, "a: " * 700, "0." * 1024)
    yield from ((f"{word} " * 2048)[:2048] for word in words[:6])
    yield (" ".join(words) * 2048)[:2048]


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_pattern_takes_little_time(row: Row) -> None:
    for text in _hostile(row):
        begun = time.process_time()
        row.pattern.search(text)
        assert time.process_time() - begun < SLOW, text[:60]


def _row(**fields: Any) -> Row:
    values = {
        "id": "x",
        "places": frozenset(("kubelet",)),
        "pattern": re.compile(r"cannot open (?P<path>\S{1,200})"),
        "since": "",
        "until": "",
        "cause": "The file {path} is not there",
        "advice": "ls -l {path} {other}",
        "source": "https://example.com/1",
    }
    return Row(**{**values, **fields})


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Row]]:
    """Yield the rows of a table that a test fills."""
    made: list[Row] = []
    monkeypatch.setattr(known_message, "files", lambda: {"x": tuple(made)})
    known_message._of_places.cache_clear()
    known_message._find.cache_clear()
    yield made
    known_message._of_places.cache_clear()
    known_message._find.cache_clear()


def test_groups_stand_in_cause_and_advice(rows: list[Row]) -> None:
    rows.append(_row())
    found = known_message.find(("kubelet",), 'err="cannot open /etc/a-b.conf"')
    assert found is None or found.cause == 'The file /etc/a-b.conf" is not there'
    found = known_message.find(("kubelet",), "cannot open /etc/a-b.conf")
    assert found is not None
    assert found.cause == "The file /etc/a-b.conf is not there"
    assert found.advice == "ls -l /etc/a-b.conf {other} (see https://example.com/1)"
    assert found.clause == "the file /etc/a-b.conf is not there"


@pytest.mark.parametrize("value", ["$(reboot)", "-rf", "a;b", "`id`", "a'b", "{other}"])
def test_what_a_shell_would_run_is_not_in_an_advice(rows: list[Row], value: str) -> None:
    rows.append(_row())
    found = known_message.find(("kubelet",), f"cannot open {value}")
    assert found is not None
    assert found.advice.startswith("ls -l PATH {other}")


def test_of_groups_side_by_side_only_one_has_a_value(rows: list[Row]) -> None:
    pattern = re.compile(r"cannot (?:open (?P<path>\S{1,200})|read (?P<other>\S{1,200}))")
    rows.append(_row(pattern=pattern, cause="{path}{other} fails", advice="ls {path}{other}"))
    found = known_message.find(("kubelet",), "cannot read /b")
    assert found is not None
    assert found.cause == "/b fails"
    assert found.advice.startswith("ls /b (")


def test_only_who_says_it_has_the_message(rows: list[Row]) -> None:
    rows.append(_row())
    text = "cannot open /a"
    assert known_message.find(("etcd",), text) is None
    assert known_message.find(("k3s",), text) is not None
    rows[0] = _row(places=frozenset((known_message.ANY,)))
    known_message._of_places.cache_clear()
    known_message._find.cache_clear()
    assert known_message.find(("etcd",), text) is not None


@pytest.mark.parametrize(
    ("release", "is_known"),
    [
        ("v1.19.9", False),
        ("v1.20.0", True),
        ("1.20.0-rc.1", True),
        ("Kubernetes v1.22.17", True),
        ("v1.23.0", False),
        (None, True),
        ("?", True),
    ],
)
def test_a_message_has_a_cause_in_some_releases(
    rows: list[Row], release: str | None, is_known: bool
) -> None:
    rows.append(_row(since="1.20", until="1.22"))
    found = known_message.find(("kubelet",), "cannot open /a", release)
    assert (found is not None) is is_known


@pytest.mark.parametrize(
    ("release", "is_known"), [("1.4.3", True), ("1.4.4", False), ("1.4.3-rc.1", True)]
)
def test_a_patch_release_ends_it(rows: list[Row], release: str, is_known: bool) -> None:
    rows.append(_row(until="1.4.3"))
    found = known_message.find(("kubelet",), "cannot open /a", release)
    assert (found is not None) is is_known


def test_the_row_that_matches_most_counts(rows: list[Row]) -> None:
    rows.append(_row())
    rows.append(_row(id="y", pattern=re.compile("cannot open /a: of the disk")))
    found = known_message.find(("kubelet",), "cannot open /a: of the disk")
    assert found is not None
    assert found.id == "y"
    found = known_message.first(("kubelet",), ["", "nothing", "cannot open /a"])
    assert found is not None
    assert found.id == "x"
    assert known_message.first(("kubelet",), ["nothing"]) is None


def test_quotes_and_spaces_of_a_logger_do_not_count(rows: list[Row]) -> None:
    rows.append(_row(pattern=re.compile('a "b" c d')))
    assert known_message.find(("kubelet",), 'err="a \\\\\\"b\\\\\\" c\\nd"') is not None
    assert known_message.find(("kubelet",), f'{"x" * known_message.LONGEST}a "b" c d') is None
