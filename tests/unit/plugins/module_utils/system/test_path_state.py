# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies at a path."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import path_state

MOUNTS = path_state.mount_rows(
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "23 22 8:2 / /srv/my\\040disk rw,noexec,nosuid - xfs /dev/sdb ro\n"
    "cut off\n"
)


def read(path):
    return path_state.read(str(path), MOUNTS)


def test_a_file(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("x")
    path.chmod(0o600)
    row = read(path)
    assert (row["kind"], row["mode"], row["uid"]) == ("file", "0600", os.getuid())
    assert row["owner"]
    assert row["immutable"] in (False, None)
    assert (row["mount"], row["mount_type"], row["mount_options"]) == ("/", "ext4", "rw")


def test_a_folder_counts_its_entries(tmp_path):
    assert read(tmp_path)["entries"] == 0
    (tmp_path / "a").touch()
    row = read(tmp_path)
    assert (row["kind"], row["entries"]) == ("directory", 1)


def test_a_path_whose_folder_is_missing(tmp_path):
    row = read(tmp_path / "a" / "b" / "c.conf")
    assert (row["kind"], row["mode"]) == ("missing", None)
    assert (row["above"], row["above_kind"]) == (str(tmp_path), "directory")
    assert row["above_mode"] == f"{tmp_path.stat().st_mode & 0o7777:04o}"
    assert row["above_owner"].count(":") == 1
    (tmp_path / "a").write_text("x")
    row = read(tmp_path / "a" / "b")
    assert (row["above"], row["above_kind"]) == (str(tmp_path / "a"), "file")


def test_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "gone" / "b")
    row = read(tmp_path / "a")
    assert (row["kind"], row["target"]) == ("missing", str(tmp_path / "gone" / "b"))


def test_a_folder_that_others_may_not_pass(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "a").touch()
    folder.chmod(0o700)
    above = [one for one in folder.parents if not one.stat().st_mode & 0o001]
    row = read(folder / "a")
    assert row["closed"] == str([folder, *above][-1])
    assert row["closed_mode"] == "0700"
    folder.chmod(0o711)
    assert read(folder / "a")["closed"] != str(folder)


def test_the_mount_of_a_path():
    row = read("/srv/my disk/a")
    assert (row["mount"], row["mount_type"]) == ("/srv/my disk", "xfs")
    assert set(row["mount_options"].split(",")) == {"rw", "noexec", "nosuid", "ro"}
    assert read("/srv/my disks/a")["mount"] == "/"


@pytest.mark.parametrize("path", ["/dev/null", "/"])
def test_what_is_no_file_of_a_program(path):
    assert read(path)["kind"] in ("character device", "directory")


@pytest.mark.parametrize(
    ("head", "program"),
    [
        (b"", "empty"),
        (b"#!/bin/sh\n", "script"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\xb7\x00", "aarch64"),
        (b"\x7fELF\x02\x02" + bytes(12) + b"\x00\x16", "s390x"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\xff\x7f", "machine 32767"),
        (b"\x7fELF", "none"),
        (b"<html>", "none"),
    ],
)
def test_the_processor_of_a_program(tmp_path, head, program):
    (tmp_path / "a").write_bytes(head)
    assert path_state.program_of(str(tmp_path / "a")) == program
    assert path_state.program_of(str(tmp_path / "gone")) is None
