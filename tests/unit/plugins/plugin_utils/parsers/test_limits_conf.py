# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""limits.conf and limits.d, as pam_limits reads them.

pam_limits 1.5.2 of Debian 12 showed which lines count, and with what number. The files are what the
packages of distributions ship, shortened.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import limits_conf
from tests.unit.support.file_evidence import file, files

CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d/"


def read(text: str) -> list[limits_conf.Entry]:
    return limits_conf.entries([file(CONF, text)])


def told(text: str) -> list[tuple[str, str, int | None]]:
    return [(entry.domain, entry.kind, entry.number) for entry in read(text)]


# Debian 12 and Ubuntu 22.04 (libpam-modules) and RHEL 8 and 9 (pam): nothing but comments
FRESH = (
    "#<domain>  <type>  <item>  <value>\n#*               soft    core            0\n#@student     "
    "   -       maxlogins       4\n\n# End of file\n"
)
# RHEL 7 (pam 1.1.8): limits.d/20-nproc.conf
RHEL_7 = [
    file(CONF, FRESH),
    file(
        FOLDER + "20-nproc.conf",
        "# See rhbz #432903 for reasoning.\n\n*          soft    nproc     4096\n"
        "root       soft    nproc     unlimited\n",
    ),
]
# RHEL 8 (pam 1.3.1) as kubernetes guides leave it
GUIDE = [
    file(
        CONF,
        FRESH
        + "* soft nofile 655360\n* hard nofile 131072\n* soft nproc 655350\n* hard nproc 655350\n*"
        " seft memlock unlimited\n* hard memlock unlimitedd\n",
    )
]
# Ubuntu 22.04 with a file of its administrator
UBUNTU = [
    file(CONF, FRESH),
    file(FOLDER + "90-nofile.conf", "*\t-\tnofile\t1048576\nroot\t-\tnofile\t1048576\n"),
]


def test_a_fresh_file_limits_nobody():
    assert read(FRESH) == []


def test_rhel_7_lets_root_have_its_processes():
    found = limits_conf.entries(RHEL_7)
    path = FOLDER + "20-nproc.conf"
    assert found == [
        limits_conf.Entry("*", "soft", "nproc", "4096", 4096, path, 3),
        limits_conf.Entry("root", "soft", "nproc", "unlimited", -1, path, 4),
    ]


def test_a_guide_with_a_slip():
    """The slip is widely copied: memlock is not limited at all by it."""
    assert [(entry.kind, entry.item, entry.number) for entry in limits_conf.entries(GUIDE)] == [
        ("soft", "nofile", 655360),
        ("hard", "nofile", 131072),
        ("soft", "nproc", 655350),
        ("hard", "nproc", 655350),
    ]


def test_files_in_their_order():
    records = [
        file(FOLDER + name, "* - nofile 1\n")
        for name in ("b.conf", "10.conf", "9.conf", "B.conf", ".c.conf", "d.conf.bak")
    ]
    records += [
        file(CONF, "* - nofile 2\n"),
        file("/usr/lib/security/limits.d/a.conf", "* - nofile 3\n"),
    ]
    assert [entry.path for entry in limits_conf.entries(records)] == [CONF] + [
        FOLDER + name for name in ("10.conf", "9.conf", "B.conf", "b.conf")
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("* - nofile 5", 5),
        ("* - NoFile 5#c", 5),
        ("\t* \t- nofile\t5 # c\r\n", 5),
        ("\v* - nofile 5", 5),
        ("* - nofile 5x", 5),
        ("* - nofile 1e3", 1),
        ("* - nofile 0x10", 0),
        ("* - nofile 5 6", 5),
        ("* - nofile +7", 7),
        ("* - nofile -0", 0),
        ("* - nofile 010", 10),
        ("* - nofile Unlimited", -1),
        ("* - nofile infinity\r\n", -1),
        ("* - nofile -1", -1),
        ("* - nofile -", -1),
        ("* - nofile unlimited x", -1),
        ("* - nofile -5", 2**64 - 5),
        ("* - nofile " + "9" * 5000, -1),
        ("* - nofile -" + "9" * 5000, -1),
    ],
)
def test_the_number_of_a_line(text, number):
    assert told(text) == [("*", "-", number)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* soft nofile 5", [("*", "soft", 5)]),
        ("* HARD nofile 5", [("*", "hard", 5)]),
        ("* - nofile 5\n* hard nofile x", [("*", "-", 5)]),
        ("* - nofile 5\n* hard nofile 3", [("*", "-", 5), ("*", "hard", 3)]),
        ('"kim" - nofile 5', [('"kim"', "-", 5)]),
        ("# * - nofile 5", []),
        ("@wheel - nofile 5", [("@wheel", "-", 5)]),
        ("0: - nofile 5", [("0:", "-", 5)]),
        (":1000 - nofile 5", [(":1000", "-", 5)]),
        ("@:100 - nofile 5", [("@:100", "-", 5)]),
        ("kim -", [("kim", "-", None)]),
        ("kim -x\n", [("kim", "-", None)]),
        ("* -", []),
        ("\r\n", []),
    ],
)
def test_lines_that_count_and_whose_they_are(text, expected):
    assert told(text) == expected


