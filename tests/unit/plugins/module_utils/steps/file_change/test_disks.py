# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The write on real filesystems.

Full, read-only, immutable, mounted, with owners, labels and access lists.
"""

import contextlib
import errno
import os
import stat
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    file_target,
    journal,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    interrupted_changes,
)
from tests.unit.support import fake_file_change
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@ROOT_ONLY
def test_keeps_owner_label_access_list_and_attributes(node: Node) -> None:
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *one)
        for one in (
            (1, 6, 0xFFFFFFFF),
            (2, 4, 1234),
            (4, 4, 0xFFFFFFFF),
            (16, 4, 0xFFFFFFFF),
            (32, 0, 0xFFFFFFFF),
        )
    )
    wanted = {
        "system.posix_acl_access": acl,
        "security.selinux": b"system_u:object_r:etc_t:s0\0",
        "user.note": b"\x00\xff",
    }
    default = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *one)
        for one in (
            (1, 7, 0xFFFFFFFF),
            (2, 7, 99),
            (4, 5, 0xFFFFFFFF),
            (16, 7, 0xFFFFFFFF),
            (32, 5, 0xFFFFFFFF),
        )
    )
    os.chown(node.file, 12, 34)
    try:
        for name, value in wanted.items():
            os.setxattr(node.file, name, value)
        # which a new file there would get
        os.setxattr(node.folder, "system.posix_acl_default", default)
    except OSError as error:
        pytest.skip(f"extended attributes do not work here: {error}")
    node.swap()
    status = node.file.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12, 34, 0o640)
    assert {name: os.getxattr(node.file, name) for name in os.listxattr(node.file)} == wanted
    intent = journal.read_run(RUN, str(node.root))[0]["intent"]
    assert intent["selinux"] == "system_u:object_r:etc_t:s0"
    assert journal.unpacked(intent["xattrs"]) == wanted
    node.file.write_bytes(BEFORE)
    os.setxattr(node.file, "security.ima", b"\x04wrong for other bytes")
    node.swap(NEXT)
    assert set(os.listxattr(node.file)) == set(wanted)
    os.removexattr(node.file, "system.posix_acl_access")
    node.file.write_bytes(BEFORE)
    node.swap(NEXT)
    assert "system.posix_acl_access" not in os.listxattr(node.file)


def test_an_attribute_that_cannot_be_kept_refuses(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        file_target,
        "xattrs_of",
        lambda fd: (
            {}
            if b".kubemend-" in str(Path(f"/proc/self/fd/{fd}").readlink()).encode()
            else {"security.selinux": b"system_u:object_r:etc_t:s0\0"}
        ),
    )

    def refuse(fd: int, name: str, value: bytes) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "setxattr", refuse)
    node.refused("ausearch -m avc")
    assert node.results() == ["not_done"]


@ROOT_ONLY
@pytest.mark.parametrize("flag", ["i", "a"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_immutable(node: Node, flag: str, what: str) -> None:
    path = getattr(node, what)
    if subprocess.run(["chattr", "+" + flag, path], capture_output=True, check=False).returncode:
        pytest.skip("chattr does not work here")
    try:
        # names may be made there but not replaced, so ours cannot be taken away either
        if (what, flag) == ("folder", "a"):
            with pytest.raises(storage.ChangeError, match="chattr"):
                node.swap()
            assert node.bytes() == BEFORE
            assert node.pending()[0]["state"] == "before"
            assert node.pending()[0]["temp"]
        else:
            node.refused("chattr +i or +a", str(node.file))
    finally:
        subprocess.run(["chattr", "-" + flag, path], check=True)
    interrupted_changes.recover_all(node.step(NEXT))
    assert not node.dotfiles()
    assert not node.pending()
    node.swap(NEXT)


@pytest.fixture
def full() -> Iterator[Callable[[Path, str], None]]:
    """Make a folder a full filesystem of its own."""
    with contextlib.ExitStack() as stack:

        def fill(folder: Path, options: str) -> None:
            saved = {
                path.name: (path.read_bytes(), path.stat().st_mode) for path in folder.iterdir()
            }
            stack.enter_context(fake_file_change.tmpfs(folder, options))
            for name, (data, mode) in saved.items():
                (folder / name).write_bytes(data)
                (folder / name).chmod(stat.S_IMODE(mode))
            number = 0
            try:
                while True:
                    with Path(folder / f"fill{number}").open("wb", buffering=0) as out:
                        while "size" in options:
                            out.write(b"x" * 4096)
                    number += 1
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017 - it may also succeed

        yield fill


@ROOT_ONLY
@pytest.mark.parametrize("options", ["size=32k,mode=700", "nr_inodes=12,mode=700"])
@pytest.mark.parametrize("where", ["manifests", "journal"])
def test_full_disk(node: Node, full: Callable[[Path, str], None], options: str, where: str) -> None:
    folder = node.folder if where == "manifests" else node.root
    folder.mkdir(0o700, exist_ok=True)
    full(folder, options)
    node.refused("no space or no inode is left", str(folder))
    assert node.results() in ([], ["not_done"])
    assert not [
        name for name in node.own() if name.endswith((".tmp", ".before"))
    ] or node.results() == ["not_done"]
    for path in folder.glob("fill*"):
        path.unlink()
    node.swap(NEXT)
    assert node.bytes() == AFTER


@ROOT_ONLY
def test_full_disk_that_holds_everything(node: Node) -> None:
    """One filesystem holds both, with room for ever more blocks.

    The change is refused without a trace in the file, or done and committed.
    """
    outcomes = []
    for pages in range(4, 16):
        base = node.base / str(pages)
        base.mkdir()
        with fake_file_change.tmpfs(base, f"size={pages * 4}k,mode=700"):
            small = Node(base)
            try:
                outcomes.append(small.swap()["changed"])
            except storage.ChangeError:
                outcomes.append(False)
            assert small.bytes() == (AFTER if outcomes[-1] else BEFORE)
            assert not small.dotfiles()
            assert [item["state"] for item in small.pending()] in ([], ["before"])
            assert small.results()[-1:] in (
                [["committed"]] if outcomes[-1] else [[], ["not_done"], [None]]
            )
    assert set(outcomes) == {True, False}
    assert outcomes == sorted(outcomes)


@ROOT_ONLY
@pytest.mark.parametrize("where", ["manifests", "journal"])
def test_read_only_filesystem(node: Node, where: str) -> None:
    folder = node.folder if where == "manifests" else node.root
    folder.mkdir(0o700, exist_ok=True)
    with fake_file_change.mounted("--bind", str(folder), str(folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        node.refused("read-only", "mount it writable")
    assert node.results() in ([], ["not_done"])


@ROOT_ONLY
def test_a_folder_that_is_a_mount_of_its_own(node: Node) -> None:
    with fake_file_change.tmpfs(node.folder, "size=1m"):
        node.file.write_bytes(BEFORE)
        node.file.chmod(0o600)
        node.swap()
        assert node.bytes() == AFTER
        assert stat.S_IMODE(node.file.stat().st_mode) == 0o600


@ROOT_ONLY
def test_a_bind_mounted_file(node: Node) -> None:
    other = node.base / "other.yaml"
    other.write_bytes(BEFORE)
    with fake_file_change.mounted("--bind", str(other), str(node.file)):
        node.refused(
            "mount of its own (a bind-mounted file)", "change the file that is mounted there"
        )
        assert other.read_bytes() == BEFORE
    assert node.results() == ["not_done"]
