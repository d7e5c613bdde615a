# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of every action that queries a node for one document, in one round trip.

A subclass names the entry point and the module that does the same where a program on standard input
is impossible, and completes the document. An error on the way is a result, never a failed task.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ...module_utils.shared import argument_specs
from ..evidence.document import EvidenceError, envelope, one_line, write
from ..safe_io.bounded_json import decoded
from . import node_program, privilege, progress
from .watchdog import TooLarge, TooLate, watch

MAX_ANSWER = 32 * 1024 * 1024
GRACE = 15  # seconds between the node's own deadline and the controller's
DISCOVERED = ("auto", "auto_silent", "auto_legacy", "auto_legacy_silent")
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


SAYS = 250  # characters of a command's standard error that a reason shows: its end
# How ssh's messages about itself begin, whether the command succeeds or not.
CHATTER = (
    "Warning: Permanently added ",
    "Shared connection to ",
    "Connection to ",
    "debug1: ",
    "debug2: ",
    "debug3: ",
)


class NodeError(Exception):
    """The node answered, but brought no document; the text is one sentence for the operator."""


class NoAnswer(Exception):
    """No answer followed the mark: this kind of query does not work on this connection."""


def orphaned() -> bool:
    """Tell whether ansible-playbook was killed.

    The worker that runs this has a session of its own, and would go on with the hosts of its loop.
    """
    parent = multiprocessing.parent_process()
    return parent is not None and parent.pid != os.getppid()


