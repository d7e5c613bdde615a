# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files as evidence: hostile folders, foreign roots, certificates without their keys."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import manifests
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files
from tests.unit.support import child_process


def _collect(folder):
    context = Context({}, [], {"kubelet": {"static_pod_path": str(folder)}})
    return context, manifests.collect(context)


def fill(folder):
    """Make files of every kind in a folder, such as a hostile owner might."""
    (folder / "good.yaml").write_text("token: abc\r\nx: 1\r\n")
    (folder / "good.yaml.bak").write_text("{}")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (folder / "nul").write_bytes(b"a\0b")
    (folder / "large").write_bytes(b"x" * (files.MAX_TEXT + 1))
    (folder / ".hidden").write_text("")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "link").symlink_to("good.yaml")
    (folder / "null").symlink_to("/dev/zero")
    os.mkfifo(folder / "fifo")
    os.mkfifo(folder / "behind")
    (folder / "to-fifo").symlink_to("behind")
    (folder / os.fsdecode(b"b\xe4d")).write_bytes(b"a: 1\n")  # a name that is no UTF-8


def test_a_hostile_folder_costs_no_time_and_loses_no_entry(tmp_path):
    fill(tmp_path)
    begin = time.monotonic()
    context, found = _collect(tmp_path)
    assert time.monotonic() - begin < 60  # a pipe would never end
    by = {one["name"]: one for one in found["files"]}
    assert found["ignored"] == [".hidden"]
    assert context.truncated is True
    assert found["is_mount"] is False
    assert by["good.yaml"]["text"] == "token: ***\r\nx: 1\r\n"
    assert by["good.yaml"]["masked"] == [[7, 10]]
    assert by["good.yaml"]["sha256"] == hashlib.sha256(b"token: abc\r\nx: 1\r\n").hexdigest()
    assert by["binary"]["binary"]
    assert by["nul"]["binary"]
    assert by["binary"]["text"] is None
    assert by["large"]["truncated"]
    assert by["large"]["text"] is None
    assert len(by["large"]["sha256"]) == 64
    assert by["folder"]["kind"] == "directory"
    assert by["fifo"]["kind"] == "other"
    assert by["to-fifo"]["kind"] == "symlink"
    assert by["fifo"]["text"] is None
    assert by["to-fifo"]["text"] is None
    assert by["null"]["text"] is None
    assert "symbolic links" in by["loop"]["error"]
    assert by["dangling"]["error"] == "missing"
    assert by["dangling"]["link"] == "nowhere"
    assert by["link"]["link"] == "good.yaml"
    assert by["link"]["text"].startswith("token: ***")
    assert by["b\\xe4d"]["text"] == "a: 1\n"


def test_text_is_bounded_over_all_files(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.yaml").write_bytes(b"x" * 500_000)
    context, found = _collect(tmp_path)
    assert context.truncated
    assert [one["text"] is None for one in found["files"]] == [False] * 4 + [True] * 2


def test_a_static_pod_path_may_be_one_file(tmp_path):
    (tmp_path / "pod.yaml").write_text("kind: Pod\n")
    assert [one["name"] for one in _collect(tmp_path / "pod.yaml")[1]["files"]] == ["pod.yaml"]


def test_a_link_in_a_container_stays_in_it(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "etc" / "k").mkdir(parents=True)
    outside.write_text("of the host")
    (root / "etc" / "real").write_text("inside")
    (root / "etc" / "k" / "absolute").symlink_to("/etc/real")
    (root / "etc" / "k" / "relative").symlink_to("../../../../../etc/real")
    (root / "etc" / "k" / "escape").symlink_to(str(outside))
    (root / "etc" / "dir").symlink_to("k")
    (root / "etc" / "loop").symlink_to("/etc/loop")
    before = len([entry.name for entry in Path("/proc/self/fd").iterdir()])
    for path in ("/etc/k/absolute", "/etc/k/relative", "/etc/dir/absolute", "/etc/../etc/./real"):
        assert files.read(path, root=str(root)) == b"inside"
        assert files.record(path, root=str(root))["text"] == "inside"
    assert files.record("/etc/k/escape", root=str(root))["error"] == "missing"
    assert "symbolic links" in files.record("/etc/loop", root=str(root))["error"]
    assert len([entry.name for entry in Path("/proc/self/fd").iterdir()]) == before


def test_a_changed_file_has_the_hash_of_what_was_read(tmp_path):
    path = tmp_path / "a"
    path.write_text("x")
    assert files.record(str(path))["size"] == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "junk -----BEGIN CERTIFICATE-----\nQU\nJD\n-----END CERTIFICATE----- junk",
            "-----BEGIN CERTIFICATE-----\nQU\nJD\n-----END CERTIFICATE-----\n",
        ),
        ("-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n", None),
        ("-----BEGIN CERTIFICATE-----\nQU", None),
        (
            (
                "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE"
                " KEY-----\n-----END CERTIFICATE-----\n"
            ),
            None,
        ),
        ("", None),
    ],
)
def test_only_certificates(text, expected):
    assert files.certificates(text) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_without_root(tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1\n")
    path.chmod(0)
    for folder in [tmp_path, *tmp_path.parents][:-2]:
        folder.chmod(0o755)
    reader, writer = os.pipe()

    def read_as_nobody():
        os.setuid(65534)
        os.write(writer, str(files.record(str(path))["error"]).encode())

    pid = child_process.fork(read_as_nobody)
    os.waitpid(pid, 0)
    assert os.read(reader, 100) == b"denied"
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("before", [0, 10, 70, 80, 90])
def test_a_line_is_masked_before_it_is_cut(before):
    """A secret whose end is behind the cut has the form of none in what is left."""
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ" + "A" * 60 + "." + "B" * 60
    line = files.masked_line("x" * before + f" \n {token}", 100)
    assert len(line) <= 100
    assert "eyJ" not in line


def test_blanks_that_one_line_leaves_out_bring_no_secret_before_the_cut():
    text = " " * 3 * files.BEYOND + "password=" + "h2" * files.BEYOND
    assert "h2" not in files.masked_line(text, 100)


def test_when_a_file_was_moved(tmp_path):
    path = tmp_path / "a"
    path.write_text("")
    os.utime(str(path), (1.0, 1.0))
    assert (files.ctime(str(path)) or 0) > 1e9
    assert files.ctime(str(tmp_path / "b")) is None


def test_the_ends_of_a_line_are_masked_before_they_are_cut():
    line = "a: " + "b: " * 300 + "password=hunter2hunter2 c: the cause"
    for limit in range(20, 60):
        cut = files.masked_ends(line, limit)
        assert len(cut) == limit
        assert cut.endswith("cause")
        assert "hunter" not in cut
    assert files.masked_ends(None, 20) == ""
    assert files.masked_ends("x" * 2 * files.MAX_LINE, 20).endswith("x…")


@pytest.mark.parametrize(
    ("limit", "lines"), [(12, (b"one\ntwo\nsix\n", True)), (9, (b"two\nsix\n", False))]
)
def test_the_last_lines_are_whole(tmp_path, limit, lines):
    (tmp_path / "log").write_bytes(b"one\ntwo\nsix\n")
    assert files.last_lines(str(tmp_path / "log"), limit) == lines
