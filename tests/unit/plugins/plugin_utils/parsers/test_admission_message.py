# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's words for a rejection, generation by generation."""

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    admission_message,
)

Refusal = admission_message.Refusal
refusal = admission_message.refusal

DEVICES = "requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 0"
GPU = Refusal("devices", "nvidia.com/gpu", 2, 0)


@pytest.mark.parametrize(
    ("reason", "message", "found"),
    [
        # up to 1.17
        (
            "UnexpectedAdmissionError",
            f"Update plugin resources failed due to {DEVICES}, which is unexpected.",
            GPU,
        ),
        # 1.18 to 1.25
        (
            "UnexpectedAdmissionError",
            f"Pod Allocate failed due to {DEVICES}, which is unexpected",
            GPU,
        ),
        (
            "UnexpectedAdmissionError",
            f"Pod was rejected: Allocate failed due to {DEVICES}, which is unexpected",
            GPU,
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Pod was rejected: Allocate failed due to cannot allocate unregistered device"
                " nvidia.com/gpu, which is unexpected"
            ),
            Refusal("unregistered", "nvidia.com/gpu"),
        ),
        # up to 1.24
        (
            "UnexpectedAdmissionError",
            (
                "Pod Allocate failed due to can't allocate unregistered device nvidia.com/gpu,"
                " which is unexpected"
            ),
            Refusal("unregistered", "nvidia.com/gpu"),
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Allocate failed due to no healthy devices present; cannot allocate unhealthy"
                " devices nvidia.com/gpu, which is unexpected"
            ),
            Refusal("unhealthy", "nvidia.com/gpu"),
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Allocate failed due to previously allocated devices are no longer healthy; cannot"
                " allocate unhealthy devices vendor.example/nic, which is unexpected"
            ),
            Refusal("unhealthy", "vendor.example/nic"),
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Pod Allocate failed due to not enough cpus available to satisfy request, which is"
                " unexpected"
            ),
            Refusal("cpu"),
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no"
                " NUMA nodes with enough memory is available, which is unexpected"
            ),
            Refusal("memory"),
        ),
        (
            "OutOfcpu",
            (
                "Pod Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity:"
                " 2000"
            ),
            Refusal("resource", "cpu", 1000, 500, 2000),
        ),
        (
            "OutOfnvidia.com/gpu",
            (
                "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 2,"
                " used: 2, capacity: 2"
            ),
            Refusal("resource", "nvidia.com/gpu", 2, 0, 2),
        ),
        ("OutOfpods", "", Refusal("resource", "pods")),
        (
            "TopologyAffinityError",
            "Pod Resources cannot be allocated with Topology locality",
            Refusal("topology"),
        ),
        # 1.16 and 1.17
        (
            "Topology Affinity Error",
            "Pod Resources cannot be allocated with Topology Locality",
            Refusal("topology"),
        ),
        (
            "SMTAlignmentError",
            "Pod SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
            Refusal("smt", None, 3),
        ),
        (
            "SMTAlignmentError",
            (
                "Pod was rejected: SMT Alignment Error: not enough free physical CPUs: available"
                " physical CPUs = 2, requested CPUs = 4, CPUs per core = 2"
            ),
            Refusal("smt", None, 4, 2),
        ),
        (
            "UnexpectedAdmissionError",
            (
                "Pod was rejected: Allocate failed due to not enough cpus available to satisfy"
                " request: requested=8, available=7, which is unexpected"
            ),
            Refusal("cpu", None, 8, 7),
        ),
        ("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed", Refusal("other")),
        (None, None, Refusal("other")),
    ],
)
def test_texts(reason, message, found):
    assert refusal(reason, message) == found
