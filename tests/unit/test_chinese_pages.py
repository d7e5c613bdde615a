# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Chinese page has the structure of its English page, and a change of one alone is named."""

from __future__ import annotations

import pytest

from tests.docs import ROOT, chinese, page_structure

PAGES = chinese.english_pages()
QUICKSTART = "docs/quickstart.md"


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_chinese_page_has_the_structure_of_its_english_page(page: str) -> None:
    found = page_structure.differences(page, read(page), read(chinese.counterpart(page)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_a_chinese_page_leads_to_its_english_page(page: str) -> None:
    lines = read(chinese.counterpart(page)).splitlines()
    assert lines[1:3] == ["", chinese.switch(page)]


def test_the_readme_leads_to_the_chinese_one() -> None:
    assert read("README.md").splitlines()[1:3] == ["", "[中文](README.zh-CN.md)"]


def test_every_chinese_page_is_that_of_an_english_page() -> None:
    pages = [*ROOT.glob("*.zh-CN.md"), *(ROOT / chinese.FOLDER).rglob("*.md")]
    names = {page.relative_to(ROOT).as_posix() for page in pages}
    assert names == set(map(chinese.counterpart, PAGES))


@pytest.mark.parametrize(
    ("old", "new", "heading"),
    [
        ("$ apt-get update", "$ apt-get upgrade", "1. "),
        ("make python3-venv", "make git python3-venv", "1. "),
        ("kubemend_fail_on=critical", "kubemend_fail_on=warning", "3. "),
        ("reports.md", "repairs.md", "3. "),
        ("symptoms/cpu_pinning.md", "symptoms/node_unreachable.md", ""),
        ("`report.html`", "`report.txt`", "3. "),
        ("### 4. ", "#### 4. ", "4. "),
        ("- `", "", ""),
        ("### 2. ", "### 1a. More\n\nText.\n\n### 2. ", "1a. More"),
    ],
)
@pytest.mark.parametrize("changed", [QUICKSTART, chinese.counterpart(QUICKSTART)])
def test_a_change_of_one_side_is_named_with_page_and_heading(
    changed: str, old: str, new: str, heading: str
) -> None:
    texts = {page: read(page) for page in (QUICKSTART, chinese.counterpart(QUICKSTART))}
    if old == "- `":  # the last item of the last list
        head, _mark, last = texts[changed].rpartition("\n- ")
        texts[changed] = f"{head}\n{last}"
    else:
        assert old in texts[changed]
        texts[changed] = texts[changed].replace(old, new, 1)
    found = page_structure.differences(QUICKSTART, *texts.values())
    assert len(found) == 1
    assert found[0].startswith(f"{chinese.counterpart(QUICKSTART)}: ")
    assert QUICKSTART in found[0].removeprefix(chinese.counterpart(QUICKSTART))
    assert f'"{heading}' in found[0]


def test_a_row_of_a_table_is_named() -> None:
    english = read("README.md").replace("| `replay` |", "| `more` | more |\n| `replay` |")
    found = page_structure.differences("README.md", english, read("README.zh-CN.md"))
    assert len(found) == 1
    assert '"Playbooks and roles" of README.md' in found[0]
    assert "rows of its tables" in found[0]


def test_comments_in_code_are_translated() -> None:
    english, translation = "```\nmake test   # run\n```\n", "```\nmake test   # 运行\n```\n"
    assert page_structure.differences("README.md", english, translation) == []
    assert page_structure.differences("README.md", english, translation.replace("test", "unit"))


def test_a_link_leads_to_the_chinese_page_where_there_is_one() -> None:
    english = "[a](docs/quickstart.md) [b](docs/undo.md#what-it-restores)\n"
    assert chinese.relocated(english, "README.md").split() == [
        "[a](docs/zh-CN/quickstart.md)",
        "[b](docs/undo.md#what-it-restores)",
    ]
    assert chinese.relocated("[a](../faults/KM101.md)", "docs/symptoms/cpu_pinning.md") == (
        "[a](../../faults/KM101.md)"
    )
    assert page_structure.differences("README.md", english, english)


def test_texts_without_chinese_and_without_a_page_are_named() -> None:
    phrases = chinese.Chinese({"Node is down": "节点宕机", "Gone": "旧"})
    assert phrases.say("Node is down") == "节点宕机"
    assert phrases.say("New fault") == "New fault"
    missing, unused = phrases.problems()
    assert missing.endswith("New fault")
    assert unused.endswith("Gone")


def test_the_table_of_texts_names_each_once() -> None:
    lines = read("tests/docs/chinese.tsv").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [row for row in rows if len(row) != 2 or not all(row)] == []
    assert len({row[0] for row in rows}) == len(rows)
