# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is free where logs lie: of the folder, or of the nearest one above it that is there."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import space


def told(**more: Any) -> Any:
    return SimpleNamespace(
        **{
            "f_bavail": 10,
            "f_bfree": 99,
            "f_frsize": 4096,
            "f_bsize": 1,
            "f_blocks": 100,
            "f_files": 50,
            "f_favail": 7,
            "f_ffree": 9,
            "f_flag": 0,
            **more,
        }
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    paths: list[str] = []

    def statvfs(path: str) -> Any:
        paths.append(path)
        return told()

    monkeypatch.setattr(space.os, "statvfs", statvfs)
    return paths


def one(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> list[dict[str, Any]]:
    monkeypatch.setattr(space, "FOLDERS", tuple(str(path) for path in paths))
    context = base.Context({}, [], {})
    found = space.collect(context)["folders"]
    assert context.source == "statvfs"
    return found


def test_what_users_may_still_write_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[str]
) -> None:
    """Neither blocks kept for root, nor the size of a transfer."""
    assert one(monkeypatch, tmp_path) == [
        {
            "path": str(tmp_path),
            "free_bytes": 40960,
            "total_bytes": 409600,
            "free_inodes": 7,
            "error": None,
        }
    ]


def test_a_folder_that_is_missing_counts_as_the_nearest_above(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    found = one(
        monkeypatch,
        tmp_path / "a" / "b",
        tmp_path / "file" / "x",
        tmp_path / "file",
        Path("/nowhere-kubemend/x"),
    )
    assert asked == [str(tmp_path)] * 3 + ["/"]
    assert next(item["path"] for item in found) == str(tmp_path / "a" / "b")


def test_some_filesystems_count_no_inodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(space.os, "statvfs", lambda path: told(f_files=0, f_favail=0))
    assert one(monkeypatch, tmp_path)[0]["free_inodes"] is None


def test_one_that_cannot_be_asked_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def statvfs(path: str) -> Any:
        if path == str(tmp_path):
            raise OSError(5, "Input/output error")
        return told()

    monkeypatch.setattr(space.os, "statvfs", statvfs)
    first, second = one(monkeypatch, tmp_path, Path("/"))
    assert first["free_bytes"] is None
    assert "Input/output error" in first["error"]
    assert second["free_bytes"] == 40960


def test_the_real_thing() -> None:
    for item in space.collect(base.Context({}, [], {}))["folders"]:
        assert 0 <= item["free_bytes"] <= item["total_bytes"]
        assert os.path.isabs(item["path"])  # noqa: PTH117 - a path as the node gives it
        assert item["error"] is None


def stores(monkeypatch: pytest.MonkeyPatch, data: dict[str, Any], *real: str) -> dict[str, str]:
    """Return what lies where, of a machine that has only these folders."""

    def statvfs(path: str) -> Any:
        if path not in real:
            raise FileNotFoundError(2, "No such file or directory")
        return told()

    monkeypatch.setattr(space.os, "statvfs", statvfs)
    monkeypatch.setattr(space, "_space", lambda path, silent: {"path": path})
    monkeypatch.setattr(space.os.path, "isdir", lambda path: path == "/var/lib/etcd/member")
    found = space.collect(base.Context({}, [], data))["stores"]
    return {row["path"]: row["use"] for row in found}


ETCD = {"component": "etcd", "argv": ["etcd", "--data-dir=/data/etcd", "--wal-dir", "/wal"]}


def test_the_folders_that_etcd_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = ("/data/etcd", "/wal", "/run", "/var/lib/etcd")
    data: dict[str, Any] = {"instances": {"processes": [ETCD]}}
    assert stores(monkeypatch, data, *folders) == {
        "/data/etcd": "etcd",
        "/wal": "etcd",
        "/run": "run",
    }
    data = {"component_units": {"units": [dict(ETCD, argv=["etcd"])]}}
    assert stores(monkeypatch, data, *folders) == {"/var/lib/etcd": "etcd", "/run": "run"}


def test_the_folders_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    kubelet = {"argv": ["kubelet", "--root-dir=/data/kubelet"]}
    data: dict[str, Any] = {"kubelet": kubelet}
    monkeypatch.setattr(space, "etcd_folders", lambda *dummy: [])
    found = stores(monkeypatch, data, "/data/kubelet", "/var/log/pods", "/run")
    assert found == {"/data/kubelet": "kubelet", "/var/log/pods": "pod_logs", "/run": "run"}


def test_a_machine_without_kubernetes_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "etcd_folders", lambda *dummy: [])
    assert stores(monkeypatch, {}, "/run") == {}


def test_what_root_may_write_and_whether_it_is_read_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(space.os, "statvfs", lambda path: told(f_flag=4097))
    row = space._store(str(tmp_path), "run")
    assert row is not None
    assert (row["free_bytes"], row["total_bytes"]) == (99 * 4096, 409600)
    assert (row["free_inodes"], row["inodes"], row["read_only"]) == (9, 50, True)
    assert row["device"] == tmp_path.stat().st_dev


def test_a_folder_that_may_not_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def statvfs(path: str) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(space.os, "statvfs", statvfs)
    assert space._store("/x", "run") == {"path": "/x", "use": "run", "error": "denied"}


OWN = {"files": [{"text": "- --data-dir=/data/etcd"}, {"text": None}]}


@pytest.mark.parametrize(
    ("pod", "manifests", "asked_of"),
    [
        ({"pod_uid": "a" * 32, "static": True}, OWN, True),
        ({"pod_uid": "a" * 32, "static": True}, None, True),  # this user may not read them
        ({"pod_uid": "a" * 32, "static": True}, {"files": []}, False),  # of a cluster in it
        ({"pod_uid": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "static": False}, OWN, False),
        ({"pod_uid": None, "unit": "etcd.service"}, {"files": []}, True),
    ],
)
def test_the_etcd_of_a_users_pod_is_not_the_nodes(
    pod: dict[str, Any], manifests: Any, asked_of: bool
) -> None:
    processes = [dict(ETCD, **pod), {"component": "kube-scheduler", "argv": ["--data-dir=/x"]}]
    data = {"instances": {"processes": processes}, "manifests": manifests}
    assert space.etcd_flags(data) == (["/data/etcd", "/wal"] if asked_of else [])


REMOTE = "40 1 0:50 / /data/etcd rw - nfs4 10.0.0.9:/etcd rw\n"
LOCAL = "41 1 8:1 / /data rw - ext4 /dev/sda1 rw\n"


def test_without_a_server_of_files_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def answering(*dummy: Any) -> Any:
        raise AssertionError("it asks")

    monkeypatch.setattr(space.hangs, "answering", answering)
    assert space.silent_folders(["/data/etcd"], LOCAL, 1.0) == frozenset()


def test_a_folder_that_does_not_answer_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A link may lead to the server too, so that each folder is asked in a process of its own."""
    silent = {"/data/etcd", "/var/log/pods", "/var/lib/containerd", "/var/lib/etcd/member"}
    asked_of: list[str] = []

    def answering(paths: list[str], seconds: float) -> dict[str, bool]:
        assert seconds <= 2
        asked_of.extend(paths)
        return {path: path not in silent for path in paths}

    def touched(path: str) -> Any:
        assert path not in silent
        return told()

    monkeypatch.setattr(space.hangs, "answering", answering)
    monkeypatch.setattr(space.files, "whole", lambda *dummy: REMOTE + LOCAL)
    monkeypatch.setattr(space.os, "statvfs", touched)
    monkeypatch.setattr(space.os.path, "isdir", touched)
    data = {"instances": {"processes": [ETCD]}, "kubelet": {"argv": ["kubelet"]}}
    found = space.collect(base.Context({}, [], data))
    errors = {row["path"]: row["error"] for row in found["folders"] + found["stores"]}
    assert {path for path, error in errors.items() if error} == silent - {"/var/lib/etcd/member"}
    assert len(asked_of) == len(set(asked_of))
    assert {"/wal", "/var/lib/kubelet", "/run", "/var/lib/kubemend"} <= set(asked_of)
    data = {"instances": {"processes": []}}
    assert space.etcd_folders(data, frozenset(silent)) == ["/var/lib/etcd"]


def database_in(folder: Path, size: int = 7) -> Path:
    path = folder / "member" / "snap" / "db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * size)
    return path


def etcd_manifest(flag: Path, mount: Path, volume: Path) -> dict[str, Any]:
    text = (
        f"spec:\n  containers:\n  - command:\n    - etcd\n    - --data-dir={flag}\n"
        f"    volumeMounts:\n    - mountPath: {mount}\n      name: data\n"
        f"  volumes:\n  - hostPath:\n      path: {volume}\n    name: data\n"
    )
    return {"manifests": {"files": [{"text": "kind: Pod"}, {"text": text}]}}


def test_the_database_of_an_etcd_that_a_process_names(tmp_path: Path) -> None:
    path = database_in(tmp_path / "a")
    argv = ["etcd", f"--data-dir={tmp_path / 'a'}"]
    data: dict[str, Any] = {"instances": {"processes": [dict(ETCD, argv=argv)]}}
    row = space.database(data)
    assert row == {"path": str(path), "bytes": 7, "mtime": round(path.stat().st_mtime, 3)}
    assert space.database(data, frozenset([str(tmp_path / "a")])) is None


def test_the_database_of_an_etcd_that_only_a_manifest_names(tmp_path: Path) -> None:
    stale, path = database_in(tmp_path / "etcd"), database_in(tmp_path / "disk" / "etcd", 9)
    mount = tmp_path / "etcd"
    moved = space.database(etcd_manifest(mount, mount, path.parents[2]))
    assert moved is not None
    assert (moved["path"], moved["bytes"]) == (str(path), 9)
    same = space.database(etcd_manifest(mount, mount, mount))
    assert same is not None
    assert same["path"] == str(stale)


def test_the_usual_database_counts_only_where_nothing_names_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = database_in(tmp_path / "usual")
    monkeypatch.setattr(space, "UNNAMED", (str(tmp_path / "none"), str(tmp_path / "usual")))
    found = space.database({})
    assert found is not None
    assert found["path"] == str(path)
    gone = tmp_path / "gone"
    assert space.database(etcd_manifest(gone, gone, gone)) is None
