# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubemend_* variables, their types, defaults and what is allowed.

One table (VARIABLES) says all of it; check() turns a mapping of variables into Settings or raises
SettingsError with one sentence that names the variable, its value and what is allowed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from ...module_utils.shared import argument_specs, consent, label_selector
from ..parsers import cpuset

PREFIX = "kubemend_"

FAIL_ON = ("never", "unknown", "warning", "critical")
FORMATS = argument_specs.REPORT_FORMATS
DEFAULT_FORMATS = ("terminal", "json", "html")
REFUSALS = consent.WORDS
COMPONENTS = ("kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver")

_TRUE = frozenset(("true", "yes", "on", "1", "y", "t"))
_FALSE = frozenset(("false", "no", "off", "0", "n", "f"))
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_POD = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_UID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{32}")


class SettingsError(ValueError):
    """Bad input: the message is one sentence for the operator."""


class _Bad(ValueError):
    """The message says what is allowed; check() adds the variable and its value."""


Parser = Callable[[Any], Any]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Bad("a text")
    text = str(value).strip()
    if not text or any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise _Bad("a text of one line that is not empty")
    return text


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)):
        text = str(value).strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
    raise _Bad("true or false")


def _number(low: int, high: int) -> Parser:
    def parse(value: Any) -> int:
        try:
            if isinstance(value, (bool, float)):
                raise ValueError
            number = int(str(value).strip(), 10)
        except ValueError:
            raise _Bad(f"a whole number from {low} to {high}") from None
        if not low <= number <= high:
            raise _Bad(f"a whole number from {low} to {high}")
        return number

    return parse


def _items(value: Any) -> list[Any]:
    """Return a list from one, or from the text of `-e name=value`: "a", "a,b" or "[a, b]"."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError:
                raise _Bad("a list") from None
        else:
            value = [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(value, (list, tuple)):
        return list(value)
    raise _Bad("a list")


def _some_of(*allowed: str, empty: bool = True) -> Parser:
    def parse(value: Any) -> tuple[str, ...]:
        items = [str(item) for item in _items(value)]
        if not set(items) <= set(allowed) or not (items or empty):
            raise _Bad(f"a list of {', '.join(allowed)}")
        return tuple(dict.fromkeys(items))

    return parse


def _one_of(*allowed: str) -> Parser:
    def parse(value: Any) -> str:
        # YAML reads an unquoted never/on/off/yes/no as what it likes; only the words themselves are
        # taken.
        if not isinstance(value, str) or value.strip() not in allowed:
            raise _Bad(f"one of {', '.join(allowed)}")
        return value.strip()

    return parse


def _cpus(value: Any) -> str:
    """Return the text of reservedSystemCPUs.

    For `none` the result is the empty text, which a kubelet reads as a list that was not given.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ValueError
        text = str(value).strip()
        if text == "none":
            return ""
        if not cpuset.parse(text):
            raise ValueError
    except (ValueError, cpuset.CpusetError):
        raise _Bad("a list of CPUs such as 0-1,4, or none") from None
    return text


