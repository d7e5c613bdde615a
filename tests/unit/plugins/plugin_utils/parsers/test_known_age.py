# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    known_age,
    known_message,
    release_number,
)
from tests.docs import known_messages as page

ROWS = {row.id: row for rows in known_message.files().values() for row in rows}
LINES = [line for name in known_message.files() for line in page.examples(name)]
OF_AGES = [line for line in LINES if line[0] in known_age.table()]
# A cause that takes the kernel of the node for too old.
_OLD_KERNEL = re.compile(
    r"kernel[^.:;]{0,60} (?:too old|older|an older one)|[Kk]ernels? before|older than Linux"
)
# Rows without a line of the table, and why.
WITHOUT = {
    # The line names no release that is new enough.
    "ceph-features-of-kernel",
    "ceph-protocol-of-kernel",
    "file-system-not-taken",
    "rbd-kernel-too-old",
    "runc-newer-than-old-kernel",
    "docker-needs-newer-kernel",
    # An old kernel is one of several reasons for the rights that are missing.
    "bpf-memory-not-permitted",
    # Another program or another interface of the kernel is old there.
    "iptables-table-missing",
    "nft-crashes-at-newer-sets",
}
DEAD_CODE = "cilium-kernel-without-large-programs"
PROBE = "requirements failed: Require support for dead code elimination (Linux 5.1 or newer)"


def test_the_table_has_its_columns_and_names_rows() -> None:
    lines = known_age.TABLE.read_text(encoding="utf-8").splitlines()
    assert tuple(lines[0].split("\t")) == known_age.COLUMNS
    assert all(len(line.split("\t")) == len(known_age.COLUMNS) for line in lines[1:])
    assert known_age.table().keys() <= ROWS.keys()


def test_a_line_has_a_cause_and_an_advice_or_neither() -> None:
    for name, ages in known_age.table().items():
        groups = {*ROWS[name].pattern.groupindex, "running"}
        for age in ages:
            assert bool(age.cause) == bool(age.advice)
            for text in (age.before, age.cause, age.advice):
                assert set(re.findall(r"\{([a-z_]+)\}", text)) <= groups


@pytest.mark.parametrize(("name", "place", "text"), OF_AGES, ids=[line[0] for line in OF_AGES])
def test_nothing_old_is_blamed_on_a_node_that_is_new(name: str, place: str, text: str) -> None:
    programs = {age.program for age in known_age.table()[name]}
    new = tuple((program, "99.0.0") for program in sorted(programs))
    old = tuple((program, "0.1") for program in sorted(programs))
    blamed = known_message.find((place,), text)
    assert blamed is not None
    assert known_message.find((place,), text, None, old) == blamed
    found = known_message.find((place,), text, None, new)
    assert found is None or found.cause != blamed.cause


def test_each_row_that_blames_an_old_kernel_is_compared_with_the_kernel() -> None:
    blaming = {name for name, row in ROWS.items() if _OLD_KERNEL.search(row.cause)}
    assert blaming - known_age.table().keys() == WITHOUT


@pytest.mark.parametrize(
    ("kernel", "is_old"),
    [
        ("6.1.0-37-amd64", False),
        ("5.1.0", False),
        ("4.18.0-348.el8.x86_64", True),
        ("unknown", True),
    ],
)
def test_the_release_that_a_line_names_is_the_limit(kernel: str, is_old: bool) -> None:
    found = known_message.find(("network",), PROBE, None, ((known_age.KERNEL, kernel),))
    assert found is not None
    assert found.id == DEAD_CODE
    assert ("too old" in found.cause) is is_old
    assert (kernel in found.cause) is not is_old
    assert ("bpf_jit_harden" in found.advice) is not is_old


def test_the_runtime_of_another_name_tells_nothing() -> None:
    text = "rpc error: unknown service runtime.v1.RuntimeService"
    blamed = known_message.find(("kubelet",), text)
    assert known_message.find(("kubelet",), text, None, (("cri-o", "1.33.0"),)) == blamed
    found = known_message.find(("kubelet",), text, None, (("containerd", "v1.7.27"),))
    assert found is not None
    assert blamed is not None
    assert found.cause != blamed.cause


def test_a_limit_of_the_table_is_a_release() -> None:
    for ages in known_age.table().values():
        for age in ages:
            assert "{" in age.before or release_number.parse(age.before) is not None


@pytest.mark.parametrize(
    ("versions", "is_refuted"),
    [
        ((("docker", "24.0"),), True),
        ((("docker", "19.03"),), False),
        ((("containerd", "1.7.0"), ("docker", "24.0")), True),
        ((("containerd", "1.7.0"), ("docker", "19.03")), False),
        ((("crio", "1.30"),), False),
        ((), False),
    ],
)
def test_each_program_that_is_known_has_to_be_new_enough(versions, is_refuted) -> None:
    name = "runtime-older-than-cgroup-v2"
    match = re.match("", "")
    assert match is not None
    assert (known_age.refuted(name, match, versions) is not None) == is_refuted
