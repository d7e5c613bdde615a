# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of every action that asks a node for one document, in one round trip.

A subclass names the entry point, the module that does the same where a program on standard input is
impossible, and what to make of the document. Whatever goes wrong between here and there is a
result, never a failed task.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import time
from typing import Any

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ..evidence import document as evidence
from ..safe_io.bounded_json import decoded
from . import node_program, privilege
from .watchdog import TooLarge, TooLate, watch

MAX_ANSWER = 32 * 1024 * 1024
GRACE = 15  # seconds between the node's own deadline and the controller's
DISCOVERED = ("auto", "auto_silent", "auto_legacy", "auto_legacy_silent")
FLAGS = "-I -S -"
# An old distribution's own Python first: where python3 is an environment of somebody's, that one
# still works.
FIND = (
    'for p in /usr/libexec/platform-python /usr/bin/python3 python3; do command -v "$p" >/dev/null'
    ' 2>&1 && exec "$p" ' + FLAGS + "; done; echo '%s {\"python\": null}'"
)
NO_PYTHON = (
    "{host} has no Python 3.6 or newer ({found}): install python3 there, or set"
    " ansible_python_interpreter of this host to one."
)


SAYS = 250  # characters of a command's standard error that a reason shows: its end
# What ssh says of itself, whatever became of the command.
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
    """Nothing came back behind the mark: this way of asking does not work on this connection."""


def orphaned() -> bool:
    """Whether ansible-playbook was killed.

    The worker that runs this has a session of its own, and would go on with the hosts of its loop.
    """
    parent = multiprocessing.parent_process()
    return parent is not None and parent.pid != os.getppid()