def _paths(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and not value.strip().startswith("["):
        return (_text(value),)  # a path may hold a comma
    items = _items(value)
    if not items:
        raise _Bad("a path or a list of paths")
    return tuple(_text(item) for item in items)


def _faults(value: Any) -> frozenset[str] | None:
    items = [str(item).strip().upper() for item in _items(value)]
    if not items or items == ["ALL"]:
        if items:
            return None
        raise _Bad("all, or a list of fault codes such as KM101")
    wrong = [item for item in items if not re.fullmatch(r"KM[0-9]{3}", item)]
    if wrong:
        raise _Bad("all, or a list of fault codes such as KM101")
    return frozenset(items)


def _pod(value: Any) -> str:
    text = _text(value)
    if not (_POD.fullmatch(text) or _UID.fullmatch(text)):
        raise _Bad("namespace/name or the UID of a pod")
    return text


def _selector(value: Any) -> str:
    text = _text(value)
    try:
        label_selector.parse(text)
    except ValueError as error:
        raise _Bad(
            f"a label selector such as app=db,tier!=test or 'app in (db, cache)' ({error})"
        ) from None
    return text


def _run_id(value: Any) -> str:
    text = _text(value)
    if text != "last" and not _RUN_ID.fullmatch(text):
        raise _Bad("a run id such as 20261121T090000Z-1a2b3c, or last")
    return text


def _lock_of(value: Any) -> str:
    text = _text(value)
    if not _RUN_ID.fullmatch(text):
        raise _Bad("the id of the run whose lock is taken, such as 20261121T090000Z-1a2b3c")
    return text


def _expression(value: Any) -> str:
    text = _text(value)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise _Bad(f"a regular expression of Python ({error})") from None
    return text


def _pattern(value: Any) -> str:
    """Return a host pattern, from one or from a list of names."""
    if isinstance(value, (list, tuple)) and value:
        return ":".join(_text(item) for item in value)
    return _text(value)


@dataclass(frozen=True)
class Variable:
    """One kubemend_* variable.

    run_wide: whether it must not differ between hosts
    """

    parse: Parser
    default: Any
    run_wide: bool = True


VARIABLES: dict[str, Variable] = {
    "kubemend_hosts": Variable(_pattern, None),
    "kubemend_control_plane_group": Variable(_text, "kube_control_plane"),
    "kubemend_node_group": Variable(_text, "kube_node"),
    "kubemend_become": Variable(_boolean, True, run_wide=False),
    "kubemend_kubeconfig": Variable(_text, None, run_wide=False),
    "kubemend_kubectl": Variable(_text, None, run_wide=False),
    "kubemend_max_risk": Variable(_number(0, 3), 0),
    "kubemend_max_unavailable": Variable(_number(1, 1000), 1),
    "kubemend_allow": Variable(_some_of(*REFUSALS), ()),
    "kubemend_fail_on": Variable(_one_of(*FAIL_ON), "never"),
    "kubemend_faults": Variable(_faults, None),
    "kubemend_pod": Variable(_pod, None),
    "kubemend_deep": Variable(_boolean, False),
    "kubemend_slice": Variable(_boolean, False),
    "kubemend_timeout": Variable(_number(1, 3600), 30, run_wide=False),
    "kubemend_evidence": Variable(_paths, ()),
    "kubemend_report_dir": Variable(_text, None),
    "kubemend_report_formats": Variable(_some_of(*FORMATS, empty=False), DEFAULT_FORMATS),
    "kubemend_bundle": Variable(_text, None),
    "kubemend_bundle_anonymous": Variable(_boolean, False),
    "kubemend_compare_to": Variable(_text, None),
    "kubemend_cluster_name": Variable(_text, None, run_wide=False),
    "kubemend_run_id": Variable(_run_id, None),
    "kubemend_take_lock": Variable(_lock_of, None),
    "kubemend_lock_ttl": Variable(_number(1, 86400), 900),
    "kubemend_drain_timeout": Variable(_number(1, 86400), 900),
    "kubemend_cpu_manager_policy": Variable(_one_of("none", "static"), None, run_wide=False),
    "kubemend_reserved_cpus": Variable(_cpus, None, run_wide=False),
    "kubemend_file_max": Variable(_number(8192, 2**62), None),
    "kubemend_inotify_instances": Variable(_number(128, 2**31 - 1), None),
    "kubemend_inotify_watches": Variable(_number(8192, 2**31 - 1), None),
    "kubemend_inotify_queued_events": Variable(_number(16384, 2**31 - 1), None),
    "kubemend_nofile": Variable(_number(1024, 2**31 - 1), None),
    "kubemend_nproc": Variable(_number(1024, 2**31 - 1), None),
    "kubemend_capture_components": Variable(
        _some_of(*COMPONENTS, empty=False), ("kubelet", "kube-scheduler", "kube-controller-manager")
    ),
    "kubemend_capture_level": Variable(_number(0, 10), 4),
    "kubemend_capture_seconds": Variable(_number(1, 86400), 60),
    "kubemend_capture_match": Variable(_expression, None),
    "kubemend_probe": Variable(_boolean, False),
    "kubemend_cleanup_rejected": Variable(_boolean, False),
    "kubemend_patch_workloads": Variable(_boolean, False),
    "kubemend_prove_pinning": Variable(_boolean, False),
    "kubemend_capture": Variable(_boolean, False),
    "kubemend_expect_pinning": Variable(_selector, None),
}


# What the operator consents to, or how a repair does it: without a repair none of them has an
# effect.
CONSENT = (
    "kubemend_max_risk",
    "kubemend_max_unavailable",
    "kubemend_allow",
    "kubemend_drain_timeout",
    "kubemend_probe",
    "kubemend_cleanup_rejected",
    "kubemend_patch_workloads",
    "kubemend_prove_pinning",
)


@dataclass(frozen=True)
class Settings:
    """Checked values; faults None means all."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def fixed(self, **values: Any) -> Settings:
        """Return the same settings with these values in place of the variables'.

        A role is the consent for what it is named after.
        """
        return Settings({**self.values, **{PREFIX + name: value for name, value in values.items()}})

    def __getattr__(self, name: str) -> Any:
        """settings.fail_on is the value of kubemend_fail_on."""
        try:
            return self.__dict__["values"][PREFIX + name]
        except KeyError:
            raise AttributeError(name) from None


def shown(value: Any) -> str:
    """Return a value as a sentence can contain it: one line, printable, short."""
    text = repr(value)
    if isinstance(value, str):
        text = repr(str(value))
    if not text.isprintable():
        text = ascii(text)[1:-1]
    if len(text) > 80:
        text = text[:77] + "..."
    return text


def unknown_names(names: Iterable[str]) -> list[str]:
    """Return the names that begin with kubemend_ and are none of its variables, sorted."""
    own_names = {str(name) for name in names if str(name).startswith(PREFIX)}
    return sorted(own_names - VARIABLES.keys())


def complain_about(name: str, location: str = "") -> str:
    """Return the sentence for an unknown variable, with the nearest one."""
    return (
        f"{name}{location} is not a variable of kubemend; the nearest one is"
        f" {nearest(name, VARIABLES)}."
    )


def nearest(name: str, known_names: Iterable[str], least: float = 0.0) -> str:
    """Return the most similar known name; empty where none is as similar as least (0 to 1)."""
    near = difflib.get_close_matches(name, list(known_names), n=1, cutoff=least)
    if near:
        return near[0]
    return ""


def without_effect(settings: Settings, playbook: str) -> list[str]:
    """Return a sentence about consent that was given to a playbook that repairs nothing."""
    consent_names = [name for name in CONSENT if settings.values[name] != VARIABLES[name].default]
    if not consent_names:
        return []
    verb, location = "have", ""
    if len(consent_names) == 1:
        verb = "has"
    if playbook == "replay":
        location = " on the cluster"
    return [
        f"{', '.join(consent_names)} {verb} no effect in {playbook}; run"
        f" kubemend.remediation.remediate{location}."
    ]


def check(
    mapping: Mapping[str, Any], codes: Iterable[str] | None = None, location: str = ""
) -> Settings:
    """Return the settings of variables; names without kubemend's prefix are passed over.

    codes: the fault codes that exist. A value of None means that the variable is not set. Raises
    SettingsError with one sentence.
    """
    wrong = unknown_names(mapping)
    if wrong:
        raise SettingsError(complain_about(wrong[0], location))
    values = {
        name: _parsed(name, variable, mapping.get(name), location)
        for name, variable in VARIABLES.items()
    }
    if codes is not None:
        _require_codes(values["kubemend_faults"] or (), sorted(codes), location)
    return Settings(values)


def _parsed(name: str, variable: Variable, value: Any, location: str) -> Any:
    if value is None:
        return variable.default
    try:
        return variable.parse(value)
    except _Bad as bad:
        raise SettingsError(f"{name}{location} is {shown(value)}; it must be {bad}.") from None


def _require_codes(faults: Iterable[str], known_codes: list[str], location: str) -> None:
    """Raise SettingsError for a code that does not exist, with the nearest one."""
    for code in sorted(set(faults).difference(known_codes)):
        near, hint = nearest(code, known_codes), ""
        if near:
            hint = f"; the nearest one is {near}"
        raise SettingsError(
            f"kubemend_faults{location} names {code}, which this version does not judge{hint}."
        )


def differing(first: Settings, other: Settings) -> str | None:
    """Return the run-wide variable that two hosts set differently, if any."""
    for name, variable in VARIABLES.items():
        if variable.run_wide and first.values[name] != other.values[name]:
            return name
    return None
