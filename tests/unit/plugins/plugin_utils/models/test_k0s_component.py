# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which component k0s started last that ended."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import k0s_component

LINE = (
    '2027-01-15T08:00:00+0000 m1 k0s[7]: time="2027-01-15 08:00:00" level=info msg="Error: open /a:'
    ' permission denied" component=kube-apiserver'
)
CLOCK = 1_800_000_000.0


@pytest.mark.parametrize(
    ("clock", "running", "component"),
    [
        (CLOCK, (), "kube-apiserver"),
        (CLOCK, ("etcd",), "kube-apiserver"),
        (CLOCK, ("kube-apiserver",), None),
        (CLOCK + 301, (), None),
        (None, (), None),
    ],
)
def test_a_component_that_ended(clock, running, component):
    end = k0s_component.ended([LINE, "no line of a component"], clock, running)
    assert (end.component if end is not None else None) == component
    if end is not None:
        assert end.line.startswith("time=")
        assert k0s_component.message(end).endswith("permission denied")
