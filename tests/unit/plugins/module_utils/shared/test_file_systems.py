# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each file system of a server is asked by a process of its own, and no local one is."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import hangs
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import file_systems
from ansible_collections.kubemend.remediation.plugins.module_utils.system import etcd_folder

LINE = "36 25 0:32 / /mnt rw,relatime shared:1 - {} source rw"


@pytest.mark.parametrize("kind", file_systems.REMOTE)
def test_of_a_server(kind: str) -> None:
    assert hangs.is_remote_line(LINE.format(kind))
    assert kind in etcd_folder.REMOTE


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay"])
def test_of_this_machine(kind: str) -> None:
    assert not hangs.is_remote_line(LINE.format(kind))
    assert kind not in etcd_folder.REMOTE
