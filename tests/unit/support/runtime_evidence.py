# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evidence of a node whose container runtime is down."""

from __future__ import annotations

import copy

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from tests.unit.support.service_plan import plan_services

CODES = frozenset(("KM508", "KM502"))
SOCKET = "/run/containerd/containerd.sock"
UP = {
    "name": "containerd.service",
    "absent": False,
    "load_state": "loaded",
    "active_state": "active",
    "sub_state": "running",
    "unit_file_state": "enabled",
    "result": "success",
    "main_pid": 150,
    "n_restarts": 0,
    "exec_main_status": 0,
    "wanted_by": ["multi-user.target"],
    "trigger": None,
}
DOWN = {"active_state": "inactive", "sub_state": "dead", "main_pid": 0}
ASKED = {"asked": True, "error": None, "socket": "present"}
WELL = {
    "endpoint": SOCKET,
    "docker": None,
    "kind": "containerd",
    "path": SOCKET,
    "units": [UP],
    **ASKED,
    "calls": {"v1": 0, "v1alpha2": 0},
    "config": None,
}
NOT_ASKED = {"asked": False, "calls": {}}
DOCKER_UNIT = {
    **UP,
    "name": "docker.service",
    "trigger": {"name": "docker.socket", "active_state": "active", "unit_file_state": "enabled"},
}


class Node:
    """w1, whose runtime is well unless it is changed."""

    def __init__(self, world):
        self.world = world
        for name in world.documents:
            self.told(name, copy.deepcopy(WELL))
        self.version("v1.30.1")

    def told(self, host, data, status="ok"):
        self.world.documents[host]["collectors"]["runtime"] = {"status": status, "data": data}

    def version(self, version):
        self.world.documents["w1"]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {"kubelet_version": version and f"Kubernetes {version}"},
        }

    def argv(self, *words):
        self.world.documents["w1"]["collectors"]["kubelet"]["data"]["argv"] = list(words)

    def set(self, unit=None, **changes):
        units = (
            [{**UP, **unit}] if isinstance(unit, dict) else WELL["units"] if unit is None else unit
        )
        self.told("w1", copy.deepcopy({**WELL, "units": units, **changes}))

    def judged(self):
        result = fault_engine.evaluate(
            [*self.world.documents.values(), self.world.api], faults=CODES, deep=True
        )
        (verdict,) = [item for item in result.verdicts if (item.host, item.code) == ("w1", "KM508")]
        return (
            verdict,
            [item for item in result.findings if (item.host, item.code) == ("w1", "KM508")],
            result,
        )

    def verdict(self):
        return self.judged()[0].verdict

    def finding(self):
        verdict, (found,), _result = self.judged()
        assert verdict.verdict == "present"
        return found

    def steps(self, *allow, max_risk=2):
        return plan_services(self.world, CODES, max_risk, allow)


LAST = (
    '2027-01-15T07:59:50+0000 w1 kubelet[20288]: E0115 07:59:50.346075   20288 run.go:72] "command'
    ' failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API'
    ' for endpoint \\"unix:///run/containerd/containerd.sock\\": rpc error: code = Unimplemented'
    ' desc = unknown service runtime.v1.RuntimeService"'
)
EXIT = (
    "2027-01-15T07:59:51+0000 w1 systemd[1]: kubelet.service: Main process exited, code=exited,"
    " status=1/FAILURE"
)
RESULT = "2027-01-15T07:59:51+0000 w1 systemd[1]: kubelet.service: Failed with result 'exit-code'."


def dead(node, **unit):
    told = node.world.data("w1", "kubelet")["unit"]
    told.update(
        {
            "sub_state": "auto-restart",
            "active_state": "activating",
            "result": "exit-code",
            "exec_main_status": 1,
            "n_restarts": 3,
            **unit,
        }
    )
    node.world.data("w1", "kubelet").update(process=None, argv_source="unit")
    node.world.documents["w1"]["collectors"]["kubelet_end"] = {
        "status": "ok",
        "data": {"lines": [LAST, EXIT, RESULT]},
    }
