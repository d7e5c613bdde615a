# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What names swap on a node: /proc/swaps, fstab, units, the kernel's command line, zram's files.

Single lines were tried on systemd-fstab-generator 252, names on its systemd-escape. The files are
those of installers (Debian 12, Ubuntu 22.04, RHEL 9, Fedora's zram-generator-defaults), shortened.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    file_record,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    swap as swap_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import swap_files
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers.swap_files import Active
from tests.unit.support.file_evidence import file, record

HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
DEBIAN = """# /etc/fstab: static file system information.
# <file system> <mount point>   <type>  <options>       <dump>  <pass>
UUID=0a3407de-014b-458b-b5c1-848e92a327a3 /               ext4    errors=remount-ro 0       1
UUID=F9FE0B69-A280-415D-A03A-A32752370DEE none            swap    sw              0       0
/dev/sr0        /media/cdrom0   udf,iso9660 user,noauto     0       0
"""
UBUNTU = "/dev/disk/by-id/dm-uuid-LVM-x / ext4 defaults 0 1\n/swap.img\tnone\tswap\tsw\t0\t0\n"
RHEL = (
    "/dev/mapper/rhel-root   /   xfs   defaults   0 0\n/dev/mapper/rhel-swap   none   swap  "
    " defaults   0 0\n"
)


def fstab(text: str) -> list[tuple[int, str]]:
    return [(line.line, line.device) for line in swap_files.fstab(file("/etc/fstab", text))[0]]


def test_no_swap_is_not_unknown():
    assert swap_files.active(HEAD) == []
    assert swap_files.active("") == []
    assert swap_files.active(None) is None
    assert swap_files.active("no such file") is None


def test_swaps_of_every_kind():
    found = swap_files.active(
        HEAD + "/dev/dm-1                               partition\t33554428\t1024\t\t-2\n"
        "/var/my\\040swap\\011\\134                      file\t\t524284\t\t0\t\t-3\n"
        "/dev/zram0                              partition\t8388604\t\t0\t\t100\n"
        "/swapfile\\040(deleted)                 file\t\t1048572\t512\t\t-4\n"
    )
    assert found == [
        Active("/dev/dm-1", "partition", 33554428, 1024),
        Active("/var/my swap\t\\", "file", 524284, 0),
        Active("/dev/zram0", "partition", 8388604, 0),
        Active("/swapfile", "file", 1048572, 512, True),
    ]
    assert [one.zram for one in found] == [False, False, True, False]


def test_a_line_that_is_cut_off_is_still_swap():
    assert swap_files.active(HEAD + "/dev/sda2  partition\t83\n/dev/sdb") == [
        Active("/dev/sda2", "partition", 83, None),
        Active("/dev/sdb", "", None, None),
    ]
    assert swap_files.active(HEAD + f"/dev/sda2 partition {'9' * 5000} -1 x")[0] == Active(
        "/dev/sda2", "partition", None, None
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (DEBIAN, [(4, "/dev/disk/by-uuid/F9FE0B69-A280-415D-A03A-A32752370DEE")]),
        (UBUNTU, [(2, "/swap.img")]),
        (RHEL, [(2, "/dev/mapper/rhel-swap")]),
        ("", []),
        ("#/swap.img none swap sw 0 0\n", []),
        ("  # /swap.img none swap\n", []),
        ("/swap none swap", [(1, "/swap")]),
        ("  \t/swap none swap\r\n", []),
        ("/swap none swap sw\r\n", [(1, "/swap")]),
        ("/swap none swap # mine\n", [(1, "/swap")]),
        ('LABEL="my swap" none swap', []),
        ("LABEL=my\\040swap none swap", [(1, "/dev/disk/by-label/my\\x20swap")]),
        ("'/swap' none swap", []),
        ("UUID='ab' none swap", [(1, "/dev/disk/by-uuid/ab")]),
        ("PARTUUID=ab none swap", [(1, "/dev/disk/by-partuuid/ab")]),
        ("PARTLABEL=a/b none swap", [(1, "/dev/disk/by-partlabel/a\\x2fb")]),
        ("//swap none swap", [(1, "/swap")]),
        ("/dev/sda2 swap", []),
        ("/dev/sda2 none swapp", []),
        ("/dev/sda2 swap ext4", []),
        ("none none swap", []),
        ("ID=ab none swap", []),
        ("/s\\057a none swap", [(1, "/s\\057a")]),
        ("/s\\\\a none swap", [(1, "/s\\a")]),
        ("UUID= none swap", []),
        ("/ none swap", []),
    ],
)
def test_lines_of_fstab(text, found):
    assert fstab(text) == found


