# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM702: check for packages of Kubernetes or its runtime that upgrade themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.next_start import (
    Distribution,
    NextStart,
    Package,
    RpmPackage,
    RpmUpgrades,
    Upgrades,
)
from ...evidence.document import one_line
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...parsers import upgrade_origins
from ..base import CheckResult, Detection, node_check, not_applicable, present
from .next_program_start import COLLECTOR, unread

SHOWN = 5
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{1,60}")  # it becomes a part of a command
JOB = "apt-daily-upgrade.timer"
YUM_CRON = "yum-cron"
DNF_LOCK = (
    "dnf install 'dnf-command(versionlock)', which dnf5 has already, then dnf versionlock add"
)
YUM_LOCK = "yum install yum-plugin-versionlock, then yum versionlock add"


@node_check(
    "KM702",
    "Packages of Kubernetes or its runtime upgrade themselves",
    severity="warning",
    risk=1,
    applies="nodes with unattended-upgrades, dnf-automatic, dnf5 automatic or yum-cron",
    needs=("kubelet", COLLECTOR),
    tier="deep",
)
def automatic(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM702: report packages that nothing holds, and that the distribution's job takes."""
    without = unread(host)
    if without is not None:
        yield without
        return
    answer = contract.answer(document, NextStart)
    if answer.upgrades is not None:
        yield _of_apt(host, answer.upgrades)
    elif answer.rpm_upgrades is not None:
        yield _of_rpm(host, answer.rpm_upgrades)
    else:
        yield not_applicable("no job upgrades packages by itself", host=host.host)


def _of_apt(host: Host, upgrades: Upgrades) -> CheckResult:
    if upgrades.error:
        return CheckResult((), (Missing(host.host, COLLECTOR, "error"),), host=host.host)
    if not upgrades.on:
        return CheckResult(host=host.host, note=f"{JOB} or apt's periodic upgrade is off")
    packages = taken_packages(upgrades)
    if packages:
        return present(_hit(host, packages), host=host.host)
    return CheckResult(host=host.host)


def _of_rpm(host: Host, upgrades: RpmUpgrades) -> CheckResult:
    if upgrades.error:
        return CheckResult((), (Missing(host.host, COLLECTOR, "error"),), host=host.host)
    program, unit = one_line(upgrades.program, 40), one_line(upgrades.unit, 60)
    if not upgrades.on:
        return CheckResult(host=host.host, note=f"{program} is off, or installs nothing ({unit})")
    packages = [
        package
        for package in upgrades.packages
        if _NAME.fullmatch(package.name) and (package.own or not upgrades.security)
    ]
    if packages:
        return present(_rpm_hit(host, upgrades, packages), host=host.host)
    return CheckResult(host=host.host)


def _rpm_hit(host: Host, upgrades: RpmUpgrades, packages: Sequence[RpmPackage]) -> Detection:
    names = [package.name for package in packages]
    program, unit = one_line(upgrades.program, 40), one_line(upgrades.unit, 60)
    updates = "security updates of " if upgrades.security else ""
    shown = " ".join(names[:SHOWN])
    lock = f"{DNF_LOCK} {shown}"
    if program == YUM_CRON:
        lock = f"{YUM_LOCK} {shown}"
    return Detection(
        f"{program} may install {updates}{and_others(names, SHOWN)} at any day, on all nodes within"
        " a day, and their packages restart services",
        (
            EvidenceRef("unit", host.host, object=unit, text="is started at each boot"),
            *(_rpm_proof(host, program, package) for package in packages[:SHOWN]),
        ),
        f"keep them at their versions, and upgrade them node by node with the cluster: {lock}."
        " Locked packages get no security updates by themselves",
        host=host.host,
        node=host.node,
        component=names[0],
        risk=0,
    )


def _rpm_proof(host: Host, program: str, package: RpmPackage) -> EvidenceRef:
    configuration = "/etc/dnf/dnf.conf"
    if program == YUM_CRON:
        configuration = "/etc/yum.conf"
    text = f"{package.name} {one_line(package.installed, 60)}: neither excluded nor locked"
    return EvidenceRef("file", host.host, path=f"{configuration}, /etc/yum.repos.d", text=text)


def taken_packages(upgrades: Upgrades) -> list[Package]:
    """Return the packages that nothing holds, and that unattended-upgrades takes."""
    if not upgrades.on or upgrades.error:
        return []
    return [package for package in upgrades.packages if _is_taken(package, upgrades)]


def _is_taken(package: Package, upgrades: Upgrades) -> bool:
    """Tell whether a source of a package is one whose packages are upgraded."""
    if not _NAME.fullmatch(package.name):
        return False
    system = upgrades.system or Distribution()
    return any(
        upgrade_origins.matches(pattern, source, system)
        for pattern in upgrades.patterns
        for source in package.sources
    )


def _hit(host: Host, packages: Sequence[Package]) -> Detection:
    names = [package.name for package in packages]
    waiting = [_waiting(package) for package in packages if _is_newer(package)]
    coming = "nothing waits now"
    if waiting:
        coming = f"the next run takes {and_others(waiting, SHOWN)}"
    return Detection(
        f"unattended-upgrades may upgrade {and_others(names, SHOWN)} at any day, on all nodes"
        f" within a day, and restarts services of them; {coming}",
        (
            EvidenceRef("unit", host.host, object=JOB, text="is started at each boot"),
            *(_proof(host, package) for package in packages[:SHOWN]),
        ),
        "hold them, and upgrade them node by node with the cluster: apt-mark hold"
        f" {' '.join(names[:SHOWN])}; or name them in Unattended-Upgrade::Package-Blacklist in a"
        " file of /etc/apt/apt.conf.d. Held packages get no security updates by themselves",
        host=host.host,
        node=host.node,
        component=names[0],
    )


def _proof(host: Host, package: Package) -> EvidenceRef:
    text = f"{package.name} {one_line(package.installed, 60)}: not held"
    return EvidenceRef("file", host.host, path="/var/lib/dpkg/status", text=text)


def _is_newer(package: Package) -> bool:
    return package.candidate not in ("", "(none)", package.installed)


def _waiting(package: Package) -> str:
    versions = f"{one_line(package.installed, 60)} to {one_line(package.candidate, 60)}"
    return f"{package.name} from {versions}"
