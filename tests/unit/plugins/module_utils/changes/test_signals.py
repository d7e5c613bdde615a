# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A signal reaches exactly one process, with a descriptor of the process and without one."""

import signal
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import signals
from ansible_collections.kubemend.remediation.plugins.module_utils.system import procfs


@pytest.fixture(params=["by descriptor", "by pid"])
def instance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    if request.param == "by pid":
        monkeypatch.delattr(signals.os, "pidfd_open", raising=False)
    with subprocess.Popen(["sleep", "60"]) as child:
        yield SimpleNamespace(pid=child.pid, ticks=procfs.ticks(child.pid), child=child)
        child.kill()


def test_the_process_gets_the_signal(instance: SimpleNamespace) -> None:
    signals.terminate(instance)
    assert instance.child.wait(10) == -signal.SIGTERM


def test_another_process_with_its_pid_gets_none(instance: SimpleNamespace) -> None:
    instance.ticks -= 1
    assert signals.send(instance, signal.SIGTERM) is False
    assert instance.child.poll() is None
    instance.ticks += 1
    assert signals.send(instance, signal.SIGKILL) is True
    assert instance.child.wait(10) == -signal.SIGKILL


def test_a_process_that_has_ended_gets_none(instance: SimpleNamespace) -> None:
    instance.child.kill()
    instance.child.wait(10)
    assert signals.send(instance, signal.SIGTERM) is False
