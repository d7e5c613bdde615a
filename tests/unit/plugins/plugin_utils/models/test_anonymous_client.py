# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import anonymous_client

NOBODY = 'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group ""'


def document(component, line):
    row = {"name": f"{component}.service", "component": component, "active_state": "active"}
    units = {"units": [{**row, "lines": [line]}]}
    return {"collectors": {"component_units": {"status": "ok", "data": units}}}


@pytest.mark.parametrize(
    ("component", "line", "is_named"),
    [
        ("kube-scheduler", NOBODY, True),
        ("kube-scheduler", NOBODY.replace("anonymous", "kube-scheduler"), False),
        ("kube-apiserver", NOBODY, False),
    ],
)
def test_who_comes_without_credentials(component, line, is_named):
    found = document(component, line)
    assert (component in anonymous_client.extract(found)) is is_named
    assert anonymous_client.running(found) == {component}
