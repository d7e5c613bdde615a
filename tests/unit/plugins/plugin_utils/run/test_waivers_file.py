# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of kubemend_waivers: what it holds, and one sentence with line for each mistake."""

from __future__ import annotations

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    CATALOGUE,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.waivers import (
    Waiver,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import waivers_file
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.settings import (
    SettingsError,
)

ENTRY = """- code: KM407
  hosts: "gpu-*"
  component: kubelet
  reason: image is rebuilt in the next release
  owner: platform
  expires: 2027-01-31
"""


def parsed(text):
    data = text if isinstance(text, bytes) else text.encode()
    return waivers_file.parse(data, "/w.yml", CATALOGUE)


def complaint(text):
    with pytest.raises(SettingsError) as raised:
        parsed(text)
    sentence = str(raised.value)
    assert sentence.startswith("kubemend_waivers is /w.yml")
    assert sentence.endswith(".")
    assert sentence.isprintable()
    return sentence


def test_entries_are_read_with_their_lines():
    second = ENTRY.replace("  component: kubelet\n", "").replace("KM407", '"KM4*"')
    text = "# ours\n---\n" + ENTRY + "\n" + second.replace("2027-01-31", "'2027-02-28'")
    reason = "image is rebuilt in the next release"
    assert parsed(text) == (
        Waiver("KM407", "gpu-*", reason, "platform", "2027-01-31", "kubelet", 3),
        Waiver("KM4*", "gpu-*", reason, "platform", "2027-02-28", None, 10),
    )


def test_an_empty_list_is_no_waiver():
    assert parsed("[]\n") == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("owner:", "ower:", 5, ["'ower'", "owner"]),
        ("expires:", "Expires:", 6, ["'Expires'", "expires"]),
        ("owner:", "<<:", 5, ["'<<'", "no key"]),
        ("owner:", "[a]:", 5, ["no key"]),
        ("  owner: platform\n", "", 1, ["lacks owner"]),
        ("  owner: platform\n", "  hosts: x\n", 5, ["hosts", "second time", "line 2"]),
        ("KM407", "KM40O", 1, ["'KM40O'", "nearest one is KM4"]),
        ("KM407", "km407", 1, ["nearest one is KM407"]),
        ("KM407", "swap", 1, ["'swap'", "docs/faults.md"]),
        ("KM407", '"KM8*"', 1, ["'KM8*'", "no fault code"]),
        ("KM407", '"KM[45"', 1, ["'KM[45'", "close it"]),
        ("KM407", "KM902", 1, ["cannot be waived", "remediate"]),
        ("gpu-*", "gpu-[0-9", 2, ["hosts", "close it"]),
        ("gpu-*", "", 2, ["hosts", "not empty"]),
        ('"gpu-*"', "[gpu-1, gpu-2]", 2, ["hosts", "text"]),
        ('"gpu-*"', "", 2, ["hosts", "not empty"]),
        ("platform", "null", 5, ["owner", "not empty"]),
        ("platform", '"a\\u202eb"', 5, ["owner", "one line"]),
        ("platform", '"a\\nb"', 5, ["owner", "one line"]),
        ("2027-01-31", "2027-02-30", 6, ["'2027-02-30'", "calendar"]),
        ("2027-01-31", "31.01.2027", 6, ["calendar"]),
        ("2027-01-31", "2027-01-31 10:00:00", 6, ["calendar"]),
        ("2027-01-31", "never", 6, ["calendar"]),
        ("2027-01-31", "20270131", 6, ["calendar"]),
        ('"gpu-*"', "*gpu", 2, ["YAML"]),
        ('"gpu-*"', '"gpu-*', 2, ["YAML"]),
        ("  owner", "---\n- owner", 5, ["second document"]),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(old, new, line, words):
    assert old in ENTRY
    sentence = complaint(ENTRY.replace(old, new, 1))
    assert f", line {line}: " in sentence, sentence
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no waiver", "[]"]),
        ("# nothing yet\n", ["no waiver", "[]"]),
        ("null\n", ["no waiver", "[]"]),
        ("waivers: []\n", ["line 1", "no list", "- code:"]),
        ("KM407\n", ["line 1", "no list"]),
        ("- KM407\n", ["line 1", "no waiver"]),
        (b"- code: \xff\n", ["line 1", "UTF-8"]),
        ("- " * 2000, ["YAML"]),
        ("- code: \x00\n", ["YAML"]),
    ],
)
def test_what_is_no_list_of_waivers_is_refused(text, words):
    sentence = complaint(text)
    for word in words:
        assert word in sentence


@pytest.mark.parametrize("text", ["gpu-[0-9]", "gpu-[!a]", "[]]", "[!]]x", "a]b", "w[1-3][ab]"])
def test_closed_brackets_are_globs(text):
    assert parsed(ENTRY.replace("gpu-*", text))[0].hosts == text


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (waivers_file.MAX_BYTES + 1))
    for path, word in (
        (tmp_path / "none.yml", "no such file"),
        (tmp_path, "folder"),
        (large, "larger"),
    ):
        with pytest.raises(SettingsError, match=word) as raised:
            waivers_file.read(str(path))
        assert str(path) in str(raised.value)


def test_what_the_user_may_not_read_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "w.yml"
    path.write_text(ENTRY, encoding="utf-8")
    assert waivers_file.read(str(path)) == ENTRY.encode()

    def refuse(*_args, **_more):
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(SettingsError, match="the right to read it"):
        waivers_file.read(str(path))
