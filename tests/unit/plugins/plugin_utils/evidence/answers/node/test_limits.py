# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of open files and inotify, and the files that set them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    limits,
)
from tests.unit.support import answers

LIMITS = answers.recorded("v1.18.4-component-ends", "m1", "limits")
USED_UP = answers.recorded("v1.36.3-inotify-one-holder", "m3", "limits")


def test_the_limits_of_the_kernel_are_texts():
    answer = answers.typed(limits.Limits, LIMITS)
    assert answer.kernel["fs.inotify.max_user_watches"] == "524288"
    assert (answer.file_nr, answer.threads) == ((9211, 9223372036854775807), 1812)


def test_inotify_instances_that_are_used_up():
    trial = answers.typed(limits.Limits, USED_UP).inotify
    assert (trial.instance, trial.watch, trial.opened, trial.uid) == ("EMFILE", "untried", 0, 0)
    trial = answers.typed(limits.Limits, LIMITS).inotify
    assert (trial.instance, trial.watch, trial.opened) == (None, None, 8)


def test_the_limits_of_pid_1_and_of_processes():
    answer = answers.typed(limits.Limits, LIMITS)
    assert (answer.init.nofile, answer.init.nproc) == ((20000, 20000), (4096, 4096))
    assert answer.init.cap_sys_resource is False
    kubelet = answer.processes[0]
    assert (kubelet.role, kubelet.nofile, kubelet.open) == ("kubelet", (19999, 20000), 32)


def test_the_files_that_set_limits():
    answer = answers.typed(limits.Limits, LIMITS)
    assert "session required pam_limits.so" in {line.text for line in answer.pam}
    assert answer.sysctl_files[0].path == "/etc/sysctl.d/60-lab.conf"
    assert [unit.name for unit in answer.units][:2] == ["kubelet.service", "containerd.service"]
    assert answer.limits_files
    assert answer.late == limits.SysctlOverrides(ufw=None, networkd=None, tuned=None)


def test_what_sets_kernel_parameters_later():
    row = {"path": "/etc/tuned/x/tuned.conf", "line": 3, "key": "net.ipv4.ip_forward", "value": "0"}
    late = {
        "ufw": {"sysctl": {"path": "/etc/ufw/sysctl.conf", "text": "net/ipv4/ip_forward=0\n"}},
        "networkd": [row],
        "tuned": {"reapply": "0", "rows": [row], "unknown": ["base"]},
    }
    raw = {**LIMITS, "late": late, "user_ns": "4026531837", "used_up": ["inotify"]}
    answer = answers.typed(limits.Limits, raw)
    assert answer.late.ufw.sysctl.path == "/etc/ufw/sysctl.conf"
    assert [(item.key, item.value) for item in answer.late.networkd] == [
        ("net.ipv4.ip_forward", "0")
    ]
    assert answer.late.tuned.rows == answer.late.networkd
    assert (answer.late.tuned.reapply, answer.late.tuned.unknown) == ("0", ("base",))
    assert (answer.user_ns, answer.used_up) == ("4026531837", ("inotify",))


@pytest.mark.parametrize("field", ["units", "sysctl_files", "limits_files", "kernel"])
def test_a_part_of_another_type_is_unknown_and_not_empty(field):
    decoded = answers.changed(limits.Limits, LIMITS, field, value="none")
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), None)


def test_a_limit_of_the_kernel_that_is_a_number_is_dropped():
    decoded = answers.changed(limits.Limits, LIMITS, "kernel", "fs.nr_open", value=1048576)
    assert decoded.malformed == ("kernel.fs.nr_open",)
    assert "fs.nr_open" not in decoded.answer.kernel
    assert decoded.answer.kernel["kernel.pid_max"] == "4194304"


def test_a_limit_of_pid_1_without_its_hard_value_is_unknown():
    decoded = answers.changed(limits.Limits, LIMITS, "init", "nofile", value=[20000])
    assert decoded.malformed == ("init.nofile",)
    assert (decoded.answer.init.nofile, decoded.answer.init.nproc) == (None, (4096, 4096))
