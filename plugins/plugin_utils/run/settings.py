# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check kubemend_* variables.

check() turns a mapping of variables into Settings, or raises SettingsError with one sentence that
names the variable, its value and what is allowed.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .variable_kinds import BadValue
from .variables import VARIABLES, Variable

PREFIX = "kubemend_"
ALIKE = 0.5  # of a code to the one that is meant


class SettingsError(ValueError):
    """Bad input: the message is one sentence for the operator."""


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


def without_effect(settings: Settings, playbook: str, effective: Collection[str] = ()) -> list[str]:
    """Return a sentence about consent that was given to a playbook that repairs nothing.

    effective: the names of consent that this run uses nevertheless.
    """
    consent_names = [
        name
        for name in CONSENT
        if settings.values[name] != VARIABLES[name].default and name not in effective
    ]
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
    known_codes = sorted(codes or ())
    values = {
        name: _parsed(name, variable, mapping.get(name), location, known_codes)
        for name, variable in VARIABLES.items()
    }
    if codes is not None:
        for name in ("kubemend_faults", "kubemend_severity"):
            _require_codes(name, values[name] or (), known_codes, location)
    return Settings(values)


def _parsed(
    name: str, variable: Variable, value: Any, location: str, known_codes: Collection[str]
) -> Any:
    if value is None:
        return variable.default
    try:
        return variable.kind.parse(value)
    except BadValue as bad:
        hint = ""
        near = nearest(bad.code, known_codes, ALIKE)
        if near and bad.code.isalnum():
            hint = f"; the code nearest to {bad.code} is {near}"
        raise SettingsError(
            f"{name}{location} is {shown(value)}; it must be {bad}{hint}."
        ) from None


def _require_codes(name: str, faults: Iterable[str], known_codes: list[str], location: str) -> None:
    """Raise SettingsError for a code that does not exist, with the nearest one."""
    for code in sorted(set(faults).difference(known_codes)):
        near, hint = nearest(code, known_codes), ""
        if near:
            hint = f"; the nearest one is {near}"
        raise SettingsError(
            f"{name}{location} names {code}, which this version does not judge{hint}."
        )


def differing(first: Settings, other: Settings) -> str | None:
    """Return the run-wide variable that two hosts set differently, if any."""
    for name, variable in VARIABLES.items():
        if variable.run_wide and first.values[name] != other.values[name]:
            return name
    return None
