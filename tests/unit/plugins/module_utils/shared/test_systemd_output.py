# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemctl and journalctl print."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import systemd_output


def test_blocks_and_repeated_properties() -> None:
    text = "Id=a.service\nExecStart=1\nExecStart=2\n\nId=b.service\nEnvironment=A=b\n"
    assert systemd_output.parse(text) == [
        {"Id": ["a.service"], "ExecStart": ["1", "2"]},
        {"Id": ["b.service"], "Environment": ["A=b"]},
    ]
    assert systemd_output.parse("") == []


def test_the_spelling_of_systemd_219() -> None:
    text = "EnvironmentFile=/a\n\nEnvironmentFile=/b\nId=x\\x5cx2d.swap\n"
    assert systemd_output.parse(text) == [{"EnvironmentFiles": ["/a", "/b"], "Id": ["x\\x2d.swap"]}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" a  b\tc\n", ["a", "b", "c"]),
        ("'a b' \"c d\"e", ["a b", "c de"]),
        ('"" x', ["", "x"]),
        (r"a\ b '\n'", ["a b", r"\n"]),
        ("'open", ["open"]),
    ],
)
def test_words_of_a_command_line(text: str, words: list[str]) -> None:
    assert systemd_output.words(text) == words


@pytest.mark.parametrize(
    ("line", "is_of_systemd"),
    [
        ("2026-01-01T00:00:00+0000 m1 systemd[1]: Started kubelet", True),
        ("2026-01-01T00:00:00+0000 m1 (kubelet)[17]: Failed", True),
        ("2026-01-01T00:00:00+0000 m1 kubelet[17]: systemd[1]", False),
        ("systemd[1]", False),
    ],
)
def test_lines_of_systemd(line: str, is_of_systemd: bool) -> None:
    assert systemd_output.of_systemd(line) is is_of_systemd