class NodeAction(ActionBase):
    """One query of one host. The answer goes into a file.

    The task's result contains nothing that the node wrote.
    """

    TRANSFERS_FILES = False
    _supports_async = False

    # "plugins.module_utils.<module>:<function>"; it takes the parameters and returns a dict or a
    # line of JSON
    ENTRY = ""
    # packages whose every module travels, for what the entry imports by name
    SHIP: tuple[str, ...] = ()
    MODULE = ""  # FQCN of the module that returns the same as `document`
    SPEC: ClassVar[dict[str, Any]] = {}  # evidence_dir and timeout are always there
    HIDDEN: ClassVar[dict[str, Any]] = {}  # options of the module that the action alone sets
    SUFFIX = ".json"
    # each host is asked by a task of its own, so that all of them are at work at once
    SHOWS_PROGRESS = False
    # the keys of a document that the node sets; the controller sets all others
    SAID: tuple[str, ...] = ()
    # of each command of this query: whether it failed, and its standard error
    _complaints: tuple[tuple[bool, str], ...] = ()

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if cls.ENTRY:
            node_program.body(cls.ENTRY, cls.SHIP)

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        """Complete an answer on the controller; `host`, `status` and `reason` are set already."""
        return document

    def summary(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return more for the task's result.

        It holds only what the controller derived, no text of the node.
        """
        return {}

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Query the host, write its answer and return the result of the task."""
        spec = {
            "evidence_dir": {"type": "path"},
            "timeout": {"type": "int", "default": 30},
            **self.SPEC,
        }
        result, task_vars, args, host = self._begun(tmp, task_vars, spec)
        started, asked_at = time.monotonic(), time.time()
        params = {name: value for name, value in args.items() if name != "evidence_dir"}
        with self._progress(args, host, task_vars) as ends:
            status, reason, answer = self._ask(host, params, task_vars)
            ends.append(status)
        answer = {name: answer[name] for name in self.SAID if name in answer}
        # A host that does not answer is known to the cluster's API by its address, or by nothing.
        own_fields = {
            "asked_at": asked_at,
            "received_at": time.time(),
            "address": self._play_context.remote_addr,
        }
        try:
            document, more = self._kept_in_any_case(
                {**envelope(host, status, reason, answer), **own_fields}, args
            )
        except OSError as error:
            place = error.filename or args["evidence_dir"]
            message = f"{place} cannot be written: {error.strerror}."
            result.update(failed=True, changed=False, msg=message)
            return result
        result.update(
            changed=False,
            host=host,
            status=document["status"],
            reason=document["reason"],
            path=None,
            sha256=None,
            size=None,
            duration_ms=round((time.monotonic() - started) * 1000),
        )
        result.update(more)
        return result

    def _progress(
        self, args: dict[str, Any], host: str, task_vars: dict[str, Any]
    ) -> AbstractContextManager[list[str]]:
        """Return what prints the progress of all hosts while this one is asked, if anything."""
        hosts = task_vars.get("ansible_play_hosts_all") or ()
        if not (self.SHOWS_PROGRESS and args.get("terminal") and args.get("evidence_dir")):
            return nullcontext([])
        return progress.shown(Path(args["evidence_dir"]).expanduser(), host, len(hosts))

    def _kept_in_any_case(
        self, document: dict[str, Any], args: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write a document, or in its place one that says why it is no evidence."""
        try:
            return self._kept(document, args)
        except OSError:
            raise
        except EvidenceError as error:
            cause = str(error)
        except Exception as error:  # pylint: disable=broad-except
            # The host is a row of the report in any case.
            cause = f"{type(error).__name__}: {error}"
        reason = f"its answer is no evidence: {one_line(cause)}"
        own_fields = {name: document[name] for name in ("asked_at", "received_at", "address")}
        return self._kept({**envelope(document["host"], "error", reason), **own_fields}, args)

    def _kept(
        self, document: dict[str, Any], args: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write a document; return (the document as it was written, more for the task's result)."""
        document = self.finish(document, args)
        written = {}
        if args["evidence_dir"]:
            written = write(document, args["evidence_dir"], self.SUFFIX)
        return document, {**written, **self.summary(document)}

    def _begun(
        self, tmp: str | None, task_vars: dict[str, Any] | None, spec: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
        """Return (the result so far, the task's variables, its checked options, the host asked)."""
        result, task_vars = super().run(tmp, task_vars), task_vars or {}
        args = self.validate_argument_spec(argument_spec=spec)[1]
        host = str(self._task.delegate_to or task_vars["inventory_hostname"])
        return result, task_vars, args, host

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, str, dict[str, Any]]:
        """Return (status, reason, the node's answer).

        Every way in which a host may not answer ends here.
        """
        limit = params["timeout"] + GRACE
        self._complaints = ()
        try:
            with watch(limit), privilege.only_where_needed(self._connection):
                answer = self._answer(host, params, task_vars)
        except TooLate:
            return "unreachable", self._with_stderr(f"no answer within {limit} seconds"), {}
        except AnsibleConnectionFailure as error:
            return "unreachable", self._with_stderr(one_line(error)), {}
        except (TooLarge, MemoryError):
            return "error", "the answer is too large", {}
        except (NodeError, AnsibleError) as error:
            return "error", self._with_stderr(one_line(error)), {}
        if "failed" in answer:
            return "error", one_line(answer["failed"]), {}
        if "python" in answer and "collectors" not in answer:
            return "error", _no_python(host, answer["python"]), {}
        return "ok", "", answer

    def _low_level_execute_command(self, *args: Any, **named: Any) -> dict[str, Any]:
        """Run it as every action does, and keep its standard error.

        Ansible's own messages leave out why a command failed.
        """
        answer: dict[str, Any] = super()._low_level_execute_command(*args, **named)
        message = _message(answer.get("stderr"))
        if message:
            self._complaints = (*self._complaints, (answer.get("rc") != 0, message))
        return answer

    def _with_stderr(self, reason: str) -> str:
        """Return the reason with the standard error of commands that failed.

        The first one, which others may only follow from, and the last one.
        """
        messages = [message for failed, message in self._complaints if failed]
        if not messages:
            messages = [message for _failed, message in self._complaints]
        ends = dict.fromkeys(messages[:1] + messages[-1:])
        new = [message for message in ends if message not in reason]
        if not new:
            return reason
        return f"{reason}; standard error: {'; then: '.join(new)}"

    def _answer(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        if self._takes_program():
            try:
                return self._by_program(host, params, task_vars)
            except NoAnswer:
                pass
        return self._by_module(params, task_vars)

    def _takes_program(self) -> bool:
        """Tell whether the connection takes a program on standard input."""
        become = self._connection.become
        if not self._connection.has_pipelining or become is None:
            return bool(self._connection.has_pipelining)
        # 2.16 has no such attribute
        return bool(getattr(become, "pipelining", become.name != "su"))

    def _by_program(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        mark = node_program.mark()
        program = node_program.build(self.ENTRY, self.SHIP, params, mark)
        answer = self._low_level_execute_command(
            self._command(mark, task_vars),
            in_data=program,
            sudoable=True,
            executable=self._play_context.executable,
        )
        out = answer["stdout"]
        if len(out) > MAX_ANSWER:
            raise TooLarge
        begin = out.rfind(mark + " ")
        if begin >= 0:
            return _parsed(out[begin + len(mark) :].split("\n", 1)[0])
        if "Unknown option: -I" in answer["stderr"] + out:  # the greeting of Python 2
            self._complaints = ()
            raise NodeError(NO_PYTHON.format(host=host, found="its interpreter is Python 2"))
        raise NoAnswer

    def _command(self, mark: str, task_vars: dict[str, Any]) -> str:
        environment = self._compute_environment_string()
        python = self._interpreter(task_vars)
        if python:
            return f"{environment} {python} {FLAGS}".strip()
        find = FIND % mark
        if not environment:
            return find
        return f"{environment} /bin/sh -c {shlex.quote(find)}"

    def _interpreter(self, task_vars: dict[str, Any]) -> str | None:
        """Return the interpreter that the operator named, by variable, environment or ansible.cfg.

        The result is None where Ansible is to find one.
        """
        if self._task.delegate_to:
            delegated = task_vars.get("ansible_delegated_vars") or {}
            task_vars = delegated.get(self._task.delegate_to) or {}
        named = task_vars.get("ansible_python_interpreter")
        if named is None:
            named = constants.config.get_config_value("INTERPRETER_PYTHON")
        interpreter = str(self._templar.template(named) or "").strip()
        if not interpreter or interpreter in DISCOVERED:
            return None
        return interpreter

    def _by_module(self, params: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """Query by an ordinary module, where the connection takes no program on standard input."""
        options = {name: value for name, value in params.items() if value is not None}
        module_args = argument_specs.hidden(options, self.HIDDEN)
        answer = self._execute_module(
            module_name=self.MODULE, module_args=module_args, task_vars=task_vars
        )
        if answer.get("unreachable"):
            raise AnsibleConnectionFailure(str(answer.get("msg") or "unreachable"))
        document = answer.get("document")
        if answer.get("failed") or not isinstance(document, dict):
            raise NodeError(str(answer.get("msg") or "the module brought no document"))
        return document


def _no_python(host: str, version: Any) -> str:
    """Return the reason of a host whose Python is too old (version), or missing."""
    python = "none was found"
    if version:
        python = f"only {version}"
    return NO_PYTHON.format(host=host, found=one_line(python, 40))


def _message(stderr: Any) -> str:
    """Return the end of a standard error as one line, without ssh's messages about itself."""
    lines = [
        line
        for line in str(stderr or "").splitlines()
        if line.strip() and not line.startswith(CHATTER)
    ]
    text = one_line(" ".join(lines[-20:]), 10000)
    if len(text) <= SAYS:
        return text
    return "…" + text[1 - SAYS :]


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
