# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kdump or the firmware kept of the kernel that ended."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.logs import crash_files

BOOTED = 1_700_000_000.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(crash_files, "FOLDERS", (str(tmp_path), str(tmp_path / "none")))
    return tmp_path


def keep(folder, name, at=BOOTED - 60, text="[    1.5] x\n"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))
    return str(path)


@pytest.mark.parametrize(
    ("name", "at", "is_found"),
    [
        ("127.0.0.1-2026-11-29-10:00:00/vmcore-dmesg.txt", -60, True),
        ("202611291000/dmesg.202611291000", -60, True),
        ("2026-11-29-10:00/dmesg.txt", 30, True),
        ("dmesg-efi_pstore-166000000001001", -60, True),
        ("127.0.0.1-2026-11-29-10:00:00/vmcore", -60, False),
        ("_usr_bin_x.0.crash", -60, False),
        ("127.0.0.1-2026-11-28-10:00:00/vmcore-dmesg.txt", -7200, False),
        ("127.0.0.1-2026-11-29-11:00:00/vmcore-dmesg.txt", 7200, False),
    ],
)
def test_which_file_is_of_this_boot(folder, name, at, is_found):
    path = keep(folder, name, BOOTED + at)
    assert crash_files.newest(BOOTED)[0] == (path if is_found else None)


def test_the_newest_counts(folder):
    keep(folder, "a/dmesg.txt", BOOTED - 900)
    path = keep(folder, "b/dmesg.txt", BOOTED - 90)
    assert crash_files.newest(BOOTED) == (path, BOOTED - 90)


def test_lines_without_their_heads(folder):
    text = (
        "<4>[   12.000001] Panic#1 Part1\n[   13.5][   T77] kernel BUG\n[  14.25]  f+0x1/0x2\nx\n"
    )
    path = keep(folder, "dmesg.txt", text=text)
    assert crash_files.lines(path) == [
        (12.000001, b"Panic#1 Part1"),
        (13.5, b"kernel BUG"),
        (14.25, b" f+0x1/0x2"),
    ]


def test_a_file_is_read_from_its_end_and_no_link_is_followed(folder):
    path = keep(folder, "dmesg.txt", text="[  1.5] line\n" * 40000)
    assert 0 < len(crash_files.lines(path)) < 40000
    link = folder / "link"
    link.symlink_to(path)
    assert crash_files.lines(str(link)) == []
    assert crash_files.lines(str(folder / "none")) == []


def test_a_folder_that_is_a_link_and_names_that_only_begin_so(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    keep(outside, "dmesg.txt")
    (folder / "linked").symlink_to(outside)
    for name in ("dmesg.txt.gz", "vmcore-dmesg.txt.old", "old-dmesg.txt"):
        keep(folder, name)
    assert crash_files.newest(BOOTED) == (None, None)


def test_a_file_that_is_gone_meanwhile(folder):
    (folder / "dmesg.txt").symlink_to(folder / "nowhere")
    assert crash_files.newest(BOOTED) == (None, None)
