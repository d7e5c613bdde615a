# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for the pages of faults: generated blocks, and text of their own between them."""

from __future__ import annotations

import re
import subprocess
import types

import pytest

from tests.docs import examples, faults

FAULT = types.SimpleNamespace(code="KM101")
PAGE = (faults.DIRECTORY / "KM101.md").read_text(encoding="utf-8")


def test_a_complete_page_has_no_problem():
    assert faults.problems(FAULT, PAGE) == []


@pytest.mark.parametrize("name", sorted(faults.BLOCKS))
def test_a_page_without_a_block_is_named(name):
    text = PAGE.replace(f"begin {name} -->", "begin other -->")
    assert f"lacks the generated block {name}" in faults.problems(FAULT, text)


@pytest.mark.parametrize("title", faults.HEADINGS)
def test_a_page_without_a_heading_is_named(title):
    text = PAGE.replace(f"## {title}\n", "")
    assert f"lacks the heading {title}" in faults.problems(FAULT, text)


@pytest.mark.parametrize("name", sorted(set(faults.BLOCKS) - {"summary"}))
def test_a_block_and_its_heading_are_added_where_a_page_lacks_them(name):
    blocks = dict.fromkeys(faults.BLOCKS, "Text.")
    match = re.search(rf"<!-- generated: begin {name} -->\n.*?end -->\n\n?", PAGE, re.DOTALL)
    assert match
    bare = PAGE.replace(match[0], "")
    title = faults.BLOCKS[name]
    found = faults._completed(bare, blocks)
    assert f"## {title}\n\n<!-- generated: begin {name} -->\nText.\n" in found
    assert re.findall(r"^## (.*)$", found, re.MULTILINE) == list(faults.HEADINGS)
    found = faults._completed(bare.replace(f"## {title}\n\n", ""), blocks)
    assert re.findall(r"^## (.*)$", found, re.MULTILINE) == list(faults.HEADINGS)


def test_a_page_without_an_example_is_named():
    text = PAGE.replace("```", "")
    assert any("lacks an example" in line for line in faults.problems(FAULT, text))


def test_every_page_has_every_heading_and_an_example():
    pages = sorted(faults.DIRECTORY.glob("KM*.md"))
    assert pages
    wrong = {page.name: faults.problems(None, page.read_text(encoding="utf-8")) for page in pages}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_an_example_says_where_it_comes_from():
    cases = examples.read()
    for code, example in cases.items():
        unit = "::" in example["source"]
        assert ("unit test" in faults._example(code)) is unit
        place = examples.UNIT / example["source"].partition("::")[0]
        assert (place if unit else examples.RECORDED / example["source"]).exists()
    assert "no example" in faults._example("KM000")


@pytest.mark.parametrize("title", faults.WRITTEN)
def test_an_empty_part_is_named(title):
    text = PAGE.replace(faults.own(PAGE, title), "")
    missing = (f"lacks a command below {title}", f"lacks commands to copy below {title}")
    assert [line for line in faults.problems(FAULT, text) if line not in missing] == [
        *([f"has no text below {title}"] if title not in faults.BLOCKS.values() else []),
        f"lacks text of its own below {title}",
    ]


@pytest.mark.parametrize("title", faults.COMMANDS)
def test_a_part_without_a_command_is_named(title):
    text = PAGE.replace(faults.own(PAGE, title), "Look at `the-file` and correct it.")
    assert f"lacks a command below {title}" in faults.problems(FAULT, text)
    text = PAGE.replace(faults.own(PAGE, title), "Run `systemctl restart kubelet`.")
    assert f"lacks a command below {title}" not in faults.problems(FAULT, text)
    assert faults.commands(text, title) == ["systemctl restart kubelet"]


