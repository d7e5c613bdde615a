# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first task of each playbook: check settings and create directories, before any query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.shared.collector_names import DEEP_CLUSTER as DEEP
from ..module_utils.shared.pod_rejection import REJECTED
from ..plugin_utils.bundle import writer
from ..plugin_utils.capture import plan as capture_plan
from ..plugin_utils.capture import scheduler
from ..plugin_utils.evidence.document import write_stub
from ..plugin_utils.faults import CATALOGUE, symptoms
from ..plugin_utils.faults.base import Fault
from ..plugin_utils.models import limits as model_limits
from ..plugin_utils.reports import diff as report_diff
from ..plugin_utils.run import waivers_file
from ..plugin_utils.run.cluster_names import EVERY_HOST
from ..plugin_utils.run.inventory import Hosts, templated
from ..plugin_utils.run.play import play_of
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
CAPTURE_COLLECTORS = ("system", "kubelet", "instances", "space", "journal")
# What a restart needs in addition.
RESTART_COLLECTORS = ("manifests", "component_http", "installer", "devices")
# The consent to a capture of the scheduler's cache, by the mode of the run.
CAPTURE_CONSENT = {"repair": scheduler.GO, "plan": scheduler.CHECK}
# The symptom for which containerd is started in a trial, and the risk of that.
TRIAL_SYMPTOM, TRIAL_RISK = "before_reboot", 1
# Where rejected pods are the symptom, the collector takes one of them.
SYMPTOM_PODS = {"admission_errors": REJECTED}