def test_who_is_exempt_has_no_item():
    assert [(entry.domain, entry.item) for entry in read("root -\n@root -\n")] == [
        ("root", ""),
        ("@root", ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "kim",
        "kim -  nofile",
        "kim soft",
        "kim both nofile 5",
        "kim - nofiles 5",
        "kim - nofile many",
        "kim - nice unlimited",
        "kim - nonewprivs 2",
        ": - nofile 5",
        "5:x - nofile 5",
        "@x: - nofile 5",
        "a:b -",
        "* -",
        "%wheel -",
        "%wheel - nofile 5",
        "%5: - maxlogins 5",
    ],
)
def test_what_pam_limits_passes_over(line):
    records = [file(CONF, f"# c\n{line}\nkim - core 0\n")]
    assert [entry.item for entry in limits_conf.entries(records)] == ["core"]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("* - maxlogins 4", 4),
        ("* any maxlogins 4", 4),
        ("%users - maxlogins 4", 4),
        ("%:100 - maxlogins 4", 4),
        ("% - maxlogins 4", 4),
        ("* - maxsyslogins -1", -1),
        ("* - priority -5", -5),
        ("* - nice -20", -20),
        ("* - nice -99999999999", 1 - 2**31),
        ("* - nonewprivs 1", 1),
        ("* - chroot /srv", None),
        ("* hard memlock unlimited", -1),
        ("* - rtprio 99", 99),
    ],
)
def test_other_items(line, number):
    assert [entry.number for entry in read(line)] == [number]


def test_what_is_not_known_is_said():
    records = [
        file(CONF, None, error="denied"),
        file(FOLDER + "a.conf", "* -", truncated=True),
        file(FOLDER + "b", None, error="denied"),
        file(FOLDER + "gone.conf", None, kind="symlink", link="x", error="missing"),
    ]
    assert limits_conf.unreadable(records) == [(CONF, "denied"), (FOLDER + "a.conf", "cut off")]


JUNK = st.one_of(
    st.none(),
    st.integers(),
    st.text("*@%:-#\n\r 5x\0", max_size=40),
    st.lists(st.integers(), max_size=2),
)
HOSTILE = st.fixed_dictionaries(
    {},
    optional={
        "path": st.one_of(JUNK, st.sampled_from([CONF, FOLDER + "a.conf", FOLDER + ".conf"])),
        "text": JUNK,
        "link": JUNK,
        "kind": JUNK,
        "error": JUNK,
        "truncated": JUNK,
    },
)


@given(st.one_of(JUNK, HOSTILE, st.lists(st.one_of(JUNK, HOSTILE), max_size=4)))
def test_nothing_that_a_node_says_raises(records):
    found = limits_conf.entries(files(records))
    assert all(entry.path.startswith("/etc/security/") for entry in found)
    assert all(why for _path, why in limits_conf.unreadable(files(records)))
