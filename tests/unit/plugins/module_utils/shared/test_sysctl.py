# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of sysctl.d."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import sysctl


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("fs.file-max = 5", "fs.file-max"),
        ("-net/ipv4/ip_forward=1", "net.ipv4.ip_forward"),
        (" - kernel.pid_max =1", "kernel.pid_max"),
        ("net.ipv4.conf.*.rp_filter=1", None),
        ("fs.file-max", None),
        ("= 5", None),
        ("# fs.file-max = 5", None),
    ],
)
def test_the_setting_of_a_line(line: str, key: "str | None") -> None:
    assert sysctl.key_of(line) == key


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("fs.file-max = 5", "fs.file-max = 70"),
        ("fs.file-max=5\n", "fs.file-max=70\n"),
        ("  fs.file-max =\t5  \r\n", "  fs.file-max =\t70  \r\n"),
        ("fs.file-max = ", "fs.file-max =70 "),
    ],
)
def test_another_value_keeps_the_blanks(line: str, changed: str) -> None:
    assert sysctl.line_with(line, 70) == changed