class ActionModule(ActionBase):
    """Prepare a run on the controller only, once, without a connection to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Check the settings and open the report directory; bad input is one sentence."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        task_vars = task_vars or {}
        try:
            answer = self._prepare(task_vars, args)
        except (SettingsError, capture_plan.CaptureError) as error:
            answer = _input_error(str(error))
        except OSError as error:
            place = error.filename or "The report folder"
            answer = _input_error(f"{place} cannot be used: {error.strerror}.")
        if args["mode"] in ("revert", "capture"):
            answer["warnings"] = _without_effect(answer, task_vars)
        result.update(answer, changed=False)
        return result

    def _prepare(self, task_vars: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        if args["mode"] == "replay":
            return self._replay(task_vars)
        if args["mode"] == "revert":
            return self._revert(task_vars)
        if args["mode"] == "capture":
            return self._capture(task_vars)
        return self._observe(task_vars, args)

    def _observe(self, task_vars: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
        hosts = Hosts(self, task_vars)
        settings, symptom = hosts.settings(), args["symptom"]
        self._refuse_strategy()
        if args["max_risk"] is not None:
            settings = settings.fixed(max_risk=args["max_risk"])
        _require_consistent(settings, args["mode"])
        bundle = _bundle(settings)
        if settings.capture and symptom == scheduler.SYMPTOM:
            capture_plan.demand((capture_plan.SCHEDULER,), settings.capture_level, settings.allow)
        mode = self._mode(settings, args["mode"] == "repair")
        faults = _faults(settings, symptom, args["faults"])
        if mode != "observe" and faults is not None:
            faults |= {INTERRUPTED}  # nothing is repaired on top of a run that was interrupted
        notices = [*hosts.notices, *_transport_notice(hosts, settings)]
        if args["mode"] == "observe":
            notices += without_effect(settings, "audit", _trial_consent(settings, symptom))
        directory = _report_directory(settings, _waivers(settings)).make(collects=True)
        for folder in (directory["evidence_dir"], directory["evidence_after_dir"]):
            _note_excluded(folder, hosts)
        chosen = _chosen(settings, faults, symptom, args["cpu_manager"], notices)
        return {
            **directory,
            **_capturing(settings, mode, symptom, chosen),
            **_trying(settings, symptom, self._task.check_mode, chosen),
            **bundle,
            "pattern": hosts.pattern,
            "outside": {
                name: {"reason": reason, "address": hosts.address(name)}
                for name, reason in hosts.outside.items()
            },
            "mode": mode,
            "control_plane_hosts": hosts.control_plane,
            "groups": hosts.groups,
            "cluster_names": hosts.cluster_names(),
            **_profile(hosts, args),
        }

    def _refuse_strategy(self) -> None:
        """Raise SettingsError for a strategy in which hosts do not wait for each other.

        Steps run one after the other because hosts wait for each other at every task.
        """
        strategy = str(getattr(play_of(self), "strategy", None) or "linear").rpartition(".")[2]
        if strategy not in ("linear", "debug"):
            raise SettingsError(
                f"The play has the strategy {strategy}, in which hosts do not wait for each other:"
                " give it strategy linear."
            )

    def _revert(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Prepare a revert, which needs no kubemend_max_risk because it is called by name.

        Without kubemend_run_id the playbook only lists runs.
        """
        hosts = Hosts(self, task_vars)
        settings = hosts.settings()
        return {
            **_report_directory(settings).make(collects=True),
            **_chosen(settings, None, None),
            "pattern": hosts.pattern,
            "mode": "revert",
            "reverts": settings.run_id,
            "control_plane_hosts": hosts.control_plane,
            "groups": hosts.groups,
            "asked": hosts.asked,
        }

    def _capture(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Prepare a log capture, which needs no kubemend_max_risk because it is called by name.

        The components and the level are checked before any host is asked.
        """
        hosts = Hosts(self, task_vars)
        self._refuse_strategy()
        settings = hosts.settings()
        capture_plan.demand(settings.capture_components, settings.capture_level, settings.allow)
        chosen = _chosen(settings, None, None, notices=_transport_notice(hosts, settings))
        collectors = list(CAPTURE_COLLECTORS)
        if "capture_restart" in settings.allow:
            collectors += RESTART_COLLECTORS
        chosen["settings"].update(
            components=list(settings.capture_components),
            level=settings.capture_level,
            seconds=settings.capture_seconds,
            match=settings.capture_match,
            collectors=collectors,
        )
        directory = _report_directory(settings).make(collects=True)
        _note_excluded(directory["evidence_dir"], hosts)
        return {
            **directory,
            **chosen,
            "pattern": hosts.pattern,
            "mode": "capture",
            "control_plane_hosts": hosts.control_plane,
            "groups": hosts.groups,
        }

    def _mode(self, settings: Settings, may_repair: bool) -> str:
        """Return the mode of the run; kubemend_max_risk is the consent, in check mode to a plan."""
        if not may_repair or settings.max_risk == 0:
            return "observe"
        if self._task.check_mode:
            return "plan"
        return "repair"

    def _replay(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        variables = {
            name: value for name, value in task_vars.items() if str(name).startswith(PREFIX)
        }
        settings = check(templated(self, variables), codes=CATALOGUE)
        if not settings.evidence:
            raise SettingsError(
                "kubemend_evidence is not set; replay needs the path of a folder of evidence or of"
                " a bundle."
            )
        bundle = _bundle(settings)
        return {
            **_report_directory(settings, _waivers(settings)).make(collects=False),
            **_chosen(settings, settings.faults, None, notices=without_effect(settings, "replay")),
            **bundle,
            "mode": "replay",
            "pattern": "localhost",
            "evidence": [absolute(path) for path in settings.evidence],
            "cluster_names": _replayed_name(settings),
            "control_plane_hosts": [],
            "groups": {},
        }


def _replayed_name(settings: Settings) -> dict[str, str]:
    if settings.cluster_name is None:
        return {}
    return {EVERY_HOST: settings.cluster_name}


def _input_error(sentence: str) -> dict[str, Any]:
    return {"failed": True, "exit_reason": "input", "msg": sentence}


def _require_consistent(settings: Settings, mode: str) -> None:
    """Raise SettingsError for settings that exclude each other or the mode."""
    if settings.patch_workloads and not settings.expect_pinning:
        raise SettingsError(
            "kubemend_patch_workloads needs kubemend_expect_pinning, the label selector of the"
            " pods whose workloads may be changed."
        )
    if settings.slice and mode == "repair":
        raise SettingsError(
            "kubemend_slice is for audits: causes and repairs need the evidence of the whole"
            " cluster. Audit the slices, judge them together with replay.yml, and repair"
            " without it."
        )


def _profile(hosts: Hosts, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requested settings of kubelets, and the hosts whose limits are raised."""
    cpu_manager, profile = None, []
    if args["cpu_manager"]:
        cpu_manager = hosts.cpu_managers()
    if args["profile"]:
        profile = hosts.asked
    return {"cpu_manager": cpu_manager, "profile": profile}


def _report_directory(settings: Settings, waivers: bytes | None = None) -> ReportFolder:
    """Return the report directory of this run, with the earlier report that it is compared to."""
    earlier = None
    if settings.compare_to:
        earlier = report_diff.read(absolute(settings.compare_to))
    return ReportFolder(settings, earlier, waivers)


def _waivers(settings: Settings) -> bytes | None:
    """Return the file of waivers, checked before any host is asked."""
    if settings.waivers is None:
        return None
    path = absolute(settings.waivers)
    data = waivers_file.read(path)
    waivers_file.parse(data, path, CATALOGUE)
    return data


def _without_effect(answer: Mapping[str, Any], task_vars: Mapping[str, Any]) -> list[str]:
    """Return warnings about variables without effect in a playbook that evaluates nothing.

    A report that an earlier run left in its directory is removed, because check mode writes none.
    """
    if "report_dir" in answer:
        for name in FACES:
            remove_face(answer["report_dir"], name)
    reasons = {
        "bundle": "only a playbook that judges evidence writes a bundle.",
        "compare_to": "it judges nothing that could be compared.",
    }
    return [
        f"kubemend_{name} has no effect here: {reason}"
        for name, reason in reasons.items()
        if task_vars.get(PREFIX + name)
    ]


def _chosen(
    settings: Settings,
    faults: frozenset[str] | None,
    symptom: str | None,
    deep: bool = False,
    notices: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the settings for the run's tasks.

    deep: whether the purpose needs the deep tier, as a reset of the CPU manager does.
    """
    deep = settings.deep or deep
    return {
        "settings": {
            "fail_on": settings.fail_on,
            "severity": settings.severity,
            "keep_runs": str(settings.keep_runs),
            "formats": list(settings.report_formats),
            "deep": deep or _needs_deep(symptom),
            "api_deep": deep or _needs_deep_api(symptom),
            "faults": _sorted(faults),
            "symptom": symptom,
            "part": settings.slice,
            "upgrade_to": settings.upgrade_to,
            "notices": list(notices),
            "parallel": settings.parallel,
            "max_risk": settings.max_risk,
            "max_unavailable": settings.max_unavailable,
            "drain_timeout": settings.drain_timeout,
            "allow": list(settings.allow),
            "probe": settings.probe,
            "cleanup_rejected": settings.cleanup_rejected,
            "patch_workloads": settings.patch_workloads,
            "prove_pinning": settings.prove_pinning,
            "expect_pinning": settings.expect_pinning,
            "limits": _limits(settings),
            "pod": settings.pod or SYMPTOM_PODS.get(symptom or ""),
        }
    }


def _transport_notice(hosts: Hosts, settings: Settings) -> list[str]:
    """Return the notice that the transport is not the one of the inventory, if it is not."""
    if settings.transport == "task" or hosts.is_extra("kubemend_transport"):
        return []
    return [
        "kubemend_transport has no effect in the inventory: Ansible chooses the tasks when it loads"
        f" the playbook. Set it with -e kubemend_transport={settings.transport}."
    ]


def _sorted(faults: frozenset[str] | None) -> list[str] | None:
    if faults is None:
        return None
    return sorted(faults)


def _limits(settings: Settings) -> dict[str, int]:
    """Return the limits that the operator requested."""
    requested = {
        key: getattr(settings, name.removeprefix(PREFIX))
        for key, name in model_limits.VARIABLES.items()
    }
    return {key: value for key, value in requested.items() if value is not None}


def _bundle(settings: Settings) -> dict[str, Any]:
    """Return the path of the bundle, if one is asked for and can be written there."""
    path = None
    if settings.bundle is not None:
        path = absolute(settings.bundle)
        objection = writer.objection(path)
        if objection:
            raise SettingsError(objection)
    return {"bundle": path, "bundle_anonymous": settings.bundle_anonymous}


def _note_excluded(folder: str, hosts: Hosts) -> None:
    """Write evidence of each host that --limit excludes: it was not asked."""
    for name in hosts.expected:
        if name not in hosts.asked:
            write_stub(folder, name, hosts.roles(name), hosts.address(name), name in hosts.matched)


def _capturing(
    settings: Settings, mode: str, symptom: str | None, chosen: dict[str, Any]
) -> dict[str, Any]:
    """Add whether the leading scheduler's cache is captured, and the consent for it.

    The capture has no effect for other symptoms than pending pods.
    """
    consent = ""
    if settings.capture and symptom == scheduler.SYMPTOM:
        consent = CAPTURE_CONSENT.get(mode, scheduler.OBSERVE)
    elif settings.capture:
        chosen["settings"]["notices"].append(
            "kubemend_capture has no effect here: it is for pods_stay_pending; capture with the"
            " playbook capture_logs."
        )
    chosen["settings"].update(
        capture=consent,
        capture_level=settings.capture_level,
        capture_seconds=settings.capture_seconds,
    )
    return chosen


def _trial_consent(settings: Settings, symptom: str | None) -> tuple[str, ...]:
    """Return the variables that a trial start of containerd uses, none where none is asked for."""
    if settings.probe and symptom == TRIAL_SYMPTOM:
        return ("kubemend_probe", "kubemend_max_risk")
    return ()


def _trying(
    settings: Settings, symptom: str | None, check_mode: bool, chosen: dict[str, Any]
) -> dict[str, Any]:
    """Add whether containerd is started in a trial, or why that is not done."""
    obstacle = ""
    if settings.max_risk < TRIAL_RISK:
        obstacle = f"it needs -e kubemend_max_risk={TRIAL_RISK}"
    elif check_mode:
        obstacle = "check mode starts nothing on a node"
    is_asked = bool(_trial_consent(settings, symptom))
    if is_asked:
        # the plan of this playbook is shown only: its steps need no proof
        chosen["settings"]["probe"] = False
    if is_asked and obstacle:
        chosen["settings"]["notices"].append(
            f"kubemend_probe: containerd is not started in a trial ({obstacle})."
        )
    chosen["settings"]["trial"] = is_asked and not obstacle
    return chosen


def _causes(symptom: str | None) -> list[Fault]:
    if symptom is None:
        return []
    return [CATALOGUE[code] for code in symptoms.SYMPTOMS[symptom].causes]


def _needs_deep(symptom: str | None) -> bool:
    """Return whether a cause of the symptom needs the deep tier."""
    return any(cause.tier == "deep" for cause in _causes(symptom))


def _needs_deep_api(symptom: str | None) -> bool:
    """Return whether a cause of the symptom needs every pod of the cluster."""
    return any(not set(DEEP).isdisjoint(cause.cluster_needs) for cause in _causes(symptom))


def _faults(
    settings: Settings, symptom: str | None, fixed: Iterable[str] | None
) -> frozenset[str] | None:
    """Return the codes to evaluate: of kubemend_faults, of the symptom or role, or of both."""
    chosen: frozenset[str] | None = settings.faults
    if symptom is None and fixed is None:
        return chosen
    codes = frozenset(fixed or ())
    if symptom is not None:
        codes = symptoms.SYMPTOMS[symptom].codes
    if chosen is None:
        return codes
    if not codes & chosen:
        raise SettingsError(
            f"kubemend_faults names no fault of {symptom or 'this role'}, which judges"
            f" {', '.join(sorted(codes))}."
        )
    return codes & chosen
