# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel settings that sysctl.d files make, at boot and by hand.

The files are what the packages of distributions ship, shortened. What is said of procps was
compared with sysctl 4.0.2 of Debian 12 (--dry-run).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    file_record,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    boot as boot_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    conf_lines,
    sysctl_d,
)
from tests.unit.support import file_evidence
from tests.unit.support.file_evidence import named_file

WATCHES, INSTANCES, PID_MAX = (
    "fs.inotify.max_user_watches",
    "fs.inotify.max_user_instances",
    "kernel.pid_max",
)
LIMITS = (WATCHES, INSTANCES, PID_MAX, "fs.file-max", "fs.nr_open")


def link(path: str, to: str, text: str | None = None, **more: Any) -> file_record.FileRecord:
    return named_file(path, text, kind="symlink", link=to, **more)


def both(text: str, key: str) -> tuple[str | None, str | None]:
    """(at boot, by hand) for one file."""
    files = [named_file("/etc/sysctl.d/50-a.conf", text)]
    found = [
        read(files, [key]).get(sysctl_d.canonical(key))
        for read in (sysctl_d.at_boot, sysctl_d.by_hand)
    ]
    return tuple(one and one.value for one in found)


# Debian 12: systemd 252 (50-pid-max), procps 4.0.2 (99-protect-links, sysctl.conf and the link to
# it)
DEBIAN_12 = [
    named_file("/usr/lib/sysctl.d/50-pid-max.conf", "kernel.pid_max = 4194304\n"),
    named_file(
        "/usr/lib/sysctl.d/99-protect-links.conf",
        "fs.protected_fifos = 1\nfs.protected_hardlinks = 1\nfs.protected_regular ="
        " 2\nfs.protected_symlinks = 1\n",
    ),
    link(
        "/etc/sysctl.d/99-sysctl.conf",
        "../sysctl.conf",
        "#kernel.printk = 3 4 1 3\n#net.ipv4.ip_forward=1\n",
    ),
    named_file("/etc/sysctl.conf", "#kernel.printk = 3 4 1 3\n#net.ipv4.ip_forward=1\n"),
]
# RHEL 7: systemd 219 (50-default), initscripts (00-system, sysctl.conf), libvirt-daemon
# (60-libvirtd)
RHEL_7 = [
    named_file("/usr/lib/sysctl.d/00-system.conf", "net.bridge.bridge-nf-call-iptables = 0\n"),
    named_file(
        "/usr/lib/sysctl.d/50-default.conf",
        "kernel.sysrq = 16\nkernel.core_uses_pid = 1\nkernel.kptr_restrict ="
        " 1\nnet.ipv4.conf.default.rp_filter = 1\nnet.ipv4.conf.all.rp_filter ="
        " 1\nfs.protected_hardlinks = 1\n",
    ),
    named_file("/usr/lib/sysctl.d/60-libvirtd.conf", "fs.aio-max-nr = 1048576\n"),
    link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf", "# see sysctl.conf(5)\n"),
    named_file("/etc/sysctl.conf", "# see sysctl.conf(5)\n"),
]
# RHEL 9: systemd 252 (50-default and 50-pid-max), elfutils-default-yama-scope
# (10-default-yama-scope)
RHEL_9 = [
    named_file("/usr/lib/sysctl.d/10-default-yama-scope.conf", "kernel.yama.ptrace_scope = 0\n"),
    named_file(
        "/usr/lib/sysctl.d/50-default.conf",
        "kernel.sysrq = 16\nnet.ipv4.conf.default.rp_filter = 2\nnet.ipv4.conf.*.rp_filter = 2\n"
        "-net.ipv4.conf.all.rp_filter\n-net.ipv4.ping_group_range = 0 2147483647\n",
    ),
    named_file("/usr/lib/sysctl.d/50-pid-max.conf", "kernel.pid_max = 4194304\n"),
    link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf", ""),
    named_file("/etc/sysctl.conf", ""),
]
# Ubuntu 22.04: procps 3.3.17 (those in /etc), systemd 249 (50-pid-max)
UBUNTU_22_04 = [
    named_file("/etc/sysctl.d/10-magic-sysrq.conf", "kernel.sysrq = 176\n"),
    named_file(
        "/etc/sysctl.d/10-network-security.conf",
        "net.ipv4.conf.default.rp_filter=2\nnet.ipv4.conf.all.rp_filter=2\n",
    ),
    named_file("/etc/sysctl.d/10-zeropage.conf", "vm.mmap_min_addr = 65536\n"),
    named_file("/usr/lib/sysctl.d/50-pid-max.conf", "kernel.pid_max = 4194304\n"),
    link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf", "#net.ipv4.ip_forward=1\n"),
    named_file("/etc/sysctl.conf", "#net.ipv4.ip_forward=1\n"),
]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (DEBIAN_12, {PID_MAX: "4194304"}),
        (RHEL_7, {}),
        (RHEL_9, {PID_MAX: "4194304"}),
        (UBUNTU_22_04, {PID_MAX: "4194304"}),
    ],
    ids=["debian-12", "rhel-7", "rhel-9", "ubuntu-22.04"],
)
def test_a_fresh_machine(files, expected):
    for read in (sysctl_d.at_boot, sysctl_d.by_hand):
        assert {key: found.value for key, found in read(files, LIMITS).items()} == expected
    assert sysctl_d.unreadable(files) == []


