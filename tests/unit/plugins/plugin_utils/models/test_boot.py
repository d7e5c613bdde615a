# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot undoes: kernel settings, modules and file systems of one node."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import boot
from tests.unit.support.fake_limits import record

FORWARD, BRIDGE = boot.IP_FORWARD, "net.bridge.bridge-nf-call-iptables"
SYSCTL = "/etc/sysctl.d/k8s.conf"
LOAD = "/etc/modules-load.d/k8s.conf"


def read(sysctl=f"{FORWARD} = 1\n{BRIDGE} = 1\n", load="br_netfilter\n", **more):
    seen = {
        "running": {FORWARD: "1", BRIDGE: "1"},
        "modules": {"br_netfilter": "loaded", "overlay": "loaded"},
        "tree": True,
        "modules_files": [record(LOAD, load)],
        "cmdline": [],
        "container": False,
        **more,
    }
    limits = {"kernel": {}, "units": [], "sysctl_files": [record(SYSCTL, sysctl)]}
    data = {"boot": seen, "limits": limits, "system": {"addresses": ["10.0.0.1", "fd00::1"]}}
    collectors = {name: {"status": "ok", "data": found} for name, found in data.items()}
    return boot.read({"host": "w1", "collectors": collectors})


def problems(**more):
    return [(one.name, one.now) for one in boot.problems(read(**more))]


def test_a_node_as_kubeadm_wants_it_has_no_problem():
    assert problems() == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"running": {FORWARD: "0", BRIDGE: "1"}}, [(FORWARD, True)]),
        ({"sysctl": f"{BRIDGE} = 1\n{FORWARD} = 0\n"}, [(FORWARD, False)]),
        ({"running": {FORWARD: "1", BRIDGE: "0"}}, [(BRIDGE, True)]),
        ({"load": "overlay\n"}, [("br_netfilter", False)]),
        ({"load": "overlay\n", "cmdline": [["modules_load", "br-netfilter"]]}, []),
        ({"load": "overlay\n", "container": True}, []),
    ],
)
def test_what_is_missing_now_and_what_the_next_boot_takes_away(changes, found):
    assert problems(**changes) == found


@pytest.mark.parametrize(
    ("state", "known"),
    [("loaded", "loaded"), ("builtin", "builtin"), ("absent", "absent"), ("odd", None), (7, None)],
)
def test_a_module_is_in_a_state_that_is_known(state, known):
    assert read(modules={"br_netfilter": state}).module("br_netfilter") == known


def test_what_is_not_known_of_the_running_system_is_named():
    assert read().unknown() == ""
    assert FORWARD in read(running={}).unknown()
    assert "br_netfilter" in read(modules={}).unknown()
    assert read(modules={}, container=True).unknown() == ""


@pytest.mark.parametrize(
    ("problem", "repairable", "words"),
    [
        (boot.Problem(FORWARD, "", True, 1), True, f"sysctl -w {FORWARD}=1"),
        (boot.Problem("br_netfilter", "", True, loads=True), True, "modprobe br_netfilter"),
        (boot.Problem("br_netfilter", "", True), False, "install the modules"),
    ],
)
def test_a_cure_is_planned_where_there_is_something_to_write_or_load(problem, repairable, words):
    assert boot.is_repairable(problem) is repairable
    assert words in boot.cure(problem)
