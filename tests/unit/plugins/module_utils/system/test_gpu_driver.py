# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's driver in the kernel and its libraries: real first lines of /proc/driver/nvidia."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import gpu_driver

CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build"
    "  (dvs-builder@U16-A24-23-2)\n"
)


@pytest.mark.parametrize(
    ("text", "version"), [(CLOSED, "535.104.05"), (OPEN, "550.54.15"), ("", ""), ("NVRM", "")]
)
def test_the_version_of_the_kernel(text, version):
    assert gpu_driver.loaded(text) == version


def machine(root, *libraries):
    proc = root / "proc/driver/nvidia"
    proc.mkdir(parents=True)
    (proc / "version").write_text(CLOSED)
    for library in libraries:
        path = root / library
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return gpu_driver.versions(str(root))


def test_libraries_of_the_host_and_of_the_operator(tmp_path):
    folder = tmp_path / "usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.535.104.05")
    answer = machine(
        tmp_path,
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.104.05",
        "run/nvidia/driver/usr/lib64/libnvidia-ml.so.550.54.15",
    )
    assert answer["loaded"] == "535.104.05"
    assert [row["version"] for row in answer["libraries"]] == ["535.104.05", "550.54.15"]


def test_a_folder_that_is_a_link_counts_once(tmp_path):
    (tmp_path / "usr/lib64").mkdir(parents=True)
    (tmp_path / "usr/lib").symlink_to("lib64")
    answer = machine(tmp_path, "usr/lib64/libnvidia-ml.so.535.104.05")
    assert len(answer["libraries"]) == 1


def test_a_machine_without_the_driver(tmp_path):
    assert gpu_driver.versions(str(tmp_path)) is None
