# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first task of each playbook: settings checked, folders made, before any host is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.collectors.cluster.pod import REJECTED
from ..module_utils.collectors.cluster.runner import DEEP
from ..plugin_utils.bundle import writer as bundle
from ..plugin_utils.capture import plan as capture
from ..plugin_utils.capture import scheduler as scheduler_capture
from ..plugin_utils.evidence import document as evidence
from ..plugin_utils.faults import engine as judge
from ..plugin_utils.faults import symptoms
from ..plugin_utils.models import limits as node_limits
from ..plugin_utils.reports import diff
from ..plugin_utils.run.inventory import Hosts, play_of, templated
from ..plugin_utils.run.report_dir import FACES, ReportFolder, absolute, remove_face
from ..plugin_utils.run.settings import PREFIX, Settings, SettingsError, check, without_effect

SPEC = {
    "mode": {
        "type": "str",
        "choices": ["observe", "repair", "replay", "revert", "capture"],
        "default": "observe",
    },
    "symptom": {"type": "str"},
    "faults": {"type": "list", "elements": "str"},
    "max_risk": {"type": "int"},
    "cpu_manager": {"type": "bool", "default": False},
    "profile": {"type": "bool", "default": False},
}
INTERRUPTED = "KM902"


class ActionModule(ActionBase):
    """Runs on the controller only, once, and never connects to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
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
            answer = {
                "failed": True,
                "exit_reason": "input",
                "msg": f"{error.filename or 'The report folder'} cannot be used: {error.strerror}.",
            }
        if args["mode"] in ("revert", "capture"):
            answer["warnings"] = _without_effect(answer, task_vars)
        result.update(answer, changed=False)
        return result

    def _observe(self, task_vars: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        hosts = Hosts(self, task_vars)
        settings, symptom = hosts.settings(), args["symptom"]
        self._refuse_strategy()
        if args["max_risk"] is not None:
            settings = settings.fixed(max_risk=args["max_risk"])
        if settings.patch_workloads and not settings.expect_pinning:
            raise SettingsError(
                "kubemend_patch_workloads needs kubemend_expect_pinning, the label selector of the"
                " pods whose workloads may be changed."
            )
        if settings.slice and args["mode"] == "repair":
            raise SettingsError(
                "kubemend_slice is for audits: causes and repairs need the evidence of the whole"
                " cluster. Audit the slices, judge them together with replay.yml, and repair"
                " without it."
            )
        chosen_bundle = _bundle(settings)
        if settings.capture and symptom == scheduler_capture.SYMPTOM:
            capture.demand((capture.SCHEDULER,), settings.capture_level, settings.allow)
        mode, faults = (
            self._mode(settings, args["mode"] == "repair"),
            _faults(settings, symptom, args["faults"]),
        )
        if mode != "observe" and faults is not None:
            faults |= {INTERRUPTED}  # nothing is repaired on top of what a former run left open
        notices = [
            *hosts.notices,
            *(without_effect(settings, "audit") if args["mode"] == "observe" else []),
        ]
        run = _report_folder(settings)
        made = run.make(collects=True)
        for folder in (made["evidence_dir"], made["evidence_after_dir"]):
            _note_left_out(folder, hosts)
        chosen = _chosen(settings, faults, symptom, args["cpu_manager"], notices)
        return {
            **made,
            **_capturing(settings, mode, symptom, chosen),
            **chosen_bundle,
            "pattern": hosts.pattern,
            "outside": {
                name: {"reason": reason, "address": hosts.address(name)}
                for name, reason in hosts.outside.items()
            },
            "mode": mode,
            "control_plane_hosts": hosts.control_plane,
            "groups": hosts.groups,
            "cpu_manager": hosts.cpu_managers() if args["cpu_manager"] else None,
            "profile": hosts.asked if args["profile"] else [],
        }

    def _refuse_strategy(self) -> None:
        """Steps are done one after the other because hosts wait for each other at every task."""
        strategy = str(getattr(play_of(self), "strategy", None) or "linear").rpartition(".")[2]
        if strategy not in ("linear", "debug"):
            raise SettingsError(
                f"The play has the strategy {strategy}, in which hosts do not wait for each other:"
                " give it strategy linear."
            )

    def _revert(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Being asked for by name, it needs no kubemend_max_risk.

        Without kubemend_run_id it only lists.
        """
        hosts = Hosts(self, task_vars)
        settings = hosts.settings()
        return {
            **_report_folder(settings).make(collects=True),
            **_chosen(settings, None, None),
            "pattern": hosts.pattern,
            "mode": "revert",
            "reverts": settings.run_id,
            "control_plane_hosts": hosts.control_plane,
            "groups": hosts.groups,
            "asked": hosts.asked,
        }

    def _capture(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Being asked for by name, it needs no kubemend_max_risk.

        What it may log is checked before any host is asked.
        """
        hosts = Hosts(self, task_vars)
        self._refuse_strategy()
        settings = hosts.settings()
        capture.demand(settings.capture_components, settings.capture_level, settings.allow)
        chosen = _chosen(settings, None, None)
        chosen["settings"].update(
            {
                name: getattr(settings, f"capture_{name}")
                for name in ("components", "level", "seconds", "match")
            }
        )
        chosen["settings"]["components"] = list(settings.capture_components)
        # What a restart asks for beside what the rest asks for.
        more = (
            ["manifests", "component_http", "installer", "devices"]
            if "capture_restart" in settings.allow
            else []
        )
        chosen["settings"]["collectors"] = [
            "system",
            "kubelet",
            "instances",
            "space",
            "journal",
            *more,
        ]
        made = _report_folder(settings).make(collects=True)
        _note_left_out(made["evidence_dir"], hosts)
        return {
            **made,
            **chosen,
            "pattern": hosts.pattern,
            "mode": "capture",
            "control_plane_hosts": hosts.control_plane,
            "groups": hosts.groups,
        }

    def _mode(self, settings: Settings, may_repair: bool) -> str:
        """kubemend_max_risk is the consent: without it every playbook observes.

        In check mode it is a plan.
        """
        if not may_repair or settings.max_risk == 0:
            return "observe"
        return "plan" if self._task.check_mode else "repair"

    def _replay(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in task_vars.items() if str(name).startswith(PREFIX)}
        settings = check(templated(self, given), codes=judge.CATALOGUE)
        if not settings.evidence:
            raise SettingsError(
                "kubemend_evidence is not set; replay needs the path of a folder of evidence or of"
                " a bundle."
            )
        chosen_bundle = _bundle(settings)
        made = _report_folder(settings).make(collects=False)
        return {
            **made,
            **_chosen(settings, settings.faults, None, notices=without_effect(settings, "replay")),
            **chosen_bundle,
            "mode": "replay",
            "pattern": "localhost",
            "evidence": [absolute(path) for path in settings.evidence],
            "control_plane_hosts": [],
            "groups": {},
        }


def _report_folder(settings: Settings) -> ReportFolder:
    """Return the report directory of this run, with the earlier report that it is compared to."""
    earlier = None
    if settings.compare_to:
        earlier = diff.read(absolute(settings.compare_to))
    return ReportFolder(settings, earlier)


def _without_effect(answer: Mapping[str, Any], task_vars: Mapping[str, Any]) -> list[str]:
    """What a playbook that judges nothing was asked for in vain.

    A report that an earlier run left in its folder goes: check mode writes none.
    """
    if "report_dir" in answer:
        for name in FACES:
            remove_face(answer["report_dir"], name)
    found = {
        "bundle": "only a playbook that judges evidence writes a bundle.",
        "compare_to": "it judges nothing that could be compared.",
    }
    return [
        f"kubemend_{name} has no effect here: {why}"
        for name, why in found.items()
        if task_vars.get(PREFIX + name)
    ]


def _chosen(
    settings: Settings,
    faults: frozenset[str] | None,
    symptom: str | None,
    deep: bool = False,
    notices: Iterable[str] = (),
) -> dict[str, Any]:
    """What the run's tasks are given. deep.

    Whether its purpose needs the deep tier, as a reset of the CPU manager does, asked for or not.
    """
    return {
        "settings": {
            "fail_on": settings.fail_on,
            "formats": list(settings.report_formats),
            "deep": settings.deep or deep or _needs_deep(symptom),
            "api_deep": settings.deep or deep or _needs_deep(symptom, api=True),
            "faults": None if faults is None else sorted(faults),
            "symptom": symptom,
            "part": settings.slice,
            "notices": list(notices),
            "max_risk": settings.max_risk,
            "max_unavailable": settings.max_unavailable,
            "drain_timeout": settings.drain_timeout,
            "allow": list(settings.allow),
            "probe": settings.probe,
            "cleanup_rejected": settings.cleanup_rejected,
            "patch_workloads": settings.patch_workloads,
            "prove_pinning": settings.prove_pinning,
            "expect_pinning": settings.expect_pinning,
            "limits": {
                key: getattr(settings, name.removeprefix(PREFIX))
                for key, name in node_limits.VARIABLES.items()
                if getattr(settings, name.removeprefix(PREFIX)) is not None
            },
            # Where rejected pods are the symptom, the collector takes one of them.
            "pod": settings.pod or (REJECTED if symptom == "admission_errors" else None),
        }
    }


def _bundle(settings: Settings) -> dict[str, Any]:
    """Where a bundle goes, if one is asked for and can be written there."""
    path = None if settings.bundle is None else absolute(settings.bundle)
    wrong = None if path is None else bundle.objection(path)
    if wrong:
        raise SettingsError(wrong)
    return {"bundle": path, "bundle_anonymous": settings.bundle_anonymous}


def _note_left_out(folder: str, hosts: Hosts) -> None:
    """Evidence that says of each host of the inventory which --limit leaves out that nobody
    asked it.
    """
    for name in hosts.expected:
        if name not in hosts.asked:
            evidence.write_stub(
                folder, name, hosts.roles(name), hosts.address(name), name in hosts.matched
            )


def _capturing(
    settings: Settings, mode: str, symptom: str | None, chosen: dict[str, Any]
) -> dict[str, Any]:
    """Whether the leading scheduler's cache is captured, what the operator consented to of it,
    and for whom that means nothing.
    """
    wanted = settings.capture and symptom == scheduler_capture.SYMPTOM
    consent = {"repair": scheduler_capture.GO, "plan": scheduler_capture.CHECK}.get(
        mode, scheduler_capture.OBSERVE
    )
    chosen["settings"].update(
        capture=consent if wanted else "",
        capture_level=settings.capture_level,
        capture_seconds=settings.capture_seconds,
    )
    if settings.capture and not wanted:
        chosen["settings"]["notices"].append(
            "kubemend_capture has no effect here: it is for pods_stay_pending; capture with the"
            " playbook capture_logs."
        )
    return chosen


def _needs_deep(symptom: str | None, api: bool = False) -> bool:
    """A symptom's playbook asks for whatever its causes need.

    Every pod of the cluster is read only for a cause that is told by them.
    """
    causes = (
        [judge.CATALOGUE[code] for code in symptoms.SYMPTOMS[symptom].causes]
        if symptom is not None
        else []
    )
    return any(
        not set(DEEP).isdisjoint(cause.cluster_needs) if api else cause.tier == "deep"
        for cause in causes
    )


def _faults(
    settings: Settings, symptom: str | None, fixed: Iterable[str] | None
) -> frozenset[str] | None:
    """The codes to judge: those of kubemend_faults, those of the symptom or the role, or those
    that are both.
    """
    if symptom is None and fixed is None:
        return settings.faults
    codes = symptoms.SYMPTOMS[symptom].codes if symptom is not None else frozenset(fixed or ())
    if settings.faults is None:
        return codes
    if not codes & settings.faults:
        what = symptom or "this role"
        raise SettingsError(
            f"kubemend_faults names no fault of {what}, which judges {', '.join(sorted(codes))}."
        )
    return codes & settings.faults
