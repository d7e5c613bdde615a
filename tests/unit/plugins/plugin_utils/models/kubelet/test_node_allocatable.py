# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of enforceNodeAllocatable that a kubelet refuses, release by release."""

from __future__ import annotations

import pytest

from tests.unit.support.configured_kubelet import configure, found

ENFORCE = "enforceNodeAllocatable"
KUBE = "kubeReserved: {cpu: 100m}\nkubeReservedCgroup: /kubelet.slice\n"


@pytest.fixture
def configured(world):
    return configure(world)


@pytest.mark.parametrize(
    ("config", "release", "keys"),
    [
        (f"{ENFORCE}: [pods]\n", "v1.30.0", []),
        (f"{ENFORCE}: [none]\n", "v1.30.0", []),
        (f"{ENFORCE}: [pods, none]\n", "v1.30.0", [ENFORCE]),
        (f"{ENFORCE}: [pods, pods]\n", "v1.30.0", []),
        (f"{ENFORCE}: [pods, pods]\n", "v1.31.0", [ENFORCE]),
        (f"{ENFORCE}: [io]\n", "v1.30.0", [ENFORCE]),
        (f"{ENFORCE}: [kube-reserved]\n{KUBE}", "v1.30.0", []),
        (f"{ENFORCE}: [kube-reserved]\nkubeReserved: {{cpu: 1}}\n", "v1.30.0", [ENFORCE]),
        (f"{ENFORCE}: [kube-reserved]\nkubeReservedCgroup: /k\n", "v1.30.0", [ENFORCE]),
        (f"{ENFORCE}: [kube-reserved-compressible]\n{KUBE}", "v1.31.0", [ENFORCE]),
        (f"{ENFORCE}: [kube-reserved-compressible]\n{KUBE}", "v1.32.0", []),
        (
            f"{ENFORCE}: [kube-reserved, kube-reserved-compressible]\n{KUBE}",
            "v1.32.0",
            [ENFORCE],
        ),
        ("cgroupsPerQOS: false\n", "v1.30.0", ["cgroupsPerQOS"]),
        (f"cgroupsPerQOS: false\n{ENFORCE}: []\n", "v1.30.0", []),
        (f"cgroupsPerQOS: false\n{ENFORCE}: [none]\n", "v1.31.0", []),
    ],
)
def test_values_by_release(configured, config, release, keys):
    assert [one.key for one in found(configured(config, release=release)).refused] == keys


def test_flags_replace_the_file(configured):
    world = configured(f"{ENFORCE}: [io]\n", ("--enforce-node-allocatable=pods",), "v1.30.0")
    assert found(world).refused == ()
    world = configured(f"{ENFORCE}: [pods]\n", ("--enforce-node-allocatable=pods,io",), "v1.30.0")
    (refused,) = found(world).refused
    assert refused.key == ENFORCE
    assert refused.settings[-1].path is None
