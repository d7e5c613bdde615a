# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps against what a next start would change: packages on hold, and networkd's drop-in."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    next_start,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import conclusion
from tests.unit.support import network_evidence
from tests.unit.support.network_evidence import interface, service

SECURITY = {"origin": "Ubuntu", "archive": "jammy-security", "codename": "jammy"}
ROUTES, RULES = "ManageForeignRoutes", "ManageForeignRoutingPolicyRules"
CONSENT = "-e kubemend_allow=hold_packages"


def judged(world, *allow, max_risk=1):
    """Return (the findings of both faults, the steps for them)."""
    documents = world.documents
    result, clusters = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], frozenset({"KM534", "KM702"}), deep=True
    )
    steps = plan.plan(
        result.findings,
        clusters,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow)),
        next_start.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
    return result.findings, steps


def only(world, *allow, max_risk=1):
    (step,) = judged(world, *allow, max_risk=max_risk)[1]
    return step


@pytest.fixture
def upgraded(world):
    """Return w1, of which unattended-upgrades takes six packages."""
    names = ["runc", "containerd", "nvidia-driver-535", "nvidia-dkms-535", "docker.io", "kubelet"]
    row = {"installed": "1.7.1", "candidate": "1.7.2", "sources": [SECURITY]}
    world.data("w1", "next_start")["upgrades"] = {
        "on": True,
        "patterns": [{"old": True, "text": "${distro_id}:${distro_codename}-security"}],
        "system": {"id": "Ubuntu", "codename": "jammy"},
        "packages": [{"name": name, **row} for name in names],
        "error": None,
    }
    return world


@pytest.fixture
def networkd(world):
    """Return w1 with Cilium, where networkd of systemd 252 manages routes of others."""
    network_evidence.network(world)
    world.data("w1", "network").update(
        interfaces=[interface("eth0"), interface("cilium_host")], networkd=service(systemd=252)
    )
    return world


def test_all_packages_are_held_by_one_step(upgraded):
    step = only(upgraded, "hold_packages")
    assert (step.remedy, step.risk, step.allowed, step.host) == ("hold_packages", 1, True, "w1")
    names = ["containerd", "docker.io", "kubelet", "nvidia-dkms-535", "nvidia-driver-535", "runc"]
    assert step.change == {
        "kind": "hold_packages",
        "path": f"selections of {' '.join(names)}",
        "packages": names,
    }
    assert step.diff.count("\thold\n") == len(names)
    assert "unhold" in step.note


def test_security_updates_are_kept_away_only_with_a_word_for_it(upgraded):
    findings, steps = judged(upgraded)
    (step,) = steps
    assert not step.allowed
    assert step.blocked_by.endswith(CONSENT)
    assert conclusion.fix_label(findings[0], steps) == "fix (automatic, risk 1)"


def test_the_word_is_no_consent_to_the_risk(upgraded):
    step = only(upgraded, "hold_packages", max_risk=0)
    assert step.blocked_by == "risk 1 needs -e kubemend_max_risk=1"


def test_a_node_that_was_taken_out_is_left_alone(upgraded):
    items = upgraded.data("api", "nodes")["items"]
    next(item for item in items if item["name"] == "w1")["unschedulable"] = True
    assert "another client cordoned w1" in only(upgraded, "hold_packages").blocked_by
    assert only(upgraded, "hold_packages", "fenced").allowed


def test_a_node_whose_packages_are_held(upgraded):
    upgraded.data("w1", "next_start")["upgrades"]["packages"] = []
    assert judged(upgraded, "hold_packages") == ((), ())


def test_networkd_gets_one_drop_in(networkd):
    findings, steps = judged(networkd)
    (step,) = steps
    assert (step.remedy, step.risk, step.allowed) == ("networkd_routes", 1, True)
    assert step.target == "/etc/systemd/networkd.conf.d/99-zz-kubemend.conf"
    assert step.change == {"kind": step.remedy, "path": step.target, "keys": [ROUTES, RULES]}
    assert step.diff.endswith(f"+[Network]\n+{ROUTES}=no\n+{RULES}=no\n")
    assert "not restarted" in step.note
    assert conclusion.fix_label(findings[0], steps) == "fix (automatic, risk 1)"
    assert (findings[0].risk, findings[0].component) == (1, "systemd-networkd")


@pytest.mark.parametrize(
    ("release", "rows", "keys"),
    [
        (246, (), [ROUTES]),
        (248, (), [ROUTES]),
        (249, (), [ROUTES, RULES]),
        (252, (("[Network]", RULES, "no"),), [ROUTES]),
        (252, (("[DHCPv4]", RULES, "no"),), [ROUTES, RULES]),
    ],
)
def test_only_settings_that_the_release_knows_and_that_are_not_off(networkd, release, rows, keys):
    networkd.data("w1", "network")["networkd"] = service(*rows, systemd=release)
    assert only(networkd).change["keys"] == keys


@pytest.mark.parametrize(("release", "rows"), [(245, ()), (247, (("[Network]", ROUTES, "no"),))])
def test_a_release_without_a_setting_has_no_step(networkd, release, rows):
    networkd.data("w1", "network")["networkd"] = service(*rows, systemd=release)
    findings, steps = judged(networkd)
    assert [item.component for item in findings] == ["systemd-networkd"]
    assert steps == ()


def test_evidence_without_the_release(networkd):
    networkd.data("w1", "network")["networkd"] = service()
    step = only(networkd)
    assert "which systemd" in step.blocked_by
    assert (step.allowed, step.change, step.diff) == (False, None, "")


def test_what_a_file_decides_is_left(networkd):
    rows = (("[Network]", RULES, "yes"),)
    networkd.data("w1", "network")["networkd"] = service(*rows, systemd=252)
    step = only(networkd)
    assert not step.allowed
    assert step.blocked_by.startswith(f"/etc/x.conf:1 says {RULES}=yes")


def test_other_settings_of_the_host_have_no_step(networkd):
    networkd.data("w1", "network").update(networkd=None, rp_filter=2)
    networkd.data("w1", "network")["interfaces"].append(interface("lxc*"))
    findings, steps = judged(networkd)
    assert [(item.component, item.risk) for item in findings] == [("rp_filter", 0)]
    assert steps == ()
