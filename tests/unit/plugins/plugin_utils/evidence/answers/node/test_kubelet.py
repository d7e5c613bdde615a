# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet as it runs, or as it would start."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet,
)
from tests.unit.support import answers

MASKED = answers.recorded("v1.36.3-kubelet-masked", "w1", "kubelet")
NOT_STARTED = answers.recorded("v1.36.3-unit-environment-file", "w1", "kubelet")


def test_a_kubelet_that_runs():
    answer = answers.typed(kubelet.Kubelet, MASKED)
    assert (answer.process.pid, answer.process.exe_deleted) == (252, False)
    assert answer.process.started_at == 1795375430.74
    assert (answer.process.exe, answer.argv_source) == ("/usr/bin/kubelet", "process")
    assert answer.argv == answer.process.argv
    assert (answer.healthz.status, answer.healthz.body) == (200, "ok")


def test_the_files_of_a_kubelet():
    answer = answers.typed(kubelet.Kubelet, MASKED)
    assert answer.config.path == "/var/lib/kubelet/config.yaml"
    assert answer.kubeconfig.path == "/etc/kubernetes/kubelet.conf"
    assert answer.client_certificate.pem.startswith("-----BEGIN CERTIFICATE-----")
    assert (answer.ca, answer.config_dropins, answer.cni) == (None, (), None)
    assert (answer.static_pod_path, answer.static_pod_path_source) == (
        "/etc/kubernetes/manifests",
        "config",
    )


def test_the_words_and_variables_that_start_it():
    unit = answers.typed(kubelet.Kubelet, MASKED).unit
    assert (unit.load_state, unit.need_daemon_reload) == ("masked", True)
    assert unit.start_words[:2] == ("/usr/bin/kubelet", "$KUBELET_KUBECONFIG_ARGS")
    assert dict(unit.split_variables)["KUBELET_CONFIG_ARGS"] == (
        "--config=/var/lib/kubelet/config.yaml"
    )
    assert unit.environment_files[1].text == "KUBELET_EXTRA_ARGS=\n"


def test_a_kubelet_whose_environment_file_is_missing():
    answer = answers.typed(kubelet.Kubelet, NOT_STARTED)
    assert (answer.process, answer.unit.result) == (None, "resources")
    missing = answer.unit.environment_files[2]
    assert (missing.path, missing.error) == ("/etc/default/kubelet-gone", "missing")
    assert (answer.healthz.status, answer.healthz.error) == (None, "Connection refused")


def test_the_configuration_of_the_pod_network():
    networks = answers.typed(kubelet.Kubelet, NOT_STARTED).cni
    assert (networks.folder, networks.error) == ("/etc/cni/net.d", None)
    assert [(item.name, item.size) for item in networks.files] == [("10-lab.conflist", 346)]


def test_what_masks_the_unit():
    link = {"path": "/etc/systemd/system/kubelet.service", "to": "/dev/null"}
    mask = {"links": [link], "file": "/lib/systemd/system/kubelet.service", "wanted": True}
    decoded = answers.changed(kubelet.Kubelet, MASKED, "unit", "mask", value=mask)
    assert decoded.malformed == ()
    found = decoded.answer.unit.mask
    assert (found.links[0].path, found.links[0].to) == (link["path"], "/dev/null")
    assert (found.file, found.wanted) == ("/lib/systemd/system/kubelet.service", True)


def test_a_variable_without_a_value_is_secret_and_one_that_is_no_pair_is_dropped():
    variables = [["KUBELET_EXTRA_ARGS", None], ["KUBELET_CONFIG_ARGS"]]
    decoded = answers.changed(kubelet.Kubelet, MASKED, "unit", "split_variables", value=variables)
    assert decoded.malformed == ("unit.split_variables[1]",)
    assert decoded.answer.unit.split_variables == (("KUBELET_EXTRA_ARGS", None),)


def test_whether_the_executable_was_deleted_is_no_text():
    decoded = answers.changed(kubelet.Kubelet, MASKED, "process", "exe_deleted", value="no")
    assert decoded.malformed == ("process.exe_deleted",)
    assert (decoded.answer.process.exe_deleted, decoded.answer.process.pid) == (None, 252)


def test_a_process_of_another_type_is_none():
    decoded = answers.changed(kubelet.Kubelet, MASKED, "process", value=252)
    assert (decoded.malformed, decoded.answer.process) == (("process",), None)
    assert decoded.answer.unit.main_pid == 252
