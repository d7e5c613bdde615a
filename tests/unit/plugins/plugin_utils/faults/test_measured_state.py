# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host measured, in findings of all kinds of programs."""

from __future__ import annotations

import pytest

from tests.unit.support import ended_pods, taken_ports
from tests.unit.support.fake_kubelet_messages import AGAIN, FAILED, ended, fatal

IN_USE = "bind: address already in use"
HOLDER = {"pid": 812, "comm": "node-agent", "unit": "agent.service"}
NAMED = "node-agent (pid 812, agent.service)"
KUBECONFIG = "/var/lib/kube-proxy/kubeconfig"

VOLUME = (
    "    volumeMounts:\n    - {mountPath: /etc/kubernetes/scheduler.conf, name: conf}\n"
    "  volumes:\n  - {hostPath: {path: /etc/kubernetes/scheduler.conf}, name: conf}\n"
)


def measure(world, host, path, **row):
    data = {"paths": [{"path": path, "owner": "root", "group": "root", "mode": "0755", **row}]}
    world.documents[host]["collectors"]["path_states"] = {"status": "ok", "data": data}


def judged(world, code):
    return world.judge(faults={code}).findings


def end_kubelet(world, error):
    fields = {**FAILED, "unit_file_state": "enabled", "n_restarts": 12}
    world.data("w1", "kubelet").update(unit=fields, process=None)
    line = fatal(f"Failed to run kubelet: {error}")
    world.documents["w1"]["collectors"]["kubelet_end"] = {
        "status": "ok",
        "data": {"unit": "kubelet.service", "lines": [*AGAIN, line, *ended(1)]},
    }
    world.data("w1", "system")["clock"] = 1795372294.0


def fail_proxy(world, error):
    line = f'2026-11-24T12:00:01+0000 w1 kube-proxy[77]: E0915 1 run.go:74] "x" err="{error}"'
    row = {"name": "kube-proxy.service", "active_state": "failed", "sub_state": "failed"}
    row |= {"result": "exit-code", "exec_main_status": 1, "lines": [line]}
    world.data("w1", "failed_units")["units"].append(row)


def end_scheduler(world, error):
    kept = [
        row
        for row in world.data("m2", "instances")["processes"]
        if row["component"] != "kube-scheduler"
    ]
    world.data("m2", "instances")["processes"] = kept
    clock = world.data("m2", "system")["clock"]
    row = {"component": "kube-scheduler", "running": False, "restart": 9, "lines": [error]}
    row |= {"path": "/var/log/pods/s/kube-scheduler/9.log", "first": clock - 30}
    row |= {"last": clock - 29.5, "kubelet": None}
    world.documents["m2"]["collectors"]["component_end"] = {
        "status": "ok",
        "data": {"components": [row]},
    }


@pytest.mark.parametrize(
    ("end", "code", "host", "port"),
    [
        (end_kubelet, "KM502", "w1", 10250),
        (fail_proxy, "KM564", "w1", 10256),
        (end_scheduler, "KM173", "m2", 10259),
        (end_scheduler, "KM114", "m2", 10259),
    ],
)
def test_units_and_static_pods_name_who_has_their_port(world, end, code, host, port):
    end(world, f"listen tcp 0.0.0.0:{port}: {IN_USE}")
    taken_ports.hold(world, host, taken_ports.row(port, **HOLDER))
    (one,) = judged(world, code)
    assert one.summary.count("pid 812") == 1
    assert NAMED in one.summary


def test_a_pod_of_the_cluster_names_who_has_its_port(world):
    ended_pods.end(world, line=f"listen tcp 0.0.0.0:10256: {IN_USE}")
    taken_ports.hold(world, "w1", taken_ports.row(10256, **HOLDER))
    (one,) = judged(world, "KM550")
    assert NAMED in one.summary


@pytest.mark.parametrize(("end", "code"), [(end_kubelet, "KM502"), (fail_proxy, "KM564")])
def test_a_unit_whose_kubeconfig_is_a_folder(world, end, code):
    end(world, f"read {KUBECONFIG}: is a directory")
    measure(world, "w1", KUBECONFIG, kind="directory", entries=0)
    (one,) = judged(world, code)
    assert f"{KUBECONFIG} is a folder and empty" in one.summary
    assert [ref.path for ref in one.evidence if ref.kind == "file"][-1:] == [KUBECONFIG]


@pytest.mark.parametrize(
    ("path", "is_told"),
    [("/etc/kubernetes/scheduler.conf", True), ("/etc/other.conf", False)],
)
def test_a_path_of_a_static_pod_is_on_the_host_where_a_volume_leads_there(world, path, is_told):
    end_scheduler(world, f"stat {path}: permission denied")
    for record in world.data("m2", "manifests")["files"]:
        if record["name"] == "kube-scheduler.yaml":
            record["text"] += VOLUME
    measure(world, "m2", path, kind="file")
    (one,) = judged(world, "KM114")
    assert (f"{path} is a file (owner root:root" in one.summary) is is_told


def test_a_pod_of_the_cluster_has_paths_of_its_own(world):
    ended_pods.end(world, line="open /etc/a.conf: permission denied")
    measure(world, "w1", "/etc/a.conf", kind="file")
    (one,) = judged(world, "KM550")
    assert "/etc/a.conf is a file" not in one.summary


def test_a_kubelet_with_two_unit_files(world):
    end_kubelet(world, "x")
    row = {"name": "kubelet.service", "fragment_path": "/etc/systemd/system/kubelet.service"}
    row["hidden"] = ["/usr/lib/systemd/system/kubelet.service"]
    world.documents["w1"]["collectors"]["unit_start"] = {"status": "ok", "data": {"units": [row]}}
    (one,) = judged(world, "KM502")
    assert row["hidden"][0] in one.summary
