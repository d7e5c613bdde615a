# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of host names: sorted as people count, with ranges."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    host_names,
)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["w10", "w2", "w1"], "w1, w2, w10"),
        ([f"w{n}" for n in range(1, 61)], "w1-w60"),
        (["m1", "m2", "m3"], "m1, m2, m3"),
        ([f"w{n:02}" for n in range(8, 13)], "w08-w12"),
        ([f"node-{n}" for n in range(4)], "node-0 to node-3"),
        ([f"w{n}.k8s.example" for n in range(1, 5)], "w1.k8s.example-w4.k8s.example"),
        ([f"r{n}n{n}" for n in range(1, 6)], "r1n1, r2n2, r3n3, r4n4, r5n5"),
        (["w9", "w010", "w011", "w12"], "w9, w010, w011, w12"),
        (["a", "b", "a"], "a, b"),
        (["w1", "w2", "w3", "w5", "w6", "w7", "w8"], "w1, w2, w3, w5-w8"),
        ([f"w{n:03}" for n in range(97, 103)], "w097-w102"),
        (["w01", "w1", "w02", "w2"], "w01, w1, w02, w2"),
        ([f"w{n}.a-b.c" for n in range(8, 12)], "w8.a-b.c to w11.a-b.c"),
        ([f"10.0.0.{n}" for n in range(8, 12)], "10.0.0.8-10.0.0.11"),
        ([f"w{n}.{d}" for n in (1, 2) for d in "ab"], "w1.a, w1.b, w2.a, w2.b"),
        ([], ""),
    ],
)
def test_names_are_sorted_naturally_and_joined_to_ranges(names, text):
    assert host_names.join(names) == text


def test_what_does_not_fit_is_counted():
    names = [f"w{n * 3}" for n in range(20)]
    assert host_names.join(names, 2) == "w0, w3 and 18 more"
    assert host_names.counted(names, 2) == "w0, w3 and 18 more (20 hosts)"
    assert host_names.counted(["m1", "m2"]) == "m1, m2"


def test_a_number_that_no_integer_type_holds_is_a_name_like_others():
    names = ["w" + "9" * 5000, "w" + "9" * 4999 + "8", "w\u0663"]
    assert len(host_names.join(names)) > 10_000


def test_a_longer_number_is_no_next_one():
    names = [f"w{10**18 - n}" for n in (3, 2, 1)]
    assert host_names.join([*names, "w1" + "0" * 18 + "5"]).count("-") == 0
