# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README's tables."""

from __future__ import annotations

from tests.docs import ROOT, between, faults

# What is repaired on any host, because no installer writes it again: kernel settings and modules,
# limits, swap.
ANYWHERE = "kernel settings and modules, limits, swap"
# What is different where another tool owns the files; the place to change is the code's own
# (owner.PLACES).
FOREIGN = {
    "RKE2": (
        "everything; its runtime is not judged",
        (
            "enabling its unit while it runs: which of its two is a node's cannot be told while"
            " neither does"
        ),
    ),
    "k3s": (
        (
            "nodes and the API; scheduler and controller manager are part of its one process, which"
            " shows neither arguments nor manifests of theirs; its runtime is not judged"
        ),
        "enabling and starting its unit",
    ),
    "kOps": ("everything", "enabling and starting the kubelet"),
    "OpenShift": ("everything", "enabling and starting the kubelet"),
    "microk8s": (
        (
            "nodes and the API; its components are one process, as k3s's are; its runtime is not"
            " judged"
        ),
        "nothing of its services: snapd switches them",
    ),
}
OURS = (
    (
        "| kubeadm | everything | everything that the table above lists; kubeadm-config too, from"
        " which an upgrade writes manifests | |"
    ),
    (
        "| kubespray | everything | the same; each step names what its inventory has to say, so"
        " that its next run keeps the repair | |"
    ),
)
OTHERS = (
    (
        "| k0s | nothing is known of it by name: processes by their names, the API with"
        f" `kubemend_kubeconfig` and `kubemend_kubectl`; its runtime is not judged | {ANYWHERE} |"
        " components that run from no manifest (where they are defined), a kubelet whose unit is"
        " not one that is known here |"
    ),
    (
        "| managed (the provider runs the control plane) | its nodes, as far as they are in the"
        " inventory; no control-plane node can be asked, so that what needs one or the API is"
        f" unknown or not applicable | {ANYWHERE}, only with `kubemend_allow=api_down`: nobody can"
        " ask whether a node was taken out on purpose | everything else |"
    ),
)


def page(catalogue, symptoms, repaired) -> str:
    path = ROOT / "README.md"
    text = between(path, "faults", f"{_symptoms(symptoms)}\n\n{_faults(catalogue, repaired)}")
    return between(path, "installers", _installers(), text)


def _installers() -> str:
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
        installer,
    )

    strange = set(installer.PLACES) ^ set(FOREIGN)
    if strange:
        raise SystemExit(
            f"tests/docs/readme.py and owner.PLACES differ: {', '.join(sorted(strange))}"
        )
    rows = [
        f"| {name} | {FOREIGN[name][0]} | {ANYWHERE}; {FOREIGN[name][1]} | its components' files"
        f" and the managers' state: change {place} |"
        for name, place in installer.PLACES.items()
    ]
    return "\n".join(
        [
            "| made by | diagnosed | repaired | refused, and where to change it |",
            "|---|---|---|---|",
            *OURS,
            *rows,
            *OTHERS,
        ]
    )


def _symptoms(symptoms) -> str:
    rows = [
        f"| [{symptom.title}](docs/symptoms/{symptom.name}.md) |"
        f" `kubemend.remediation.{symptom.name}` | {len(symptom.causes)} |"
        for symptom in symptoms.values()
    ]
    return "\n".join(["| symptom | playbook | causes that it judges |", "|---|---|---|", *rows])


def _faults(catalogue, repaired) -> str:
    rows = [
        f"| [{fault.code}](docs/faults/{fault.code}.md) | {fault.title} | {fault.severity} |"
        f" {faults.repair_cell(fault, repaired)} |"
        for fault in catalogue.values()
    ]
    return "\n".join(
        ["| fault | what it is | severity | a plan's step, risk |", "|---|---|---|---|", *rows]
    )
