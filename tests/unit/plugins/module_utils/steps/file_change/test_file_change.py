# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The write: what it changes, what it keeps, and every reason for which it changes nothing."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    durable_files,
    journal_entry,
    node_lock,
    replacement,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    file_target,
    journal,
    lock,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
    interrupted_changes,
)
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, SPLICES, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_changes_only_its_bytes_and_tells_what_it_did(node: Node) -> None:
    result = node.swap()
    assert node.bytes() == AFTER
    assert (result["changed"], result["sha256_before"], result["sha256_after"]) == (
        True,
        sha(BEFORE),
        sha(AFTER),
    )
    assert (result["note"], result["linked"], result["real"]) == (None, False, str(node.file))
    (item,) = journal.read_run(RUN, str(node.root))
    intent = item["intent"]
    assert result["entry"] == f"{RUN}/{item['entry']}" == f"{RUN}/001-m1%3AKM101%3Akube-scheduler"
    assert (intent["what"], intent["why"], intent["step"]) == (
        "leader election on",
        "KM101",
        "m1:KM101:kube-scheduler",
    )
    assert (intent["path"], intent["mode"], intent["uid"], intent["gid"]) == (
        str(node.file),
        "0640",
        os.getuid(),
        os.getgid(),
    )
    assert (intent["sha256_before"], intent["sha256_after"], intent["size_before"]) == (
        sha(BEFORE),
        sha(AFTER),
        len(BEFORE),
    )
    assert item["end"]["result"] == "committed"
    assert journal.former_bytes(item, str(node.root)) == BEFORE
    assert not node.dotfiles()
    assert not node.pending()


