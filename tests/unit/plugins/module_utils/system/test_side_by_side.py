# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that wait side by side."""

import threading

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import side_by_side


def test_results_have_the_order_of_the_calls():
    together = threading.Barrier(3, timeout=60)

    def call(left, right):
        together.wait()
        return left + right

    assert side_by_side.results(call, [(1, 2), (3, 4), (5, 6)]) == [3, 7, 11]


@pytest.mark.parametrize("calls", [[], [(1,)]])
def test_few_calls_start_no_thread(calls):
    threads = side_by_side.results(lambda _number: threading.current_thread(), calls)
    assert threads == [threading.main_thread()] * len(calls)


@pytest.mark.parametrize("calls", [[("a",)], [("1",), ("a",)]])
def test_an_error_is_raised(calls):
    with pytest.raises(ValueError, match="invalid literal"):
        side_by_side.results(int, calls)


def test_a_bell_that_rang_before_is_not_waited_for():
    bell = side_by_side.Bell()
    for _count in range(2):
        bell.ring()
    bell.wait(600)


def test_a_bell_wakes_who_waits():
    bell = side_by_side.Bell()
    threading.Timer(0.05, bell.ring).start()
    bell.wait(600)


def test_who_waits_for_a_bell_has_a_time_limit():
    side_by_side.Bell().wait(0.01)
