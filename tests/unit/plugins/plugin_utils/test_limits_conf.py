# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""limits.conf and limits.d, as pam_limits reads them.

What single lines give a user was tried on pam_limits 1.5.2 of Debian 12. The files are what the packages of distributions ship, shortened.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubemend.remediation.plugins.plugin_utils import limits_conf
from hypothesis import given
from hypothesis import strategies as st

CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d/"


def record(path: str, text: str | None, **more: Any) -> dict[str, Any]:
    return {"path": path, "kind": "file", "link": None, "text": text, "truncated": False, "binary": False, "error": None, **more}


def read(text: str) -> list[limits_conf.Entry]:
    return limits_conf.entries([record(CONF, text)])


def numbers(text: str, user: str = "kim", *, root: bool = False, wildcard_root: bool = True, item: str = "nofile", **more: Any) -> tuple[Any, Any]:
    """(soft, hard) of a user."""
    soft, hard = limits_conf.for_user(read(text), item, user, root, wildcard_root, **more)
    return soft and soft.number, hard and hard.number


# Debian 12 and Ubuntu 22.04 (libpam-modules) and RHEL 8 and 9 (pam): nothing but comments
FRESH = "#<domain>  <type>  <item>  <value>\n#*               soft    core            0\n#@student        -       maxlogins       4\n\n# End of file\n"
# RHEL 7 (pam 1.1.8): limits.d/20-nproc.conf
RHEL_7 = [record(CONF, FRESH), record(FOLDER + "20-nproc.conf", "# See rhbz #432903 for reasoning.\n\n*          soft    nproc     4096\n"
                                                                "root       soft    nproc     unlimited\n")]
# RHEL 8 (pam 1.3.1) as kubernetes guides leave it
GUIDE = [record(CONF, FRESH + "* soft nofile 655360\n* hard nofile 131072\n* soft nproc 655350\n* hard nproc 655350\n* seft memlock unlimited\n"
                              "* hard memlock unlimitedd\n")]
# Ubuntu 22.04 with a file of its administrator
UBUNTU = [record(CONF, FRESH), record(FOLDER + "90-nofile.conf", "*\t-\tnofile\t1048576\nroot\t-\tnofile\t1048576\n")]


def test_a_fresh_file_limits_nobody():
    assert read(FRESH) == [] and limits_conf.malformed([record(CONF, FRESH)]) == []


def test_rhel_7_lets_root_have_its_processes():
    found = limits_conf.entries(RHEL_7)
    path = FOLDER + "20-nproc.conf"
    assert found == [limits_conf.Entry("*", "soft", "nproc", "4096", 4096, path, 3), limits_conf.Entry("root", "soft", "nproc", "unlimited", -1, path, 4)]
    assert limits_conf.for_user(found, "nproc", "root", True, True) == (found[1], None)
    assert limits_conf.for_user(found, "nproc", "kim", False, True) == (found[0], None)


def test_a_guide_with_a_slip():
    """The slip is widely copied: memlock is not limited at all by it."""
    assert [(entry.kind, entry.item, entry.number) for entry in limits_conf.entries(GUIDE)] == [
        ("soft", "nofile", 655360), ("hard", "nofile", 131072), ("soft", "nproc", 655350), ("hard", "nproc", 655350)]
    first = FRESH.count("\n") + 5
    assert limits_conf.malformed(GUIDE) == [(CONF, first, "unknown type"), (CONF, first + 1, "no number")]
    assert [entry.line for entry in limits_conf.above(limits_conf.entries(GUIDE), "nofile", 500000)] == [first - 4]


def test_ubuntu_needs_a_line_for_root():
    found = limits_conf.entries(UBUNTU)
    assert limits_conf.for_user(found, "nofile", "root", True, False) == (found[1], found[1])
    assert limits_conf.for_user(found[:1], "nofile", "root", True, False) == (None, None)
    assert limits_conf.for_user(found[:1], "nofile", "root", True, True) == (found[0], found[0])


def test_files_in_their_order():
    files = [record(FOLDER + name, "* - nofile 1\n") for name in ("b.conf", "10.conf", "9.conf", "B.conf", ".c.conf", "d.conf.bak")]
    files += [record(CONF, "* - nofile 2\n"), record("/usr/lib/security/limits.d/a.conf", "* - nofile 3\n")]
    assert [entry.path for entry in limits_conf.entries(files)] == [CONF] + [FOLDER + name for name in ("10.conf", "9.conf", "B.conf", "b.conf")]


