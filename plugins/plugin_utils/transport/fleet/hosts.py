# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host's variables to its connection, without a task and a process of its own.

Each host has its own task object and its own play context, made from one without passwords: what
Ansible keeps in them (become, passwords) never reaches another host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible.errors import AnsibleError
from ansible.executor.task_executor import TaskExecutor
from ansible.playbook.play_context import PlayContext
from ansible.playbook.task import Task
from ansible.plugins.loader import action_loader
from ansible.template import Templar

try:
    from ansible.template import trust_as_template
except ImportError:  # ansible-core before 2.19 evaluates every string
    trust_as_template = str

try:  # 2.16 to 2.18: newer ones do both when they evaluate a task
    from ansible.executor.module_common import get_action_args_with_defaults
    from ansible.executor.task_executor import remove_omit
except ImportError:
    remove_omit = None

from ...run.play import play_of
from ..node_action import NodeAction, Query
from .shared_password import shared_password

ACTION = "kubemend.remediation.node_evidence_info"
# What differs between hosts, as the playbooks have it for a task per host.
BECOME = "{{ kubemend_become | default(true) | bool }}"
OWN_OPTIONS = {
    "kubeconfig": "{{ kubemend_kubeconfig | default(omit) }}",
    "timeout": "{{ kubemend_timeout | default(30) | int }}",
}
# What a missing private name of Ansible raises.
STRANGE = (AttributeError, ImportError, TypeError)


class Unable(Exception):
    """One task cannot read these hosts; the text says why."""


class BrokenHost(Exception):
    """Ansible cannot begin with a host; the text is Ansible's message."""


class Lender(TaskExecutor):
    """Lends the connection that Ansible makes for a task, and runs no task."""

    _task: Any = None  # a property in ansible-core 2.21

    def __init__(self, task: Task, play_context: PlayContext, loader: Any, shared: Any) -> None:
        self._task, self._play_context, self._loader = task, play_context, loader
        self._shared_loader_obj, self._connection, self._new_stdin = shared, None, None

    def lend(self, variables: dict[str, Any], templar: Any) -> Any:
        """Return the connection of a host, with its options and its become plugin set."""
        named = variables.get("ansible_connection")
        if named is None:
            named = self._task.connection
        self._connection = self._get_connection(variables, templar, templar.template(named))
        self._set_connection_options(variables, templar)
        return self._connection


@dataclass
class Host:
    """One host that can be asked.

    Attributes:
        name: the host's name in the inventory.
        action: the action of a task per host, with the connection of this host.
        variables: the variables of this host.
        query: the query, with its options checked.
    """

    name: str
    action: NodeAction
    variables: dict[str, Any]
    query: Query

    @property
    def connection(self) -> Any:
        """Return the connection plugin."""
        return self.action._connection

    def ask(self) -> dict[str, Any]:
        """Ask the host as a task per host does, and return the result of that task."""
        action, query = self.action, self.query
        outcome = action._ask(query.host, query.params, query.task_vars)
        return action.conclude(query, *outcome)


