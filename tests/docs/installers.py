# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/installers.md: what is read and repaired, by the tool that made the cluster."""

from __future__ import annotations

from tests.docs import ROOT, between

PAGE = ROOT / "docs" / "installers.md"
# What is repaired on any host, because no installer writes it again.
ANYWHERE = "kernel settings and modules, limits, swap"
# What is different where another tool owns the files: what is read, and what else is repaired. The
# place to change is in models/installer.py.
FOREIGN = {
    "RKE2": (
        "everything; of its runtime the pod network and the sandboxes alone",
        "enabling its unit while it runs (while neither of its two units runs, the right one is"
        " unknown)",
    ),
    "k3s": (
        "nodes, the API and etcd, and the kubelet by the command line that k3s logs; of its runtime"
        " the pod network and the sandboxes alone. Scheduler and"
        " controller manager are part of its"
        " single process and show no arguments or manifests",
        "enabling and starting its unit",
    ),
    "kOps": ("everything", "enabling and starting the kubelet"),
    "OpenShift": ("everything", "enabling and starting the kubelet"),
    "microk8s": (
        "nodes and the API; not its runtime. Its components are a single process",
        "none of its services, because snapd switches them",
    ),
}
OWN = (
    (
        "| kubeadm | everything | everything in [repairs](repairs.md), and kubeadm-config, from"
        " which an upgrade writes manifests | |"
    ),
    (
        "| kubespray | everything | the same; each step names the inventory setting that keeps it"
        " | |"
    ),
)
OTHERS = (
    (
        "| k0s | processes by their names, and the API with `kubemend_kubeconfig` and"
        f" `kubemend_kubectl`; not its runtime | {ANYWHERE} | components without a manifest; a"
        " kubelet of an unknown unit |"
    ),
    (
        "| managed control plane | the nodes in the inventory; what needs a control plane node or"
        f" the API is unknown or not applicable | {ANYWHERE}, only with"
        " `kubemend_allow=api_down`, because a deliberate cordon cannot be ruled out | everything"
        " else |"
    ),
)


def page() -> str:
    """Return docs/installers.md with its table."""
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import installer

    strange = set(installer.PLACES) ^ set(FOREIGN)
    if strange:
        raise SystemExit(
            f"tests/docs/installers.py and installer.PLACES differ: {', '.join(sorted(strange))}"
        )
    rows = [
        f"| {name} | {FOREIGN[name][0]} | {ANYWHERE}; {FOREIGN[name][1]} | the files of its"
        f" components and the managers' state: change {place} |"
        for name, place in installer.PLACES.items()
    ]
    table = [
        "| made by | read | repaired | refused, and where to change it |",
        "|---|---|---|---|",
        *OWN,
        *rows,
        *OTHERS,
    ]
    return between(PAGE, "installers", "\n".join(table))
