# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One question to one node, on whichever way it travels: command, program, mark, and its answer."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from ..evidence.document import one_line
from ..safe_io.bounded_json import decoded
from .watchdog import TooLarge

MAX_ANSWER = 32 * 1024 * 1024
GRACE = 15  # seconds between the node's own deadline and the controller's
FLAGS = "-I -S -"
# An old distribution's own Python first: it works even where python3 is a virtual environment.
FIND = (
    'for p in /usr/libexec/platform-python /usr/bin/python3 python3; do command -v "$p" >/dev/null'
    ' 2>&1 && exec "$p" ' + FLAGS + "; done; echo '%s {\"python\": null}'"
)
NO_PYTHON = (
    "{host} has no Python 3.6 or newer ({found}): install python3 there, or set"
    " ansible_python_interpreter of this host to one."
)
TOO_LARGE = "the answer is too large"

Outcome = tuple[str, str, dict[str, Any]]  # status, reason, the node's answer


class NodeError(Exception):
    """The node answered, but brought no document; the text is one sentence for the operator."""


class NoAnswer(Exception):
    """No answer followed the mark: this kind of query does not work on this connection."""


class OldPython(NodeError):
    """The interpreter is Python 2, which knows nothing of the program's flags."""


@dataclass(frozen=True)
class Question:
    """What a node's shell runs, what that reads, and the word that begins its answer.

    Attributes:
        host: the host's name in the inventory.
        command: for the node's shell.
        program: for the standard input of the command.
        mark: the word before the answer.
    """

    host: str
    command: str
    program: bytes
    mark: str

    def answer(self, out: str, err: str) -> dict[str, Any]:
        """Return what follows the mark; raise NoAnswer where there is none."""
        if len(out) > MAX_ANSWER:
            raise TooLarge
        begin = out.rfind(self.mark + " ")
        if begin >= 0:
            return _parsed(out[begin + len(self.mark) :].split("\n", 1)[0])
        if "Unknown option: -I" in err + out:  # the greeting of Python 2
            raise OldPython(NO_PYTHON.format(host=self.host, found="its interpreter is Python 2"))
        raise NoAnswer


def command(python: str | None, environment: str, mark: str) -> str:
    """Return the command that runs the program with this Python, or with one that the node has."""
    if python:
        return f"{environment} {python} {FLAGS}".strip()
    find = FIND % mark
    if not environment:
        return find
    return f"{environment} /bin/sh -c {shlex.quote(find)}"


def outcome(host: str, answer: dict[str, Any]) -> Outcome:
    """Return the status that an answer stands for."""
    if "failed" in answer:
        return "error", one_line(answer["failed"]), {}
    if "python" in answer and "collectors" not in answer:
        return "error", _no_python(host, answer["python"]), {}
    return "ok", "", answer


def _no_python(host: str, version: Any) -> str:
    """Return the reason of a host whose Python is too old (version), or missing."""
    python = "none was found"
    if version:
        python = f"only {version}"
    return NO_PYTHON.format(host=host, found=one_line(python, 40))


def _parsed(line: str) -> dict[str, Any]:
    try:
        answer = decoded(line)
    except OverflowError:
        raise TooLarge from None
    except (ValueError, RecursionError):
        raise NodeError("the answer is no JSON: it was cut or mixed with other output") from None
    if not isinstance(answer, dict):
        raise NodeError("the answer is no JSON object")
    return answer
