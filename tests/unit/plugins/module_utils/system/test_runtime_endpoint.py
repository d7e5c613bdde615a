# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket at which a kubelet reaches its runtime: its command line, then its files."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import runtime_endpoint

FLAG = "--container-runtime-endpoint="
CONFIG = {"text": "containerRuntimeEndpoint: unix:///run/config.sock\n"}
DROPIN = {"text": "containerRuntimeEndpoint: unix:///run/dropin.sock\n"}


@pytest.mark.parametrize(
    ("kubelet", "path"),
    [
        ({}, None),
        ({"argv": ["kubelet"]}, None),
        ({"argv": ["kubelet", FLAG + "unix:///run/a.sock"]}, "/run/a.sock"),
        ({"argv": ["kubelet", FLAG + "/run/a.sock"]}, "/run/a.sock"),
        ({"argv": ["kubelet", FLAG + "npipe:////./pipe/x"]}, None),
        ({"argv": ["kubelet", FLAG + "/run/a.sock"], "config": CONFIG}, "/run/a.sock"),
        ({"config": CONFIG}, "/run/config.sock"),
        ({"config": CONFIG, "config_dropins": [{"text": "a: b\n"}]}, "/run/config.sock"),
        ({"config": CONFIG, "config_dropins": [CONFIG, DROPIN]}, "/run/dropin.sock"),
        ({"config": {"text": None}, "config_dropins": None}, None),
    ],
)
def test_the_socket(kubelet: "dict[str, Any]", path: Any) -> None:
    assert runtime_endpoint.endpoint(kubelet) == path
