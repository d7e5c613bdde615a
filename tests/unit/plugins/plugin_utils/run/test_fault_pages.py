# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of faults as files."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    fault_pages,
)


def test_pages_that_are_there_are_read_and_others_left_out(tmp_path):
    (tmp_path / "KM101.md").write_text("# KM101", encoding="utf-8")
    (tmp_path / "KM102.md").write_bytes(b"\xff\xfe")
    assert fault_pages.texts(str(tmp_path), ["KM101", "KM102", "KM103"]) == {"KM101": "# KM101"}
    assert fault_pages.texts(str(tmp_path / "gone"), ["KM101"]) == {}


def test_the_example_of_a_page_is_left_out(tmp_path):
    page = "# T\n\n## A\n\na\n\n## Example\n\n```\nx\n```\n"
    (tmp_path / "KM101.md").write_text(page + "\n## B\n\nb\n", encoding="utf-8")
    (tmp_path / "KM102.md").write_text(page, encoding="utf-8")
    assert fault_pages.texts(str(tmp_path), ["KM101", "KM102"]) == {
        "KM101": "# T\n\n## A\n\na\n\n## B\n\nb\n",
        "KM102": "# T\n\n## A\n\na\n\n",
    }
