# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks all hosts of a play for their evidence in one task, and writes a file for each of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..plugin_utils.evidence.document import stub, write
from ..plugin_utils.run.ansible_message import never_began
from ..plugin_utils.transport.fleet import display, library

SPEC = {
    "evidence_dir": {"type": "path", "required": True},
    "collectors": {"type": "list", "elements": "str"},
    "deep": {"type": "bool", "default": False},
    "groups": {"type": "dict", "default": {}},
    "parallel": {"type": "int"},
    "terminal": {"type": "bool", "default": True},
    "transport": {"type": "str", "choices": ["ssh", "auto"], "default": "ssh"},
}
DEFAULT_WIDTH = 32  # hosts at once; more, where Ansible's forks are
# What a host's result is for the tasks that follow.
KEPT = ("status", "reason", "role", "path", "sha256", "size", "duration_ms")
UNABLE = (
    "One task cannot read all hosts: {reason}. Each host is read by a task of its own, one after"
    " the other."
)


class ActionModule(ActionBase):
    """Ask all hosts of the play, a number of them at once, in this process and its children."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask the hosts; leave all of them, before any is asked, where it cannot."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        result["changed"] = False
        names = list(task_vars.get("ansible_play_hosts") or ())
        try:
            done = _asked(self, names, args, task_vars)
        except _Unable as unable:
            Display().warning(UNABLE.format(reason=unable))
            result.update(hosts={}, broken=[], workers=[], left=names)
            return result
        result.update(_concluded(done.results, done.broken, args), left=done.left)
        return result


class _Unable(Exception):
    """One task cannot read the hosts; the text says why."""


def _asked(
    action: ActionBase,
    names: list[str],
    args: Mapping[str, Any],
    task_vars: Mapping[str, Any],
) -> Any:
    """Ask the hosts; raise _Unable before any is asked."""
    try:
        # Late: where an ansible-core does not have what these import, a task per host is used.
        from ..plugin_utils.transport.fleet import hosts, loop
    except ImportError as error:
        raise _Unable(f"this ansible-core is unknown to it ({error})") from error
    try:
        fleet = hosts.Fleet(action, task_vars, _options(args))
        fleet.probe(names)
    except hosts.Unable as unable:
        raise _Unable(str(unable)) from unable
    lines: display.Lines = display.Silence()
    if args["terminal"]:
        lines = display.Lines(len(names))
    widths = _widths(args["parallel"], task_vars)
    return loop.Loop(fleet, widths, lines, with_asyncssh=_with_asyncssh(args)).run(names)


def _with_asyncssh(args: Mapping[str, Any]) -> bool:
    """Tell whether asyncssh may be used; say with -v that it is not installed."""
    if args["transport"] != "auto":
        return False
    if library.is_installed():
        return True
    Display().v("kubemend: asyncssh is not installed for this Ansible: ssh clients read the hosts.")
    return False


def _options(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a task per host that are the same for all hosts."""
    options = {name: args[name] for name in ("evidence_dir", "groups", "deep")}
    if args["collectors"] is not None:
        options["collectors"] = args["collectors"]
    return options


def _widths(parallel: int | None, task_vars: Mapping[str, Any]) -> dict[str, int]:
    """Return how many hosts are asked at once, by what asks them.

    A jump host accepts few new connections at a time, and a worker costs as much as one of
    Ansible's.
    """
    forks = max(1, int(task_vars.get("ansible_forks") or 1))
    return {"client": parallel or max(forks, DEFAULT_WIDTH), "jump": forks, "plugin": forks}


def _concluded(
    results: Mapping[str, Mapping[str, Any]], broken: Mapping[str, str], args: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the task's result; write the evidence of hosts with which Ansible cannot begin."""
    hosts = {
        name: {key: result[key] for key in KEPT if key in result}
        for name, result in sorted(results.items())
    }
    answer: dict[str, Any] = {"hosts": hosts, "broken": sorted(broken)}
    answer["workers"] = [name for name, result in hosts.items() if result.get("role") == "worker"]
    for name, message in broken.items():
        reason = never_began(message)
        document = stub(name, args["groups"].get(name, ()), "error", reason)
        hosts[name] = {"status": "error", "reason": document["reason"]}
        write(document, os.fspath(args["evidence_dir"]))
    failed = [result["msg"] for result in results.values() if result.get("failed")]
    if failed:
        answer.update(failed=True, msg=failed[0])
    return answer
