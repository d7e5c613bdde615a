# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arguments that kubeadm's ClusterConfiguration gives components, and its version. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ..evidence.document import one_line
from ..parsers import pflag, pod_manifest, release_table
from . import release_refusal
from .release_refusal import Refusal

OBJECT, SOURCE = "ConfigMap kube-system/kubeadm-config", "ClusterConfiguration"
SECTIONS = {
    "apiserver": "kube-apiserver",
    "controllermanager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}
_VERSION = re.compile(
    r"(?m)^apiVersion:[ \t]*[\"']?kubeadm\.k8s\.io/(v\w{1,20})[\"']?[ \t]*(?:#.*)?$"
)


def refused(record: KubeadmConfig) -> list[Refusal]:
    """Return what a later release refuses of these arguments. Raises ManifestError."""
    rows = []
    for component, name, value, line in _arguments(record):
        word = f"--{pflag.normalise(name)}={value}"
        rows += release_refusal.of_words(component, [one_line(word, 2000)], [(SOURCE, line)])
    return rows


def old_version(record: KubeadmConfig) -> list[Refusal]:
    """Return whether a later release of kubeadm does not read this ClusterConfiguration."""
    text = record.text or ""
    match = _VERSION.search(text)
    if match is None:
        return []
    place = (SOURCE, 1 + text.count("\n", 0, match.start()))
    return release_refusal.of_version(release_table.KUBEADM, match[1], match[0], place)


def external_etcd(record: KubeadmConfig) -> bool:
    """Tell whether kubeadm does not run etcd itself. Raises ManifestError."""
    return any(path[:2] == ("etcd", "external") for path, _value, _line in _scalars(record))


def _scalars(record: KubeadmConfig) -> Iterator[tuple[tuple[Any, ...], str, int]]:
    yield from pod_manifest.scalars(pod_manifest.parseable(record.text or "", record.masked))


def _arguments(record: KubeadmConfig) -> Iterator[tuple[str, str, str, int]]:
    """Yield component, flag, value and line of extraArgs.

    They are a map up to v1beta3, and a list of name and value since.
    """
    names: dict[tuple[Any, ...], str] = {}
    values: dict[tuple[Any, ...], tuple[str, int]] = {}
    for path, value, line in _scalars(record):
        component = _component(path)
        if component and len(path) == 3:
            yield component, str(path[2]), value, line
        elif component and path[3:] == ("name",):
            names[path[:3]] = value
        elif component and path[3:] == ("value",):
            values[path[:3]] = (value, line)
    for path, name in names.items():
        if path in values:
            yield SECTIONS[str(path[0]).lower()], name, *values[path]


def _component(path: tuple[Any, ...]) -> str | None:
    if len(path) < 3 or str(path[1]).lower() != "extraargs":
        return None
    return SECTIONS.get(str(path[0]).lower())
