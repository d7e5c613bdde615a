# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubeconfig and the API server that a node uses."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    kubeconfig,
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("    - --advertise-address=10.1.2.3\n    - --secure-port=6444\n", "https://10.1.2.3:6444"),
        ("    - --advertise-address=fd00::1\n", "https://[fd00::1]:6443"),
        ("    - --v=2\n", None),
    ],
)
def test_the_local_api_server_is_found_in_its_manifest(tmp_path, text, url):
    (tmp_path / "kube-apiserver.yaml").write_text(text)
    assert (
        kubeconfig.local_server([str(tmp_path / "none"), str(tmp_path / "kube-apiserver.yaml")])
        == url
    )
