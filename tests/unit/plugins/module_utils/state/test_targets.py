# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every entry of a journal has one target, by the beginning of its `real`, and a writer."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.apply_step import (
    ActionModule as ApplyStep,
)
from ansible_collections.kubemend.remediation.plugins.action.revert_run import (
    ActionModule as RevertRun,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import targets
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import registry
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program


@pytest.mark.parametrize(
    ("real", "name"),
    [
        ("configmap:kube-system/kubeadm-config#ClusterConfiguration", targets.API_OBJECT),
        ("workload:/apis/apps/v1/namespaces/a/deployments/b", targets.API_OBJECT),
        ("unit:kubelet.service", targets.SYSTEMD_UNIT),
        ("unit:/etc/systemd/system/kubelet.service", targets.SYSTEMD_UNIT),
        ("level:kube-scheduler", targets.LOG_VERBOSITY),
        ("level:kubelet/w1", targets.LOG_VERBOSITY),
        ("/etc/kubernetes/manifests/kube-scheduler.yaml", targets.FILE),
    ],
)
def test_the_beginning_of_real_names_the_target(real, name):
    target = targets.target_of({"real": real})
    assert target.name == name
    assert target.is_file is (name == targets.FILE)
    assert target.readable is (name != targets.LOG_VERBOSITY)


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda target: target.prefix or "file")
def test_every_target_has_a_writer(target):
    writer = registry.writer_of({"real": target.prefix + "x"})
    assert callable(writer.restore)
    assert target.readable or callable(writer.undo_open)


def test_only_a_kubelet_that_was_raised_is_taken_back_by_its_own_way():
    reverter = registry.kubelet_reverter_of(registry.RAISE_KUBELET)
    assert callable(reverter.may_restart)
    assert callable(reverter.take_back)
    assert registry.kubelet_reverter_of("reset_state") is None


@pytest.mark.parametrize("action", [ApplyStep, RevertRun])
def test_what_is_found_by_name_travels_with_the_program(action):
    shipped = node_program._sources(action.ENTRY.partition(":")[0], action.SHIP)
    modules = {module for module, _name in registry.CAPTURE_WRITERS.values()}
    modules.update(registry.KUBELET_REVERTERS.values())
    for module in modules:
        assert f"{node_program.PACKAGE}plugins.module_utils.capture.{module}" in shipped
