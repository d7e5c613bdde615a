# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps against what would change a node at a next start that no operator planned.

Packages are held, and systemd-networkd is told to leave routes and rules of others alone. Nothing
restarts for either of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....module_utils.shared import consent, networkd_settings
from ....module_utils.shared.step_kinds import HOLD_PACKAGES, NETWORKD_ROUTES, kind_of
from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.network import Network, NetworkService
from ...evidence.answers.node.next_start import NextStart
from ...evidence.document import one_line
from ...faults.node import automatic_upgrades, network_settings
from .. import fencing
from ..plan import RemedyContext, Step, all_of, label, left_out

RISK = 1
FILE = networkd_settings.FILE
UNTIL_UNHOLD = (
    "held packages get no security updates by themselves, until apt-mark unhold; a revert gives"
    " them their former selections"
)
NEXT = (
    "systemd-networkd is not restarted, and keeps what it read until its next start; a revert takes"
    " the file away"
)


def hold(scene: RemedyContext) -> Step | None:
    """KM702: every package that unattended-upgrades would take is put on hold."""
    upgrades = contract.answer(scene.document, NextStart).upgrades
    packages = automatic_upgrades.taken_packages(upgrades) if upgrades else []
    if not packages:
        return None
    finding, host = scene.finding, scene.finding.host or ""
    names = sorted({package.name for package in packages})
    target = f"selections of {' '.join(names)}"
    return Step(
        label(host, HOLD_PACKAGES.replace("_", "-")),
        host,
        finding.code,
        HOLD_PACKAGES,
        RISK,
        target,
        finding.component,
        finding.node,
        blocked_by=all_of(left_out(scene, host), fencing.refusal(scene), _unwanted(scene, names)),
        diff=_selections(target, names),
        limit=kind_of(HOLD_PACKAGES).seconds,
        note=UNTIL_UNHOLD,
        change={"kind": HOLD_PACKAGES, "path": target, "packages": names},
        expect={"component": None},
    )


def _unwanted(scene: RemedyContext, names: Sequence[str]) -> str | None:
    """Return why packages are not held without the word of their operator, or None."""
    if consent.HOLD_PACKAGES in scene.consent.allow:
        return None
    return (
        f"a hold keeps security updates of {counted(len(names), 'package')} from this host too;"
        f" {fencing.lifted(scene, consent.HOLD_PACKAGES)}"
    )


def _selections(target: str, names: Sequence[str]) -> str:
    rows = [f"-{name}\tinstall\n+{name}\thold\n" for name in names]
    return f"--- {target}\n+++ {target}\n{''.join(rows)}"


def leave_routes(scene: RemedyContext) -> Step | None:
    """KM534: systemd-networkd leaves routes and rules of others alone from its next start on."""
    service = contract.answer(scene.document, Network).networkd
    if scene.finding.component != network_settings.NETWORKD or service is None:
        return None
    keys_of_release = networkd_settings.known_keys(service.systemd or 0)
    keys = sorted(set(network_settings.managed_keys(service)).intersection(keys_of_release))
    if not keys and service.systemd:
        return None
    finding, host = scene.finding, scene.finding.host or ""
    step = Step(
        label(host, NETWORKD_ROUTES.replace("_", "-")),
        host,
        finding.code,
        NETWORKD_ROUTES,
        RISK,
        FILE,
        finding.component,
        finding.node,
        blocked_by=all_of(left_out(scene, host), fencing.refusal(scene), _blocked(service, keys)),
        limit=kind_of(NETWORKD_ROUTES).seconds,
        note=NEXT,
    )
    if not keys:
        return step
    change = {"kind": NETWORKD_ROUTES, "path": FILE, "keys": keys}
    return replace(step, diff=_added(keys), change=change, expect={"component": None})


def _added(keys: Sequence[str]) -> str:
    rows = [f"+{key}=no\n" for key in keys]
    return f"--- {FILE}\n+++ {FILE}\n+{networkd_settings.SECTION}\n{''.join(rows)}"


def _blocked(service: NetworkService, keys: Sequence[str]) -> str | None:
    """Return why the file would not count, or None."""
    if not keys:
        return "which systemd the node has is not known, nor which settings it knows"
    rows = {row.key: row for row in service.rows if row.section == networkd_settings.SECTION}
    row = next((rows[key] for key in keys if key in rows), None)
    if row is None:
        return None
    return (
        f"{one_line(row.path, 200)}:{row.line} says {row.key}={one_line(row.value, 60)}, and"
        " decides: change it there, or take the line away"
    )


REMEDIES = {"KM702": hold, "KM534": leave_routes}
