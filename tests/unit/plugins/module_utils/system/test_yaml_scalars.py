# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Single values of a YAML file, read without a YAML parser."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    yaml_scalars,
)


def test_static_pod_path_of_a_real_node(capture):
    assert (
        yaml_scalars.top(capture("kubelet-config.yaml"), "staticPodPath")
        == "/etc/kubernetes/manifests"
    )


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (
            "users:\n- name: a\n  user:\n    client-certificate: /a.pem\n",
            "client-certificate",
            "/a.pem",
        ),
        ("user:\n    client-certificate-data: QUJD\n", "client-certificate", None),
        ('{"user":{"client-certificate":"/a b.pem"}}', "client-certificate", "/a b.pem"),
        ("users: [{user: {client-certificate: /a.pem, x: y}}]", "client-certificate", "/a.pem"),
        ("- client-certificate: '/q'\n", "client-certificate", "/q"),
        ("certificate-authority: ca.crt\n", "certificate-authority", "ca.crt"),
        ("", "x", None),
    ],
)
def test_scalar_anywhere(text, key, expected):
    assert yaml_scalars.anywhere(text, key) == expected
