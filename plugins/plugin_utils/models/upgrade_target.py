# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release that an upgrade of a cluster is to bring, and whether it is known. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ..parsers import pflag, release_table
from ..parsers.release_table import Release
from .cluster import Cluster
from .release_refusal import API_SERVER, Refusal, after
from .result import Missing


@dataclass(frozen=True)
class Target:
    """The release of an upgrade.

    servers: the releases of the API servers, sorted
    """

    release: Release
    servers: tuple[Release, ...]

    @property
    def name(self) -> str:
        """Return the release as people write it."""
        return text_of(self.release)

    @property
    def is_known(self) -> bool:
        """Tell whether the table of releases has it and those before it."""
        return self.release <= release_table.newest() and self.servers[0] >= release_table.oldest()

    def steps(self) -> Iterator[Release]:
        """Yield the releases through which the upgrade goes, the last one included."""
        major, first = self.servers[0]
        for minor in range(first + 1, self.release[1] + 1):
            yield major, minor

    def refuses(self, refusal: Refusal) -> bool:
        """Tell whether this release refuses a setting."""
        return refusal.since <= self.release


def text_of(release: Release) -> str:
    """Return a release as people write it."""
    return f"{release[0]}.{release[1]}"


def find(cluster: Cluster) -> Target | None:
    """Return the release that an upgrade is to bring; None where no API server told its own.

    Where API servers have two releases, an upgrade to the newer one is under way.
    """
    answered = pflag.parse_version(cluster.version or "")
    if answered is None:
        return None
    servers = tuple(sorted({answered, *_written(cluster)}))
    target = cluster.upgrade_to
    if target is None and len(servers) > 1:
        target = servers[-1]
    return Target(target or after(answered), servers)


def _written(cluster: Cluster) -> list[Release]:
    """Return the release of each API server's manifest."""
    planes = [host.control_plane for host in cluster.hosts if host.control_plane]
    files = [file for plane in planes for file in plane.files]
    return [file.version for file in files if file.component == API_SERVER and file.version]


def unknown_release(cluster: Cluster, target: Target | None) -> tuple[tuple[Missing, ...], str]:
    """Return what is missing to judge a release, and why; nothing where it is known."""
    if target is None:
        return cluster.missing("server") or (cluster.missing_answer("server", "error"),), ""
    if target.is_known:
        return (), ""
    newest = text_of(release_table.newest())
    note = (
        f"what {target.name} refuses is not known: this version of kubemend has read the sources"
        f" of {text_of(release_table.oldest())} to {newest}"
    )
    return (cluster.missing_answer("server", "error"),), note


def by_kubeadm(cluster: Cluster) -> bool:
    """Tell whether kubeadm writes the manifests of the control plane at an upgrade."""
    return cluster.answered(KubeadmConfig)
