# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of static pods as evidence shows it."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Absent,
    Context,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    manifests,
)

DENIED = {"path": "/secret", "text": None, "error": "denied"}


def asked(kubelet):
    return base.Context({}, [], {"kubelet": kubelet})


@pytest.mark.parametrize(
    "kubelet", [{"config": DENIED}, {"config": {"error": None}, "config_dropins": [DENIED]}]
)
def test_a_static_pod_folder_that_an_unread_configuration_names(kubelet):
    with pytest.raises(base.Denied):
        manifests.collect(asked(kubelet))


@pytest.mark.parametrize(
    "kubelet", [{}, {"config": {"error": None}}, {"config": None, "config_dropins": []}]
)
def test_no_static_pod_folder(kubelet):
    with pytest.raises(base.Absent):
        manifests.collect(asked(kubelet))


def test_no_folder(tmp_path):
    for folder in (None, tmp_path / "nowhere"):
        with pytest.raises(Absent):
            manifests.collect(
                Context({}, [], {"kubelet": {"static_pod_path": folder and str(folder)}})
            )
    with pytest.raises(Absent):
        manifests.collect(Context({}, [], {"kubelet": None}))


def test_when_a_manifest_was_moved_in(tmp_path):
    """It keeps the time of its last write."""
    path = tmp_path / "etcd.yaml"
    path.write_text("kind: Pod")
    os.utime(str(path), (1.0, 1.0))
    (record,) = manifests.collect(asked({"static_pod_path": str(tmp_path)}))["files"]
    assert record["mtime"] == 1.0
    assert record["ctime"] == path.stat().st_ctime


@pytest.mark.parametrize("is_same", [True, False])
def test_the_usual_folder_is_named_where_another_one_is_read(tmp_path, monkeypatch, is_same):
    usual, other = tmp_path / "usual", tmp_path / "other"
    usual.mkdir()
    other.symlink_to(usual) if is_same else other.mkdir()
    for name in ("etcd.yaml", ".hidden", *(f"x{number}.yaml" for number in range(30))):
        (usual / name).write_text("kind: Pod")
    monkeypatch.setattr(manifests, "USUAL", str(usual))
    names = manifests.collect(asked({"static_pod_path": str(other)}))["usual"]
    assert names[:1] == ([] if is_same else ["etcd.yaml"])
    assert len(names) == (0 if is_same else manifests.MAX_USUAL)


def test_no_usual_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "USUAL", str(tmp_path / "none"))
    assert manifests.collect(asked({"static_pod_path": str(tmp_path)}))["usual"] == []
