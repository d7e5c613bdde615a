# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that upgrade themselves: KM702. Tables."""

from __future__ import annotations

import pytest

SECURITY = {"origin": "Ubuntu", "archive": "jammy-security", "codename": "jammy"}
CLUSTER = {"origin": "obs://build.opensuse.org/isv:kubernetes:core:stable:v1.30/deb"}


def judged(world):
    """Return (the verdict of w1, its findings)."""
    result = world.judge(faults={"KM702"}, deep=True)
    verdicts = {item.host: item.verdict for item in result.verdicts}
    return verdicts.get("w1", "not judged"), [one for one in result.findings if one.host == "w1"]


def package(name, source, candidate="1.7.2"):
    return {"name": name, "installed": "1.7.1", "candidate": candidate, "sources": [source]}


@pytest.fixture
def upgrades(world):
    """Return what w1 upgrades by itself: Ubuntu's security pocket."""
    answer = {
        "on": True,
        "patterns": [{"old": True, "text": "${distro_id}:${distro_codename}-security"}],
        "system": {"id": "Ubuntu", "codename": "jammy"},
        "packages": [package("containerd", SECURITY), package("kubelet", CLUSTER)],
        "error": None,
    }
    world.data("w1", "next_start")["upgrades"] = answer
    return answer


def test_a_package_of_the_pocket_that_is_upgraded(world, upgrades):
    verdict, (found,) = judged(world)
    assert (verdict, found.component, found.severity) == ("present", "containerd", "warning")
    assert "1.7.2" in found.summary
    assert "kubelet" not in found.summary
    assert "apt-mark hold containerd;" in found.remedy


def test_nothing_waits_now(world, upgrades):
    upgrades["packages"][0]["candidate"] = "1.7.1"
    _verdict, (found,) = judged(world)
    assert "1.7.1 to" not in found.summary


def test_packages_of_other_sources_alone(world, upgrades):
    upgrades["packages"] = [package("kubelet", CLUSTER)]
    assert judged(world) == ("clear", [])


def test_a_name_that_would_be_a_command(world, upgrades):
    upgrades["packages"] = [package("x; reboot", SECURITY)]
    assert judged(world) == ("clear", [])


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"on": False}, "clear"),
        ({"patterns": []}, "clear"),
        ({"error": "apt-config did not end within 5 s"}, "unknown"),
    ],
)
def test_other_answers(world, upgrades, change, verdict):
    upgrades.update(change)
    assert judged(world) == (verdict, [])


def test_a_machine_without_unattended_upgrades(world):
    assert judged(world) == ("not_applicable", [])


def test_a_host_without_the_evidence(world):
    world.documents["w1"]["collectors"]["next_start"] = {"status": "denied", "data": None}
    assert judged(world) == ("unknown", [])


@pytest.fixture
def rpms(world):
    """Return what dnf-automatic of w1 upgrades by itself: everything."""
    answer = {
        "on": True,
        "program": "dnf-automatic",
        "unit": "dnf-automatic.timer",
        "security": False,
        "packages": [
            {"name": "kubelet", "installed": "1.30.1-1", "own": False},
            {"name": "runc", "installed": "1.1.12-2.el9", "own": True},
        ],
        "error": None,
    }
    world.data("w1", "next_start")["rpm_upgrades"] = answer
    return answer


def test_dnf_that_upgrades_by_itself(world, rpms):
    verdict, (found,) = judged(world)
    assert (verdict, found.component, found.severity) == ("present", "kubelet", "warning")
    assert found.risk == 0
    assert found.evidence[0].object == "dnf-automatic.timer"
    assert [proof.text.partition(" ")[0] for proof in found.evidence[1:]] == ["kubelet", "runc"]
    assert "dnf versionlock add kubelet runc." in found.remedy


def test_security_updates_are_of_the_distribution_alone(world, rpms):
    rpms["security"] = True
    _verdict, (found,) = judged(world)
    assert found.component == "runc"
    rpms["packages"].pop()
    assert judged(world) == ("clear", [])


def test_yum_has_commands_of_its_own(world, rpms):
    rpms.update(program="yum-cron", unit="yum-cron.service")
    _verdict, (found,) = judged(world)
    assert "yum versionlock add kubelet runc." in found.remedy
    assert "dnf" not in found.remedy
    assert {proof.path for proof in found.evidence[1:]} == {"/etc/yum.conf, /etc/yum.repos.d"}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"on": False}, "clear"),
        ({"packages": []}, "clear"),
        ({"packages": [{"name": "x; reboot", "installed": "1", "own": True}]}, "clear"),
        ({"error": "rpm did not end within 5 s"}, "unknown"),
    ],
)
def test_other_answers_of_dnf(world, rpms, change, verdict):
    rpms.update(change)
    assert judged(world) == (verdict, [])