def test_rhel_9_spares_all_from_the_glob():
    keys = [f"net.ipv4.conf.{name}.rp_filter" for name in ("all", "default", "eth0", "eth0/7")]
    for read in (sysctl_d.at_boot, sysctl_d.by_hand):
        found = read(RHEL_9, [*keys, "net.ipv4.ping_group_range", "kernel.sysrq"])
        assert sorted(found) == sorted([*keys[1:], "net.ipv4.ping_group_range", "kernel.sysrq"])
        assert found[keys[2]] == sysctl_d.Setting(
            keys[2], "2", "/usr/lib/sysctl.d/50-default.conf", 3
        )
        assert found["net.ipv4.ping_group_range"].value == "0 2147483647"
        assert found[keys[1]].overrides == (("/usr/lib/sysctl.d/50-default.conf", 3, "2"),)


def test_the_link_beats_a_file_that_sorts_before_it():
    """What kubespray writes into 99-sysctl.conf stands in /etc/sysctl.conf."""
    text = f"# ours\n{WATCHES}=65536\n"
    files = [
        link("/etc/sysctl.d/99-sysctl.conf", "../sysctl.conf", text),
        named_file("/etc/sysctl.conf", text),
        named_file("/etc/sysctl.d/99-kubernetes.conf", f"{WATCHES} = 524288\n"),
    ]
    lost = (("/etc/sysctl.d/99-kubernetes.conf", 1, "524288"),)
    assert sysctl_d.at_boot(files, LIMITS) == {
        WATCHES: sysctl_d.Setting(
            WATCHES, "65536", "/etc/sysctl.d/99-sysctl.conf", 2, "/etc/sysctl.conf", lost
        )
    }
    assert sysctl_d.by_hand(files, LIMITS) == {
        WATCHES: sysctl_d.Setting(WATCHES, "65536", "/etc/sysctl.conf", 2, None, lost)
    }


def test_without_a_link_sysctl_conf_holds_by_hand_only():
    files = [
        named_file("/etc/sysctl.conf", f"{INSTANCES}=8192\n"),
        named_file("/etc/sysctl.d/zz.conf", f"{INSTANCES}=256\n"),
    ]
    assert sysctl_d.at_boot(files, LIMITS)[INSTANCES].value == "256"
    assert sysctl_d.by_hand(files, LIMITS)[INSTANCES].value == "8192"
    assert sysctl_d.by_hand(files, LIMITS)[INSTANCES].overrides == (
        ("/etc/sysctl.d/zz.conf", 1, "256"),
    )


