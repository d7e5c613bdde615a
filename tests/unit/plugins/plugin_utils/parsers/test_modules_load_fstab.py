# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""modules-load.d and fstab, as the machine that boots reads them."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    modules_load_fstab,
)
from tests.unit.support.file_evidence import file, files

ETC, USR, OLD = "/etc/modules-load.d", "/usr/lib/modules-load.d", "/lib/modules-load.d"
DEBIAN = file(
    f"{ETC}/modules.conf",
    "# /etc/modules: kernel modules to load at boot time.\n\nbr_netfilter\n",
    kind="symlink",
    link="../modules",
)


@pytest.mark.parametrize(
    ("records", "named"),
    [
        (
            [file(f"{ETC}/k8s.conf", "overlay\nbr_netfilter\n")],
            [("overlay", 1), ("br_netfilter", 2)],
        ),
        (
            [file(f"{ETC}/containerd.conf", "# comment\n; another\n\n  overlay  \r\n")],
            [("overlay", 4)],
        ),
        # Debian, Ubuntu: read by its link alone
        ([DEBIAN, file("/etc/modules", "br_netfilter\n")], [("br_netfilter", 3)]),
        ([file("/etc/modules", "br_netfilter\n")], []),  # RHEL, SUSE: nobody reads it
        ([file(f"{ETC}/a.conf", "br-netfilter\n")], [("br_netfilter", 1)]),
        ([file(f"{ETC}/a.conf", "loop max_loop=64\nbr_netfilter overlay\n")], []),
        (
            [
                file(f"{ETC}/a.conf.bak", "overlay\n"),
                file(f"{ETC}/.a.conf", "overlay\n"),
                file(f"{ETC}/sub/a.conf", "overlay\n"),
            ],
            [],
        ),
        # masked
        (
            [
                file(f"{USR}/fwupd.conf", "msr\n"),
                file(f"{ETC}/fwupd.conf", None, kind="symlink", link="/dev/null"),
            ],
            [],
        ),
        ([file(f"{OLD}/a.conf", "overlay\n"), file(f"{USR}/a.conf", "")], []),
        ([file(f"{ETC}/b.conf", "b\n"), file(f"{USR}/a.conf", "a\n")], [("a", 1), ("b", 1)]),
    ],
)
def test_modules(records, named):
    assert [(one.name, one.line) for one in modules_load_fstab.modules(records)] == named


def test_a_place_is_where_an_operator_edits_it():
    (one,) = modules_load_fstab.modules([DEBIAN])
    assert one.place == "/etc/modules-load.d/modules.conf:3 (/etc/modules)"


def test_what_was_not_read():
    denied = {"error": "denied"}
    unreadable = [
        file(f"{ETC}/a.conf", **denied),
        file("/etc/modules", **denied),
        file(USR, kind="directory", **denied),
    ]
    assert modules_load_fstab.unread(unreadable) == [f"{ETC}/a.conf", USR]
    # it is hidden
    assert (
        modules_load_fstab.unread(
            [
                file(f"{ETC}/a.conf", "a\n"),
                file(f"{USR}/a.conf", **denied),
                file(f"{OLD}", None, error="missing"),
            ]
        )
        == []
    )
    assert (
        modules_load_fstab.unread(
            [DEBIAN, file(f"{ETC}/b.conf", None, kind="symlink", link="../gone", error="missing")]
        )
        == []
    )


NAMES = st.sampled_from(["a.conf", "b.conf", "k8s.conf", "z.conf", ".x.conf", "x.bak"])
LINES = st.sampled_from(
    [
        "overlay",
        "br_netfilter",
        "br-netfilter",
        " overlay ",
        "# overlay",
        "",
        "; x",
        "two words",
        "\x0c",
    ]
)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(modules_load_fstab.FOLDERS), NAMES), st.lists(LINES, max_size=4)
    )
)
def test_modules_by_a_second_reading(texts):
    """Written down anew: of each name the file of the first folder, by name, a module a line."""
    expected = []
    for name in sorted({name for dummy, name in texts}):
        if name.startswith(".") or not name.endswith(".conf"):
            continue
        folder = next(folder for folder in modules_load_fstab.FOLDERS if (folder, name) in texts)
        for number, line in enumerate(texts[folder, name], 1):
            if line.strip() and line.strip()[0] not in "#;" and " " not in line.strip():
                expected.append(
                    (posixpath.join(folder, name), number, line.strip().replace("-", "_"))
                )
    records = [
        file(posixpath.join(*key), "\n".join(lines))
        for key, lines in sorted(texts.items(), reverse=True)
    ]
    assert [
        (one.path, one.line, one.name) for one in modules_load_fstab.modules(records)
    ] == expected


@given(
    st.one_of(
        st.none(),
        st.text(),
        st.lists(
            st.one_of(
                st.integers(),
                st.dictionaries(
                    st.sampled_from(["path", "text", "link", "kind"]), st.text() | st.none()
                ),
            )
        ),
    )
)
def test_whatever_comes_as_records(records):
    assert isinstance(modules_load_fstab.modules(files(records)), list)
    assert isinstance(modules_load_fstab.unread(files(records)), list)


@pytest.mark.parametrize(
    ("line", "mount"),
    [
        (
            "UUID=aa /var/lib/etcd ext4 defaults,nofail 0 2",
            ("UUID=aa", "/var/lib/etcd", "ext4", ("defaults", "nofail")),
        ),
        ("LABEL=x\t//var//lib/\txfs\tnoatime\t0\t0", ("LABEL=x", "/var/lib", "xfs", ("noatime",))),
        ("/dev/sdb /mnt/a\\040b ext4", ("/dev/sdb", "/mnt/a b", "ext4", ())),
        (
            "/srv/docker /var/lib/docker none bind\r",
            ("/srv/docker", "/var/lib/docker", "none", ("bind",)),
        ),
        ("/dev/sdb none swap sw 0 0", None),
        ("/swap swap swap defaults", None),
        ("# /dev/sdb /var ext4 defaults", None),
        ("/dev/sdb /var", None),
        ("", None),
    ],
)
def test_fstab(line, mount):
    found = modules_load_fstab.mounts(file("/etc/fstab", "# first\n" + line + "\n"))
    assert [(one.what, one.point, one.type, one.options) for one in found] == (
        [mount] if mount else []
    )
    assert all(one.line == 2 for one in found)


@pytest.mark.parametrize(
    ("options", "is_off"),
    [
        ("noauto", True),
        ("defaults", False),
        ("noauto,auto", False),
        ("auto,noauto", True),
        ("xnoauto", False),
    ],
)
def test_noauto(options, is_off):
    assert (
        modules_load_fstab.mounts(file("/etc/fstab", f"/dev/sdb /var ext4 {options} 0 0"))[0].noauto
        is is_off
    )


@given(st.text(max_size=200))
def test_whatever_fstab_says(text):
    assert all(
        one.point.startswith("/") for one in modules_load_fstab.mounts(file("/etc/fstab", text))
    )