@pytest.mark.parametrize(("text", "expected"), [
    ("* - nofile 5", (5, 5)), ("* soft nofile 5", (5, None)), ("* hard nofile 5", (None, 5)), ("* HARD NoFile 5#c", (None, 5)),
    ("\t* \t- nofile\t5 # c\r\n", (5, 5)), ("\v* - nofile 5", (5, 5)), ("* - nofile 5x", (5, 5)), ("* - nofile 1e3", (1, 1)), ("* - nofile 0x10", (0, 0)),
    ("* - nofile 5 6", (5, 5)), ("* - nofile +7", (7, 7)), ("* - nofile -0", (0, 0)), ("* - nofile 010", (10, 10)), ("* - nofile Unlimited", (-1, -1)),
    ("* - nofile infinity\r\n", (-1, -1)), ("* - nofile -1", (-1, -1)), ("* - nofile -", (-1, -1)), ("* - nofile unlimited x", (-1, -1)),
    ("* - nofile -5", (2**64 - 5, 2**64 - 5)), ("* - nofile " + "9" * 5000, (-1, -1)), ("* - nofile -" + "9" * 5000, (-1, -1)),
    ("* - nofile 5\n* hard nofile x", (5, 5)), ("* - nofile 5\n* hard nofile 3", (5, 3)), ("kim - nofile 5\n* - nofile 6", (5, 5)),
    ('"kim" - nofile 5', (None, None)), ("# * - nofile 5", (None, None)), ("@wheel - nofile 5", (None, None)), ("0: - nofile 5", (None, None)),
    ("* - nofile 5\nkim -", (None, None)), ("kim -\n* - nofile 5", (None, None)), ("* - nofile 5\nkim -x\n", (None, None)),
    ("* - nofile 5\n* -", (5, 5)), ("* - nofile 5\nlee -\n@wheel -", (5, 5)), ("* - nofile 5\n" + "\r\n", (5, 5)), ("% - nofile 5", (None, None)),
])
def test_a_line_gives_a_user(text, expected):
    assert numbers(text) == expected


@pytest.mark.parametrize(("domain", "holds"), [
    ("1000:", True), ("1000:1000", True), (":1000", True), ("0:1000", True), ("1001:", False), ("0:999", False), (":1001", False), ("1001:5", False),
    ("@users", True), ("@wheel", False), ("@:100", True), ("@:27", True), ("@100:", True), ("@20:30", False), ("@101:", False), ("@90:100", True),
    ("*", True), ("kim", True), ("lee", False),
])
def test_whom_a_domain_holds(domain, holds):
    """A range of gids is for the primary group only."""
    ids = {"uid": 1000, "groups": ["users", "sudo"], "gids": [100, 27]}
    assert numbers(f"{domain} - nofile 5", **ids) == ((5, 5) if holds else (None, None))
    assert numbers(f"* - nofile 5\n{domain} -", **ids) == ((None, None) if holds and domain != "*" else (5, 5))


@pytest.mark.parametrize(("domain", "debian", "red_hat"), [
    ("*", None, 5), ("@root", None, 5), ("@:0", None, 5), ("0:", 5, 5), (":0", 5, 5), ("0:5", 5, 5), ("root", 5, 5), ("1:", None, None),
])
def test_root_is_left_out_of_wildcards_on_debian(domain, debian, red_hat):
    for wildcard_root, value in ((False, debian), (True, red_hat)):
        assert numbers(f"{domain} - nofile 5", "root", root=True, wildcard_root=wildcard_root, groups=["root"], gids=[0]) == (value, value)
    assert numbers("* - nofile 5", wildcard_root=False) == (5, 5)


def test_a_group_is_exempted_with_root_in_it():
    for wildcard_root in (True, False):
        assert numbers("root - nofile 5\n@root -", "root", root=True, wildcard_root=wildcard_root, groups=["root"]) == (None, None)


def test_a_range_of_uids_counts_as_the_user():
    assert numbers("1000: - nofile 5\nkim - nofile 6\n* - nofile 7", uid=1000) == (6, 6)
    assert numbers("kim - nofile 6\n1000: - nofile 5\n* - nofile 7", uid=1000) == (5, 5)


@pytest.mark.parametrize(("line", "why"), [
    ("kim", "fewer than four fields"), ("kim -  nofile", "fewer than four fields"), ("kim soft", "fewer than four fields"),
    ("kim both nofile 5", "unknown type"), ("kim - nofiles 5", "unknown item"), ("kim - nofile many", "no number"), ("kim - nice unlimited", "no number"),
    ("kim - nonewprivs 2", "no number"), (": - nofile 5", "no range of ids"), ("5:x - nofile 5", "no range of ids"), ("@x: - nofile 5", "no range of ids"),
    ("a:b -", "no range of ids"), ("* -", "exempts nobody: not a user, a group or a range"), ("%wheel -", "exempts nobody: not a user, a group or a range"),
    ("%wheel - nofile 5", "% is for maxlogins, of everybody, a group or one gid"),
    ("%5: - maxlogins 5", "% is for maxlogins, of everybody, a group or one gid"),
])
def test_what_pam_limits_passes_over(line, why):
    files = [record(CONF, f"# c\n{line}\nkim - core 0\n")]
    assert limits_conf.malformed(files) == [(CONF, 2, why)]
    assert [entry.item for entry in limits_conf.entries(files)] == ["core"]


