# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: the first task of each playbook: settings checked, folders made, before any host is asked."""

from __future__ import annotations

import json
import os
import secrets

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader

from ansible_collections.kubemend.remediation.plugins.module_utils.collect_pod import REJECTED
from ansible_collections.kubemend.remediation.plugins.plugin_utils import (
    bundle,
    capture,
    evidence,
    judge,
    locking,
    node_limits,
    scheduler_capture,
    symptoms,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report import compare
from ansible_collections.kubemend.remediation.plugins.plugin_utils.settings import (
    PREFIX,
    Settings,
    SettingsError,
    check,
    complain_about,
    differing,
    unknown_names,
)

SPEC = {
    "mode": {"type": "str", "choices": ["observe", "repair", "replay", "revert", "capture"], "default": "observe"}, "symptom": {"type": "str"},
    "faults": {"type": "list", "elements": "str"}, "max_risk": {"type": "int"}, "cpu_manager": {"type": "bool", "default": False},
    "profile": {"type": "bool", "default": False},
}
INTERRUPTED = "KM902"
COMPARED = "compared.json"  # the earlier report, as it was when the run began


class ActionModule(ActionBase):
    """Runs on the controller only, once, and never connects to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        task_vars = task_vars or {}
        try:
            if args["mode"] == "replay":
                answer = self._replay(task_vars)
            elif args["mode"] == "revert":
                answer = self._revert(task_vars)
            elif args["mode"] == "capture":
                answer = self._capture(task_vars)
            else:
                answer = self._observe(task_vars, args)
        except (SettingsError, capture.CaptureError) as error:
            answer = {"failed": True, "exit_reason": "input", "msg": str(error)}
        except OSError as error:
            answer = {"failed": True, "exit_reason": "input",
                      "msg": f"{error.filename or 'The report folder'} cannot be used: {error.strerror}."}
        if args["mode"] in ("revert", "capture") and task_vars.get(PREFIX + "bundle"):
            answer["warnings"] = ["kubemend_bundle has no effect here: only a playbook that judges evidence writes a bundle."]
        result.update(answer, changed=False)
        return result

    def _observe(self, task_vars: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        hosts = _Hosts(self, task_vars)
        settings, symptom = hosts.settings(), args["symptom"]
        self._refuse_strategy()
        if args["max_risk"] is not None:
            settings = settings.fixed(max_risk=args["max_risk"])
        if settings.patch_workloads and not settings.expect_pinning:
            raise SettingsError("kubemend_patch_workloads needs kubemend_expect_pinning, the label selector of the pods whose workloads may be changed.")
        if settings.slice and args["mode"] == "repair":
            raise SettingsError("kubemend_slice is for audits: causes and repairs need the evidence of the whole cluster. Audit the slices, judge them "
                                "together with replay.yml, and repair without it.")
        chosen_bundle = _bundle(settings)
        if settings.capture and symptom == scheduler_capture.SYMPTOM:
            capture.demand((capture.SCHEDULER,), settings.capture_level, settings.allow)
        mode, faults = self._mode(settings, args["mode"] == "repair"), _faults(settings, symptom, args["faults"])
        if mode != "observe" and faults is not None:
            faults |= {INTERRUPTED}  # nothing is repaired on top of what a former run left open
        run = _Folder(settings)
        made = run.make(collects=True)
        for name in hosts.expected:
            if name not in hosts.asked:
                for folder in (made["evidence_dir"], made["evidence_after_dir"]):
                    evidence.write_stub(folder, name, hosts.roles(name), hosts.address(name))
        return {
            **made, **_capturing(settings, mode, symptom, _chosen(settings, faults, symptom)), **chosen_bundle, "pattern": hosts.pattern,
            "mode": mode, "control_plane_hosts": hosts.control_plane, "groups": hosts.groups,
            "cpu_manager": hosts.cpu_managers() if args["cpu_manager"] else None, "profile": hosts.asked if args["profile"] else [],
        }

    def _refuse_strategy(self) -> None:
        """Steps are done one after the other because hosts wait for each other at every task."""
        block = self._task
        while block is not None and getattr(block, "_play", None) is None:
            block = getattr(block, "_parent", None)
        strategy = str(getattr(getattr(block, "_play", None), "strategy", None) or "linear").rpartition(".")[2]
        if strategy not in ("linear", "debug"):
            raise SettingsError(f"The play has the strategy {strategy}, in which hosts do not wait for each other: give it strategy linear.")

    def _revert(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Being asked for by name, it needs no kubemend_max_risk; without kubemend_run_id it only lists."""
        hosts = _Hosts(self, task_vars)
        settings = hosts.settings()
        return {
            **_Folder(settings).make(collects=True), **_chosen(settings, None, None), "pattern": hosts.pattern, "mode": "revert",
            "reverts": settings.run_id, "control_plane_hosts": hosts.control_plane, "groups": hosts.groups,
        }

    def _capture(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Being asked for by name, it needs no kubemend_max_risk; what it may log is checked before any host is asked."""
        hosts = _Hosts(self, task_vars)
        self._refuse_strategy()
        settings = hosts.settings()
        capture.demand(settings.capture_components, settings.capture_level, settings.allow)
        chosen = _chosen(settings, None, None)
        chosen["settings"].update({name: getattr(settings, f"capture_{name}") for name in ("components", "level", "seconds", "match")})
        chosen["settings"]["components"] = list(settings.capture_components)
        # What a restart asks for beside what the rest asks for.
        more = ["manifests", "component_http", "installer", "devices"] if "capture_restart" in settings.allow else []
        chosen["settings"]["collectors"] = ["system", "kubelet", "instances", "space", "journal", *more]
        return {**_Folder(settings).make(collects=True), **chosen, "pattern": hosts.pattern, "mode": "capture",
                "control_plane_hosts": hosts.control_plane, "groups": hosts.groups}

    def _mode(self, settings: Settings, may_repair: bool) -> str:
        """kubemend_max_risk is the consent: without it every playbook observes; in check mode it is a plan."""
        if not may_repair or settings.max_risk == 0:
            return "observe"
        return "plan" if self._task.check_mode else "repair"

    def _replay(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in task_vars.items() if str(name).startswith(PREFIX)}
        settings = check(_templated(self, given), codes=judge.CATALOGUE)
        if not settings.evidence:
            raise SettingsError("kubemend_evidence is not set; replay needs the path of a folder of evidence or of a bundle.")
        chosen_bundle = _bundle(settings)
        made = _Folder(settings).make(collects=False)
        return {
            **made, **_chosen(settings, settings.faults, None), **chosen_bundle, "mode": "replay", "pattern": "localhost",
            "evidence": [_absolute(path) for path in settings.evidence], "control_plane_hosts": [], "groups": {},
        }


class _Hosts:
    """Which hosts this run asks, which it expects, and what their variables say."""

    def __init__(self, action: ActionModule, task_vars: Mapping[str, Any]) -> None:
        self._action = action
        self._hostvars = task_vars["hostvars"]
        self._me = task_vars["inventory_hostname"]
        inventory = {name: list(names) for name, names in task_vars["groups"].items()}
        if not inventory.get("all"):
            raise SettingsError("The inventory has no hosts; name one with -i.")
        played = list(task_vars.get("ansible_play_hosts_all") or ())
        if set(task_vars.get("ansible_play_batch") or played) != set(played):
            raise SettingsError("The play has serial, which parts the hosts of a cluster: its evidence is judged as a whole. Take serial out of the "
                                "play; steps are done one host at a time without it.")
        own = {name: value for name, value in task_vars.items() if str(name).startswith(PREFIX)}
        _refuse_unknown(own)
        mine = self._raw(self._me)
        # What the play or import_playbook sets counts for every host, above the inventory.
        self._above = _templated(action, {
            name: value for name, value in own.items() if name not in mine or mine[name] != value})
        self._given = {name: self._raw(name) for name in played}
        cp_group = self._first("kubemend_control_plane_group") or "kube_control_plane"
        node_group = self._first("kubemend_node_group") or "kube_node"
        members = {"control_plane": inventory.get(cp_group) or [], "node": inventory.get(node_group) or []}
        named = [name for name in (cp_group, node_group) if inventory.get(name)]
        hosts = check({"kubemend_hosts": self._first("kubemend_hosts")}).hosts
        self.pattern = hosts or ":".join(named) or "all"
        matched = self._match(inventory)
        self.asked = [name for name in matched if name in set(played)]
        if not self.asked:
            what = f"{self.pattern} names no host of the inventory" if not matched else \
                f"--limit leaves none of the {len(matched)} hosts of {self.pattern}"
            raise SettingsError(f"There is no host to ask: {what}.")
        self.expected = list(dict.fromkeys([*matched, *members["control_plane"], *members["node"]]))
        self.control_plane = members["control_plane"] or list(matched)
        self._members = {role: frozenset(names) for role, names in members.items()}
        self.groups = {name: self.roles(name) for name in self.expected}

    def roles(self, host: str) -> list[str]:
        """What the inventory's groups say of a host: control_plane, node, both or nothing."""
        return [role for role, names in self._members.items() if host in names]

    def address(self, host: str) -> str:
        """Where the inventory says that a host is: its name where it says nothing, or what cannot be evaluated."""
        try:
            return str(self._hostvars[host].get("ansible_host") or host)
        except AnsibleError:
            return host

    def settings(self) -> Settings:
        """The settings of the run: those of the first host asked; the others' are checked and must agree."""
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
            found = check({**values, **self._above}, codes=judge.CATALOGUE, where=f" (host {name})" if first else "")
            if first is None:
                first = found
            elif other := differing(first, found):
                raise SettingsError(f"{other} differs between {self.asked[0]} and {name}; it holds for the whole run, "
                                    "so set it once, for all hosts or with -e.")
        if first is None:
            raise AssertionError("a run asks at least one host")
        return first

    def _match(self, inventory: Mapping[str, list[str]]) -> list[str]:
        lookup = lookup_loader.get("ansible.builtin.inventory_hostnames", loader=self._action._loader,
                                   templar=self._action._templar)
        try:
            return list(lookup.run([self.pattern], variables={"groups": inventory}))
        except AnsibleError as error:
            raise SettingsError(f"kubemend_hosts is {self.pattern!r}, which is no host pattern: {error}.") from None

    def cpu_managers(self) -> dict[str, dict[str, str]]:
        """{host: settings that its kubelet is to have}, by each host's own variables; every host asked is named."""
        names = {"kubemend_cpu_manager_policy": "cpuManagerPolicy", "kubemend_reserved_cpus": "reservedSystemCPUs"}
        found = {}
        for host in self.asked:
            given = {key: self._above[key] if key in self._above else self._value(host, key) for key in names if key in self._above or key in self._given[host]}
            values = check(given, where=f" (host {host})").values
            found[host] = {setting: values[key] for key, setting in names.items() if values[key] is not None}
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
            raise SettingsError(_no_template(name, error)) from None
        if isinstance(value, str) and "{{" in value:  # what ansible-core 2.16 leaves of an undefined variable
            raise SettingsError(_no_template(name, value))
        return value


class _Folder:
    """The folder of a run's report, as its operator asked for it."""

    def __init__(self, settings: Settings) -> None:
        now = datetime.now(timezone.utc)
        self.started = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.run_id = f"{now.strftime('%Y%m%dT%H%M%SZ')}-{secrets.token_hex(3)}"
        self.path = _absolute(settings.report_dir or f"~/.kubemend/runs/{self.run_id}")
        # Read before anything is made or collected; it may be the report that this run replaces.
        self._earlier = compare.read(_absolute(settings.compare_to)) if settings.compare_to else None

    def make(self, collects: bool) -> dict[str, Any]:
        """Create what is missing, for nobody else's eyes; remove the evidence of an earlier run in the same folder."""
        _make_private(Path(self.path))
        where, after = Path(self.path) / "evidence", Path(self.path) / "evidence-after"
        if collects:
            self._claim()
            for folder in (where, after):
                _make_private(folder)
                folder.chmod(0o700)
            for name in ("plan.json", "steps.jsonl", "step.begun", "locks/*.json", "evidence/*.json", "evidence-after/*.json", "revert/*",
                         "capture/*.*", "capture/logs/*", "patches/*.yaml"):
                for stale in sorted(Path(self.path).glob(name)):
                    stale.unlink()
        compared = Path(self.path) / COMPARED
        compared.unlink(missing_ok=True)
        if self._earlier is not None:
            with open(os.open(compared, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(self._earlier)
        kept = None if self._earlier is None else str(compared)
        return {"compare_to": kept, "run_id": self.run_id, "started": self.started, "report_dir": self.path, "evidence_dir": str(where),
                "evidence": [str(where)], "evidence_after_dir": str(after)}

    def _claim(self) -> None:
        """One run at a time in one folder: what another is about to read must not be removed under it."""
        path, me = Path(self.path) / "run.json", locking.controller(os.getppid())
        try:
            owner = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            owner = {}
        mine = all(owner.get(name) == me[name] for name in ("boot_id", "pid", "started"))
        if owner.get("boot_id") == me["boot_id"] and not mine and not locking.gone(owner, me):
            raise SettingsError(f"{self.path} is in use by run {owner.get('run_id')} (process {owner.get('pid')}); let it end, or give this run "
                                "another folder with kubemend_report_dir.")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({**me, "run_id": self.run_id}, file)


def _make_private(path: Path) -> None:
    for folder in reversed((path, *path.parents)):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if not folder.is_dir():
                raise SettingsError(f"{folder} is needed as a folder but is a file.") from None


def _absolute(path: str) -> str:
    """Relative paths are relative to the folder in which ansible-playbook was started."""
    return os.path.abspath(os.path.expanduser(path))


def _chosen(settings: Settings, faults: frozenset[str] | None, symptom: str | None) -> dict[str, Any]:
    return {"settings": {
        "fail_on": settings.fail_on, "formats": list(settings.report_formats), "deep": settings.deep or _needs_deep(symptom),
        "faults": None if faults is None else sorted(faults), "symptom": symptom, "part": settings.slice, "notices": [],
        "max_risk": settings.max_risk, "allow": list(settings.allow), "probe": settings.probe,
        "cleanup_rejected": settings.cleanup_rejected, "patch_workloads": settings.patch_workloads, "prove_pinning": settings.prove_pinning,
        "expect_pinning": settings.expect_pinning,
        "limits": {key: getattr(settings, name.removeprefix(PREFIX)) for key, name in node_limits.VARIABLES.items()
                   if getattr(settings, name.removeprefix(PREFIX)) is not None},
        # Where rejected pods are the symptom, the collector takes one of them.
        "pod": settings.pod or (REJECTED if symptom == "admission_errors" else None),
    }}


def _bundle(settings: Settings) -> dict[str, Any]:
    """Where a bundle goes, if one is asked for and can be written there."""
    path = None if settings.bundle is None else _absolute(settings.bundle)
    wrong = None if path is None else bundle.objection(path)
    if wrong:
        raise SettingsError(wrong)
    return {"bundle": path, "bundle_anonymous": settings.bundle_anonymous}


def _capturing(settings: Settings, mode: str, symptom: str | None, chosen: dict[str, Any]) -> dict[str, Any]:
    """Whether the leading scheduler's cache is captured, what the operator consented to of it, and for whom that means nothing."""
    wanted = settings.capture and symptom == scheduler_capture.SYMPTOM
    consent = {"repair": scheduler_capture.GO, "plan": scheduler_capture.CHECK}.get(mode, scheduler_capture.OBSERVE)
    chosen["settings"].update(capture=consent if wanted else "", capture_level=settings.capture_level, capture_seconds=settings.capture_seconds)
    if settings.capture and not wanted:
        chosen["settings"]["notices"].append("kubemend_capture has no effect here: it is for pods_stay_pending; capture with the playbook capture_logs.")
    return chosen


def _needs_deep(symptom: str | None) -> bool:
    """A symptom's playbook asks for whatever its causes need."""
    return symptom is not None and any(judge.CATALOGUE[code].tier == "deep" for code in symptoms.SYMPTOMS[symptom].causes)


def _faults(settings: Settings, symptom: str | None, fixed: Iterable[str] | None) -> frozenset[str] | None:
    """The codes to judge: those of kubemend_faults, those of the symptom or the role, or those that are both."""
    if symptom is None and fixed is None:
        return settings.faults
    codes = symptoms.SYMPTOMS[symptom].codes if symptom is not None else frozenset(fixed or ())
    if settings.faults is None:
        return codes
    if not codes & settings.faults:
        what = symptom or "this role"
        raise SettingsError(f"kubemend_faults names no fault of {what}, which judges {', '.join(sorted(codes))}.")
    return codes & settings.faults


def _refuse_unknown(names: Iterable[str]) -> None:
    wrong = unknown_names(names)
    if wrong:
        raise SettingsError(complain_about(wrong[0]))


def _templated(action: ActionModule, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in given.items():
        try:
            found[name] = action._templar.template(value)
        except AnsibleError as error:
            raise SettingsError(_no_template(name, error)) from None
    return found


def _no_template(name: str, error: object) -> str:
    return f"{name} cannot be evaluated: {' '.join(str(error).split())}"
