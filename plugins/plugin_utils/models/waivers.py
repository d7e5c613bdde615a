# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operator says about findings: waivers, and severities of their own.

A waiver changes no verdict. Its finding stays in every report, as waived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from .result import Finding, Result, Waived

# A change of kubemend that was interrupted: repairs that passed over it would build on it.
NEVER = frozenset(("KM902",))


@dataclass(frozen=True)
class Waiver:
    """One entry of the waivers file.

    Attributes:
        code, hosts, component: shell globs; no component means any or none.
        expires: the last day on which it has effect, as YYYY-MM-DD in UTC.
        line: of the file, 1-based.
    """

    code: str
    hosts: str
    reason: str
    owner: str
    expires: str
    component: str | None = None
    line: int = 0

    def is_expired(self, today: str) -> bool:
        """Return whether its last day is over."""
        return self.expires < today

    def covers(self, finding: Finding) -> bool:
        """Return whether it is for this finding, expired or not.

        A finding of several hosts needs all of them; one of no host is that of the empty name.
        """
        if finding.code in NEVER or not fnmatchcase(finding.code, self.code):
            return False
        if self.component is not None and not fnmatchcase(finding.component or "", self.component):
            return False
        names = finding.everywhere or (finding.node or "",)
        return all(fnmatchcase(name, self.hosts) for name in names)

    @property
    def end(self) -> str:
        """The sentence about an expired waiver."""
        component = f" {self.component}" if self.component is not None else ""
        return (
            f"The waiver in line {self.line} of kubemend_waivers ({self.code} on"
            f" {self.hosts}{component}, owner {self.owner}) expired on {self.expires} and has no"
            " effect: extend it or remove it."
        )


def expired(waivers: Iterable[Waiver], today: str) -> tuple[Waiver, ...]:
    """Return the waivers that have no effect any more."""
    return tuple(waiver for waiver in waivers if waiver.is_expired(today))


def apply(result: Result, waivers: Sequence[Waiver], today: str) -> Result:
    """Return a result whose findings say which waiver covers them; the first one counts."""
    effective = [waiver for waiver in waivers if not waiver.is_expired(today)]
    if not effective:
        return result
    findings = tuple(_waived(finding, effective) for finding in result.findings)
    return replace(result, findings=findings)


def _waived(finding: Finding, waivers: Iterable[Waiver]) -> Finding:
    for waiver in waivers:
        if waiver.covers(finding):
            return replace(finding, waived=Waived(waiver.reason, waiver.owner, waiver.expires))
    return finding


def with_severities(result: Result, severities: Mapping[str, str]) -> Result:
    """Return a result whose findings have the severities that the operator gives their codes."""
    if not severities:
        return result
    findings = tuple(
        replace(finding, severity=severities.get(finding.code, finding.severity))
        for finding in result.findings
    )
    return replace(result, findings=findings)


def changed_severities(before: Result, after: Result) -> dict[str, str]:
    """Return {code: severity} of the findings whose severity is not the catalogue's."""
    pairs = zip(before.findings, after.findings, strict=True)
    return {new.code: new.severity for old, new in pairs if new.severity != old.severity}