@pytest.mark.parametrize(("line", "number"), [
    ("* - maxlogins 4", 4), ("* any maxlogins 4", 4), ("%users - maxlogins 4", 4), ("%:100 - maxlogins 4", 4), ("% - maxlogins 4", 4),
    ("* - maxsyslogins -1", -1), ("* - priority -5", -5), ("* - nice -20", -20), ("* - nice -99999999999", 1 - 2**31), ("* - nonewprivs 1", 1),
    ("* - chroot /srv", None), ("* hard memlock unlimited", -1), ("* - rtprio 99", 99),
])
def test_other_items(line, number):
    assert [entry.number for entry in read(line)] == [number] and limits_conf.malformed([record(CONF, line)]) == []


def test_above_a_ceiling():
    found = read("* soft nofile 1024\n* hard nofile 1048577\nroot - nofile 1048576\nkim - nofile unlimited\n* - nproc unlimited\n* - nproc 4194305\nlee -\n")
    assert [entry.line for entry in limits_conf.above(found, "nofile", 1048576)] == [2, 4]
    assert [entry.line for entry in limits_conf.above(found, "nproc", 4194304)] == [6]


def test_what_is_not_known_is_said():
    files = [record(CONF, None, error="denied"), record(FOLDER + "a.conf", "* -", truncated=True), record(FOLDER + "b", None, error="denied"),
             record(FOLDER + "gone.conf", None, kind="symlink", link="x", error="missing")]
    assert limits_conf.unreadable(files) == [(CONF, "denied"), (FOLDER + "a.conf", "cut off")]


LINES = st.lists(st.tuples(st.sampled_from(["kim", "@users", "*", "lee", "1000:"]), st.sampled_from(["soft", "hard", "-"]),
                           st.sampled_from(["nofile", "nproc"]), st.integers(0, 99)), max_size=8)


@given(LINES)
def test_the_nearest_then_the_last(lines):
    """Against the manual page, said another way: sort by nearness, and the last line stands."""
    text = "".join(f"{domain} {kind} {item} {value}\n" for domain, kind, item, value in lines)
    nearness = {"*": 0, "@users": 1, "kim": 2, "1000:": 2}
    expected = []
    for side in ("soft", "hard"):
        fit = [(nearness[domain], index, value) for index, (domain, kind, item, value) in enumerate(lines)
               if domain in nearness and kind in (side, "-") and item == "nofile"]
        expected.append(max(fit)[2] if fit else None)
    assert numbers(text, uid=1000, groups=["users"]) == tuple(expected)


WORDS = st.sampled_from(["*", "%", "@x", "kim", "-", "soft", "hard", "nofile", "nproc", "nice", "5", "-1", "unlimited", "1:", ":", "#", "\r", "x\0",
                         "\x0c", "é\u2028"])


@given(st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=6))
def test_each_line_is_an_entry_or_malformed_or_empty(lines):
    files = [record(CONF, "\n".join(lines))]
    found = sorted([entry.line for entry in limits_conf.entries(files)] + [line for _path, line, _why in limits_conf.malformed(files)])
    assert found == [number for number, line in enumerate(lines, 1) if line.split("#")[0].strip(" \r\x0c")]


JUNK = st.one_of(st.none(), st.integers(), st.text("*@%:-#\n\r 5x\0", max_size=40), st.lists(st.integers(), max_size=2))
HOSTILE = st.fixed_dictionaries({}, optional={"path": st.one_of(JUNK, st.sampled_from([CONF, FOLDER + "a.conf", FOLDER + ".conf"])), "text": JUNK,
                                              "link": JUNK, "kind": JUNK, "error": JUNK, "truncated": JUNK})


@given(st.one_of(JUNK, HOSTILE, st.lists(st.one_of(JUNK, HOSTILE), max_size=4)))
def test_nothing_that_a_node_says_raises(records):
    found = limits_conf.entries(records)
    assert all(entry.path.startswith("/etc/security/") for entry in found)
    assert len(limits_conf.for_user(found, "nofile", "x", False, True)) == 2
    assert all(why for _path, _line, why in limits_conf.malformed(records)) and all(why for _path, why in limits_conf.unreadable(records))