@pytest.mark.parametrize(
    "mask",
    [
        named_file("/etc/sysctl.d/50-pid-max.conf", ""),
        link("/etc/sysctl.d/50-pid-max.conf", "/dev/null"),
        link("/etc/sysctl.d/50-pid-max.conf", "../../dev/null"),
        link("/etc/sysctl.d/50-pid-max.conf", "gone", error="missing"),
    ],
    ids=["empty", "null", "relative null", "dangling"],
)
def test_a_file_in_etc_masks_its_namesake(mask):
    for files in ([mask, *DEBIAN_12], [*DEBIAN_12, mask]):
        assert sysctl_d.at_boot(files, [PID_MAX]) == sysctl_d.by_hand(files, [PID_MAX]) == {}
        assert sysctl_d.unreadable(files) == []


def test_names_sort_across_folders():
    files = [
        named_file("/etc/sysctl.d/10-a.conf", "fs.file-max=1"),
        named_file("/usr/lib/sysctl.d/20-b.conf", "fs.file-max=2"),
        named_file("/run/sysctl.d/15-c.conf", "fs.file-max=3"),
        named_file("/usr/local/lib/sysctl.d/9-d.conf", "fs.file-max=4"),
        named_file("/etc/sysctl.d/README", "fs.file-max=5"),
        named_file("/opt/sysctl.d/99-e.conf", "fs.file-max=6"),
    ]
    found = sysctl_d.at_boot(files, ["fs.file-max"])["fs.file-max"]
    assert (found.value, found.path) == ("4", "/usr/local/lib/sysctl.d/9-d.conf")
    assert [value for _path, _line, value in found.overrides] == ["1", "3", "2"]


def test_systemd_passes_over_a_hidden_file():
    files = [named_file("/etc/sysctl.d/.a.conf", "fs.nr_open=7")]
    assert sysctl_d.at_boot(files, LIMITS) == {}
    assert sysctl_d.by_hand(files, LIMITS)["fs.nr_open"].value == "7"


@pytest.mark.parametrize(
    "text",
    [
        "kernel.pid_max=5",
        "kernel/pid_max = 5\n",
        "  kernel.pid_max\t=\t5  \n",
        "-kernel.pid_max=5\n",
        "- kernel.pid_max=5",
        "kernel.pid_max=5\r\n",
        "kernel.pid_max=4\r\nkernel.pid_max=5\r\n",
        "/kernel/pid_max=5",
        "# kernel.pid_max=4\n;kernel.pid_max=4\nnonsense\n\nkernel.pid_max=5\n#kernel.pid_max=6",
        "kernel.*=4\nkernel.pid_max=5",
        "kernel.pid_max=5\nkernel.*=4",
        "kernel.pid_[a-m]ax=4\nkernel.p?d_max=5",
        "kernel.*=5\n*=4\n*.*.*=4\n",
        "kernel.[^a-o]id_max=5\nkernel.[^p]id_max=4",
        "kernel.pid_max=5\nkernel.threads-max=4",
        "=4\n-\n-=4\nkernel.pid_max=5\n",
        "kernel.*=5\nkernel.[z-a]*=4",
    ],
)
def test_both_find_it(text):
    assert both(text, PID_MAX) == ("5", "5")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "#kernel.pid_max=5",
        "kernel.pid_max",
        "kernel.pid_max 5",
        "-kernel.pid_max",
        "kernel.*=5\n-kernel.pid_max",
        "-kernel.pid_max\nkernel.*=5",
        "*=5",
        "pid_max=5",
        "kernel.pid_max.x=5",
        "xkernel.pid_max=5",
        "k" * 600 + "=5",
    ],
)
def test_neither_finds_it(text):
    assert both(text, PID_MAX) == (None, None)


