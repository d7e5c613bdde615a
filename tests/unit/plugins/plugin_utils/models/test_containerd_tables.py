# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables in which containerd reads a key: what stands elsewhere is named."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    cri,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import containerd_tables

TWO = "plugins.io.containerd.grpc.v1.cri"
RUNTIME, IMAGES = "plugins.io.containerd.cri.v1.runtime", "plugins.io.containerd.cri.v1.images"


def _reason(version, table, key, release=""):
    return containerd_tables.not_read(
        cri.ConfigFile(version=version), cri.ConfigLine(3, table, key, "x"), release
    )


@pytest.mark.parametrize(
    ("version", "table", "key"),
    [
        (1, "plugins.cri.containerd.runtimes.runc.options", "SystemdCgroup"),
        (None, "plugins.cri", "sandbox_image"),
        (2, f"{TWO}.containerd.runtimes.nvidia.options", "SystemdCgroup"),
        (2, f"{TWO}.containerd.runtimes.my.runc.options", "SystemdCgroup"),
        (2, f"{TWO}.containerd.default_runtime.options", "SystemdCgroup"),
        (2, TWO, "systemd_cgroup"),
        (2, TWO, "sandbox_image"),
        (2, f"{TWO}.cni", "bin_dir"),
        (2, f"{TWO}.registry", "config_path"),
        (2, f"{TWO}.containerd.runtimes.runc", "runtime_type"),
        (3, f"{RUNTIME}.containerd.runtimes.runc.options", "SystemdCgroup"),
        (3, f"{IMAGES}.pinned_images", "sandbox"),
        (3, f"{IMAGES}.registry", "config_path"),
        # another plugin's own, and a version that is not known here
        (3, "plugins.io.containerd.transfer.v1.local", "config_path"),
        (2, "plugins.io.containerd.sandbox.controller.v1", "sandbox"),
        (4, f"{RUNTIME}.containerd.runtimes.runc.options", "SystemdCgroup"),
        (4, IMAGES, "sandbox_image"),
    ],
)
def test_a_table_that_is_read(version, table, key):
    assert _reason(version, table, key) == ""


@pytest.mark.parametrize(
    ("version", "table", "key", "belongs"),
    [
        (2, f"{TWO}.containerd.runtimes.runc", "SystemdCgroup", ".runtimes.runc.options]"),
        (2, f"{TWO}.containerd.runtimes", "SystemdCgroup", ".runtimes.runc.options]"),
        (2, TWO, "SystemdCgroup", ".runtimes.runc.options]"),
        (2, "", "SystemdCgroup", '"io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]'),
        (2, "runtimes.runc.options", "SystemdCgroup", ".runtimes.runc.options]"),
        (1, "plugins.cri", "SystemdCgroup", "[plugins.cri.containerd.runtimes.runc.options]"),
        (2, f"{TWO}.containerd", "sandbox_image", '[plugins."io.containerd.grpc.v1.cri"]'),
        (2, "", "sandbox_image", '[plugins."io.containerd.grpc.v1.cri"]'),
        (2, f"{TWO}.containerd", "config_path", '"io.containerd.grpc.v1.cri".registry]'),
        (2, f"{TWO}.containerd.runtimes.runc.options", "runtime_type", ".runtimes.runc]"),
        (3, IMAGES, "sandbox_image", ".pinned_images], as sandbox"),
        (3, IMAGES, "sandbox", ".pinned_images]"),
    ],
)
def test_a_table_where_the_key_is_not_read(version, table, key, belongs):
    reason = _reason(version, table, key)
    assert f"where containerd does not read {key}" in reason
    assert reason.endswith(belongs)


@pytest.mark.parametrize(
    ("version", "table", "key"),
    [
        (3, TWO, "sandbox_image"),
        (3, f"{TWO}.registry", "config_path"),
        (2, f"{IMAGES}.pinned_images", "sandbox_image"),
        (2, "plugins.cri.containerd.runtimes.runc.options", "SystemdCgroup"),
    ],
)
def test_a_table_of_another_version(version, table, key):
    assert f"that version {version} " in _reason(version, table, key)


@pytest.mark.parametrize("version", [None, 1, 2])
@pytest.mark.parametrize(
    ("release", "is_read"),
    [("", False), ("v1.7.28", False), ("2.0.0-rc.1", True), ("v2.1.6", True), ("v2.3.4", True)],
)
def test_containerd_2_reads_its_own_tables_in_older_files(version, release, is_read):
    table = f"{RUNTIME}.containerd.runtimes.runc.options"
    assert (_reason(version, table, "SystemdCgroup", release) == "") is is_read


def test_containerd_2_reads_no_other_table_of_its_plugins():
    found = _reason(2, IMAGES, "sandbox_image", "v2.1.6")
    assert found.endswith(".pinned_images], as sandbox")
    assert _reason(3, TWO, "sandbox_image", "v2.1.6")
    assert _reason(2, TWO, "sandbox_image", "v2.1.6") == ""
