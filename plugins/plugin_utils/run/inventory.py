# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts a run asks, and what their variables say, by the inventory and the play that it
runs in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader

from ..evidence import document as evidence
from ..faults import engine as judge
from . import inventory_groups
from .settings import (
    PREFIX,
    VARIABLES,
    Settings,
    SettingsError,
    check,
    complain_about,
    differing,
    unknown_names,
)

ASKED = "_kubemend_asked"  # what a playbook registers of the task that asks each host
# What ansible-core puts before the cause, and the place in a file that it shows behind it.
_BEFORE, _BEHIND = (
    re.compile(r"(?:(?:Task|Action) failed: )+"),
    re.compile(r"\n\s*\n|\nOrigin: |\. Use `ansible-doc"),
)


class Hosts:
    """Which hosts this run asks, which it expects, and what their variables say."""

    def __init__(self, action: ActionBase, task_vars: Mapping[str, Any]) -> None:
        self._action = action
        self._hostvars = task_vars["hostvars"]
        self._me = task_vars["inventory_hostname"]
        inventory = {name: list(names) for name, names in task_vars["groups"].items()}
        if not inventory.get("all"):
            raise SettingsError("The inventory has no hosts; name one with -i.")
        played = list(task_vars.get("ansible_play_hosts_all") or ())
        gone = [
            name
            for name in played
            if name not in set(task_vars.get("ansible_play_batch") or played)
        ]
        if gone and getattr(play_of(action), "serial", None):
            raise SettingsError(
                "The play has serial, which parts the hosts of a cluster: its evidence is judged as"
                " a whole. Take serial out of the play; steps are done one host at a time"
                " without it."
            )
        if gone:
            raise SettingsError(
                f"The play has lost {', '.join(gone)} already, as Ansible says above, and a cluster"
                " is judged as a whole: put that right, or leave them out with --limit."
            )
        own = {name: value for name, value in task_vars.items() if str(name).startswith(PREFIX)}
        _refuse_unknown(own)
        mine = self._raw(self._me)
        # What the play or import_playbook sets counts for every host, above the inventory.
        self._above = templated(
            action,
            {name: value for name, value in own.items() if name not in mine or mine[name] != value},
        )
        self._given = {name: self._raw(name) for name in played}
        used = [self._used("kubemend_control_plane_group"), self._used("kubemend_node_group")]
        cp_group, node_group = (one.group for one in used)
        members = {
            "control_plane": inventory.get(cp_group) or [],
            "node": inventory.get(node_group) or [],
        }
        named = [name for name in (cp_group, node_group) if inventory.get(name)]
        hosts = check({"kubemend_hosts": self._first("kubemend_hosts")}).hosts
        self.pattern = hosts or ":".join(named) or "all"
        matched = self._match(inventory)
        self.matched = frozenset(matched)
        self.asked = [name for name in matched if name in set(played)]
        if not self.asked:
            what = (
                f"{self.pattern} names no host of the inventory"
                if not matched
                else f"--limit leaves none of the {len(matched)} hosts of {self.pattern}"
            )
            raise SettingsError(f"There is no host to ask: {what}.")
        self.expected = list(dict.fromkeys([*matched, *members["control_plane"], *members["node"]]))
        self.control_plane = members["control_plane"] or list(matched)
        self._members = {role: frozenset(names) for role, names in members.items()}
        self.groups = {name: self.roles(name) for name in self.expected}
        known = set(self.expected)
        reason = inventory_groups.PATTERN if hosts else inventory_groups.GROUP
        self.outside = {name: reason for name in inventory["all"] if name not in known}
        self.notices = inventory_groups.notices(
            used, inventory, self.outside, self.pattern, bool(hosts)
        )

    def _used(self, variable: str) -> inventory_groups.Used:
        """The group that a variable names, or its default."""
        given = self._first(variable)
        return inventory_groups.Used(
            variable, str(given or VARIABLES[variable].default), bool(given)
        )

    def roles(self, host: str) -> list[str]:
        """What the inventory's groups say of a host: control_plane, node, both or nothing."""
        return [role for role, names in self._members.items() if host in names]

    def address(self, host: str) -> str:
        """Where the inventory says that a host is.

        Its name where it says nothing, or what cannot be evaluated.
        """
        try:
            return str(self._hostvars[host].get("ansible_host") or host)
        except AnsibleError:
            return host

    def settings(self) -> Settings:
        """The settings of the run: those of the first host asked.

        The others' are checked and must agree.
        """
        first: Settings | None = None
        seen: list[Mapping[str, Any]] = []
        for name in self.asked:
            raw = self._given[name]
            if raw in seen:
                continue
            seen.append(raw)
            wrong = unknown_names(raw)
            if wrong:
                raise SettingsError(complain_about(wrong[0], f" (host {name})"))
            values = {key: self._value(name, key) for key in raw if key not in self._above}
            found = check(
                {**values, **self._above},
                codes=judge.CATALOGUE,
                where=f" (host {name})" if first else "",
            )
            if first is None:
                first = found
            elif other := differing(first, found):
                raise SettingsError(
                    f"{other} differs between {self.asked[0]} and {name}; it holds for the whole"
                    " run, so set it once, for all hosts or with -e."
                )
        if first is None:
            raise AssertionError("a run asks at least one host")
        return first

    def _match(self, inventory: Mapping[str, list[str]]) -> list[str]:
        lookup = lookup_loader.get(
            "ansible.builtin.inventory_hostnames",
            loader=self._action._loader,
            templar=self._action._templar,
        )
        try:
            return list(lookup.run([self.pattern], variables={"groups": inventory}))
        except AnsibleError as error:
            raise SettingsError(
                f"kubemend_hosts is {self.pattern!r}, which is no host pattern: {error}."
            ) from None

    def cpu_managers(self) -> dict[str, dict[str, str]]:
        """{host: settings that its kubelet is to have}, by each host's own variables.

        Every host asked is named.
        """
        names = {
            "kubemend_cpu_manager_policy": "cpuManagerPolicy",
            "kubemend_reserved_cpus": "reservedSystemCPUs",
        }
        found = {}
        for host in self.asked:
            given = {
                key: self._above[key] if key in self._above else self._value(host, key)
                for key in names
                if key in self._above or key in self._given[host]
            }
            values = check(given, where=f" (host {host})").values
            found[host] = {
                setting: values[key] for key, setting in names.items() if values[key] is not None
            }
        return found

    def _raw(self, host: str) -> dict[str, Any]:
        found = self._hostvars.raw_get(host)
        return {str(name): found[name] for name in found if str(name).startswith(PREFIX)}

    def _first(self, name: str) -> Any:
        """A variable as the run's hosts have it, before it is known which of them are asked."""
        if name in self._above:
            return self._above[name]
        host = next((host for host, given in self._given.items() if name in given), None)
        return None if host is None else self._value(host, name)

    def _value(self, host: str, name: str) -> Any:
        try:
            value = self._hostvars[host][name]
        except AnsibleError as error:
            raise SettingsError(_no_template(f"{name} (host {host})", error)) from None
        # what ansible-core 2.16 leaves of an undefined variable
        if isinstance(value, str) and "{{" in value:
            raise SettingsError(_no_template(f"{name} (host {host})", value))
        return value


