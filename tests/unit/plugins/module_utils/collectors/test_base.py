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


def _process(component, *argv, **more):
    return {
        "component": component,
        "pid": 1,
        "argv": [component, *argv],
        "host_network": True,
        "started_at": 1.0,
        **more,
    }


def test_who_cannot_be_told_is_named():
    processes = [_process("kube-scheduler"), _process("kube-scheduler", host_network=None, pid=7)]
    with pytest.raises(Denied, match="pid 7 "):
        base.in_this_network(
            Context({}, [], {"instances": {"processes": processes}}), ("kube-scheduler",)
        )
