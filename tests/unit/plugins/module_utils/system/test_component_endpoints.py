# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a component of the control plane answers."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_endpoints,
)


@pytest.mark.parametrize(
    ("argv", "doors"),
    [
        ([], [("127.0.0.1", 6443, True)]),
        (["--secure-port=16443", "--bind-address=0.0.0.0"], [("127.0.0.1", 16443, True)]),
        (["--advertise-address=10.0.0.1"], [("127.0.0.1", 6443, True), ("10.0.0.1", 6443, True)]),
        (["--secure-port=x"], []),
    ],
)
def test_where_an_api_server_is_asked(argv: list[str], doors: list[tuple[str, int, bool]]) -> None:
    assert component_endpoints.doors("kube-apiserver", argv) == doors
