# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of containerd's configuration."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import toml_lines

CRI = ("plugins", "io.containerd.grpc.v1.cri")
TEXT = """\
version = 2 # of the file
imports = ["/etc/containerd/conf.d/*.toml", 'a#b']
note = '''
SystemdCgroup = true
'''
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.6"
  # sandbox_image = "other"
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
  SystemdCgroup = true
no value
"""


def test_each_key_with_its_table_and_line():
    rows = toml_lines.rows(TEXT)
    assert [(line, key) for line, _table, key, _value in rows] == [
        (1, "version"),
        (2, "imports"),
        (3, "note"),
        (7, "sandbox_image"),
        (10, "SystemdCgroup"),
    ]
    assert [table for _line, table, _key, _value in rows[3:]] == [
        CRI,
        (*CRI, "containerd", "runtimes", "runc", "options"),
    ]
    assert [value for _line, _table, _key, value in rows[:1]] == ["2"]
    assert toml_lines.texts(rows[1][3]) == ["/etc/containerd/conf.d/*.toml", "a#b"]


@pytest.mark.parametrize("text", ["", "[", "[[a]]", "=", "'", '"""', "[a.'b", "\0"])
def test_it_never_fails(text):
    assert isinstance(toml_lines.rows(text), list)


@pytest.mark.parametrize("size", range(0, len(TEXT), 7))
def test_a_file_that_is_cut_off(size):
    rows = toml_lines.rows(TEXT[:size])
    assert [row[2] for row in rows][:3] == ["version", "imports", "note"][: len(rows)]
