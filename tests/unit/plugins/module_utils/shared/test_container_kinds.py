# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a container asks for CPU pinning."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import container_kinds


def container(kind: str = "app", **resources: "str | None") -> dict[str, Any]:
    names = ("cpu_request", "cpu_limit", "memory_request", "memory_limit")
    return {"kind": kind, **dict.fromkeys(names), **resources}


@pytest.mark.parametrize(
    ("resources", "unequal"),
    [
        ({}, ["cpu", "memory"]),
        ({"cpu_limit": "2", "memory_limit": "1Gi"}, []),
        ({"cpu_limit": "2", "cpu_request": "2000m", "memory_limit": "1Gi"}, []),
        ({"cpu_limit": "2", "cpu_request": "1", "memory_limit": "1Gi"}, ["cpu"]),
        ({"cpu_limit": "2", "memory_request": "1Gi"}, ["memory"]),
    ],
)
def test_what_keeps_a_pod_from_guaranteed(resources: dict[str, str], unequal: list[str]) -> None:
    assert container_kinds.unequal(container(**resources)) == unequal


@pytest.mark.parametrize(
    ("kind", "limit", "request_", "is_meant"),
    [
        ("app", "2", None, True),
        ("app", "1500m", None, False),
        ("app", "2", "1", False),
        ("sidecar", "2", None, False),
        ("app", None, None, False),
    ],
)
def test_whole_cpus_of_an_app_container(
    kind: str, limit: "str | None", request_: "str | None", is_meant: bool
) -> None:
    found = container_kinds.meant(container(kind, cpu_limit=limit, cpu_request=request_))
    assert found is is_meant
