# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods that a webhook without a server keeps from their work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...models import pod_roles, refused_pods
from ...models.cluster import Cluster, Host
from ...models.pod_errors import PodError
from ...models.result import EvidenceRef
from ...models.system_pods import EndedPod
from ..pods import system_pods


@dataclass(frozen=True)
class Client:
    """One container that says which webhook could not be called.

    ends: whether it ends because of that, again and again
    """

    host: Host
    pod: EndedPod | PodError
    line: str
    ends: bool

    @property
    def clause(self) -> str:
        """Return the pod, its node and what happens to it, as a part of a sentence."""
        place = f"{self.pod.namespace}/{self.pod.pod} on {self.host.node or self.host.host}"
        if self.ends:
            return f"{place} ends again and again"
        return f"{place} repeats the refusal"

    @property
    def is_of_network(self) -> bool:
        """Tell whether it is an agent of the network, for which all other pods wait."""
        return pod_roles.role(self.pod) == pod_roles.NETWORK

    @property
    def proof(self) -> EvidenceRef:
        """Return the line that says it."""
        name = f"{self.pod.namespace}/{self.pod.pod}"
        return EvidenceRef("log", self.host.host, path=self.pod.path, object=name, text=self.line)


def of_webhooks(cluster: Cluster, names: Iterable[str]) -> tuple[Client, ...]:
    """Return the containers that say that one of these webhooks could not be called."""
    webhooks = frozenset(names)
    ending = frozenset(system_pods.endings(cluster))
    rows = (row for host in cluster.hosts for row in _clients(host, ending))
    return tuple(row for row in rows if refused_pods.webhook_in(row.line) in webhooks)


def _clients(host: Host, ending: frozenset[EndedPod]) -> Iterator[Client]:
    for pod in host.system_pods:
        if pod in ending:
            yield Client(host, pod, pod.line, True)
    for row in host.pod_errors.rows:
        yield Client(host, row, row.message, False)
