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


def test_markup_in_a_page_is_text():
    page = Page(markdown.render("<img src=x onerror=alert(1)> [a](javascript:alert(1)) `<b>`"))
    assert [tag for tag, _names in page.bones] == ["p", "code"]


@pytest.mark.parametrize("path", PAGES[::6], ids=lambda path: path.stem)
def test_every_page_is_whole_html(path):
    page = Page(markdown.render(path.read_text(encoding="utf-8")))
    assert not page.open
    assert "##" not in page.words
    assert "```" not in page.words


def test_an_asterisk_in_code_is_no_emphasis():
    assert (
        markdown.render("`/etc/*.conf` and `/run/*.d` *now*")
        == "<p><code>/etc/*.conf</code> and <code>/run/*.d</code> <em>now</em></p>"
    )