def test_our_own_folder_is_ours_alone(node: Node) -> None:
    node.root.mkdir(mode=0o755)
    os.umask(0o022)
    node.swap()
    for path in [node.root, *node.root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_folder_that_others_may_write_is_not_used(node: Node, mode: int) -> None:
    node.root.mkdir()
    node.root.chmod(mode)
    node.refused("others may write to it")


@pytest.mark.parametrize("splices", [[], [(0, 0, b"", b"")], [(0, 4, b"spec", b"spec")]])
def test_nothing_to_do_is_nothing_done(
    node: Node, splices: list[tuple[int, int, bytes, bytes]]
) -> None:
    before = node.file.stat()
    assert (
        file_change.compare_and_swap(str(node.file), sha(BEFORE), splices, node.step())["changed"]
        is False
    )
    assert node.file.stat().st_ino == before.st_ino
    assert not journal.run_ids(str(node.root))


def test_several_splices_in_any_order(node: Node) -> None:
    end = len(BEFORE)
    splices = [(end, end, b"", b"\n"), *SPLICES, (0, 0, b"", b"# top\r\n"), (0, 5, b"spec:", b"")]
    file_change.compare_and_swap(str(node.file), sha(BEFORE), splices, node.step())
    assert node.bytes() == b"# top\r\n" + AFTER[5:] + b"\n"


@pytest.mark.parametrize(
    "splices",
    [
        [(0, 4, b"Spec", b"x")],
        [(-1, 4, b"", b"x")],
        [(0, len(BEFORE) + 1, BEFORE, b"x")],
        [(4, 0, b"", b"x")],
        [(0, 5, b"spec:", b"a"), (4, 6, b":\r", b"b")],
        [("0", 4, b"spec", b"x")],
    ],
)
def test_splices_that_do_not_fit(node: Node, splices: Any) -> None:
    node.refused(
        "was not changed",
        str(node.file),
        action=lambda: file_change.compare_and_swap(
            str(node.file), sha(BEFORE), splices, node.step()
        ),
    )
    assert not journal.run_ids(str(node.root))


def _folder_there(node: Node) -> None:
    node.file.unlink()
    node.file.mkdir()


def _fifo(node: Node) -> None:
    node.file.unlink()
    os.mkfifo(node.file)


def _dangling(node: Node) -> None:
    node.file.unlink()
    node.file.symlink_to("nowhere")


def _circle(node: Node) -> None:
    node.file.unlink()
    node.file.symlink_to(node.file)


def _ours_elsewhere(node: Node) -> None:
    node_lock.acquire(NEXT, {"machine_id": "other", "pid": 7}, 60, root=str(node.root))


def _run_out(node: Node) -> None:
    node_lock.acquire(RUN, {}, 0.001, root=str(node.root))
    while lock.read(str(node.root))["held"]:
        pass


REFUSALS: list[tuple[str, Callable[[Node], Any], tuple[str, ...]]] = [
    (
        "changed",
        lambda node: node.file.write_bytes(BEFORE + b"\n"),
        ("no longer what evidence said", sha(BEFORE), sha(BEFORE + b"\n")),
    ),
    ("gone", lambda node: node.file.unlink(), ("it is gone", "collect evidence")),
    (
        "no folder",
        lambda node: (
            node.file.unlink(),
            node.folder.rename(node.base / "x"),
            node.folder.symlink_to("y"),
        ),
        ("does not exist",),
    ),
    ("a folder", _folder_there, ("no regular file but a folder",)),
    ("a FIFO", _fifo, ("no regular file but a FIFO",)),
    ("link to nowhere", _dangling, ("it is gone",)),
    ("link in a circle", _circle, ("a symbolic link that leads nowhere",)),
    (
        "hard links",
        lambda node: os.link(node.file, node.base / "second"),
        ("2 names (hard links)", "find -inum"),
    ),
    (
        "another run's lock",
        _ours_elsewhere,
        (
            "run " + NEXT + " holds this node",
            "controller other, process 7",
            "kubemend_take_lock=" + NEXT,
        ),
    ),
    ("a lock that ran out", _run_out, ("has run out",)),
    (
        "a broken lock",
        lambda node: (node.root.mkdir(0o700), (node.root / "lock").write_text("{")),
        ("cannot be read", "remove it"),
    ),
    ("too large", lambda node: os.truncate(node.file, file_target.MAX_SIZE + 1), ("larger than",)),
]


@pytest.mark.parametrize(
    ("prepare", "words"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_refuses_in_one_sentence(
    node: Node, prepare: Callable[[Node], Any], words: tuple[str, ...]
) -> None:
    prepare(node)
    if not node.folder.is_symlink():
        node.refused(*words)
        assert not node.runs()
    else:
        with pytest.raises(storage.ChangeError, match=words[0]):
            node.swap()


@pytest.mark.parametrize("path", ["relative", "/", "/a/../b", "/a//b", "/a/", "/a\0b", "", None])
def test_only_plain_absolute_paths(node: Node, path: Any) -> None:
    node.refused(
        "only a plain absolute path",
        action=lambda: file_change.compare_and_swap(path, sha(BEFORE), SPLICES, node.step()),
    )


@pytest.mark.parametrize("expected", [None, "", "x" * 64, sha(BEFORE).upper()])
def test_a_digest_is_demanded(node: Node, expected: Any) -> None:
    node.refused(
        "sha256 that it should have is missing",
        action=lambda: file_change.compare_and_swap(str(node.file), expected, SPLICES, node.step()),
    )
    node.refused(
        "sha256 that it should have is missing",
        action=lambda: file_change.replace(str(node.file), expected, AFTER, node.step()),
    )
    node.refused(
        "sha256 that it should have is missing",
        action=lambda: file_change.move_out(str(node.file), expected, node.step()),
    )


@pytest.mark.parametrize("run_id", ["", "x", "../../etc", RUN + "\n", None, 5])
def test_run_ids_are_names_of_folders(node: Node, run_id: Any) -> None:
    node.refused("is no run id", action=lambda: node.step(run_id))


def test_never_writes_our_own_folder(node: Node) -> None:
    node.swap()
    record = next(node.root.glob("journal/*/*.json"))
    node.refused(
        "belongs to kubemend itself",
        action=lambda: file_change.replace(
            str(record), sha(record.read_bytes()), b"", node.step(NEXT)
        ),
    )


def test_must_hold_needs_the_lock(node: Node) -> None:
    node.refused("does not hold the lock", action=lambda: node.swap(must_hold=True))
    node_lock.acquire(RUN, {}, 60, root=str(node.root))
    node.swap(must_hold=True)
    assert node.bytes() == AFTER


def test_another_process_at_work_is_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.root.mkdir(0o700)
    monkeypatch.setattr(
        durable_files.exclusive.__wrapped__, "__defaults__", (0.1, "nothing was changed")
    )
    with Path(node.root / storage.FLOCK).open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert storage.busy(str(node.root))
        node.refused("nothing was changed: another process changes this node")
    assert not storage.busy(str(node.root))
    node.swap()


def test_check_mode_makes_nothing(node: Node) -> None:
    result = node.swap(check=True)
    assert (result["changed"], result["sha256_after"], result["entry"]) == (True, sha(AFTER), None)
    assert node.bytes() == BEFORE
    assert not node.root.exists()
    file_change.create_file(
        str(node.base / "drop-in" / "x.conf"), b"x", node.step(check=True), make_folder=True
    )
    assert not (node.base / "drop-in").exists()


def test_a_linked_manifest_stays_a_link(node: Node) -> None:
    elsewhere = node.base / "elsewhere"
    elsewhere.mkdir()
    node.file.rename(elsewhere / "real.yaml")
    node.file.symlink_to("../elsewhere/real.yaml")
    result = node.swap()
    assert str(Path(node.file).readlink()) == "../elsewhere/real.yaml"
    assert node.bytes() == AFTER
    assert result["linked"]
    assert str(elsewhere / "real.yaml") in result["note"]
    assert sorted([entry.name for entry in Path(elsewhere).iterdir()]) == ["real.yaml"]


def test_a_linked_folder_is_followed(node: Node) -> None:
    (node.base / "link").symlink_to(node.folder)
    result = file_change.compare_and_swap(
        str(node.base / "link" / node.file.name), sha(BEFORE), SPLICES, node.step()
    )
    assert node.bytes() == AFTER
    assert result["real"] == str(node.file)
    assert not result["linked"]


def test_keeps_odd_modes(node: Node) -> None:
    os.umask(0o077)
    for mode in (0o600, 0o644, 0o4751, 0o2664):
        node.file.write_bytes(BEFORE)
        node.file.chmod(mode)
        node.swap()
        assert stat.S_IMODE(node.file.stat().st_mode) == mode
    os.umask(0o022)


def _in_place(node: Node) -> None:
    """Write the file in place as carefully as can be: same size, same times."""
    status = node.file.stat()
    node.file.write_bytes(BEFORE.replace(b"S3cret", b"t3rceS"))
    os.utime(node.file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _by_rename(node: Node) -> None:
    (node.base / "new").write_bytes(BEFORE)
    (node.base / "new").rename(node.file)


CONCURRENT = {
    "in place": _in_place,
    "replaced by the same bytes": _by_rename,
    "removed": lambda node: node.file.unlink(),
    "chmod": lambda node: node.file.chmod(0o600),
    "hard link": lambda node: os.link(node.file, node.base / "second"),
    "grown": lambda node: node.file.write_bytes(BEFORE + b"x"),
}


@pytest.mark.parametrize("how", CONCURRENT)
@pytest.mark.parametrize("action", ["edit", "remove"])
def test_somebody_else_between_read_and_write(
    node: Node, monkeypatch: pytest.MonkeyPatch, how: str, action: str
) -> None:
    """Once the journal has the intent, somebody else changes the file."""
    begin = journal_entry.begin

    def meanwhile(*args: Any) -> Any:
        answer = begin(*args)
        CONCURRENT[how](node)
        return answer

    monkeypatch.setattr(journal_entry, "begin", meanwhile)
    with pytest.raises(storage.ChangeError, match="something else changed it") as error:
        (
            node.swap()
            if action == "edit"
            else file_change.move_out(str(node.file), sha(BEFORE), node.step())
        )
    assert not error.value.changed
    theirs = node.bytes()
    assert theirs is None if how == "removed" else theirs not in (AFTER, None)
    assert not node.dotfiles()
    assert node.results() == ["not_done"]


def test_the_content_is_compared_even_where_no_time_tells(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernel times are coarse: two writes within a few milliseconds may bear the same."""
    begin = journal_entry.begin

    def meanwhile(*args: Any) -> Any:
        answer = begin(*args)
        _in_place(node)
        return answer

    monkeypatch.setattr(journal_entry, "begin", meanwhile)
    monkeypatch.setattr(file_target, "_identity", lambda status: status.st_ino)
    with pytest.raises(storage.ChangeError, match="something else changed it"):
        node.swap()
    assert b"t3rceS" in (node.bytes() or b"")


def test_create(node: Node) -> None:
    path = node.base / "kubelet.service.d" / "90-kubemend.conf"
    with pytest.raises(storage.ChangeError, match="does not exist"):
        file_change.create_file(str(path), b"[Service]\n", node.step())
    os.umask(0o077)
    attributes = file_change.Attributes(0o644, os.getuid(), os.getgid())
    result = file_change.create_file(
        str(path), b"[Service]\n", node.step(), attributes, make_folder=True
    )
    os.umask(0o022)
    assert path.read_bytes() == b"[Service]\n"
    assert [entry.name for entry in Path(path.parent).iterdir()] == [path.name]
    assert (
        stat.S_IMODE(path.stat().st_mode),
        stat.S_IMODE(path.parent.stat().st_mode),
        path.stat().st_nlink,
    ) == (0o644, 0o755, 1)
    assert (result["sha256_before"], result["sha256_after"]) == (None, sha(b"[Service]\n"))
    node.refused(
        "there is such a file already",
        action=lambda: file_change.create_file(str(path), b"", node.step()),
    )
    link = node.base / "link"
    link.symlink_to("nowhere")
    node.refused(
        "symbolic link", action=lambda: file_change.create_file(str(link), b"", node.step())
    )
    assert not (node.base / "nowhere").exists()


@pytest.mark.parametrize(
    ("attributes", "mode"),
    [(None, 0o644), (file_change.Attributes(0o600), 0o600), (file_change.Attributes(0o755), 0o755)],
)
def test_a_new_file_is_roots_and_readable_unless_it_is_said_otherwise(
    node: Node, monkeypatch: pytest.MonkeyPatch, attributes: Any, mode: int
) -> None:
    # by whomever the tests are run: only root gives files to root
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda fd, uid, gid: given.append((uid, gid)))
    path = node.folder / "new.conf"
    file_change.create_file(str(path), b"x", node.step(), attributes)
    assert (stat.S_IMODE(path.stat().st_mode), given) == (mode, [(0, 0)])


def test_nothing_is_made_where_a_file_was_to_be_changed(node: Node) -> None:
    """A step that changes a file has seen one: its absence is no state to begin from."""
    node.file.unlink()
    node.refused(
        "sha256", action=lambda: file_change.replace(str(node.file), None, AFTER, node.step())
    )
    assert not [entry.name for entry in Path(node.folder).iterdir()]


def test_create_does_not_replace_what_comes_meanwhile(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = replacement.write_temporary
    path = node.folder / "new"

    def meanwhile(*args: Any) -> None:
        write(*args)
        path.write_bytes(b"theirs")

    monkeypatch.setattr(replacement, "write_temporary", meanwhile)
    attributes = file_change.Attributes(0o600, os.getuid(), os.getgid())
    node.refused(
        "made meanwhile",
        action=lambda: file_change.create_file(str(path), b"ours", node.step(), attributes),
    )
    assert path.read_bytes() == b"theirs"
    assert node.results() == ["not_done"]


def test_move_out_keeps_everything(node: Node) -> None:
    node.refused("sha256", action=lambda: file_change.move_out(str(node.file), None, node.step()))
    result = file_change.move_out(str(node.file), sha(BEFORE), node.step())
    assert not [entry.name for entry in Path(node.folder).iterdir()]
    assert result["sha256_after"] is None
    assert journal.former_bytes(journal.read_run(RUN, str(node.root))[0], str(node.root)) == BEFORE
    node.file.symlink_to(node.base / "other")
    (node.base / "other").write_bytes(BEFORE)
    node.refused(
        "symbolic link",
        action=lambda: file_change.move_out(str(node.file), sha(BEFORE), node.step()),
    )


def test_a_change_after_an_interrupted_one_is_refused(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(journal_entry.Entry, "commit", _power_cut)
        with pytest.raises(KeyboardInterrupt):
            node.swap()
    assert node.pending()[0]["state"] == "after"
    node.refused(
        "was interrupted",
        "KM902",
        action=lambda: file_change.replace(str(node.file), sha(AFTER), BEFORE, node.step(NEXT)),
    )
    interrupted_changes.recover_all(node.step(NEXT))
    file_change.replace(str(node.file), sha(AFTER), BEFORE, node.step(NEXT))


def _power_cut(*dummy: Any) -> None:
    raise KeyboardInterrupt


def test_done_but_not_committed_is_said(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*dummy: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal_entry.Entry, "commit", broken)
        node.refused("holds its new bytes", "the disk failed", changed=True)
    assert node.bytes() == AFTER
    assert node.pending()[0]["state"] == "after"


def test_a_folder_that_was_made_for_nothing_goes_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused leaves nothing; a folder in which somebody put something meanwhile stays."""
    path = node.base / "drop-in" / "x.conf"

    def refuse(*dummy: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    def beside(*dummy: object) -> None:
        (path.parent / "theirs.conf").touch()
        refuse()

    for broken, left in ((refuse, False), (beside, True)):
        monkeypatch.setattr(replacement, "write_temporary", broken)
        with pytest.raises(storage.ChangeError, match="ausearch"):
            file_change.create_file(str(path), b"x", node.step(), make_folder=True)
        assert path.parent.exists() is left
        assert not path.exists()


def test_a_folder_that_is_there_is_used_as_it_is(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its mode is changed, nor is it taken away where nothing came to lie in it."""
    folder = node.base / "drop-in"
    folder.mkdir(0o700)
    file_change.create_file(str(folder / "x.conf"), b"x", node.step(), make_folder=True)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [entry.name for entry in Path(folder).iterdir()] == ["x.conf"]
    (folder / "x.conf").unlink()

    def refuse(*dummy: object) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(replacement, "write_temporary", refuse)
    with pytest.raises(storage.ChangeError):
        file_change.create_file(str(folder / "x.conf"), b"x", node.step(), make_folder=True)
    assert folder.is_dir()


def test_only_the_folder_itself_is_made_and_it_is_on_the_disk_before_its_file(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(storage.ChangeError, match="was not made"):
        file_change.create_file(
            str(node.base / "no" / "drop-in" / "x.conf"), b"x", node.step(), make_folder=True
        )
    assert not (node.base / "no").exists()
    done, sync, write = [], durable_files.sync_folder, replacement.write_temporary
    monkeypatch.setattr(
        durable_files, "sync_folder", lambda path, *more: done.append(path) or sync(path, *more)
    )
    monkeypatch.setattr(
        replacement, "write_temporary", lambda *given: done.append("its bytes") or write(*given)
    )
    file_change.create_file(
        str(node.base / "drop-in" / "x.conf"), b"x", node.step(), make_folder=True
    )
    assert done.index(str(node.base)) < done.index("its bytes")


def _interrupted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be ended by somebody, neither refused nor failed, once its intent is on the disk."""
    with monkeypatch.context() as patch:
        patch.setattr(replacement, "write_temporary", _power_cut)
        with pytest.raises(KeyboardInterrupt):
            node.swap()


def test_who_is_ended_leaves_its_change_open(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted(node, monkeypatch)
    assert node.bytes() == BEFORE
    assert node.results() == [None]
    assert [item["state"] for item in node.pending()] == ["before"]


def test_an_open_change_of_another_file_is_in_nobodys_way(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = node.base / "other.conf"
    other.write_bytes(b"x")
    _interrupted(node, monkeypatch)
    file_change.replace(str(other), sha(b"x"), b"y", node.step(NEXT))
    assert other.read_bytes() == b"y"
    assert len(node.pending()) == 1


def test_an_open_change_of_which_nobody_knows_what_it_changed_is_in_everybodys(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = node.base / "other.conf"
    other.write_bytes(b"x")
    _interrupted(node, monkeypatch)
    (intent,) = [
        path for path in node.root.glob("journal/*/*.json") if not path.name.endswith(".end.json")
    ]
    intent.write_text("{")
    node.refused(
        "was interrupted",
        "KM902",
        action=lambda: file_change.replace(str(other), sha(b"x"), b"y", node.step(NEXT)),
    )
    assert other.read_bytes() == b"x"


def test_a_file_of_several_names_is_moved_out_by_one_of_them(node: Node) -> None:
    os.link(node.file, node.base / "second")
    file_change.move_out(str(node.file), sha(BEFORE), node.step())
    assert not node.file.exists()
    assert (node.base / "second").read_bytes() == BEFORE
