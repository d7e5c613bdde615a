# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs of several checkouts share one kernel.

A test that lowers a limit is not disturbed by a lab that comes up. The tests need no cluster.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.lab.cluster import kernel
from tests.lab.cluster import node as cluster_node
from tests.lab.support import limits


@pytest.fixture
def settings(monkeypatch, tmp_path):
    """Use files instead of the machine's kernel settings."""
    monkeypatch.setattr(kernel, "LOWERED", tmp_path / "run" / "lowered")
    written = {}
    monkeypatch.setattr(kernel, "write", written.__setitem__)
    return written


def test_a_limit_is_lowered_for_as_long_as_its_process_lives(settings):
    assert not kernel.lowered_by_another()
    kernel.lower(kernel.INOTIFY, 128)
    assert settings == {kernel.INOTIFY: 128}, "it is this one's own"
    assert not kernel.lowered_by_another(), "it is this one's own"
    with subprocess.Popen(["sleep", "60"]) as other:
        kernel.LOWERED.write_text(f"{other.pid}\n")
        assert kernel.lowered_by_another()
        other.kill()
        other.wait(30)
        assert not kernel.lowered_by_another()
    kernel.lift(kernel.INOTIFY, 8192)
    assert settings == {kernel.INOTIFY: 8192}
    assert not kernel.LOWERED.exists()


def held(process: int) -> int:
    """Return how many inotify instances it has.

    One that begins opens and closes other files meanwhile.
    """
    try:
        return sum(
            "inotify" in str(one.readlink()) for one in Path(f"/proc/{process}/fd").iterdir()
        )
    except OSError:
        return -1


def test_what_others_give_back_is_held_until_it_is_let_go(monkeypatch):
    monkeypatch.setattr(limits, "MOST", 3)
    process = limits.fill()
    try:
        cluster_node.wait(lambda: held(process) == 3, 60, "it to hold as many as it may", every=0.1)
    finally:
        limits.emptied(process)
    assert not Path(f"/proc/{process}").exists()
    limits.emptied(process)  # nothing is there any more
    limits.emptied(None)
