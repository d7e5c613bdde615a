# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a playbook of the collection with the ansible-core of this environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from . import collection
from .wrong_input import WrongInput, shown

PROGRAM = "ansible-playbook"
INTERRUPTED = 128
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The reports then name this command, and not one that its user may not have.
COMMAND, HOSTS = "KUBEMEND_COMMAND", "KUBEMEND_COMMAND_HOSTS"


def command(name: str, arguments: Iterable[str]) -> list[str]:
    """Return the command that runs a playbook.

    It is started by the interpreter: a long path does not fit into the first line of a script.
    """
    return [sys.executable, str(_program()), f"kubemend.remediation.{name}", *arguments]


def _program() -> Path:
    folders = (
        str(Path(sys.executable).parent),
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
    )
    for folder in folders:
        if folder and (Path(folder) / PROGRAM).is_file():
            return Path(folder) / PROGRAM
    raise WrongInput(f"{PROGRAM} is missing beside {sys.executable}: install kubemend with pipx")


def environment(hosts: str = "") -> dict[str, str]:
    """Return the environment of a playbook: the collection of the package goes before others.

    hosts: the words with which this command reaches the same hosts, for commands in reports.
    """
    collection.folder()
    paths = [str(collection.ROOT), *_other_collections()]
    return {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(paths),
        COMMAND: "kubemend",
        HOSTS: hosts,
    }


def _other_collections() -> list[str]:
    """Return where Ansible looks for collections by its own settings: inventories may need some."""
    return [str(path) for path in ansible_settings().COLLECTIONS_PATHS]


def ansible_settings() -> Any:
    """Return Ansible's constants, which read its environment and its ansible.cfg."""
    from ansible.errors import AnsibleError

    try:
        from ansible import constants
    except AnsibleError as error:
        raise WrongInput(f"the settings of Ansible cannot be read: {shown(error)}") from None
    return constants


class Receiver:
    """A playbook that gets the signals of its command, also those that came before it began."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[Any] | None = None
        self._early: list[int] = []

    def send(self, number: int) -> None:
        """Send a signal to the playbook, or keep it until there is one."""
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)

    def begin(self, process: subprocess.Popen[Any]) -> None:
        """Send to this process from now on, what was kept first."""
        self._process = process
        while self._early:
            process.send_signal(self._early.pop(0))


def run(command: list[str], env: Mapping[str, str]) -> int:
    """Run a playbook on this terminal, and return its exit code."""
    with _forwarded_signals() as receiver, subprocess.Popen(command, env=env) as process:
        receiver.begin(process)
        return _code(process.wait())


def capture(command: list[str], env: Mapping[str, str]) -> tuple[int, str]:
    """Run a playbook, and return its exit code and what it printed."""
    with (
        _forwarded_signals() as receiver,
        subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        receiver.begin(process)
        text, _nothing = process.communicate()
        return _code(process.returncode), text


@contextmanager
def _forwarded_signals() -> Iterator[Receiver]:
    """Let a playbook end by itself: Ctrl-C reaches it too, other signals are sent to it.

    Behind the playbook, signals have the effect again that they had before it.
    """
    receiver = Receiver()

    def forward(number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            receiver.send(number)

    former = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield receiver
    finally:
        for number, handler in former.items():
            # None: a handler that is not Python's
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _code(code: int) -> int:
    return code if code >= 0 else INTERRUPTED - code