def play_of(action: ActionBase) -> Any:
    """The play of a task; None where nobody says."""
    block = action._task
    while block is not None and getattr(block, "_play", None) is None:
        block = getattr(block, "_parent", None)
    return getattr(block, "_play", None)


def _refuse_unknown(names: Iterable[str]) -> None:
    wrong = unknown_names(names)
    if wrong:
        raise SettingsError(complain_about(wrong[0]))


def templated(action: ActionBase, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in given.items():
        try:
            found[name] = action._templar.template(value)
        except AnsibleError as error:
            raise SettingsError(_no_template(name, error)) from None
    return found


def _no_template(name: str, error: object) -> str:
    return f"{name} cannot be evaluated: {' '.join(str(error).split())}"


def note_unheard(
    folder: str | Path, hosts: Mapping[str, Iterable[str]], api_hosts: Iterable[str], hostvars: Any
) -> None:
    """Evidence of an error for each host of a run that has no file.

    Its task ended before ours began, and Ansible said why.
    """
    place, why = Path(folder), {}
    for host, groups in hosts.items():
        if not (place / evidence.file_name(host)).exists():
            why[host] = unheard(hostvars, host)
            evidence.write(evidence.stub(host, groups, "error", why[host]), place)
    for host in api_hosts:
        # Where another host answered for its cluster, that counts more.
        if host in why and not (place / evidence.file_name(host, ".cluster.json")).exists():
            evidence.write(
                {**evidence.stub(host, (), "error", why[host]), "kind": "cluster"},
                place,
                ".cluster.json",
            )


def unheard(hostvars: Any, host: str) -> str:
    """Why a host was not heard, by what Ansible said when it was asked."""
    return never_began(_said(hostvars, host))


def never_began(said: str) -> str:
    """One sentence of what Ansible said, without the lines of the file that it points at."""
    cause = _BEHIND.split(_BEFORE.sub("", said.strip(), count=1), maxsplit=1)[0]
    # ansible-core 2.16 says the last of it four times
    cause = evidence.one_line(". ".join(dict.fromkeys(cause.split(". "))))
    return (
        f"{evidence.NEVER_BEGAN}: {cause}"
        if cause
        else f"{evidence.NEVER_BEGAN}, and did not say why"
    )


def _said(hostvars: Any, host: str) -> str:
    try:
        result = hostvars.raw_get(host).get(ASKED)
    except (AnsibleError, AttributeError):  # no host of the inventory any more
        return ""
    return str(result.get("msg") or "") if isinstance(result, Mapping) else ""
