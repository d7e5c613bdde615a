# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every collector of a node shares."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
    Denied,
)
from tests.unit.support.instance_rows import component_process


def test_who_cannot_be_told_is_named():
    processes = [
        component_process("kube-scheduler"),
        component_process("kube-scheduler", host_network=None, pid=7),
    ]
    with pytest.raises(Denied, match="pid 7 "):
        base.in_this_network(
            Context({}, [], {"instances": {"processes": processes}}), ("kube-scheduler",)
        )
