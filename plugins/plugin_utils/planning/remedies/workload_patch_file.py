# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patches that findings of KM313 offer, as files of a report. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from ...evidence import document
from ...faults.resource_managers import unpinned_pods
from ...models.cluster import Cluster
from ...models.qos import Subject
from ...models.result import Finding

CODE = "KM313"
LONGEST = 200


def texts(
    findings: Iterable[Finding], clusters: Iterable[Cluster], key_digits: int
) -> dict[str, str]:
    """{file name: text} of a patch for each finding that one cures.

    key_digits: of a cluster's key, as findings name it.
    """
    named = {
        (item.cluster, item.component) for item in findings if item.code == CODE and item.command
    }
    files: dict[str, str] = {}
    for cluster in clusters:
        key = cluster.key[:key_digits] if cluster.key else None
        for subject, patch in (
            unpinned_pods.patches(cluster)
            if any(cluster_key == key for cluster_key, dummy in named)
            else ()
        ):
            if (key, subject.title) in named:
                files[_name(subject, key, files)] = _text(subject, patch)
    return files


def _name(subject: Subject, key: str | None, files: Mapping[str, str]) -> str:
    """Return <namespace>-<kind>-<name>.yaml, with a digest where it is too long or taken."""
    name = document.file_name(f"{subject.namespace}-{subject.kind.lower()}-{subject.name}", ".yaml")
    if len(name) <= LONGEST and name not in files:
        return name
    digest = hashlib.sha256(f"{key} {subject.title}".encode()).hexdigest()[:8]
    return f"{name[: -len('.yaml')][:LONGEST]}-{digest}.yaml"


def _text(subject: Subject, patch: Mapping[str, Any]) -> str:
    head = (
        f"# kubectl -n {subject.namespace} patch {subject.kind.lower()} {subject.name}"
        " --type=strategic --patch-file=<this file>\n"
    )
    return head + yaml.safe_dump(dict(patch), sort_keys=False)
