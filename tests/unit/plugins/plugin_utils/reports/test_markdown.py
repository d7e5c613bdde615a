# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of faults as HTML: no text becomes a tag."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    markdown,
)
from tests.unit.plugins.plugin_utils.reports.test_html import Page

PAGES = sorted((Path(__file__).resolve().parents[5] / "docs" / "faults").glob("KM*.md"))


def test_what_the_pages_use_of_markdown():
    html = markdown.render(
        "<!-- x -->\n# Title\n\n## What\n\na `b` **c** *d*\nnext\n\n- one\n  more\n- two\n\n"
        "1. first\n\n| a | b |\n|---|---|\n| `c` | d |\n\n```\nx\n\n<y>\n```\n\n"
        "[here](../x.md) [there](https://example.org/) <https://example.org/a>\n"
    )
    for part in (
        "<h5>What</h5>",
        "<p>a <code>b</code> <b>c</b> <em>d</em> next</p>",
        "<ul><li>one more</li><li>two</li></ul>",
        "<ol><li>first</li></ol>",
        "<th>a</th>",
        "<td><code>c</code></td>",
        "<pre>x\n\n&lt;y&gt;</pre>",
        'here <a rel="noreferrer" href="https://example.org/">there</a>',
        'href="https://example.org/a"',
    ):
        assert part in html
    assert "Title" not in html


def test_an_item_holds_what_is_indented_below_it():
    html = markdown.render(
        "Do:\n1. first\n   of all\n\n   ```\n   a <b>\n\n     c\n   ```\n\n   Then `d`.\n\n"
        "2. second\n   - one\n\n     ```\n     e\n     ```\n\n   - two\n\n- other\n\n      far\n"
        "```\nf\n```\nEnd\n"
    )
    assert html == (
        "<p>Do:</p>\n"
        "<ol><li>first of all\n<pre>a &lt;b&gt;\n\n  c</pre>\n<p>Then <code>d</code>.</p></li>"
        "<li>second\n<ul><li>one\n<pre>e</pre></li><li>two</li></ul></li></ol>\n"
        "<ul><li>other\n<p>    far</p></li></ul>\n<pre>f</pre>\n<p>End</p>"
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("- ", "<ul><li></li></ul>"),
        ("- ```\n  a\n  ```", "<ul><li>\n<pre>a</pre></li></ul>"),
        ("- - a\n- b", "<ul><li>\n<ul><li>a</li></ul></li><li>b</li></ul>"),
        ("- a\nlazy\n\nno item", "<ul><li>a lazy</li></ul>\n<p>no item</p>"),
        ("1. a\n- b", "<ol><li>a</li></ol>\n<ul><li>b</li></ul>"),
    ],
)
def test_where_an_item_ends(text, html):
    assert markdown.render(text) == html


def test_a_list_of_a_page_is_one_list_with_its_commands():
    path = next(path for path in PAGES if path.stem == "KM140")
    text = path.read_text(encoding="utf-8").partition("## Fix by hand")[2]
    page = Page(markdown.render(text.partition("\n## ")[0]))
    tags = [tag for tag, _names in page.bones]
    assert tags.count("ol") == 1
    assert tags.count("pre") == 7


def test_markup_in_a_page_is_text():
    page = Page(markdown.render("<img src=x onerror=alert(1)> [a](javascript:alert(1)) `<b>`"))
    assert [tag for tag, _names in page.bones] == ["p", "code"]


def test_every_page_is_whole_html():
    for path in PAGES:
        page = Page(markdown.render(path.read_text(encoding="utf-8")))
        assert not page.open, path
        assert "##" not in page.words, path
        assert "```" not in page.words, path


def test_an_asterisk_in_code_is_no_emphasis():
    assert (
        markdown.render("`/etc/*.conf` and `/run/*.d` *now*")
        == "<p><code>/etc/*.conf</code> and <code>/run/*.d</code> <em>now</em></p>"
    )
