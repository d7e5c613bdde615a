# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each system call of the write, of its undoing and of the lock is killed or made to fail.

The calls are disturbed in turn, by strace's injection.
"""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import journal, lock
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
    interrupted_changes,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from tests.unit.support import fake_file_change
from tests.unit.support.fake_file_change import (
    AFTER,
    BEFORE,
    NEXT,
    RUN,
    Ended,
    Node,
    needs_strace,
    sha,
    traced,
)

pytestmark = needs_strace
THIRD = "20261121T110000Z-aaaaaa"
ATTRIBUTES = file_change.Attributes(0o640, os.getuid(), os.getgid())
ERRORS = {
    "write": "ENOSPC",
    "openat": "ENOSPC",
    "mkdir": "EROFS",
    "fchmod": "EPERM",
    "fchown": "EPERM",
}


class Scene(NamedTuple):
    """A change to be disturbed: how it is prepared and done.

    What the file holds before and after it.
    """

    prepare: Callable[[Node], Any]
    action: Callable[[Node], Any]
    before: "bytes | None"
    after: "bytes | None"
    again: Callable[[Node], Any]  # the next run's way to the same end


def _nothing(node: Node) -> None:
    pass


def _create(node: Node, run_id: str = RUN) -> Any:
    return file_change.create_file(str(node.file), BEFORE, node.step(run_id), ATTRIBUTES)


def _remove(node: Node, run_id: str = RUN) -> Any:
    return file_change.move_out(str(node.file), sha(BEFORE), node.step(run_id))


def _revert(node: Node, run_id: str = NEXT) -> Any:
    return [one["result"] for one in revert_files.revert(RUN, node.step(run_id))]


def _interrupted(node: Node) -> None:
    """After the rename, before its commit."""
    node.swap()
    (item,) = journal.read_run(RUN, str(node.root))
    (node.root / "journal" / RUN / (item["entry"] + journal.END)).unlink()
    (node.folder / item["intent"]["temp"]).write_bytes(b"half")


SCENES = {
    "swap": Scene(_nothing, Node.swap, BEFORE, AFTER, lambda node: node.swap(THIRD)),
    "create": Scene(
        lambda node: node.file.unlink(), _create, None, BEFORE, lambda node: _create(node, THIRD)
    ),
    "remove": Scene(_nothing, _remove, BEFORE, None, lambda node: _remove(node, THIRD)),
    "revert": Scene(Node.swap, _revert, AFTER, BEFORE, lambda node: _revert(node, THIRD)),
    "revert of a removal": Scene(_remove, _revert, None, BEFORE, lambda node: _revert(node, THIRD)),
    "recover": Scene(
        _interrupted,
        lambda node: interrupted_changes.recover_all(node.step(NEXT)),
        AFTER,
        AFTER,
        _nothing,
    ),
}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in memory where possible: kills are about order, not about disks."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path)
    yield Path(folder)
    shutil.rmtree(folder)


def scene_at(base: Path, name: str, scene: Scene) -> Node:
    folder = base / name
    folder.mkdir()
    node = Node(folder)
    scene.prepare(node)
    return node


def points(base: Path, scene: Scene) -> list[tuple[str, int]]:
    """Give an undisturbed run, and every point of it."""
    node = scene_at(base, "whole", scene)
    ended = traced(base, partial(scene.action, node))
    assert not ended.killed
    assert "ok" in ended.answer
    assert node.bytes() == scene.after
    assert not node.pending()
    assert not node.dotfiles()
    found = ended.points()
    assert {"openat", "fsync"} <= {name for name, dummy in found}
    return found


def healed(node: Node, scene: Scene) -> None:
    """Require that the journal is true and that the next run ends the change.

    The next run gets where the disturbed one was to get.
    """
    held = node.bytes()
    assert held in (scene.before, scene.after)
    for item in node.pending():
        assert item["state"] == (
            "before" if sha(held) == item["intent"]["sha256_before"] else "after"
        ), item
    if held == scene.before != scene.after:
        assert (
            "committed"
            not in [one for run in (RUN, NEXT) for one in node.results(run)][
                len(_committed(scene)) :
            ]
        )
    interrupted_changes.recover_all(node.step(THIRD))
    assert node.bytes() == held
    assert not node.pending()
    assert not node.dotfiles()
    assert not [name for name in node.own() if name.endswith(".tmp")]
    if held != scene.after or (scene.again is not _nothing and "revert" in scene.action.__name__):
        scene.again(node)
    assert node.bytes() == scene.after
    if scene.after is not None:
        assert stat.S_IMODE(node.file.stat().st_mode) == 0o640
        assert node.file.stat().st_nlink == 1
    for item in (
        item
        for run in journal.run_ids(str(node.root))
        for item in journal.read_run(run, str(node.root))
    ):
        assert item["end"]
        assert not item["error"]
        if item["intent"]["before"]:
            journal.former_bytes(item, str(node.root))


def _committed(scene: Scene) -> list[str]:
    return ["committed"] if scene.prepare in (Node.swap, _remove) else []


@pytest.mark.parametrize("name", SCENES)
def test_killed_anywhere(base: Path, name: str) -> None:
    scene, outcomes = SCENES[name], set()
    for call, number in points(base, scene):
        node = scene_at(base, f"{call}{number}", scene)
        ended = traced(base, partial(scene.action, node), f"{call}:signal=SIGKILL:when={number}")
        assert ended.killed, (call, number)
        assert ended.answer is None, (call, number)
        outcomes.add(node.bytes())
        healed(node, scene)
    assert outcomes == {scene.before, scene.after}


@pytest.mark.parametrize("name", SCENES)
def test_failing_anywhere(base: Path, name: str) -> None:
    """Any system call may fail, and leaves no file behind.

    One sentence says so, and `changed` is true to the file.
    """
    scene = SCENES[name]
    for call, number in points(base, scene):
        error = ERRORS.get(call, "EIO")
        node = scene_at(base, f"{call}{number}", scene)
        ended = traced(base, partial(scene.action, node), f"{call}:error={error}:when={number}")
        where = (call, number, error, ended.answer)
        assert not ended.killed, where
        assert ended.answer, where
        if ended.answer.get("error"):
            assert (node.bytes() == scene.after) is ended.answer[
                "changed"
            ] or scene.before == scene.after, where
        elif "refused" not in ended.answer["ok"]:
            assert node.bytes() == scene.after, where
        if not node.pending():
            assert not node.dotfiles(), where
        healed(node, scene)


def _on_disk(
    calls: list[fake_file_change.Call],
) -> Iterator[tuple[fake_file_change.Call, set[str]]]:
    """Yield each rename, link or removal with what a power cut at that moment might lose.

    A power cut may lose files' bytes and folders' names.
    """
    dirty: set[str] = set()
    for call in calls:
        if re.search(r" = -1 E\w+ \([^)]*\)$", call.text):
            continue
        paths = re.findall(r"<(/[^>]*)>", call.text)
        created = re.search(r'(?:<([^>]*)>, )?"([^"]+)".*O_CREAT.*= \d+<', call.text)
        if call.name in ("renameat", "rename", "linkat", "unlinkat", "unlink"):
            yield call, set(dirty)
            dirty.update(paths)
        elif call.name in ("mkdir", "mkdirat"):
            made = re.search(r'"([^"]+)"', call.text)
            assert made
            dirty.add(
                paths[0]
                if call.name == "mkdirat" and paths and not made[1].startswith("/")
                else str(Path(made[1]).parent)
            )
        elif call.name == "openat" and created and "O_EXCL" in call.text:
            dirty.update({paths[-1], str(Path(paths[-1]).parent)})
        elif call.name in ("write", "fchown", "fchmod", "fsetxattr"):
            dirty.add(paths[0])
        elif call.name == "fsync":
            dirty.discard(paths[0])
    yield fake_file_change.Call("end", ""), dirty


@pytest.mark.parametrize("name", ["swap", "create", "remove", "revert"])
def test_everything_is_on_the_disk_before_the_next(base: Path, name: str) -> None:
    """What no kill can show: the order of fsync, as a power cut would see it."""
    scene = SCENES[name]
    node = scene_at(base, "whole", scene)
    ended: Ended = traced(base, partial(scene.action, node))
    calls = [call for call in ended.calls if "answer.json" not in call.text]
    swaps = commits = 0
    for call, dirty in _on_disk(calls):
        if (
            call.name == "end"
            or f'"{journal.END}"' in call.text
            or call.text.count(journal.END) == 2
        ):
            commits += 1
            assert not dirty, (call, dirty)
        elif f', "{node.file.name}"' in call.text and call.name != "openat":
            swaps += 1
            # its folder holds the dotfile's name only
            assert not {path for path in dirty if path != str(node.folder)}, (call, dirty)
    assert (swaps, commits) == (1, 2)


Act = Callable[[Node], Any]
LOCKS: dict[str, tuple[Act, Act, tuple[Any, Any]]] = {
    "acquire": (
        _nothing,
        lambda node: node_lock.acquire(RUN, {"pid": 1}, 60, root=str(node.root)),
        (None, RUN),
    ),
    "take over": (
        lambda node: node_lock.acquire(NEXT, {"pid": 2}, 60, root=str(node.root)),
        lambda node: node_lock.acquire(RUN, {"pid": 1}, 60, take=NEXT, root=str(node.root)),
        (NEXT, RUN),
    ),
    "renew": (
        lambda node: node_lock.acquire(RUN, {"pid": 1}, 60, root=str(node.root)),
        lambda node: node_lock.renew(RUN, 90, root=str(node.root)),
        (RUN, RUN),
    ),
    "release": (
        lambda node: node_lock.acquire(RUN, {"pid": 1}, 60, root=str(node.root)),
        lambda node: node_lock.release(RUN, root=str(node.root)),
        (RUN, None),
    ),
}


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("how", ["signal=SIGKILL", "error=EIO"])
def test_a_lock_disturbed_anywhere(base: Path, name: str, how: str) -> None:
    prepare, action, holders = LOCKS[name]

    def fresh(folder: str) -> Node:
        (base / folder).mkdir()
        node = Node(base / folder)
        prepare(node)
        return node

    node = fresh("whole")
    for call, number in traced(base, partial(action, node)).points():
        node = fresh(f"{call}{number}")
        ended = traced(base, partial(action, node), f"{call}:{how}:when={number}")
        assert ended.killed or ended.answer, (call, number)
        held = lock.read(str(node.root))
        assert (held["run_id"] if held else None) in holders, (call, number)
        assert not held or (held["held"] and held["controller"]["pid"] in (1, 2))
        last = node_lock.acquire(RUN, {"pid": 1}, 60, take=NEXT, root=str(node.root))
        assert last["held"]
        assert lock.read(str(node.root))["run_id"] == RUN
        interrupted_changes.recover_all(node.step(RUN))
        assert node_lock.release(RUN, root=str(node.root))
        assert node.own() == ["flock"]
