# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next boot of a node breaks: KM704, KM705, KM706. Tables."""

from __future__ import annotations

import pytest


def judged(world, code):
    """Return (the verdict of w1, its findings)."""
    result = world.judge(faults={code}, deep=True)
    verdicts = {item.host: item.verdict for item in result.verdicts}
    return verdicts.get("w1", "not judged"), [one for one in result.findings if one.host == "w1"]


@pytest.mark.parametrize("code", ["KM704", "KM705", "KM706"])
@pytest.mark.parametrize(
    ("collector", "status", "verdict"),
    [
        ("next_start", "denied", "unknown"),
        ("next_start", "absent", "not_applicable"),
        ("kubelet", "absent", "not_applicable"),
        ("next_start", "not_asked", "not judged"),
    ],
)
def test_a_host_without_the_evidence(world, code, collector, status, verdict):
    world.documents["w1"]["collectors"][collector] = {"status": status, "data": None}
    assert judged(world, code) == (verdict, [])


def test_a_line_of_fstab_without_its_source(world):
    row = {"line": 4, "what": "UUID=2f6d8a51-77c4-4b0e-8b6f-0c9d3f1e5a20", "point": "/data"}
    world.data("w1", "next_start")["mounts"]["rows"] = [row]
    verdict, (found,) = judged(world, "KM704")
    assert (verdict, found.component, found.severity) == ("present", "/data", "critical")
    assert [(proof.path, proof.line) for proof in found.evidence] == [("/etc/fstab", 4)]
    assert "nofail" in found.remedy


@pytest.mark.parametrize("error", ["denied", "Input/output error"])
def test_an_fstab_that_could_not_be_read(world, error):
    world.data("w1", "next_start")["mounts"]["error"] = error
    assert judged(world, "KM704") == ("unknown", [])


def test_an_answer_without_fstab(world):
    world.data("w1", "next_start")["mounts"] = None
    assert judged(world, "KM704") == ("unknown", [])


def test_lines_of_a_container_are_told_in_a_note(world):
    world.data("w1", "next_start")["mounts"]["unknown"] = 2
    result = world.judge(faults={"KM704"}, deep=True)
    (verdict,) = [item for item in result.verdicts if item.host == "w1"]
    assert (verdict.verdict, "2 lines" in verdict.note) == ("clear", True)


def kernel(world, release, lacks=("nvidia",), is_default=False, tree=True):
    world.data("w1", "next_start")["kernels"]["kernels"].append(
        {"release": release, "tree": tree, "lacks": list(lacks), "is_default": is_default}
    )


@pytest.mark.parametrize(
    ("release", "is_default", "severity"),
    [
        ("6.1.0-26-amd64", True, "critical"),
        ("6.1.0-26-amd64", False, "warning"),
        ("6.1.0-100-amd64", False, "warning"),
        ("6.1.0-9-amd64", True, "critical"),
    ],
)
def test_a_kernel_without_modules_that_run(world, release, is_default, severity):
    kernel(world, release, is_default=is_default)
    verdict, (found,) = judged(world, "KM705")
    assert (verdict, found.component, found.severity) == ("present", release, severity)
    assert "nvidia" in found.summary
    assert "dkms" in found.remedy


def test_a_kernel_whose_modules_are_not_installed(world):
    kernel(world, "6.1.0-26-amd64", ("overlay", "nf_conntrack"), True, tree=False)
    _verdict, (found,) = judged(world, "KM705")
    assert "not installed" in found.evidence[0].text
    assert "dkms" not in found.remedy


@pytest.mark.parametrize(
    ("release", "lacks"), [("6.1.0-9-amd64", ("nvidia",)), ("6.1.0-26-amd64", ())]
)
def test_kernels_that_break_nothing(world, release, lacks):
    kernel(world, release, lacks)
    assert judged(world, "KM705") == ("clear", [])


def test_a_container_has_no_kernel_of_its_own(world):
    world.data("w1", "next_start")["kernels"] = None
    assert judged(world, "KM705") == ("not_applicable", [])


def driver(world, *versions, loaded="535.104.05"):
    libraries = [
        {"path": f"/usr/lib64/libnvidia-ml.so.{version}", "version": version}
        for version in versions
    ]
    world.data("w1", "next_start")["gpu"] = {"loaded": loaded, "libraries": libraries}


def test_a_library_of_another_release(world):
    driver(world, "535.183.01")
    verdict, (found,) = judged(world, "KM706")
    assert (verdict, found.component, found.severity) == ("present", "nvidia", "warning")
    assert [proof.text for proof in found.evidence] == ["535.104.05", "535.183.01"]


@pytest.mark.parametrize("versions", [("535.104.05",), ("550.54.15", "535.104.05"), ()])
def test_libraries_of_the_driver(world, versions):
    driver(world, *versions)
    assert judged(world, "KM706") == ("clear", [])


def test_a_driver_whose_release_is_not_known(world):
    driver(world, "535.104.05", loaded="")
    assert judged(world, "KM706") == ("unknown", [])


def test_a_node_without_the_driver(world):
    assert judged(world, "KM706") == ("not_applicable", [])
