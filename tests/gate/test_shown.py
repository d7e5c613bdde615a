# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a page shows is compared with what was printed, and a difference is found."""

from __future__ import annotations

import pytest

from tests.docs import console_examples

PRINTED = "one\ntwo\nthree 3\nfour\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["one", "two", "three 3", "four"],
        ["…"],
        ["one", "…", "four"],
        ["…", "three …", "four"],
        ["one", "two", "…"],
        ["…", "two", "…", "four", "…"],
    ],
)
def test_what_was_printed(lines):
    assert console_examples.differs(lines, PRINTED) == ""


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["one"],
        ["two", "…"],
        ["…", "three 3"],
        ["one", "…", "three"],
        ["…", "four", "…", "one", "…"],
        ["one", "three …", "…"],
        ["one", "two", "three 3", "four", "five"],
    ],
)
def test_what_was_not(lines):
    assert console_examples.differs(lines, PRINTED)


def test_commands_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "text\n```console\n$ first 'one'\nout\n…\n$ second\n```\n\n```\n$ not"
        " run\n```\n```console\n$ third\n```\n",
        encoding="utf-8",
    )
    assert console_examples.commands(page) == [
        ("first 'one'", ["out", "…"]),
        ("second", []),
        ("third", []),
    ]
