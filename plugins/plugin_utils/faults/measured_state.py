# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Add to a finding what its host measured about the error that it quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..models.cluster import Host
from ..parsers.pod_manifest import Mount
from . import address_holders, hidden_units, kubelet_logs, path_states
from .base import Detection


def of_node(hit: Detection, host: Host, code: str) -> Detection:
    """Return a hit of a node check with what its host measured about the errors that it quotes.

    These are who has the port, what lies at the path, and for faults of units (code) their files.
    Such a hit is about units and static pods, whose paths are those of the host.
    """
    hit = address_holders.with_holder(hit, host.address_holders)
    hit = path_states.with_state(hit, host.path_states, _mounts(hit, host))
    hit = kubelet_logs.with_log(hit, host)
    return hidden_units.with_file(hit, code, host.hidden_units)


def of_cluster(hit: Detection, hosts: Mapping[str, Host]) -> Detection:
    """Return a hit of a cluster check with who has the port that its texts name, and its log.

    The paths of pods are those of their own root and volumes.
    """
    host = hosts.get(hit.host or "")
    if host is None:
        return hit
    return address_holders.with_holder(kubelet_logs.with_log(hit, host), host.address_holders)


def _mounts(hit: Detection, host: Host) -> Sequence[Mount] | None:
    """Return the volumes of the static pod that a hit is about, None where it is about none."""
    plane = host.control_plane
    if plane is None or hit.component in host.unit_components:
        return None
    uses = [use for use in plane.files if use.component == hit.component]
    return next((use.mounts for use in uses), None)