class NodeAction(ActionBase):
    """One question to one host. The answer goes into a file.

    The task's result holds nothing that the node wrote.
    """

    TRANSFERS_FILES = False
    _supports_async = False

    # "plugins.module_utils.<module>:<function>"; it takes the parameters and returns a dict or a
    # line of JSON
    ENTRY = ""
    # packages whose every module travels, for what the entry imports by name
    SHIP: tuple[str, ...] = ()
    MODULE = ""  # FQCN of the module that returns the same as `document`
    SPEC: dict[str, Any] = {}  # evidence_dir and timeout are always there
    SUFFIX = ".json"
    # what of a node's answer is its own to say; the rest of a document is this side's
    SAID: tuple[str, ...] = ()

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if cls.ENTRY:
            node_program.body(cls.ENTRY, cls.SHIP)

    def finish(self, document: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
        """What the controller makes of an answer. `host`, `status` and `reason` are set already."""
        return document

    def summary(self, document: dict[str, Any]) -> dict[str, Any]:
        """More for the task's result.

        Only what this side worked out, nothing in the node's words.
        """
        return {}

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        spec = {
            "evidence_dir": {"type": "path"},
            "timeout": {"type": "int", "default": 30},
            **self.SPEC,
        }
        result, task_vars, args, host = self._begun(tmp, task_vars, spec)
        started, asked_at = time.monotonic(), time.time()
        params = {name: value for name, value in args.items() if name != "evidence_dir"}
        status, reason, answer = self._ask(host, params, task_vars)
        answer = {name: answer[name] for name in self.SAID if name in answer}
        # A host that does not answer is known to the cluster's API by its address, or by nothing.
        ours = {
            "asked_at": asked_at,
            "received_at": time.time(),
            "address": self._play_context.remote_addr,
        }
        try:
            try:
                document, told = self._kept(
                    {**evidence.envelope(host, status, reason, answer), **ours}, args
                )
            except OSError:
                raise
            except Exception as error:  # pylint: disable=broad-except  # whatever it is, the host is a row of the report
                what = evidence.one_line(
                    error
                    if isinstance(error, evidence.EvidenceError)
                    else f"{type(error).__name__}: {error}"
                )
                document, told = self._kept(
                    {
                        **evidence.envelope(host, "error", f"its answer is no evidence: {what}"),
                        **ours,
                    },
                    args,
                )
        except OSError as error:
            result.update(
                failed=True,
                changed=False,
                msg=(
                    f"{error.filename or args['evidence_dir']} cannot be written: {error.strerror}."
                ),
            )
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
        result.update(told)
        return result

    def _kept(
        self, document: dict[str, Any], args: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """(the document as it was written, more for the task's result)."""
        document = self.finish(document, args)
        written = (
            evidence.write(document, args["evidence_dir"], self.SUFFIX)
            if args["evidence_dir"]
            else {}
        )
        return document, {**written, **self.summary(document)}

    def _begun(
        self, tmp: str | None, task_vars: dict[str, Any] | None, spec: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]:
        """(the result so far, the task's variables, its options as the spec has them, the host
        that is asked).
        """
        result, task_vars = super().run(tmp, task_vars), task_vars or {}
        args = self.validate_argument_spec(argument_spec=spec)[1]
        return (
            result,
            task_vars,
            args,
            str(self._task.delegate_to or task_vars["inventory_hostname"]),
        )

    def _ask(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, str, dict[str, Any]]:
        """(status, reason, the node's answer).

        Every way in which a host may not answer ends here.
        """
        limit = params["timeout"] + GRACE
        self._complaints = []
        try:
            with watch(limit), privilege.only_where_needed(self._connection):
                answer = self._answer(host, params, task_vars)
        except TooLate:
            return "unreachable", self._with_stderr(f"no answer within {limit} seconds"), {}
        except AnsibleConnectionFailure as error:
            return "unreachable", self._with_stderr(evidence.one_line(error)), {}
        except (TooLarge, MemoryError):
            return "error", "the answer is too large", {}
        except (NodeError, AnsibleError) as error:
            return "error", self._with_stderr(evidence.one_line(error)), {}
        if "failed" in answer:
            return "error", evidence.one_line(answer["failed"]), {}
        if "python" in answer and "collectors" not in answer:
            found = f"only {answer['python']}" if answer["python"] else "none was found"
            return "error", NO_PYTHON.format(host=host, found=evidence.one_line(found, 40)), {}
        return "ok", "", answer

    # of each command of this question: whether it failed, and its standard error
    _complaints: list[tuple[bool, str]] = []

    def _low_level_execute_command(self, *args: Any, **named: Any) -> dict[str, Any]:
        """Run it as every action does, and keep its standard error.

        Ansible's own messages leave out why a command failed.
        """
        answer = super()._low_level_execute_command(*args, **named)
        said = _said(answer.get("stderr"))
        if said:
            self._complaints = [*self._complaints, (answer.get("rc") != 0, said)]
        return answer

    def _with_stderr(self, reason: str) -> str:
        """The reason, with what commands that failed said.

        The first one, which others may only follow from, and the last one.
        """
        every = [said for failed, said in self._complaints if failed] or [
            said for _failed, said in self._complaints
        ]
        told = (
            [said for said in dict.fromkeys((every[0], every[-1])) if said not in reason]
            if every
            else []
        )
        return f"{reason}; standard error: {'; then: '.join(told)}" if told else reason

    def _answer(
        self, host: str, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        become = self._connection.become
        # 2.16 has no such attribute
        if self._connection.has_pipelining and (
            become is None or getattr(become, "pipelining", become.name != "su")
        ):
            try:
                return self._by_program(host, params, task_vars)
            except NoAnswer:
                pass
        return self._by_module(params, task_vars)

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
        if "Unknown option: -I" in answer["stderr"] + out:  # that is how Python 2 greets us
            self._complaints = []
            raise NodeError(NO_PYTHON.format(host=host, found="its interpreter is Python 2"))
        raise NoAnswer

    def _command(self, mark: str, task_vars: dict[str, Any]) -> str:
        environment = self._compute_environment_string()
        python = self._interpreter(task_vars)
        if python:
            return f"{environment} {python} {FLAGS}".strip()
        find = FIND % mark
        return f"{environment} /bin/sh -c {shlex.quote(find)}" if environment else find

    def _interpreter(self, task_vars: dict[str, Any]) -> str | None:
        """The interpreter that the operator named, by variable, environment or ansible.cfg; None.

        Find one.
        """
        if self._task.delegate_to:
            task_vars = (task_vars.get("ansible_delegated_vars") or {}).get(
                self._task.delegate_to
            ) or {}
        named = task_vars.get("ansible_python_interpreter")
        if named is None:
            named = constants.config.get_config_value("INTERPRETER_PYTHON")
        named = str(self._templar.template(named) or "").strip()
        return None if not named or named in DISCOVERED else named

    def _by_module(self, params: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """The same collector as an ordinary module, for a connection that takes no program on
        standard input.
        """
        given = {name: value for name, value in params.items() if value is not None}
        answer = self._execute_module(
            module_name=self.MODULE, module_args=given, task_vars=task_vars
        )
        if answer.get("unreachable"):
            raise AnsibleConnectionFailure(str(answer.get("msg") or "unreachable"))
        document = answer.get("document")
        if answer.get("failed") or not isinstance(document, dict):
            raise NodeError(str(answer.get("msg") or "the module brought no document"))
        return document


def _said(stderr: Any) -> str:
    """The end of a standard error as one line, without what ssh says of itself."""
    lines = [
        line
        for line in str(stderr or "").splitlines()
        if line.strip() and not line.startswith(CHATTER)
    ]
    text = evidence.one_line(" ".join(lines[-20:]), 10000)
    return text if len(text) <= SAYS else "…" + text[1 - SAYS :]


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
