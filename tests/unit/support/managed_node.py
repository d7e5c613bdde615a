# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker with state files of the resource managers: its evidence and what is judged of it."""

from __future__ import annotations

import copy
import json

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)

CLOCK = 1_800_000_000.0  # of the evidence in conftest.py
POD, OTHER = "777870b5-c64f-42f5-9296-688b9dc212ba", "fb15e10a-b6a5-4aaa-8fcd-76c1aa64e6fd"
NONE_STATE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
# Written by a kubelet of 1.36.3 on a machine of two CPUs.
STATIC_STATE = (
    '{"policyName":"static","defaultCpuSet":"0","entries":{"e4f3f5dc-4d6f-44db-aa7e-cf3b2b92bb31'
    '":{"work":"1"}},'
    '"checksum":2597661177}'
)
# Written by a kubelet of 1.36.3.
MEMORY = '{"policyName":"None","machineState":{},"checksum":4236770233}'
CODES = frozenset(f"KM3{number:02}" for number in range(1, 12))


def record(name, text, **more):
    return {
        "path": f"/var/lib/kubelet/{name}",
        "text": text,
        "size": len(text or ""),
        "mtime": CLOCK - 600,
        "error": None,
        "masked": [],
        **more,
    }


def state(policy="static", default="0,2-3", entries=None, checksum=0):
    return json.dumps(
        {
            "policyName": policy,
            "defaultCpuSet": default,
            "entries": entries or {},
            "checksum": checksum,
        }
    )


def container(uid, name, cpus, **more):
    return {
        "pod_uid": uid,
        "name": name,
        "container_id": "c" * 64,
        "pid": 7,
        "static": False,
        "cpus": cpus,
        "allowed": cpus,
        **more,
    }


class Node:
    """A worker whose evidence of pinning a test changes before it is judged."""

    healthy = {}  # noqa: RUF012 - never written

    def __init__(
        self, text=None, config="cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", online="0-3"
    ):
        self.document = copy.deepcopy(self.healthy)
        self.kubelet = self.document["collectors"]["kubelet"]["data"]
        self.kubelet["config"] = {
            "path": "/var/lib/kubelet/config.yaml",
            "text": config,
            "masked": [],
            "error": None,
        }
        self.seen = {
            "root_dir": "/var/lib/kubelet",
            "cpu_state": None if text is None else record("cpu_manager_state", text),
            "memory_state": None,
            "cpus": {"online": online, "topology": [[cpu, cpu % 2, 0, 0] for cpu in range(4)]},
            "pods": [POD, OTHER],
            "containers": [],
            "frozen": [],
            "runc": "runc version 1.1.12",
            "kubelet_version": "Kubernetes v1.30.1",
        }
        for name, data in (("pinning", self.seen), ("kubelet_log", {"lines": []})):
            self.document["collectors"][name] = {"status": "ok", "data": data}

    def verdicts(self):
        found = fault_engine.evaluate([copy.deepcopy(self.document)], CODES, deep=True)
        return {item.code: item.verdict for item in found.verdicts}

    def findings(self):
        return fault_engine.evaluate([copy.deepcopy(self.document)], CODES, deep=True).findings

    def present(self):
        return [item.code for item in self.findings()]
