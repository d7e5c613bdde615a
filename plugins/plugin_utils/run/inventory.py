# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts that a run asks, and their variables, by the inventory and the play of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader

from ...module_utils.shared.text import counted
from ..evidence.document import file_name, stub, write
from ..faults import CATALOGUE
from . import command_line, inventory_groups
from .ansible_message import never_began
from .play import play_of
from .settings import (
    PREFIX,
    Settings,
    SettingsError,
    check,
    complain_about,
    differing,
    unknown_names,
)
from .variables import VARIABLES

CLUSTER_FILE = ".cluster.json"  # the end of the name of a cluster's evidence
CPU_MANAGER = {
    "kubemend_cpu_manager_policy": "cpuManagerPolicy",
    "kubemend_reserved_cpus": "reservedSystemCPUs",
}
# what a playbook registers of the task that asks each host, and of the one that asks all
ASKED, FLEET = "_kubemend_asked", "_kubemend_fleet"


class Hosts:
    """The hosts that this run asks and those that it expects, with their variables."""

    def __init__(self, action: ActionBase, task_vars: Mapping[str, Any]) -> None:
        self._action = action
        self._hostvars = task_vars["hostvars"]
        self._me = task_vars["inventory_hostname"]
        inventory, played = _inventory(task_vars), _played(action, task_vars)
        own_variables = {
            name: value for name, value in task_vars.items() if str(name).startswith(PREFIX)
        }
        _refuse_unknown(own_variables)
        self._above = self._above_inventory(own_variables)
        self._given = {name: self._raw(name) for name in played}
        used = [self._used("kubemend_control_plane_group"), self._used("kubemend_node_group")]
        hosts = check({"kubemend_hosts": self._first("kubemend_hosts")}).hosts
        self.pattern = hosts or _pattern(inventory, used)
        matched = self._match(inventory)
        self.matched = frozenset(matched)
        self.asked = [name for name in matched if name in set(played)]
        if not self.asked:
            raise SettingsError(f"There is no host to ask: {_no_host(self.pattern, matched)}.")
        control_plane, nodes = _members(inventory, used)
        self.expected = list(dict.fromkeys([*matched, *control_plane, *nodes]))
        self.control_plane = control_plane or list(matched)
        self._members = {"control_plane": frozenset(control_plane), "node": frozenset(nodes)}
        self.groups = {name: self.roles(name) for name in self.expected}
        reason = inventory_groups.GROUP
        if hosts:
            reason = inventory_groups.PATTERN
        self.outside = {name: reason for name in inventory["all"] if name not in self.groups}
        self.notices = inventory_groups.notices(
            used, inventory, self.outside, self.pattern, bool(hosts)
        )

    def _above_inventory(self, own_variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the variables that count for every host, above the inventory.

        The play or import_playbook sets them.
        """
        inventory = self._raw(self._me)
        return templated(
            self._action,
            {
                name: value
                for name, value in own_variables.items()
                if name not in inventory or inventory[name] != value
            },
        )

    def is_extra(self, name: str) -> bool:
        """Tell whether a variable is set above the inventory, where loading a playbook sees it."""
        manager = getattr(self._hostvars, "_variable_manager", None)
        return name in self._above or name in (getattr(manager, "extra_vars", None) or {})

    def _used(self, variable: str) -> inventory_groups.Used:
        """Return the group that a variable names, or its default."""
        group = self._first(variable)
        return inventory_groups.Used(
            variable, str(group or VARIABLES[variable].default), bool(group)
        )

    def roles(self, host: str) -> list[str]:
        """Return the roles of a host by its groups: control_plane, node, both or none."""
        return [role for role, names in self._members.items() if host in names]

    def address(self, host: str) -> str:
        """Return the address of a host by the inventory.

        Its name where there is none, or one that cannot be evaluated.
        """
        try:
            return str(self._hostvars[host].get("ansible_host") or host)
        except AnsibleError:
            return host

    def settings(self) -> Settings:
        """Return the settings of the run: those of the first host asked.

        The others' are checked and must agree.
        """
        first: Settings | None = None
        seen_variables: list[Mapping[str, Any]] = []
        for name in self.asked:
            raw = self._given[name]
            if raw in seen_variables:
                continue
            seen_variables.append(raw)
            if first is None:
                first = self._settings_of(name, "")
            else:
                self._require_same(first, name, self._settings_of(name, f" (host {name})"))
        if first is None:
            raise AssertionError("a run asks at least one host")
        return first

    def _settings_of(self, host: str, place: str) -> Settings:
        raw = self._given[host]
        wrong = unknown_names(raw)
        if wrong:
            raise SettingsError(complain_about(wrong[0], f" (host {host})"))
        values = {key: self._value(host, key) for key in raw if key not in self._above}
        return check({**values, **self._above}, codes=CATALOGUE, location=place)

    def _require_same(self, first: Settings, host: str, settings: Settings) -> None:
        """Raise SettingsError where a variable of the whole run differs between hosts."""
        name = differing(first, settings)
        if name:
            raise SettingsError(
                f"{name} differs between {self.asked[0]} and {host}; it holds for the whole"
                " run, so set it once, for all hosts or with -e."
            )

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
        """Return {host: settings that its kubelet is to have}, by each host's own variables.

        Every host asked is named.
        """
        settings = {}
        for host in self.asked:
            variables = {key: self._own(host, key) for key in CPU_MANAGER if self._has(host, key)}
            values = check(variables, location=f" (host {host})").values
            settings[host] = {
                setting: values[key]
                for key, setting in CPU_MANAGER.items()
                if values[key] is not None
            }
        return settings

    def cluster_names(self) -> dict[str, str]:
        """Return {host: name of its cluster} of the hosts that have kubemend_cluster_name."""
        name = "kubemend_cluster_name"
        names = {}
        for host in self.asked:
            if self._has(host, name):
                value = check({name: self._own(host, name)}).cluster_name
                if value is not None:
                    names[host] = value
        return names

    def _has(self, host: str, name: str) -> bool:
        return name in self._above or name in self._given[host]

    def _own(self, host: str, name: str) -> Any:
        if name in self._above:
            return self._above[name]
        return self._value(host, name)

    def _raw(self, host: str) -> dict[str, Any]:
        variables = self._hostvars.raw_get(host)
        return {str(name): variables[name] for name in variables if str(name).startswith(PREFIX)}

    def _first(self, name: str) -> Any:
        """Return a variable as the run's hosts have it, before the hosts to ask are known."""
        if name in self._above:
            return self._above[name]
        for host, variables in self._given.items():
            if name in variables:
                return self._value(host, name)
        return None

    def _value(self, host: str, name: str) -> Any:
        try:
            value = self._hostvars[host][name]
        except AnsibleError as error:
            raise SettingsError(_no_template(f"{name} (host {host})", error)) from None
        # what ansible-core 2.16 leaves of an undefined variable
        if isinstance(value, str) and "{{" in value:
            raise SettingsError(_no_template(f"{name} (host {host})", value))
        return value


def _inventory(task_vars: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return {group: hosts}; raise SettingsError where there is no host."""
    inventory = {name: list(names) for name, names in task_vars["groups"].items()}
    if not inventory.get("all"):
        path = command_line.missing_inventory()
        if path:
            raise SettingsError(f"The inventory {path} does not exist; correct the path after -i.")
        raise SettingsError("The inventory has no hosts; name one with -i.")
    return inventory


def _members(
    inventory: Mapping[str, list[str]], used: Iterable[inventory_groups.Used]
) -> Iterator[list[str]]:
    for item in used:
        yield inventory.get(item.group) or []


def _played(action: ActionBase, task_vars: Mapping[str, Any]) -> list[str]:
    """Return the hosts of the play; raise SettingsError where it runs with a part of them."""
    played = list(task_vars.get("ansible_play_hosts_all") or ())
    remaining = set(task_vars.get("ansible_play_batch") or played)
    _require_whole(action, [name for name in played if name not in remaining])
    return played


def _require_whole(action: ActionBase, gone: list[str]) -> None:
    if not gone:
        return
    if getattr(play_of(action), "serial", None):
        raise SettingsError(
            "The play has serial, which parts the hosts of a cluster: its evidence is judged as"
            " a whole. Take serial out of the play; steps are done one host at a time"
            " without it."
        )
    raise SettingsError(
        f"The play has lost {', '.join(gone)} already, as Ansible says above, and a cluster"
        " is judged as a whole: put that right, or leave them out with --limit."
    )


def _pattern(inventory: Mapping[str, list[str]], used: Iterable[inventory_groups.Used]) -> str:
    """Return the host pattern of the groups that the run uses and that have hosts."""
    return ":".join(item.group for item in used if inventory.get(item.group)) or "all"


def _no_host(pattern: str, matched: list[str]) -> str:
    if not matched:
        return f"{pattern} names no host of the inventory"
    return f"--limit leaves none of the {counted(len(matched), 'host')} of {pattern}"


def _refuse_unknown(names: Iterable[str]) -> None:
    wrong = unknown_names(names)
    if wrong:
        raise SettingsError(complain_about(wrong[0]))


def templated(action: ActionBase, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables with their templates evaluated."""
    values = {}
    for name, value in variables.items():
        try:
            values[name] = action._templar.template(value)
        except AnsibleError as error:
            raise SettingsError(_no_template(name, error)) from None
    return values


def _no_template(name: str, error: object) -> str:
    return f"{name} cannot be evaluated: {' '.join(str(error).split())}"


def note_unheard(
    folder: str | Path, hosts: Mapping[str, Iterable[str]], api_hosts: Iterable[str], hostvars: Any
) -> None:
    """Write evidence of an error for each host of a run that has no file.

    Its task ended before the program of this collection began, for a reason that Ansible printed.
    """
    directory, reasons = Path(folder), {}
    for host, groups in hosts.items():
        if not (directory / file_name(host)).exists():
            reasons[host] = unheard(hostvars, host)
            write(stub(host, groups, "error", reasons[host]), directory)
    for host in api_hosts:
        # Where another host answered for its cluster, that counts more.
        if host in reasons and not (directory / file_name(host, CLUSTER_FILE)).exists():
            document = {**stub(host, (), "error", reasons[host]), "kind": "cluster"}
            write(document, directory, CLUSTER_FILE)


def unheard(hostvars: Any, host: str) -> str:
    """Return the reason why a host did not answer, by Ansible's message."""
    return never_began(_message(hostvars, host))


def _message(hostvars: Any, host: str) -> str:
    try:
        variables = hostvars.raw_get(host)
        result = variables.get(ASKED, variables.get(FLEET))
    except (AnsibleError, AttributeError):  # no host of the inventory any more
        return ""
    if not isinstance(result, Mapping):
        return ""
    return str(result.get("msg") or "")
