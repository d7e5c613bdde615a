# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of step is refused something.

A full or read-only disk, a security module, another writer of the same file, or a clock refuses it.

The step says so in one sentence, and leaves everything as it was, or done. The next run, once the
fault is gone, ends where an undisturbed one ends.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fault_injection import effects, judged, levels, nodes
from tests.fault_injection.judged import RUN, Case, Node
from tests.fault_injection.nodes import tree
from tests.unit.support import fake_file_change

SCENES = {**nodes.SCENES, **levels.SCENES}
SAMPLE = 1
ROOT_ONLY = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root: it mounts, or sets attributes"
)
# What a disk, a quota, and a security module's refusal are to a program; SELinux refuses root with
# EACCES.
ERRORS = ("EACCES", "EPERM", "ENOSPC", "EDQUOT", "EROFS", "EIO")
WRITES = {
    name: scene
    for name, scene in nodes.SCENES.items()
    if name
    not in (
        # those have one file that they write
        "swapoff",
        "kubelet enabled",
        "kubelet started",
        "kubelet unmasked",
        "managers' state",
        "leading scheduler",
        "packages on hold",
        "certificates loaded",
        "snapshot of etcd",
        "history of etcd",
        "member of etcd",
        "alarm of etcd",
    )
}


@pytest.fixture
def case(
    request: pytest.FixtureRequest, record_property: Callable[[str, Any], None]
) -> Iterator[Case]:
    made = Case(request.param, SCENES[request.param])
    made.undisturbed(reads=request.node.originalname == "test_an_error_anywhere")
    yield made
    record_property("injected", made.injected)
    made.close()


def without_folders(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: value for key, value in state.items() if value != "folder"}
    return [without_folders(one) for one in state] if isinstance(state, list) else state


def told(node: Node, answers: list[dict[str, Any]], where: Any) -> None:
    """Require a sentence each, and that refused, rolled back and finished steps are so."""
    for answer in answers:
        judged.one_sentence(answer, where)
    last, state = answers[-1], node.state()
    if len(answers) > 1 or node.case.scene.kinds[0] == "start_former":
        return  # of several steps, the first ones are done
    if last["state"] == "refused":
        assert state == node.case.before, (where, last, state, node.case.before)
    if last["state"] == "rolled_back":  # an empty folder that was made for the file may stay
        assert without_folders(state) == without_folders(node.case.before), (
            where,
            last,
            state,
            node.case.before,
        )
    # which is said, and the next run does it
    if (
        last["state"] == "done"
        and "keeps its limit until its unit is started again" not in last["reason"]
    ):
        assert state == node.case.after, (where, last, state, node.case.after)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("case", SCENES, indirect=True)
def test_an_error_anywhere(case: Case, error: str) -> None:
    points = [number for number, one in enumerate(case.points, 1) if one.name in effects.FILES]
    for number in judged.drawn(f"{case.name} {error}", points, 1, case.scene.slow):
        with case.node() as node:
            ended = node.run(at=number, way=error, reads=True)
            where = (case.name, error, number, case.points[number - 1])
            assert not ended.killed, where
            assert ended.answer, where
            assert isinstance(ended.answer, list), (where, ended.answer)
            told(node, ended.answer, where)
            judged.ends_as_undisturbed(node, where)


# --- whole filesystems


