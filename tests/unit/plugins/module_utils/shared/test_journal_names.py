# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The id of a run, which is a folder's name too."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import journal_names
from ansible_collections.kubemend.remediation.plugins.module_utils.state import targets


def test_a_run_id() -> None:
    assert journal_names.RUN_ID.match("20261121T090000Z-1a2b3c")


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "20261121T090000Z-1a2b3",
        "20261121T090000Z-1A2B3C",
        "20261121T090000Z-1a2b3c\n",
        "20261121T090000Z-1a2b3c/..",
    ],
)
def test_what_is_no_run_id(text: str) -> None:
    assert not journal_names.RUN_ID.match(text)


def test_no_prefix_hides_another_and_none_is_a_path() -> None:
    prefixes = [target.prefix for target in targets.TARGETS if target.prefix]
    assert sorted(prefixes) == sorted(
        [
            journal_names.CONFIG_MAP,
            journal_names.WORKLOAD,
            journal_names.UNIT,
            journal_names.PACKAGES,
            journal_names.LEVEL,
        ]
    )
    for prefix in prefixes:
        assert not prefix.startswith("/")
        assert [other for other in prefixes if other.startswith(prefix)] == [prefix]
