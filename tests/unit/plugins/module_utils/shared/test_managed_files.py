# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line of limits.conf that this tool may write."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import managed_files


@pytest.mark.parametrize("key", ["* hard nofile", "root hard nproc", "@admins hard nofile"])
def test_a_limit_of_a_login(key: str) -> None:
    assert managed_files.LOGIN_LIMIT_KEY.match(key)


@pytest.mark.parametrize(
    "key",
    [
        "#a hard nofile",
        "a b hard nofile",
        "* soft nofile",
        "* hard core",
        "* hard nofile\n",
        " hard nofile",
    ],
)
def test_what_reads_as_another_line(key: str) -> None:
    assert not managed_files.LOGIN_LIMIT_KEY.match(key)
