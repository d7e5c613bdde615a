# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of a unit, and whether they hold now."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    unit_conditions,
)

CONDITIONS = (
    'a(sbbsi) 2 "ConditionPathExists" false true "/a b\\\\x20c" -1 "ConditionKernelVersion" true'
    ' false ">1" 0\n'
)


def test_conditions_as_busctl_prints_them():
    assert unit_conditions.rows_of(CONDITIONS) == [
        ("ConditionPathExists", False, True, "/a b\\x20c", False),
        ("ConditionKernelVersion", True, False, ">1", None),
    ]
    assert unit_conditions.rows_of("a(sbbsi) 0\n") == []
    for text in (
        "",
        "a(sbbsi) 2",
        "a(ss) 0",
        "Failed to get property",
        'a(sbbsi) x "a"',
        CONDITIONS[:60],
    ):
        assert unit_conditions.rows_of(text) is None


def test_the_name_of_an_object():
    assert unit_conditions.label("kubelet.service") == "kubelet_2eservice"
    assert unit_conditions.label("4-a.mount") == "_34_2da_2emount"


@pytest.mark.parametrize(
    ("kind", "name", "met"),
    [
        ("PathExists", "", True),
        ("PathExists", "gone", False),
        ("PathExists", "file/below", False),
        ("PathIsDirectory", "", True),
        ("PathIsDirectory", "file", False),
        ("FileNotEmpty", "file", True),
        ("FileNotEmpty", "empty", False),
        ("FileNotEmpty", "", False),
        ("DirectoryNotEmpty", "", True),
        ("DirectoryNotEmpty", "folder", False),
        ("DirectoryNotEmpty", "gone", False),
        ("FileIsExecutable", "file", False),
        ("FileIsExecutable", "program", True),
        ("PathIsSymbolicLink", "link", True),
        ("PathIsSymbolicLink", "file", False),
        ("PathExists", "link", False),
        ("PathIsMountPoint", "", False),
        ("PathIsReadWrite", "", True),
        ("PathExistsGlob", "fil*", True),
        ("PathExistsGlob", "gon*", False),
        ("Virtualization", "", None),
        ("KernelVersion", "", None),
    ],
)
def test_what_can_be_looked_at_is_looked_at_now(tmp_path, kind, name, met):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").write_text("")
    (tmp_path / "program").write_text("x")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/gone-for-good")
    # a name may end in a slash
    path = os.path.join(str(tmp_path), name)  # noqa: PTH118
    assert unit_conditions.holds_now(kind, path)[0] is met


def test_what_may_not_be_seen_is_not_known(monkeypatch):
    def denied(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setitem(unit_conditions.TESTS, "PathExists", denied)
    assert unit_conditions.holds_now("PathExists", "/x")[0] is None
    assert unit_conditions.holds_now("PathExists", "relative")[0] is None


def test_the_value_of_an_environment_condition_stays_on_the_node():
    row = unit_conditions._check(
        ("ConditionEnvironment", False, False, "API_TOKEN=abcdef0123", 1), {}
    )
    assert "abcdef0123" not in repr(row)
    assert "API_TOKEN=" in row["text"]
