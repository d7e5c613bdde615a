# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units as systemd reports them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    systemd_unit,
)
from tests.unit.support import answers

MASKED = answers.recorded("v1.36.3-kubelet-masked", "w1", "kubelet")["unit"]
RESTARTS = answers.recorded("v1.36.3-kubelet-wrong-flag", "w1", "kubelet")["unit"]
LIMITS = answers.recorded("v1.18.4-component-ends", "m1", "limits")


def test_a_unit_that_runs_and_is_masked():
    unit = answers.typed(systemd_unit.Unit, MASKED)
    assert (unit.name, unit.load_state, unit.unit_file_state) == (
        "kubelet.service",
        "masked",
        "masked",
    )
    assert (unit.active_state, unit.sub_state, unit.main_pid) == ("active", "running", 252)
    assert (unit.need_daemon_reload, unit.result) == (True, "success")
    assert unit.fragment_path == "/etc/systemd/system/kubelet.service"


def test_a_unit_that_systemd_restarts():
    unit = answers.typed(systemd_unit.Unit, RESTARTS)
    assert (unit.active_state, unit.sub_state) == ("activating", "auto-restart")
    assert (unit.result, unit.exec_main_status, unit.n_restarts) == ("exit-code", 1, 2)
    assert (unit.main_pid, unit.need_daemon_reload) == (0, False)
    assert unit.drop_in_paths[0] == ("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf")


@pytest.mark.parametrize(
    ("field", "value", "default"),
    [
        ("n_restarts", "2", None),
        ("active_state", None, ""),
        ("need_daemon_reload", "no", False),
        ("drop_in_paths", "/etc/x.conf", ()),
    ],
)
def test_a_field_of_a_unit_of_another_type_has_its_default(field, value, default):
    decoded = answers.changed(systemd_unit.Unit, RESTARTS, field, value=value)
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), default)


def test_a_limit_of_a_unit_is_soft_and_hard():
    kubelet, containerd, _sshd = (
        answers.typed(systemd_unit.LimitedUnit, item) for item in LIMITS["units"]
    )
    assert kubelet.limit_nofile == (1024, 524288)
    assert containerd.limit_nofile == (-1, -1)
    assert [(line.line, line.text) for line in containerd.sets] == [
        (31, "LimitNPROC=infinity"),
        (33, "LimitNOFILE=infinity"),
    ]
    assert (containerd.ours, containerd.main) == (None, None)


def test_a_unit_with_the_drop_in_of_kubemend_and_its_process():
    raw = {**LIMITS["units"][0], "ours": "1048576", "main": LIMITS["processes"][0]}
    unit = answers.typed(systemd_unit.LimitedUnit, raw)
    assert (unit.ours, unit.main.pid, unit.main.comm) == ("1048576", 636, "kubelet")
    assert (unit.main.nofile, unit.main.open) == ((19999, 20000), 32)
    assert (unit.main.role, unit.main.uid, unit.main.unit) == ("kubelet", 0, "kubelet.service")
    assert unit.main.ticks == 590309


@pytest.mark.parametrize("value", [1024, [1024], "1024:524288"])
def test_a_limit_of_another_type_is_unknown(value):
    for kind, raw, field in (
        (systemd_unit.LimitedUnit, LIMITS["units"][0], "limit_nofile"),
        (systemd_unit.LimitedProcess, LIMITS["processes"][0], "nofile"),
    ):
        decoded = answers.changed(kind, raw, field, value=value)
        assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), None)