def _there(node: Node, where: str) -> Path:
    folder = Path(node.root)
    if where != "journal":
        folder = node.case.scene.target(node.made).parent  # type: ignore[union-attr]
    folder.mkdir(0o755, parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def full(folder: Path, options: str) -> Iterator[None]:
    """Mount a filesystem with the present files and no room for more. Files keep their times.

    A process is compared with its configuration's.
    """
    saved, times = tree(folder), _times(folder)
    with fake_file_change.tmpfs(folder, options):
        for name, what in saved.items():
            if what == "folder" and Path(name) != folder:
                Path(name).mkdir()
            elif isinstance(what[0], bytes):
                Path(name).write_bytes(what[0])
                Path(name).chmod(what[1])
                os.utime(name, ns=times[name])
        _fill(folder, options)
        try:
            yield
        finally:
            for one in folder.glob("fill*"):
                one.unlink()
            left, times = tree(folder), _times(folder)
    for name, what in left.items():  # as it was left, on the disk that was beneath
        if what == "folder":
            Path(name).mkdir(exist_ok=True)
        else:
            Path(name).write_bytes(what[0])
            Path(name).chmod(what[1])
            os.utime(name, ns=times[name])
    for name in set(saved) - set(left):
        Path(name).unlink()


def _fill(folder: Path, options: str) -> None:
    """Write files until the filesystem has no room for another file or byte."""
    number = 0
    with contextlib.suppress(OSError):
        while True:
            with (folder / f"fill{number}").open("wb", buffering=0) as out:
                while "size" in options:
                    out.write(b"x" * 4096)
            number += 1


def _times(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    with fake_file_change.mounted("--bind", str(folder), str(folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield


@contextlib.contextmanager
def immutable(folder: Path) -> Iterator[None]:
    if subprocess.run(["chattr", "+i", folder], capture_output=True, check=False).returncode:
        pytest.skip("chattr +i does not work on this filesystem")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)


DISKS: dict[str, Callable[[Path], contextlib.AbstractContextManager[None]]] = {
    "full": lambda folder: full(folder, "size=64k,mode=755"),
    "no inodes": lambda folder: full(folder, "nr_inodes=24,mode=755"),
    "read-only": read_only,
    "immutable": immutable,
}


# What needs no room where it is done: an empty file, and a file that is moved to the journal.
ROOMY = {"swap unit": ("full",), "stray manifest": ("full", "no inodes")}


@ROOT_ONLY
@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize("place", ["target", "journal"])
@pytest.mark.parametrize("case", WRITES, indirect=True)
def test_a_disk_that_takes_nothing(case: Case, place: str, disk: str) -> None:
    with case.node() as node:
        where = (case.name, place, disk)
        with DISKS[disk](_there(node, place)):
            if case.scene.slow:  # its kubelet saw the folder come and go
                node.made.wait_healthy()
            answers = node.work(case.scene.steps(node.made), RUN)
            judged.one_sentence(answers[-1], where)
            empty = place == "target" and disk in ROOMY.get(case.name, ())
            assert answers[-1]["state"] in (("done",) if empty else ("refused", "failed")), (
                where,
                answers,
            )
            assert empty or case.before == case.after or node.state() != case.after, (
                where,
                answers,
            )
            assert empty or any(
                word in answers[-1]["reason"]
                for word in (
                    "no space or no inode",
                    "read-only",
                    "chattr",
                    "written",
                    "cannot be used",
                )
            ), (where, answers)
        judged.ends_as_undisturbed(node, where)


def test_var_lib_is_missing(tmp_path: Path) -> None:
    """Our folder's own parent: it is not made, it is said."""
    for name, scene in SCENES.items():
        if scene.slow:
            continue
        with (
            pytest.MonkeyPatch.context() as monkeypatch,
            scene.make(_fresh(tmp_path, name), monkeypatch) as node,
        ):
            before = scene.state(node)
            answer = scene.do(
                {
                    "run_id": RUN,
                    "root": str(tmp_path / "gone" / "kubemend"),
                    "lock": None,
                    "check": False,
                    "step": scene.steps(node)[0],
                }
            )
            judged.one_sentence(answer, name)
            assert answer["state"] == "refused", (name, answer)
            assert "cannot be used" in answer["reason"], (name, answer)
            assert scene.state(node) == before, (name, answer)
            assert not (tmp_path / "gone").exists()


def _fresh(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name.replace(" ", "-").replace("'", "")
    folder.mkdir()
    return folder


# --- what lies in the file's place


def _link(path: Path) -> None:
    (
        path.rename(path.with_name("elsewhere"))
        if path.exists()
        else path.with_name("elsewhere").write_bytes(b"theirs\n")
    )
    path.symlink_to(path.with_name("elsewhere"))


def _dangling(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.with_name("nowhere"))


def _circle(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path)


def _hard(path: Path) -> None:
    if not path.exists():
        path.write_bytes(b"theirs\n")
    os.link(path, path.with_name("other-name"))


def _fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


PLACES = {
    "link": _link,
    "dangling link": _dangling,
    "circle of links": _circle,
    "hard link": _hard,
    "FIFO": _fifo,
    "folder": _folder,
}


@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("case", WRITES, indirect=True)
def test_something_else_lies_there(case: Case, what: str) -> None:
    """A link that leads to a file is followed and stays, or refused.

    Nothing but one regular file is ever replaced, and nothing hangs.
    """
    if case.scene.slow and what not in ("link", "hard link"):
        pytest.skip(
            "a kubelet that cannot read its folder ends what it runs: covered by the other kinds"
        )
    with case.node() as node:
        steps = case.scene.steps(node.made)
        path = case.scene.target(node.made)
        assert path is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        PLACES[what](path)
        was = _names(path.parent)
        begin = time.monotonic()
        answers = node.work(steps, RUN)
        where = (case.name, what, answers)
        judged.one_sentence(answers[-1], where)
        assert time.monotonic() - begin < 600, where
        if answers[-1]["state"] == "done":
            assert what == "link", where
            assert path.is_symlink(), where
        else:
            assert answers[-1]["state"] == "refused", where
            assert _names(path.parent) == was, where
        node.clean(where)


def _names(folder: Path) -> Any:
    return [
        (
            path.name,
            path.lstat().st_mode,
            path.lstat().st_ino,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.iterdir())
    ]


# --- somebody else writes at the same time


def _in_place(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(b"# theirs\n")


def _anew(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name("theirs")
    fresh.write_bytes((path.read_bytes() if path.exists() else b"") + b"# theirs\n")
    fresh.rename(path)


def _away(path: Path) -> None:
    path.unlink(missing_ok=True)


WRITTEN_ANEW = ("pinned pod", "kubeconfig renewed", "certificates renewed")


def theirs(node: Node, path: Path) -> bool:
    """Return whether the bytes of the other tool are still there.

    For a managed file that the step removes itself, they are in the journal. So they are for a
    file that kubeadm writes anew from what it means, where the step began with them.
    """
    if node.case.name in WRITTEN_ANEW and any(b"# theirs\n" in one for one in node.journalled()):
        return True
    return path.exists() and b"# theirs\n" in path.read_bytes()


@pytest.mark.parametrize(
    "how", [_in_place, _anew, _away], ids=["written in place", "replaced", "removed"]
)
@pytest.mark.parametrize("case", WRITES, indirect=True)
def test_another_tool_writes_the_file_meanwhile(case: Case, how: Callable[[Path], None]) -> None:
    """As kubeadm upgrade, kubespray or a kubelet do.

    What they wrote stays, unless it came between the last comparison and the swap itself.
    """
    swaps = ("os.rename", "os.link", "os.remove")
    for number in judged.drawn(
        f"{case.name} {how.__name__}", list(range(1, len(case.points) + 1)), SAMPLE, case.scene.slow
    ):
        with case.node() as node:
            path = case.scene.target(node.made)
            assert path is not None
            seen = itertools.count(1)

            def act(
                _one: effects.Effect,
                path: Path = path,
                number: int = number,
                seen: Iterator[int] = seen,
            ) -> None:
                if next(seen) == number:
                    how(path)

            swapping = case.points[number - 1]
            ended = node.run(act=act)
            where = (case.name, how.__name__, number, swapping, ended.answer)
            assert not ended.killed, where
            assert isinstance(ended.answer, list), where
            judged.one_sentence(ended.answer[-1], where)
            if swapping.name in swaps and (
                path.name in swapping.what or ".kubemend-" in swapping.what
            ):
                continue  # the one moment that is left: change.py says so
            if how is not _away:
                assert theirs(node, path), where
            node.take(judged.NEXT, RUN)
            healed = node.recover()
            judged.one_sentence(healed, where)
            if how is not _away:
                assert theirs(node, path), (where, healed)
            assert not [
                one
                for one in node.folder.rglob("*")
                if one.name.endswith(".tmp") or ".kubemend-" in one.name
            ], (where, healed)


# --- clocks


def _jumps(way: str) -> Callable[[], None]:
    """Wall clocks as they are when ntp, a hypervisor or a dead battery sets them.

    The monotonic one goes on.
    """

    def install() -> None:
        true_time, gmtime, calls = time.time, time.gmtime, [0]

        def stepped() -> float:
            calls[0] += 1
            return {
                "back a year": true_time() - 3.15e7,
                "1970": 100.0,
                "2038": 2.2e9,
                "to and fro": true_time() + (86400 if calls[0] % 2 else -86400),
            }[way]

        time.time = stepped
        time.gmtime = lambda *args: gmtime(*(args or (stepped(),)))

    return install


# by such a clock the authority, or what it signs, is not valid
DATED = ("set the clock first", "before a certificate of a year", "dates that do not fit")


@pytest.mark.parametrize("way", ["back a year", "1970", "2038", "to and fro"])
@pytest.mark.parametrize("case", SCENES, indirect=True)
def test_the_clock_jumps(case: Case, way: str) -> None:
    """The step ends as ever, or is refused unchanged if a start is known by the wall clock."""
    with case.node() as node:
        ended = node.run(before=_jumps(way))
        where = (case.name, way, ended.answer)
        assert not ended.killed, where
        assert isinstance(ended.answer, list), where
        # by the wall clock its process started at another time than the evidence says
        dated = "renew_certificates" in case.scene.kinds
        if dated and ended.answer[-1]["state"] == "refused":
            assert any(word in ended.answer[-1]["reason"] for word in DATED), where
            assert node.state() == case.before, where
        elif case.scene.slow and ended.answer[-1]["state"] == "refused":
            assert "the evidence is old" in ended.answer[-1]["reason"], where
            assert node.state() == case.before, where
        else:
            assert all(one["state"] == "done" for one in ended.answer), where
            assert node.state() == case.after, where
        judged.ends_as_undisturbed(node, where)
