# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control plane processes of a node."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    instances,
)
from tests.unit.support import answers

HEALTHY = answers.recorded("v1.36.3-healthy", "m1", "instances")
KUBESPRAY = answers.recorded("v1.36.3-kubespray-scheduler-config-file", "m1", "instances")


def scheduler(raw):
    """Return the scheduler of an answer and its index."""
    processes = answers.typed(instances.Instances, raw).processes
    index = [item.component for item in processes].index("kube-scheduler")
    return processes[index], index


def test_a_controller_manager_of_a_static_pod():
    manager = answers.typed(instances.Instances, HEALTHY).processes[0]
    assert (manager.component, manager.pid) == ("kube-controller-manager", 468)
    assert manager.argv[:2] == ("kube-controller-manager", "--allocate-node-cidrs=true")
    assert (manager.static, manager.host_network, manager.unit) == (True, True, None)
    assert manager.pod_uid == "18d336380c46b3b6093cdf98212df461"
    assert manager.container_id == HEALTHY["processes"][0]["container_id"]
    assert manager.started_at == 1795256619.02
    assert manager.kubeconfig.path == "/etc/kubernetes/controller-manager.conf"
    assert manager.kubeconfig.masked == ((3421, 5657),)
    assert (manager.config, manager.authority) == (None, None)
    assert manager.exe == "/usr/local/bin/kube-controller-manager"


def test_a_scheduler_with_a_configuration_file():
    process, _index = scheduler(KUBESPRAY)
    assert process.config.host_path == process.config.path
    assert process.config.path == "/etc/kubernetes/kubescheduler-config.yaml"
    assert "leaseDuration: 8s" in process.config.text
    assert [(item.path, item.mtime, item.replaced) for item in process.given] == [
        ("/etc/kubernetes/kubescheduler-config.yaml", 1795274017.0, False),
        ("/etc/kubernetes/scheduler.conf", 1795274046.17844, False),
    ]


def test_an_older_release_did_not_collect_the_files_of_flags():
    assert scheduler(HEALTHY)[0].given is None
    _process, index = scheduler(KUBESPRAY)
    decoded = answers.changed(instances.Instances, KUBESPRAY, "processes", index, "given", value={})
    assert decoded.malformed == (f"processes[{index}].given",)
    assert decoded.answer.processes[index].given is None


def test_a_process_whose_arguments_could_not_be_read():
    raw = {"processes": [], "unreadable": [{"pid": 4711, "error": "denied"}]}
    (process,) = answers.typed(instances.Instances, raw).unreadable
    assert (process.pid, process.error) == (4711, "denied")


def test_whether_a_pod_is_static_is_unknown_where_it_is_a_text():
    decoded = answers.changed(instances.Instances, HEALTHY, "processes", 0, "static", value="yes")
    assert decoded.malformed == ("processes[0].static",)
    assert (decoded.answer.processes[0].static, decoded.answer.processes[0].pid) == (None, 468)


def test_arguments_that_are_one_text_are_none():
    decoded = answers.changed(
        instances.Instances, HEALTHY, "processes", 0, "argv", value="kube-scheduler --v=2"
    )
    assert decoded.malformed == ("processes[0].argv",)
    assert decoded.answer.processes[0].argv == ()