@pytest.mark.parametrize(
    ("fix", "complete"),
    [
        ("Run `systemctl restart kubelet`.", False),
        ("```\n```", False),
        ("```\nsystemctl restart kubelet\n```", True),
        ("1. Restart it:\n\n   ```sh\n   systemctl restart kubelet\n   ```", True),
    ],
)
def test_a_fix_has_its_commands_in_a_block(fix, complete):
    text = PAGE.replace(faults.own(PAGE, "Fix by hand"), fix)
    missing = "lacks commands to copy below Fix by hand"
    assert (missing not in faults.problems(FAULT, text)) is complete


@pytest.mark.parametrize("between", ["\n", "\n\n"], ids=["line", "paragraph"])
def test_a_paragraph_that_a_merge_kept_twice_is_named(between):
    paragraph = faults.own(PAGE, "What you see").partition("\n\n")[0]
    other = paragraph.replace(". ", ". The other side of the merge added this one. ", 1)
    found = faults.problems(FAULT, PAGE.replace(paragraph, f"{paragraph}{between}{other}"))
    assert found
    assert all(line.startswith("says a sentence twice: ") for line in found)


@pytest.mark.parametrize("title", ["What you see", "Fix by hand"])
@pytest.mark.parametrize(
    ("words", "is_long"), [("word " * 20, False), ("word " * 21, True), ("word: " * 21, True)]
)
def test_a_section_of_long_sentences_is_named(title, words, is_long):
    long = f"{words.strip()}. {words.strip()}!\n\n```\nsystemctl restart kubelet\n```"
    text = PAGE.replace(faults.own(PAGE, title), long)
    named = [f" words a sentence below {title}," in line for line in faults.problems(FAULT, text)]
    assert named.count(True) == is_long


def test_code_and_headings_of_lists_may_stand_twice():
    label = "On each of the hosts of the cluster, as the user root of it:"
    command = (
        "```\nsystemctl show kubelet -p Result,ExecMainStatus,NRestarts; true and some more.\n```"
    )
    both = f"{label}\n\n{command}\n\n"
    assert faults.repeated(f"## Fix by hand\n\n{both}{both}") == []
    indented = f"   {command}".replace("\n", "\n   ")
    assert faults.repeated(f"## Fix by hand\n\n1. a\n\n{indented}\n\n{indented}\n") == []


@pytest.mark.parametrize(
    "page", sorted(faults.DIRECTORY.glob("KM*.md")), ids=lambda page: page.stem
)
def test_a_shell_can_read_the_commands_of_a_page(page):
    text = page.read_text(encoding="utf-8")
    for title in faults.COMMANDS:
        for command in faults.commands(text, title):
            read = subprocess.run(
                ["bash", "-n"], input=command, text=True, capture_output=True, check=False
            )
            assert read.stderr == "", command


def test_headings_are_known_and_in_order():
    text = PAGE.replace("## What you see", "## What it means")
    assert "has an unknown heading: What it means" in faults.problems(FAULT, text)
    text = PAGE.replace("## Undo", "## X").replace("## Fix by hand", "## Undo")
    text = text.replace("## X", "## Fix by hand")
    assert any("another order" in line for line in faults.problems(FAULT, text))


def test_a_new_page_lacks_its_written_parts():
    catalogue = {"KM101": _fault()}
    blocks = faults._blocks(catalogue["KM101"], catalogue, {"s": _symptom()}, {"KM101"})
    missing = faults.problems(FAULT, faults._skeleton(blocks))
    assert [line for line in missing if "of its own" in line] == [
        f"lacks text of its own below {title}" for title in faults.WRITTEN
    ]
    assert not any("block" in line for line in missing)


def _fault():
    return types.SimpleNamespace(
        code="KM101",
        title="Title",
        severity="warning",
        scope="node",
        applies="nodes",
        risk=1,
        needs=(),
        cluster_needs=(),
        tier="core",
        sooner=False,
        explained_by=frozenset(),
    )


def _symptom():
    return types.SimpleNamespace(causes=("KM101",), signs=(), codes=("KM101",), title="S", name="s")
