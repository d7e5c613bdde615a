# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An incident of one API server of three: what follows for its own host, and how it comes back."""

from __future__ import annotations

import re

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import API_SERVER, MANAGER, SCHEDULER, manifest, processes


def wait_grown_up(cluster, node: str) -> None:
    """Wait until the API server has run for a minute: a younger one may miss etcd for its start."""
    cluster.wait(
        lambda: int(cluster.exec(node, "ps -o etimes= -C kube-apiserver").stdout.split()[0]) > 65,
        90,
        f"the API server of {node} to have run for a minute",
    )


class ApiServerIncident(Incident):
    """An incident by the manifest of one API server, which its own kubelet and components ask."""

    occupies = "cluster"
    # not the first, whose API server the workers' kubelets use
    target = "m3"

    def edit(self, cluster, target: str, pattern: str, replacement: str) -> None:
        """Replace one part of the manifest."""
        text = self.keep(cluster, target, target, manifest(API_SERVER)).decode()
        changed, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
        if not count:
            raise ValueError(f"{pattern} is not in the manifest")
        cluster.write(target, manifest(API_SERVER), changed)

    def undo(self, cluster, target):
        super().undo(cluster, target)
        # a kubelet that starts has forgotten for how long it waits before the next start
        cluster.exec(target, ["systemctl", "restart", "kubelet"])
        cluster.wait(
            lambda: len(processes(cluster, target, API_SERVER)) == 1,
            300,
            f"the API server of {target}",
        )

    def ended(self, cluster, target: str, words: str) -> None:
        """Wait until a container of the API server has ended with these words."""
        cluster.wait(
            lambda: (
                cluster.exec(
                    target,
                    f"grep -qs -- '{words}' /var/log/pods/*kube-apiserver*/kube-apiserver/*.log",
                    check=False,
                ).returncode
                == 0
            ),
            180,
            f"the API server of {target} to say: {words}",
        )

    def consequences(self, cluster, target):
        """Whoever asks that API server gets no answer; what has a lock ends for that."""
        return {
            ("KM114", target, API_SERVER),
            ("KM525", target, "kubelet"),
            ("KM529", target, "kubelet"),
            *((code, target, name) for code in ("KM118", "KM114") for name in (MANAGER, SCHEDULER)),
        }