class Fleet:
    """Makes the hosts of one play ready to be asked."""

    def __init__(
        self, owner: Any, task_vars: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        """Read what all hosts share; raise Unable where Ansible does not have it.

        owner: the action that asks all hosts
        options: those of a task per host that are the same for all; groups is {host: roles}
        """
        self._owner, self._options = owner, dict(options)
        self._groups = self._options.pop("groups")
        self._hosts_of_play = {
            "_hosts": list(task_vars.get("ansible_play_hosts") or ()),
            "_hosts_all": list(task_vars.get("ansible_play_hosts_all") or ()),
        }
        try:
            hostvars = task_vars["hostvars"]
            self._manager, self._inventory = hostvars._variable_manager, hostvars._inventory
            reason = shared_password(self._manager.extra_vars)
            if reason:
                raise Unable(reason)
            self._play = play_of(owner)
            self._task = self._pattern_task()
            self._base = PlayContext(self._play, {}, owner._play_context.connection_lockfd)
        except STRANGE as error:
            raise Unable(f"this ansible-core is unknown to it ({error})") from error

    def _pattern_task(self) -> Task:
        """Return the task that each host gets a copy of: its options are not evaluated yet."""
        task = self._owner._task
        own_options = {name: trust_as_template(text) for name, text in OWN_OPTIONS.items()}
        data = {
            "name": task.name,
            "action": ACTION,
            "args": {**self._options, "terminal": False, **own_options},
            "become": trust_as_template(BECOME),
        }
        loaded: Task = Task.load(
            data,
            block=task._parent,
            role=task._role,
            variable_manager=self._manager,
            loader=self._owner._loader,
        )
        return loaded

    def prepare(self, name: str) -> Host:
        """Return a host that can be asked; raise BrokenHost where Ansible cannot begin with it."""
        try:
            return self._prepared(name)
        except AnsibleError as error:
            raise BrokenHost(message_of(error)) from error
        except STRANGE:
            raise
        except Exception as error:  # pylint: disable=broad-except
            # of a connection or become plugin: Ansible's task would fail with it too
            raise BrokenHost(message_of(error)) from error

    def _prepared(self, name: str) -> Host:
        host = self._inventory.get_host(name)
        task = self._task.copy()
        task.args = {**task.args, "groups": list(self._groups.get(name, ()))}
        variables = self._manager.get_vars(
            play=self._play, host=host, task=task, **self._hosts_of_play
        )
        loader, shared = self._owner._loader, self._owner._shared_loader_obj
        public = Templar(loader=loader, variables=variables)
        templar = getattr(public, "_engine", public)
        context_of_host = self._context(task, host, variables, templar)
        tempvars = dict(variables)
        context_of_host.update_vars(tempvars)
        templar.available_variables = tempvars
        task.post_validate(templar=templar)
        templar.available_variables = variables
        connection = Lender(task, context_of_host, loader, shared).lend(variables, templar)
        variables = dict(variables)
        connection.update_vars(variables)
        templar.available_variables = variables
        connection._play_context = context_of_host.set_task_and_variable_override(
            task=task, variables=variables, templar=templar
        )
        _finish_options(task, variables, templar)
        action = action_loader.get(
            ACTION,
            task=task,
            connection=connection,
            play_context=context_of_host,
            loader=loader,
            templar=public,
            shared_loader_obj=shared,
        )
        return Host(name, action, variables, action.begin(None, variables))

    def _context(self, task: Task, host: Any, variables: dict[str, Any], templar: Any) -> Any:
        play_context = self._base.set_task_and_variable_override(
            task=task, variables=variables, templar=templar
        )
        play_context.post_validate(templar=templar)
        play_context.remote_addr = play_context.remote_addr or host.address
        return play_context

    def probe(self, names: Iterable[str]) -> None:
        """Prepare one host; raise Unable where a private name of Ansible is not what it was."""
        for name in names:
            try:
                self.prepare(name)
            except BrokenHost:
                continue
            except STRANGE as error:
                raise Unable(f"this ansible-core is unknown to it ({error})") from error
            return


def _finish_options(task: Task, variables: Mapping[str, Any], templar: Any) -> None:
    """Add the defaults of module_defaults and drop omitted options, before ansible-core 2.19."""
    if remove_omit is None:
        return
    task.args = get_action_args_with_defaults(
        ACTION,
        task.args,
        task.module_defaults,
        templar,
        action_groups=task._parent._play._action_groups,
    )
    task.args = remove_omit(task.args, variables.get("omit"))


def message_of(error: BaseException) -> str:
    """Return what Ansible would print of an error that ends a task."""
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        text = str(getattr(cause, "message", None) or cause).strip()
        if text and not any(text in earlier for earlier in texts):
            texts.append(text)
        cause = cause.__cause__
    return " ".join(texts)