@pytest.mark.parametrize(
    ("text", "boot", "hand"),
    [
        # to systemd the exclusion replaces the assignment
        ("kernel.pid_max=5\n-kernel.pid_max\n", None, "5"),
        ("kernel.*=5\n-kernel.pid*\n", "5", "5"),  # an exclusion has no wildcards
        ("kernel.*=5\n-kernel.*\n", None, "5"),  # though to systemd it replaces the glob itself
        # systemd leaves a repeated glob where it was
        ("k*.pid_max=5\nkernel.p*=6\nk*.pid_max=5\n", "6", "5"),
        ("k*.pid_max=4\nkernel.p*=6\nk*.pid_max=5\n", "5", "5"),
    ],
)
def test_what_only_order_and_exclusions_decide(text, boot, hand):
    assert both(text, PID_MAX) == (boot, hand)


def test_an_explicit_one_tells_of_the_glob_that_it_beats():
    found = sysctl_d.at_boot(
        [named_file("/etc/sysctl.d/a.conf", f"{INSTANCES}=1\nfs.inotify.*=2\n{INSTANCES}=3\n")],
        [INSTANCES],
    )[INSTANCES]
    assert (found.value, found.line) == ("3", 3)
    assert found.overrides == (("/etc/sysctl.d/a.conf", 1, "1"), ("/etc/sysctl.d/a.conf", 2, "2"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("net.ipv4.conf.eth0/1.x", "net.ipv4.conf.eth0/1.x"),
        ("net/ipv4/conf/eth0.1/x", "net.ipv4.conf.eth0/1.x"),
        (" fs/nr_open ", "fs.nr_open"),
        ("fs.nr_open", "fs.nr_open"),
        ("/fs//nr_open", "fs.nr_open"),
        ("fs", "fs"),
        ("", ""),
    ],
)
def test_a_key_has_one_name(key, name):
    assert sysctl_d.canonical(key) == name


def test_a_file_counts_once():
    files = [
        named_file("/etc/sysctl.d/a.conf", "fs.nr_open=1"),
        named_file("/etc/sysctl.d/a.conf", "fs.nr_open=2"),
    ]
    assert sysctl_d.at_boot(files, LIMITS)["fs.nr_open"].value == "1"
    files = [
        named_file("/etc/sysctl.conf", "fs.nr_open=1"),
        named_file("/etc/sysctl.conf", "fs.nr_open=2"),
    ]
    assert sysctl_d.by_hand(files, LIMITS)["fs.nr_open"].overrides == ()


def test_only_what_is_asked_for():
    files = [named_file("/etc/sysctl.d/a.conf", "net.ipv4.conf.*.rp_filter=1\nfs.nr_open=2\n")]
    assert sysctl_d.at_boot(files, ["fs/nr_open"]) == {
        "fs.nr_open": sysctl_d.Setting("fs.nr_open", "2", "/etc/sysctl.d/a.conf", 2)
    }
    assert sysctl_d.at_boot(files, []) == {}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"text": None, "error": "denied"}, "denied"),
        ({"truncated": True}, "cut off"),
        ({"text": None, "truncated": True}, "too long"),
        ({"text": None, "binary": True}, "no text"),
        ({"text": None, "kind": "other"}, "no regular file"),
        ({"text": None}, "no regular file"),
        ({"text": "\n" * 9 + "#\n" * (conf_lines.MAX_LINES - 9)}, None),
        ({"text": "#\n" * (conf_lines.MAX_LINES + 1)}, "more than 20000 lines"),
        ({"text": None, "error": "missing"}, None),
        ({"text": None, "kind": "directory"}, None),
        ({}, None),
    ],
)
def test_what_is_not_known_is_said(more, why):
    for path in ("/etc/sysctl.d/50-a.conf", "/etc/sysctl.conf"):
        assert sysctl_d.unreadable([named_file(path, **more)]) == ([(path, why)] if why else [])
    masked = [
        named_file("/etc/sysctl.d/50-a.conf"),
        named_file("/lib/sysctl.d/50-a.conf", **more),
    ]
    assert sysctl_d.unreadable(masked) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8192", 8192),
        (" 8192\t\n", 8192),
        ("0x10", 16),
        ("0X1F", 31),
        ("010", 8),
        ("0", 0),
        ("00", 0),
        ("-1", -1),
        ("-0x10", -16),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", None),
        ("-18446744073709551615", None),
        ("", None),
        ("-", None),
        ("+1", None),
        ("08", None),
        ("0x", None),
        ("1e6", None),
        ("1_000", None),
        ("1 2", None),
        ("1k", None),
        ("٣", None),
        ("0b1", None),
        ("0o7", None),
        ("- 1", None),
        ("1\n1", None),
        (None, None),
        (5, None),
        ("9" * 10**5, None),
    ],
)
def test_a_number_is_what_the_kernel_takes(text, value):
    running = decode(boot_answer.Boot, {"running": {"key": text}}).answer.running
    assert sysctl_d.number(running.get("key")) == value


