# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which changes of packages may be why a unit does not run."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import package_changes

CLOCK = 1_800_000_000.0


def change(name="containerd", ago=7200.0, **more):
    row = {"time": CLOCK - ago, "action": "upgrade", "name": name, "old": "1.3.2", "new": "1.3.3"}
    return {**row, **more}


def of_unit(*rows, ended=None, is_stopped=True, packages=package_changes.RUNTIMES):
    units = [{"name": "docker.service", "ended_at": ended}] if ended else []
    answers = {
        "system": {"clock": CLOCK},
        "package_changes": {"items": list(rows)},
        "unit_start": {"units": units},
    }
    collectors = {name: {"status": "ok", "data": data} for name, data in answers.items()}
    document = {"collectors": collectors}
    return package_changes.of_unit(document, "docker.service", packages, is_stopped=is_stopped)


@pytest.mark.parametrize(
    ("ago", "count"), [(7201.0, 1), (7199.0 - 120, 0), (7200.0 + 901, 0), (7200.0 + 899, 1)]
)
def test_a_unit_that_was_stopped(ago, count):
    assert len(of_unit(change(ago=ago), ended=CLOCK - 7200)) == count


@pytest.mark.parametrize(("ago", "count"), [(86000.0, 1), (87000.0, 0)])
def test_a_unit_that_ends_again_and_again(ago, count):
    assert len(of_unit(change(ago=ago), ended=CLOCK - 5, is_stopped=False)) == count


def test_other_packages():
    assert of_unit(change("chrony"), is_stopped=False) == ()
    assert of_unit(change("kubelet"), is_stopped=False) == ()
    packages = package_changes.KUBELETS
    assert len(of_unit(change("kubelet"), is_stopped=False, packages=packages)) == 1


def test_what_a_finding_says():
    rows = of_unit(change(), change("runc", action="install", old=""), is_stopped=False)
    text = package_changes.clause(rows)
    assert "containerd was upgraded (1.3.2 -> 1.3.3) at 2027-01-15T06:00:00Z" in text
    assert "runc was installed (1.3.3)" in text
    assert len(package_changes.proofs("w1", rows)) == 2
    assert package_changes.clause(()) == ""


def test_without_evidence():
    assert package_changes.of_unit({}, "docker.service", ("runc",), is_stopped=True) == ()
