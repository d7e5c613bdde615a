# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drop-in of a package that starts another kubelet than the installer's unit: KM531. Tables."""

from __future__ import annotations

import pytest

UNIT = "/etc/systemd/system/kubelet.service"
PACKAGED = "/usr/lib/systemd/system/kubelet.service"
DROPIN = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
OLDER = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
OWN = "/etc/systemd/system/kubelet.service.d/50-own.conf"
LOCAL, USUAL = "/usr/local/bin/kubelet", "/usr/bin/kubelet"


def judged(world, programs):
    unit = world.data("w1", "kubelet")["unit"]
    fragment = programs[0][0] if programs else UNIT
    unit.update(fragment_path=fragment, programs=programs)
    result = world.judge(faults={"KM531"})
    verdicts = {item.host: item.verdict for item in result.verdicts}
    found = [item for item in result.findings if item.host == "w1"]
    return verdicts.get("w1", "not judged"), found


@pytest.mark.parametrize("dropin", [DROPIN, OLDER])
def test_the_package_s_drop_in_replaces_the_installer_s_program(world, dropin):
    verdict, (found,) = judged(world, [[UNIT, LOCAL], [dropin, USUAL]])
    assert verdict == "present"
    assert (found.component, found.severity) == ("kubelet", "warning")
    assert [proof.path for proof in found.evidence[:2]] == [UNIT, dropin]
    assert LOCAL in found.summary
    assert USUAL in found.summary


@pytest.mark.parametrize(
    "programs",
    [
        [[PACKAGED, USUAL], [DROPIN, USUAL]],  # kubeadm
        [[UNIT, LOCAL]],  # kubespray
        [[UNIT, USUAL], [DROPIN, "/bin/kubelet"]],  # / is linked to /usr
        [[UNIT, LOCAL], [OWN, USUAL]],  # an administrator means it
        [[UNIT, LOCAL], [DROPIN, USUAL], [OWN, LOCAL]],  # and takes it back
        [[PACKAGED, LOCAL], [DROPIN, USUAL]],  # two packages that know each other
        [],
    ],
)
def test_units_as_they_are_meant(world, programs):
    assert judged(world, programs) == ("clear", [])


def test_a_drop_in_that_starts_the_same_program_by_a_link(world):
    world.data("w1", "kubelet")["process"] = {"pid": 7, "argv": ["kubelet"], "exe": LOCAL}
    assert judged(world, [[UNIT, LOCAL], [DROPIN, USUAL]]) == ("clear", [])


def test_a_unit_whose_own_file_starts_nothing(world):
    world.data("w1", "kubelet")["unit"].update(fragment_path=UNIT, programs=[[DROPIN, USUAL]])
    result = world.judge(faults={"KM531"})
    assert {item.host: item.verdict for item in result.verdicts}["w1"] == "clear"


def test_older_evidence_is_not_judged(world):
    assert judged(world, None) == ("not judged", [])


@pytest.mark.parametrize(
    ("record", "verdict"),
    [
        ({"status": "denied", "data": None}, "unknown"),
        ({"status": "absent", "data": None}, "not_applicable"),
    ],
)
def test_a_host_without_the_evidence(world, record, verdict):
    world.documents["w1"]["collectors"]["kubelet"] = record
    result = world.judge(faults={"KM531"})
    assert {item.host: item.verdict for item in result.verdicts}["w1"] == verdict
