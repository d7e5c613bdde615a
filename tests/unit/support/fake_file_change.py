# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's disk for the tests of the write.

It has a manifest folder and kubemend's own folder, and records what was seen in both.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    pending_changes,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)

RUN = "20261121T090000Z-1a2b3c"
NEXT = "20261121T100000Z-4d5e6f"
THIRD = "20261121T110000Z-aaaaaa"
BEFORE = (
    b"spec:\r\n  - --leader-elect=false\t# \xc3\xa9 tab\r\n  - --token=S3cret \xff\r\nno newline at"
    b" the end"
)
AFTER = BEFORE.replace(b"false", b"true")
SPLICES = [(BEFORE.index(b"false"), BEFORE.index(b"false") + 5, b"false", b"true")]


def sha(data: "bytes | None") -> "str | None":
    return None if data is None else hashlib.sha256(data).hexdigest()


class Node:
    """One file to be changed, and everything around it."""

    def __init__(self, base: Path, data: "bytes | None" = BEFORE) -> None:
        self.base = base
        self.folder = base / "manifests"
        self.root = base / "kubemend"
        self.file = self.folder / "kube-scheduler.yaml"
        self.folder.mkdir(exist_ok=True)
        if data is not None:
            self.file.write_bytes(data)
            self.file.chmod(0o640)

    def step(self, run_id: str = RUN, **more: Any) -> journal_entry.StepContext:
        return journal_entry.StepContext(
            run_id,
            "m1:KM101:kube-scheduler",
            "leader election on",
            "KM101",
            root=str(self.root),
            **more,
        )

    def swap(self, run_id: str = RUN, **more: Any) -> dict[str, Any]:
        return file_change.compare_and_swap(
            str(self.file), sha(BEFORE), SPLICES, self.step(run_id, **more)
        )

    def refused(
        self, *words: str, changed: bool = False, action: "Callable[[], Any] | None" = None
    ) -> str:
        """Require a refusal with these words in one sentence, and the file as it was."""
        before = self.bytes()
        with pytest.raises(storage.ChangeError) as error:
            (action or self.swap)()
        sentence = str(error.value)
        for word in words:
            assert word in sentence
        assert "\n" not in sentence
        assert not sentence.endswith(".")
        assert error.value.changed is changed
        if not changed:
            assert self.bytes() == before
        assert not self.dotfiles()
        return sentence

    def bytes(self) -> "bytes | None":
        return self.file.read_bytes() if self.file.is_file() else None

    def dotfiles(self) -> list[str]:
        """Return what would be a temporary file left next to a changed file."""
        return [path.name for path in self.folder.iterdir() if path.name.startswith(".")]

    def pending(self) -> list[dict[str, Any]]:
        return pending_changes.pending(str(self.root))

    def runs(self) -> list[dict[str, Any]]:
        return journal.list_runs(str(self.root))

    def results(self, run_id: str = RUN) -> list[str | None]:
        return [
            item["end"]["result"] if item["end"] else None
            for item in journal.read_run(run_id, str(self.root))
        ]

    def own(self) -> list[str]:
        """Return every name in kubemend's own folder."""
        return (
            sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))
            if self.root.exists()
            else []
        )


def interrupt(node: Node) -> Path:
    """Act as if killed before the commit record got its name; return where its dotfile was."""
    node.swap()
    (item,) = journal.read_run(RUN, str(node.root))
    (node.root / "journal" / RUN / (item["entry"] + journal.END)).unlink()
    return node.folder / item["intent"]["temp"]


class Call(NamedTuple):
    """One system call, with paths for descriptors."""

    name: str
    text: str


@dataclass
class Ended:
    """A child that did one thing under strace."""

    killed: bool
    answer: Any
    calls: list[Call]

    def points(self) -> list[tuple[str, int]]:
        """(system call, how manieth): everywhere that the action can be stopped."""
        seen: Counter[str] = Counter()
        found = []
        for call in self.calls:
            if "answer.json" in call.text:
                break
            seen[call.name] += 1
            found.append((call.name, seen[call.name]))
        return found


STRACE = shutil.which("strace")
# what the child calls until strace is seen to trace it; nothing that is tested does
READY = "chdir"
CALLS = (
    READY
    + ",write,fsync,rename,renameat,renameat2,unlink,unlinkat,link,linkat,openat,mkdir,mkdirat"
    + ",rmdir,fchown,fchmod,fsetxattr"
)


def _works() -> bool:
    if not STRACE:
        return False
    return (
        subprocess.run(
            [STRACE, "-f", "-o", "/dev/null", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        ).returncode
        == 0
    )


needs_strace = pytest.mark.skipif(
    not _works(), reason="strace is missing or may not trace here (Debian package strace)"
)


def traced(folder: Path, action: Callable[[], Any], inject: "str | None" = None) -> Ended:
    """Run the action in a child that strace watches from the action's first system call on."""
    log, answer = folder / "strace.log", folder / "answer.json"
    answer.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    gate, mine = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(gate, mine, action, answer)
    os.close(gate)
    command = [
        STRACE or "strace",
        "-qq",
        "-y",
        "-s",
        "400",
        "-o",
        str(log),
        "-e",
        "trace=" + CALLS,
        "-p",
        str(pid),
    ]
    strace = subprocess.Popen(
        command + (["-e", "inject=" + inject] if inject else []),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 120
        while not log.exists() or READY + "(" not in log.read_text(errors="replace"):
            assert time.monotonic() < end, "strace did not attach"
            assert strace.poll() is None, "strace did not attach"
            time.sleep(0.002)
    finally:
        os.close(mine)  # the child goes on
        status = os.waitpid(pid, 0)[1]
        strace.wait(120)
    calls = [
        Call(*found)
        for found in re.findall(r"^(?:\d+ +)?(\w+)\((.*)$", log.read_text(errors="replace"), re.M)
        if found[0] != READY
    ]
    return Ended(
        os.WIFSIGNALED(status), json.loads(answer.read_text()) if answer.exists() else None, calls
    )


def _child(gate: int, mine: int, action: Callable[[], Any], answer: Path) -> None:
    try:
        # PR_SET_PTRACER, for those who are not root
        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
        os.close(mine)
        while not select.select([gate], [], [], 0.001)[0]:
            os.chdir(".")
        try:
            result: Any = {"ok": action()}
        except storage.ChangeError as error:
            result = {"error": str(error), "changed": error.changed}
        text = json.dumps(result, default=str)
        answer.write_text(text)
    finally:
        os._exit(0)


@contextlib.contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[None]:
    """Mount a filesystem of its own."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "kubemend-test", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("tmpfs cannot be mounted here: " + storage.one_line(done.stderr))
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def mounted(*arguments: str) -> Iterator[None]:
    """Mount with these arguments, the last of which is the target."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("mount is not permitted here: " + storage.one_line(done.stderr))
    try:
        yield
    finally:
        subprocess.run(["umount", arguments[-1]], check=True)
