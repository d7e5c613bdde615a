# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advise what an operator changes where k3s or RKE2 runs the kubelet.

Their kubelet has no file and no unit of its own: its flags are values of kubelet-arg, and another
configuration counts from the next start of the unit of k3s or RKE2.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...evidence.document import one_line, shell_name
from ...models.kubelet import exit_cause, supervisor
from ...models.kubelet.exit_cause import Death
from ...models.kubelet.supervisor import Place, Supervisor

_FLAGS = frozenset((exit_cause.UNKNOWN_FLAG, exit_cause.REMOVED_GATE, exit_cause.BAD_CONFIGURATION))
_CREDENTIALS = frozenset((exit_cause.CREDENTIAL, exit_cause.CLIENT_CERTIFICATE))
_GATES = "feature-gates"
_MISMATCH = "configuration value mismatch"


def places(owner: Supervisor | None, death: Death | None) -> list[Place]:
    """Return where k3s or RKE2 is told what the last log line names."""
    if owner is None or death is None:
        return []
    if death.cause == exit_cause.SUPERVISOR:
        return supervisor.named(owner, death.line, death.keys)
    if death.cause not in _FLAGS:
        return []
    if death.cause == exit_cause.REMOVED_GATE:
        gates = owner.flag(supervisor.KUBELET_KEY, _GATES, death.what)
        return [place for place in gates if death.what in place.value]
    word, _equals, value = death.what.lstrip("-").partition("=")
    return owner.flag(supervisor.KUBELET_KEY, word.partition(": ")[0], value)


def clause(owner: Supervisor, death: Death) -> str:
    """Return that k3s or RKE2 refuses its own configuration, as a clause."""
    text = f"{owner.title} refuses its configuration ({death.what})"
    lines = places(owner, death)
    if not lines:
        return text
    return f"{text}: {_listed(lines)}"


def _listed(lines: Sequence[Place]) -> str:
    return " and ".join(place.text for place in lines)


def cure(owner: Supervisor, death: Death) -> str:
    """Return what to change of k3s or RKE2 about an exit cause, "" where that is the usual."""
    if death.cause in _CREDENTIALS:
        return credentials(owner)
    if death.cause == exit_cause.CPU_MANAGER_STATE:
        return "the playbook cpu_pinning shows the cause, and the commands that reset the state"
    if death.cause != exit_cause.SUPERVISOR and death.cause not in _FLAGS:
        return ""
    lines = places(owner, death)
    if lines:
        advice = f"{_verb(death)} {_listed(lines)}"
    elif death.cause == exit_cause.BAD_CONFIGURATION and death.what.startswith("/"):
        return f"correct {death.what.partition(': ')[0]}"
    else:
        advice = f"correct what that line names: {_key(death)} in {_files(owner)}"
    if "token" in death.keys:
        advice += (
            f" (the token of a server is in /var/lib/rancher/{owner.program}/server/node-token)"
        )
    if _MISMATCH in death.line:
        advice += (
            "; networks, cluster-dns, cluster-domain, disable, egress-selector-mode,"
            " flannel-backend, secrets-encryption and whatever else concerns the whole cluster must"
            " be the same on each server: compare the file with that of a server that runs"
        )
    return advice


def _verb(death: Death) -> str:
    if death.cause in (exit_cause.UNKNOWN_FLAG, exit_cause.REMOVED_GATE):
        return f"take {death.what} out of"
    return "correct"


def _key(death: Death) -> str:
    if death.cause == exit_cause.SUPERVISOR:
        return supervisor.key_of(death.line) or " or ".join(death.keys) or "its key"
    return supervisor.KUBELET_KEY


def _files(owner: Supervisor) -> str:
    unit = shell_name(owner.unit, "UNIT")
    return (
        f"{one_line(owner.file, 200)}, in config.yaml.d next to it, or in the arguments and the"
        f" environment of its unit (systemctl cat {unit})"
    )


def credentials(owner: Supervisor) -> str:
    """Return how k3s or RKE2 makes its certificates again."""
    unit, name = shell_name(owner.unit, "UNIT"), owner.program
    return (
        f"look at the file that the line names. {owner.title} makes the certificates and keys below"
        f" /var/lib/rancher/{name} itself when it starts: systemctl stop {unit}, {name} certificate"
        f" rotate, systemctl start {unit} makes them again. Where one is missing after such a"
        f" rotation, its release does not make it: install another patch release of {owner.title}"
    )


def started(owner: Supervisor) -> str:
    """Return how RKE2 starts its kubelet again once the cause is gone."""
    unit = shell_name(owner.unit, "UNIT")
    return (
        f"RKE2 starts it again by itself within seconds; what stands in {one_line(owner.file, 200)}"
        f" counts after systemctl restart {unit}"
    )
