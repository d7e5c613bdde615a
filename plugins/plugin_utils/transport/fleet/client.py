# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host asked by an ssh client, with the command line that Ansible's ssh plugin makes.

A client's answer counts where the mark is in it. What is no answer and no failure of ssh itself is
left to a worker, which asks again as Ansible's task does and says why the host does not answer.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

from ansible.utils.display import Display

from ...evidence.document import one_line
from .. import privilege
from ..question import MAX_ANSWER, TOO_LARGE, NoAnswer, NodeError, Outcome, Question, outcome
from ..watchdog import TooLarge
from .hosts import Host
from .library import Library
from .process import LOST, Process, with_pipes

SSH_FAILED = 255
# What Ansible's ssh plugin says where it has data for the command.
UNREACHABLE = (
    'Data could not be sent to remote host "{host}". Make sure this host can be reached over ssh:'
    " {text}"
)
# What Ansible takes for an error of the command in spite of that exit code.
NOT_SSH = (b"Traceback (most recent call last):", b"PHP Parse error:")
MAX_BEFORE_BECOME = 1024 * 1024  # bytes that a node may print before it has become root
MAX_ERROR = 1024 * 1024  # bytes of standard error
# A jump host that drops connections at random (MaxStartups) is asked again.
DROPPED = re.compile(
    rb"kex_exchange_identification|Connection (?:closed|reset) by|Broken pipe|banner exchange"
)
DROPPED_RETRIES = 5
MAX_PAUSE_SECONDS = 30


class _Captured(BaseException):
    """The command line is known; no Exception, so that no other code catches it on the way."""

    def __init__(self, command: Any) -> None:
        self.command = command


