# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a run's reports: foreign files stay."""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    report_dir,
)


def test_patches_of_somebody_else_or_changed_stay(tmp_path):
    folder = tmp_path / "patches"
    assert report_dir.write_patches(folder, {}) == []
    assert not folder.exists()
    assert report_dir.write_patches(folder, {"a.yaml": "a", "b.yaml": "b", "c.yaml": "c"}) == []
    (folder / "b.yaml").write_text("mine now", encoding="utf-8")
    (folder / "d.yaml").write_text("mine", encoding="utf-8")
    (folder / "c.yaml").unlink()
    (folder / "c.yaml").symlink_to(folder / "d.yaml")
    assert report_dir.write_patches(folder, {"b.yaml": "B", "d.yaml": "D", "e.yaml": "E"}) == [
        "b.yaml",
        "d.yaml",
    ]
    assert {one.name: one.read_text(encoding="utf-8") for one in folder.glob("*.yaml")} == {
        "b.yaml": "mine now",
        "c.yaml": "mine",
        "d.yaml": "mine",
        "e.yaml": "E",
    }
    report_dir.remove_patches(folder)
    report_dir.remove_patches(folder)
    assert sorted(one.name for one in folder.iterdir()) == ["b.yaml", "c.yaml", "d.yaml"]


@pytest.mark.parametrize("text", ["", "[]", "[1]", '{"../kept": "%s"}', '{"a": 1}', "[" * 100000])
def test_a_list_of_patches_that_is_none_removes_nothing(tmp_path, text):
    kept, folder = tmp_path / "kept", tmp_path / "patches"
    kept.write_text("x", encoding="utf-8")
    folder.mkdir()
    (folder / "a").write_text("x", encoding="utf-8")
    (folder / report_dir.WRITTEN).write_text(
        text.replace("%s", hashlib.sha256(b"x").hexdigest()), encoding="utf-8"
    )
    assert report_dir.write_patches(folder, {"b": "b"}) == []
    assert kept.exists()
    assert (folder / "a").exists()
    assert (folder / "b").exists()
