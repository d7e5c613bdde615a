# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter node_tree."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.kubemend.remediation.plugins.filter.node_tree import FilterModule

MASTERS = [{"add": f"ss-stg-ma-0{number}", "zone": "200002"} for number in (1, 2, 3)]
WORKER = {"add": "ss-stg-test-01", "zone": "200004"}
ROUND = {"round": 1}


def test_the_filter():
    node = FilterModule().filters()["node_tree"]
    history = [*MASTERS, ROUND, WORKER, ROUND]
    assert node(history, "v1.18.4")["lost"] == node(history, "1.18")["lost"] == ["ss-stg-ma-03"]
    assert node(history, "v1.36.3")["lost"] == []
    with pytest.raises(AnsibleFilterError, match=r"is not known which .*'v1\.18\.4-tke\.5'"):
        node(history, "v1.18.4-tke.5")
    with pytest.raises(AnsibleFilterError, match="event 0: a is not there"):
        node([{"remove": "a"}], "fixed")