def test_malformed_lines_are_named():
    _dummy, bad, problem = swap_files.fstab(
        file(
            "/etc/fstab",
            "/dev/sda2 swap\n\n\r\n# x\nnone none swap\n/swap none swap\r\n/a /b ext4\n",
        )
    )
    assert bad == [
        (1, "fewer than three fields"),
        (5, "it names no device"),
        (6, "a carriage return ends its type"),
    ]
    assert problem is None


@pytest.mark.parametrize(
    ("options", "noauto"),
    [
        ("sw", False),
        ("noauto", True),
        ("sw,noauto,pri=5", True),
        ("noauto,auto", False),
        ("auto,noauto\r", True),
        ("nofail", False),
        ("nofail,fail", False),
        ("x-noauto", False),
    ],
)
def test_options(options, noauto):
    line = swap_files.fstab(file("/etc/fstab", f"/swap none swap {options}\n"))[0][0]
    assert line.noauto is noauto


@pytest.mark.parametrize(
    ("thing", "problem"),
    [
        (None, "it was not read"),
        ("text", "it was not read"),
        ({"text": "x"}, "it was not read"),
        (record("/etc/fstab", None, error="missing"), None),
        (record("/etc/fstab", None, error="denied"), "denied"),
        (record("/etc/fstab", "# x\n", truncated=True), "cut off"),
        (record("/etc/fstab", None, kind="directory"), "it is no regular file"),
        (record("/etc/fstab", "# x\n"), None),
    ],
)
def test_a_file_that_is_not_known_is_not_empty(thing, problem):
    answer = decode(swap_answer.Swap, {"fstab": thing}).answer
    assert swap_files.fstab(answer.fstab)[2] == problem


@pytest.mark.parametrize(
    ("path", "name"),
    [  # as systemd-escape of systemd 252 says
        ("/dev/disk/by-uuid/a-b c", "dev-disk-by\\x2duuid-a\\x2db\\x20c.swap"),
        ("/swap.img", "swap.img.swap"),
        ("/.swap", "\\x2eswap.swap"),
        ("/dev//sda2/", "dev-sda2.swap"),
        ("/ü", "\\xc3\\xbc.swap"),
        ("/a/.b", "a-.b.swap"),
        ("/dev/mapper/rhel-swap", "dev-mapper-rhel\\x2dswap.swap"),
    ],
)
def test_names_of_units(path, name):
    assert swap_files.unit_name(path) == name


def test_units_are_read_from_text_and_blocks():
    text = (
        "Id=dev-sda2.swap\nWhat=/dev/sda2\nLoadState=loaded\nUnitFileState=generated\nActiveStat"
        "e=active\nFragmentPath=/run/systemd/generator/dev-sda2.swap\nSourcePath=/etc/fstab\nFol"
        "lowing=\nWantedBy=swap.target"
        " a.target\n\nId=swap.target\nLoadState=masked\nUnitFileState=masked\n\nWhat=/no/id\n"
    )
    first, second = swap_files.units(text)
    assert (first.what, first.state, first.source, first.wanted) == (
        "/dev/sda2",
        "generated",
        "/etc/fstab",
        ("swap.target", "a.target"),
    )
    assert second.masked
    assert second.wanted is None
    assert not first.masked
    assert swap_files.units(
        [
            {"Id": ["dev-sda2.swap"], "What": ["/dev/sda2"]},
            {"Id": 5},
            "x",
            {"Id": "dev-sda2.swap", "What": "/b"},
        ]
    ) == [swap_files.Unit("dev-sda2.swap", "/dev/sda2")]
    assert swap_files.units(None) is None
    assert swap_files.units(b"Id=a") is None
    assert swap_files.units([{}] * 2000) is None
    assert swap_files.units([]) == []


@pytest.mark.parametrize(
    ("unit", "masked"),
    [
        ({"LoadState": "masked", "UnitFileState": "masked"}, True),
        ({"LoadState": "masked", "UnitFileState": "masked-runtime"}, False),
        ({"LoadState": "masked"}, True),
        ({"LoadState": "masked", "FragmentPath": "/run/systemd/system/a.swap"}, False),
        ({"LoadState": "loaded", "UnitFileState": "masked"}, True),
        ({"LoadState": "loaded"}, False),
    ],
)
def test_a_mask_for_one_boot_is_none(unit, masked):
    assert swap_files.units([{"Id": "a.swap", **unit}])[0].masked is masked


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("quiet", None),
        ("systemd.gpt_auto=0", False),
        ("systemd.gpt-auto=no x", False),
        ("systemd.gpt_auto", True),
        ("systemd.gpt_auto=0 systemd.gpt_auto=on", True),
        ("systemd.gpt_auto=off systemd.gpt_auto=maybe", False),
        ('"systemd.gpt_auto=0"', False),
        ("rd.systemd.gpt_auto=0", None),
        ("systemd.gpt_auto=", None),
    ],
)
def test_the_command_line(line, said):
    assert swap_files.switch(swap_files.words(line), "systemd.gpt_auto") is said


