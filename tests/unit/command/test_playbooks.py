# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a playbook is started: which ansible-playbook, which collections, which exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kubemend import collection, playbooks
from kubemend.wrong_input import WrongInput


def test_the_ansible_playbook_of_this_environment_runs():
    words = playbooks.command("audit", ["-i", "m1,"])
    assert words[0] == sys.executable
    assert Path(words[1]) == Path(sys.executable).with_name("ansible-playbook")
    assert words[2:] == ["kubemend.remediation.audit", "-i", "m1,"]


def test_without_it_one_sentence(monkeypatch):
    monkeypatch.setattr(playbooks, "PROGRAM", "no-such-program")
    with pytest.raises(WrongInput, match="no-such-program is missing"):
        playbooks.command("audit", [])


def test_the_carried_collection_goes_before_those_of_the_user(monkeypatch):
    from ansible import constants

    monkeypatch.setattr(constants, "COLLECTIONS_PATHS", ["/theirs"])
    env = playbooks.environment("--kubeconfig x")
    assert env["ANSIBLE_COLLECTIONS_PATH"].split(os.pathsep) == [str(collection.ROOT), "/theirs"]
    assert env["KUBEMEND_COMMAND"] == "kubemend"
    assert env["KUBEMEND_COMMAND_HOSTS"] == "--kubeconfig x"


def python(source):
    return [sys.executable, "-c", source]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("pass", 0),
        ("raise SystemExit(2)", 2),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_the_exit_code_is_that_of_the_playbook(source, code):
    assert playbooks.run(python(source), os.environ) == code
    assert playbooks.capture(python(f"print('x', flush=True); {source}"), os.environ) == (
        code,
        "x\n",
    )


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_reaches_the_playbook_and_its_end_is_waited_for(name, tmp_path):
    child = (
        f"import os, signal, time\nsignal.signal(signal.{name}, lambda *_: (time.sleep(0.2),"
        # The signal may come while the other line is written, within the same buffer.
        " os.write(1, b'ended\\n'), os._exit(3)))\nos.write(1, b'begun\\n')\ntime.sleep(60)"
    )
    parent = (
        "from kubemend import playbooks; import os, sys\n"
        f"sys.exit(playbooks.run([sys.executable, '-c', {child!r}], os.environ))"
    )
    with subprocess.Popen(
        python(parent),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(playbooks.__file__).parents[1])},
    ) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(getattr(signal, name))
        assert process.stdout.readline() == "ended\n"
        assert process.wait(20) == 3


@pytest.mark.parametrize("ways", ["run", "capture"])
def test_signals_have_their_former_effect_behind_a_playbook(ways: str) -> None:
    former = {number: signal.getsignal(number) for number in playbooks.FORWARDED}
    getattr(playbooks, ways)([sys.executable, "-c", ""], os.environ)
    assert {number: signal.getsignal(number) for number in playbooks.FORWARDED} == former


def test_a_signal_before_the_playbook_began_reaches_it() -> None:
    receiver = playbooks.Receiver()
    receiver.send(signal.SIGTERM)
    with subprocess.Popen(python("import time; time.sleep(60)")) as process:
        receiver.begin(process)
        assert process.wait(20) == -signal.SIGTERM