@given(st.integers(-(2**62), 2**64 - 1))
def test_a_number_comes_back_in_each_base(value):
    sign, size = "-" * (value < 0), abs(value)
    texts = [f"{sign}{size}", f"{sign}{size:#x}"] + [f"{sign}0{size:o}"] * (size < 2**50)
    assert {sysctl_d.number(text) for text in texts} == {value}


@given(st.text("0123456789abcdefxX-+ \n", max_size=24))
def test_any_number_is_one_to_strtoul_too(text):
    value = sysctl_d.number(text)
    if value is not None:
        digits = text.strip().lstrip("-")
        assert value == (-1) ** ("-" in text) * int(
            digits, 8 if digits.isdigit() and digits[0] == "0" else 0
        )


FILES = st.dictionaries(
    st.tuples(
        st.sampled_from(sysctl_d.FOLDERS),
        st.sampled_from(["10-a.conf", "50-b.conf", "9.conf", "B.conf", "a.conf"]),
    ),
    st.lists(st.tuples(st.sampled_from(LIMITS), st.integers(0, 9)), max_size=4),
    max_size=8,
)


@given(FILES, st.randoms(use_true_random=False))
def test_the_last_of_the_files_that_count(files, rnd):
    """Against what the manual page says, said another way.

    The order of the records does not matter.
    """
    expected: dict[str, list[str]] = {}
    for name in sorted({name for _folder, name in files}):
        folder = next(folder for folder in sysctl_d.FOLDERS if (folder, name) in files)
        for key, value in files[folder, name]:
            expected.setdefault(key, []).append(str(value))
    records = [
        named_file(f"{folder}/{name}", "".join(f"{key} = {value}\n" for key, value in lines))
        for (folder, name), lines in files.items()
    ]
    rnd.shuffle(records)
    for read in (sysctl_d.at_boot, sysctl_d.by_hand):
        found = read(records, LIMITS)
        assert {
            key: [value for _path, _line, value in one.overrides] + [one.value]
            for key, one in found.items()
        } == expected


JUNK = st.one_of(
    st.none(),
    st.integers(),
    st.booleans(),
    st.text("*?[]!^-./=#;\n\r aknz\0", max_size=40),
    st.lists(st.integers(), max_size=2),
)
PATHS = st.one_of(
    JUNK,
    st.sampled_from(
        ["/etc/sysctl.d/a.conf", "/run/sysctl.d/a.conf", "/etc/sysctl.conf", "/etc/sysctl.d/.conf"]
    ),
)
HOSTILE = st.fixed_dictionaries(
    {},
    optional={
        "path": PATHS,
        "text": JUNK,
        "link": JUNK,
        "kind": st.sampled_from(["symlink", "file", None]),
        "error": JUNK,
        "truncated": JUNK,
        "binary": JUNK,
    },
)


@given(st.one_of(JUNK, HOSTILE, st.lists(st.one_of(JUNK, HOSTILE), max_size=4)))
def test_nothing_that_a_node_says_raises(records):
    files = file_evidence.files(records)
    for read in (sysctl_d.at_boot, sysctl_d.by_hand):
        for key, found in read(files, ["kn.az", "a/k"]).items():
            assert key == found.key
            assert key in ("kn.az", "a.k")
            assert found.line > 0
    assert all(isinstance(path, str) and why for path, why in sysctl_d.unreadable(files))