def test_no_command_line():
    assert swap_files.words("") is None
    assert swap_files.words(None) is None
    assert swap_files.words("a=b c") == [("a", "b"), ("c", None)]


FEDORA = "# This config file enables a /dev/zram0 device\n[zram0]\nzram-size = min(ram, 8192)\n"


def zram(*files: file_record.FileRecord) -> list[tuple[str, str, int, bool | None]]:
    return [(one.name, one.path, one.line, one.swap) for one in swap_files.zram(files)[0]]


@pytest.mark.parametrize(
    ("more", "swap"),
    [
        ("", True),
        ("zram-size=0\n", False),
        ("zram-size = 0.0\n", False),
        ("mount-point=/run/x\n", False),
        ("fs-type=ext4\n", False),
        ("fs-type = swap\nmount-point=/x\n", True),
        ("host-memory-limit=4096\n", None),
        ("host-memory-limit=none\n", True),
        ("#zram-size=0\n", True),
        ("zram-fraction=0.5\n", None),
        ("[zramx]\nzram-size=0\n", True),
        ("[other]\nzram-size=0\n", True),
    ],
)
def test_a_section_of_zram_generator(more, swap):
    path = "/usr/lib/systemd/zram-generator.conf"
    assert zram(file(path, FEDORA + more)) == [("zram0", path, 2, swap)]


def test_zram_files_by_precedence():
    vendor, own = (
        file("/usr/lib/systemd/zram-generator.conf", FEDORA),
        file("/etc/systemd/zram-generator.conf", ""),
    )
    assert zram(vendor, own) == []
    assert zram(vendor, file("/run/systemd/zram-generator.conf", "")) == zram(vendor)
    assert zram(vendor, file(own.path, None, error="missing")) == zram(vendor)
    dropin = file("/etc/systemd/zram-generator.conf.d/x.conf", "[zram0]\nzram-size=0\n[zram1]\n")
    assert zram(dropin, vendor) == [
        ("zram0", vendor.path, 2, False),
        ("zram1", dropin.path, 3, True),
    ]
    masked = file(dropin.path, None, kind="symlink", link="/dev/null")
    assert zram(masked, file("/usr/lib/systemd/zram-generator.conf.d/x.conf", "[zram3]\n")) == []
    assert swap_files.zram([file(own.path, None, error="denied"), vendor]) == (
        [],
        [(own.path, "denied")],
    )


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("Id", "What", "path", "text", "error", "LoadState")), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(ANY)
def test_hostile_shapes_do_not_raise(thing):
    answer = decode(swap_answer.Swap, {"swaps": thing, "fstab": thing, "cmdline": thing}).answer
    assert swap_files.active(answer.swaps) is None or isinstance(thing, str)
    swap_files.units(thing)
    swap_files.fstab(answer.fstab)
    swap_files.words(answer.cmdline)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(blacklist_characters="\n"), max_size=60))
def test_hostile_lines_do_not_raise(text):
    found = swap_files.fstab(file("/etc/fstab", f"{text}\n/swap none swap\n"))[0]
    assert [(line.line, line.device) for line in found][-1] == (2, "/swap")
    assert len(swap_files.active(HEAD + "/a file 1 1 1\n" + text + "\n/b file 1 1 1\n")) == 3
    assert swap_files.unit_name("/" + text).endswith(".swap")
    assert "/" not in swap_files.unit_name("/" + text)


@settings(max_examples=100, deadline=None)
@given(
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="'\"="),
        min_size=1,
        max_size=12,
    ).filter(lambda name: name.strip("./")),
    st.sampled_from((" ", "\t", "\\", "")),
)
def test_a_path_survives_fstab(name, char):
    path = swap_files.node(f"/a{char}{name}")
    escaped = path.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")
    assert fstab(f"{escaped} none swap sw 0 0\n") == [(1, path)]
    assert swap_files.active(HEAD + f"{escaped} file 1 2 3\n") == [Active(path, "file", 1, 2)]
