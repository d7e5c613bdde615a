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
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ...module_utils.shared import argument_specs
from ..evidence.document import EvidenceError, envelope, one_line, write
from . import node_program, privilege, progress, question
from .question import NoAnswer, NodeError, OldPython, Question
from .watchdog import TooLarge, TooLate, watch

DISCOVERED = ("auto", "auto_silent", "auto_legacy", "auto_legacy_silent")
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


@dataclass
class Query:
    """One query of one host, from its begin to its result.

    Attributes:
        host: the host asked.
        args: the checked options of the task.
        task_vars: the variables of the task.
        result: the task's result so far.
        started: the moment of the begin by the monotonic clock.
        asked_at: the same moment by the clock of the wall.
    """

    host: str
    args: dict[str, Any]
    task_vars: dict[str, Any]
    result: dict[str, Any]
    started: float = field(default_factory=time.monotonic)
    asked_at: float = field(default_factory=time.time)

    @property
    def params(self) -> dict[str, Any]:
        """Return the parameters that travel to the node."""
        return {name: value for name, value in self.args.items() if name != "evidence_dir"}


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
        query = self.begin(tmp, task_vars)
        with self._progress(query.args, query.host, query.task_vars) as ends:
            outcome = self._ask(query.host, query.params, query.task_vars)
            ends.append(outcome[0])
        return self.conclude(query, *outcome)

    def begin(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> Query:
        """Return the query of this task, with its options checked."""
        spec = {
            "evidence_dir": {"type": "path"},
            "timeout": {"type": "int", "default": 30},
            **self.SPEC,
        }
        result, task_vars, args, host = self._begun(tmp, task_vars, spec)
        return Query(host, args, task_vars, result)

    def conclude(
        self, query: Query, status: str, reason: str, answer: dict[str, Any]
    ) -> dict[str, Any]:
        """Write the answer of a host and return the result of its task."""
        host, args, result = query.host, query.args, query.result
        answer = {name: answer[name] for name in self.SAID if name in answer}
        # A host that does not answer is known to the cluster's API by its address, or by nothing.
        own_fields = {
            "asked_at": query.asked_at,
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
            duration_ms=round((time.monotonic() - query.started) * 1000),
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
        limit = params["timeout"] + question.GRACE
        self._complaints = ()
        try:
            with watch(limit), privilege.only_where_needed(self._connection):
                answer = self._answer(host, params, task_vars)
        except TooLate:
            return "unreachable", self._with_stderr(f"no answer within {limit} seconds"), {}
        except AnsibleConnectionFailure as error:
            return "unreachable", self._with_stderr(one_line(error)), {}
        except (TooLarge, MemoryError):
            return "error", question.TOO_LARGE, {}
        except (NodeError, AnsibleError) as error:
            return "error", self._with_stderr(one_line(error)), {}
        return question.outcome(host, answer)

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
        if self.takes_program():
            try:
                return self._by_program(host, params, task_vars)
            except NoAnswer:
                pass
        return self._by_module(params, task_vars)

    def takes_program(self) -> bool:
        """Tell whether the connection takes a program on standard input."""
        become = self._connection.become
        if not self._connection.has_pipelining or become is None:
            return bool(self._connection.has_pipelining)
        # 2.16 has no such attribute
        return bool(getattr(become, "pipelining", become.name != "su"))

    def node_question(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> Question:
        """Return what a node is sent that takes a program on standard input."""
        mark = node_program.mark()
        command = question.command(
            self._interpreter(task_vars), self._compute_environment_string(), mark
        )
        program = node_program.build(self.ENTRY, self.SHIP, params, mark)
        return Question(host, command, program, mark)

    def send(self, node_question: Question) -> dict[str, Any]:
        """Run a question's command over the connection, with its program on standard input."""
        return self._low_level_execute_command(
            node_question.command,
            in_data=node_question.program,
            sudoable=True,
            executable=self._play_context.executable,
        )

    def _by_program(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        node_question = self.node_question(host, params, task_vars)
        sent = self.send(node_question)
        try:
            return node_question.answer(sent["stdout"], sent["stderr"])
        except OldPython:
            self._complaints = ()
            raise

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
