# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet with a configuration: its evidence, what is judged of it, and what is planned."""

from __future__ import annotations

import copy

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    refused_configuration,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    control_plane,
    cpu_manager_reset,
    services,
)
from tests.unit.support.fake_kubelet_messages import (
    FAILED,
)

FILE = "/var/lib/kubelet/config.yaml"
NONE_STATE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
STATIC = "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
NEWEST, OLD = "v1.36.3", "v1.18.4"
LOOPS = {
    "name": "kubelet.service",
    **FAILED,
    "unit_file_state": "enabled",
    "n_restarts": 12,
    "exec_main_status": 1,
    "start_words": ["kubelet", "$X"],
    "split_variables": [["X", "--v=2"]],
    "environment_files": [],
    "need_daemon_reload": False,
}
MEMORY = "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n  limits: {memory: %s}\n"


def record(path, text):
    return {
        "path": path,
        "text": text,
        "masked": [],
        "error": None,
        "size": len(text or ""),
        "mtime": 0,
    }


def configure(world):
    """Return what gives w1 a configuration; lines: of a kubelet that is down, its journal."""

    def make(
        config="",
        argv=(),
        release=NEWEST,
        dropins=(),
        changed=True,
        lines=None,
        numa=(0,),
        memory=8 << 30,
        state=NONE_STATE,
        memory_state=None,
    ):
        data = world.data("w1", "kubelet")
        files = [
            record(FILE, config),
            *(record(f"/etc/kubelet.d/{number}.conf", text) for number, text in enumerate(dropins)),
        ]
        for one in files:
            one["mtime"] = 200.0 if changed else 0
        data.update(config=files[0], config_dropins=files[1:], argv=["kubelet", *argv])
        data["process"] = {"pid": 1, "argv": ["kubelet"], "started_at": 100.0}
        if lines is not None:
            data.update(
                process=None, unit=dict(LOOPS), healthz={"status": None, "error": "refused"}
            )
            world.documents["w1"]["collectors"]["kubelet_end"] = {
                "status": "ok",
                "data": {"unit": "kubelet.service", "lines": lines},
            }
        world.documents["w1"]["collectors"]["pinning"] = {
            "status": "ok",
            "data": {
                "root_dir": "/var/lib/kubelet",
                "cpu_state": state and record("/var/lib/kubelet/cpu_manager_state", state),
                "cgroups": [],
                "memory_state": (
                    memory_state and record("/var/lib/kubelet/memory_manager_state", memory_state)
                ),
                "numa": list(numa),
                "memory_total": memory,
                "kubelet_version": release and f"Kubernetes {release}",
                "frozen": [],
                "runc": None,
                "pods": [],
                "containers": [],
                "cpus": {"online": "0-3", "topology": [[cpu, cpu, 0, 0] for cpu in range(4)]},
            },
        }
        return world

    return make


def found(world):
    return refused_configuration.read(
        copy.deepcopy(world.documents["w1"])
    )  # readings are remembered by identity


def judged(world):
    world.documents["w1"] = copy.deepcopy(world.documents["w1"])
    result = world.judge(
        faults=frozenset(
            (
                "KM301",
                "KM304",
                "KM305",
                "KM310",
                "KM502",
                "KM505",
                "KM506",
                "KM507",
                "KM510",
                "KM515",
                "KM516",
                "KM517",
            )
        )
    )
    return (
        {item.code: item.verdict for item in result.verdicts if item.host == "w1"},
        {item.code: item for item in result.findings if item.host == "w1"},
    )


def planned(world, *allow, wishes=None):
    documents = copy.deepcopy(world.documents)
    result, clusters = fault_engine.evaluate_clusters([*documents.values(), world.api])
    asked = (
        list(cpu_manager_reset.wishes(clusters, ["w1"], fault_engine.KEY_DIGITS))
        if wishes is not None
        else []
    )
    consent = plan.Consent(3, frozenset(allow), cpu_manager={"w1": wishes or {}})
    return plan.plan(
        [*result.findings, *asked],
        clusters,
        documents.__getitem__,
        consent,
        {**control_plane.REMEDIES, **cpu_manager_reset.REMEDIES, **services.REMEDIES},
        fault_engine.KEY_DIGITS,
    )
