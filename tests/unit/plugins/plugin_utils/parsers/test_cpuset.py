# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of CPUs as Linux and the kubelet write them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import cpuset

SETS = st.frozensets(st.integers(0, 300))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        ("\n", set()),
        ("0", {0}),
        ("0-3", {0, 1, 2, 3}),
        ("0,10-12,25", {0, 10, 11, 12, 25}),
        (" 3 , 1-2\n", {1, 2, 3}),
        ("1,1-1", {1}),
    ],
)
def test_a_list_is_a_set(text, cpus):
    assert cpuset.parse(text) == cpus


@pytest.mark.parametrize(
    "text",
    ["a", "1-", "-1", "3-1", "1,,2", "1;2", "0x1", "1-2-3", "99999999", "0-65536", "1 2", "٣", ","],
)
def test_what_is_none_says_so(text):
    with pytest.raises(cpuset.CpusetError, match="is no CPU and no range"):
        cpuset.parse(text)


@given(SETS)
def test_it_comes_back(cpus):
    assert cpuset.parse(cpuset.text(cpus)) == cpus


@given(SETS)
def test_the_text_is_canonical(cpus):
    """Ascending, and no two parts could be one."""
    parts = [part.partition("-") for part in cpuset.text(cpus).split(",") if part]
    bounds = [(int(first), int(last or first)) for first, _dash, last in parts]
    assert all(first <= last for first, last in bounds)
    assert all(one[1] + 1 < two[0] for one, two in itertools.pairwise(bounds))


@given(st.text(max_size=30))
def test_any_text_is_a_set_or_refused(text):
    try:
        cpus, problem = cpuset.parse(text), ""
    except cpuset.CpusetError as error:
        cpus, problem = frozenset(), str(error)
    assert all(0 <= cpu < cpuset.MOST for cpu in cpus)
    assert len(problem) < 400
