# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which namespaces hold the pods that make the cluster."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import system_namespaces


@pytest.mark.parametrize(
    ("namespace", "is_one"),
    [
        ("kube-system", True),
        ("calico-system", True),
        ("openshift-sdn", True),
        ("default", False),
        ("kube-system-2", False),
        ("my-openshift-sdn", False),
        (None, False),
    ],
)
def test_a_namespace(namespace, is_one):
    assert system_namespaces.is_one(namespace) is is_one


@pytest.mark.parametrize(
    ("namespace", "is_addon"),
    [("longhorn-system", True), ("gpu-operator", True), ("kube-system", False), (None, False)],
)
def test_a_namespace_of_an_addon(namespace, is_addon):
    assert system_namespaces.is_addon(namespace) is is_addon
    assert not (is_addon and system_namespaces.is_one(namespace))