class Client:
    """One host's question and the ssh client that carries it, again where that is of use.

    With asyncssh, the process of a library stands for the client, as long as it is of use.
    """

    library: Library | None = None

    def __init__(self, host: Host) -> None:
        """Make the question and the command line; nothing is started yet."""
        query = host.query
        self.host, self.process = host, Process(0, ())
        self.question: Question = host.action.node_question(
            query.host, query.params, query.task_vars
        )
        with privilege.only_where_needed(host.connection):
            command = _captured(host, self.question)
        self.line = _without_master(_command_line(host.connection, command))
        become = host.connection.become
        # The word that a node prints once it has become root; sudo must not read the program.
        self._success = str(getattr(become, "success", None) or "").encode("utf-8")
        self.awaited = self._success
        self.attempts = 0

    def names(self, placeholder: Any) -> bool:
        """Tell whether an argument holds the placeholder of an omitted variable.

        ansible-core before 2.19 has such a text. It must not reach ssh as a name or a number.
        """
        if not isinstance(placeholder, str) or not placeholder:
            return False
        return any(placeholder.encode("utf-8") in word for word in self.line)

    def start(self, released: Callable[[int], None]) -> Process:
        """Start the client; raises OSError where that is impossible."""
        self._show()
        if self.library is not None:
            self.process = self.library.start(self.line)
        else:
            self.process = _started(self.line, released)
        self.attempts, self.awaited = self.attempts + 1, self._success
        self._out, self._err = tuple(self.process.output)
        if not self.awaited:
            self.process.unsent = memoryview(self.question.program)
        return self.process

    def _show(self) -> None:
        connection, display = self.host.connection, Display()
        user = connection.get_option("remote_user")
        display.vvv(f"ESTABLISH SSH CONNECTION FOR USER: {user}", host=connection.host)
        words = [word.decode("utf-8", "surrogateescape") for word in self.line]
        program = "SSH" if self.library is None else "ASYNCSSH"
        display.vvv(f"{program}: EXEC {shlex.join(words)}", host=connection.host)

    @property
    def out(self) -> bytearray:
        """Return what the client wrote to its standard output."""
        return self.process.output[self._out]

    @property
    def err(self) -> bytearray:
        """Return what the client wrote to its standard error."""
        return self.process.output[self._err]

    def look(self) -> Outcome | None:
        """Look at what has been read; return an outcome that is certain before the end.

        Raises NoAnswer where the client is of no use.
        """
        if self.awaited:
            if self.awaited in self.out or self.awaited in self.err:
                self.awaited = b""
                self.process.unsent = memoryview(self.question.program)
            elif self.process.size > MAX_BEFORE_BECOME:
                raise NoAnswer
        if len(self.out) > MAX_ANSWER:
            return "error", TOO_LARGE, {}
        if len(self.err) > MAX_ERROR:
            del self.err[: -MAX_ERROR // 2]
        return None

    def is_refused(self) -> bool:
        """Tell whether asyncssh was of no use, so that an ssh client has to carry the question."""
        return self.library is not None and self.process.code == LOST and not self._is_answered()

    def late(self, seconds: float) -> Outcome:
        """Return the outcome of a host that did not answer in time."""
        return "unreachable", f"no answer within {seconds:.0f} seconds", {}

    def pause(self, jumps: bool) -> float | None:
        """Return the seconds after which a client that has ended is started once more, if at all.

        The pauses are those of Ansible's ssh plugin, and longer where a jump host drops it.
        """
        if self.process.code != SSH_FAILED or self._is_answered():
            return None
        retries = int(self.host.connection.get_option("reconnection_retries") or 0)
        if self.attempts <= retries:
            return min(2.0 ** (self.attempts - 1) - 1, MAX_PAUSE_SECONDS)
        if jumps and self.attempts <= DROPPED_RETRIES and DROPPED.search(self.err):
            return min(2.0**self.attempts / 2, MAX_PAUSE_SECONDS)
        return None

    def _is_answered(self) -> bool:
        return self.question.mark.encode("ascii") + b" " in self.out

    def ended(self) -> Outcome:
        """Return the outcome of a client that has ended; raises NoAnswer."""
        out, err = (bytes(text) for text in (self.out, self.err))
        try:
            answer = self.question.answer(
                out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "replace")
            )
        except TooLarge:
            return "error", TOO_LARGE, {}
        except NodeError:
            raise NoAnswer from None
        except NoAnswer:
            if self.process.code != SSH_FAILED or any(text in out + err for text in NOT_SSH):
                raise
            text = err.decode("utf-8", "replace").rstrip()
            reason = UNREACHABLE.format(host=self.host.connection.host, text=text)
            return "unreachable", one_line(reason), {}
        return outcome(self.question.host, answer)


def _captured(host: Host, question: Question) -> Any:
    """Return the command that Ansible would run over this connection."""
    connection = host.connection

    def capture(command: Any, in_data: Any = None, sudoable: bool = True) -> None:
        raise _Captured(command)

    connection.exec_command = capture
    try:
        host.action.send(question)
    except _Captured as captured:
        return captured.command
    finally:
        del connection.exec_command
    raise AttributeError("an action that runs no command")


def _command_line(connection: Any, command: Any) -> list[bytes]:
    """Return the arguments of the client, as Ansible's ssh plugin makes them."""
    connection.host = connection.get_option("host") or connection._play_context.remote_addr
    line: list[bytes] = connection._build_command(
        connection.get_option("ssh_executable"), "ssh", connection.host, command
    )
    return line


def _without_master(line: list[bytes]) -> list[bytes]:
    """Return a command line that starts no master and does not compress what is compressed.

    An existing master is still used.
    """
    return [line[0], b"-o", b"ControlMaster=no"] + [word for word in line[1:] if word != b"-C"]


def _started(line: list[bytes], released: Callable[[int], None]) -> Process:
    """Start a client in a session of its own; close every pipe where that fails."""
    started, reads, write = with_pipes(
        lambda streams: subprocess.Popen(
            line,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            start_new_session=True,
        )
    )
    started.returncode = 0  # Process waits for it
    return Process(started.pid, reads, write, released)
