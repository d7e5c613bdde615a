# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a process that outlives its caller."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import detached


def test_the_answer_comes_back_whole() -> None:
    def job(params: Any) -> Any:
        return {"text": "x" * params["size"], "pid": os.getpid()}

    answer = detached.run(job, {"size": 300000})
    assert len(answer["text"]) == 300000
    assert answer["pid"] != os.getpid()


def test_it_is_of_no_terminal_and_of_a_session_of_its_own() -> None:
    def job(_params: Any) -> Any:
        print("nothing of this is seen")
        ignored = [
            signal.getsignal(one) is signal.SIG_IGN for one in (signal.SIGHUP, signal.SIGINT)
        ]
        return [os.getsid(0) == os.getpid(), ignored, str(Path("/proc/self/fd/1").resolve())]

    assert detached.run(job, {}) == [True, [True, True], os.devnull]


def test_one_that_ends_without_an_answer_is_none() -> None:
    def job(_params: Any) -> None:
        os._exit(1)

    assert detached.run(job, {}) is None


def test_it_goes_on_when_its_caller_waits_no_longer(tmp_path: Path) -> None:
    def job(_params: Any) -> None:
        time.sleep(1)
        (tmp_path / "done").touch()

    with pytest.raises(detached.AtWork):
        detached.run(job, {}, patience=0.05)
    end = time.monotonic() + 60
    while not (tmp_path / "done").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
