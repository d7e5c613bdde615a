# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the flags of a static pod's component name, against its volumes and the host. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.component_end import ComponentEnd, ComponentLog
from ..evidence.answers.node.static_pod_paths import StaticPodPaths
from ..parsers import go_error, pflag
from ..parsers.pod_manifest import Mount
from ..parsers.release_table import FLAG
from .control_plane import ControlPlane, FileUse

NOT_MOUNTED, MISSING, WRONG_KIND = "not_mounted", "missing", "wrong_kind"
CONFIG = "config"  # the only file of a component that has kinds and versions
# Flags that name a file without which a component does not start, by all releases.
FILES = frozenset(
    (
        "admission-control-config-file",
        "audit-policy-file",
        "audit-webhook-config-file",
        "authentication-config",
        "authentication-kubeconfig",
        "authentication-token-webhook-config-file",
        "authorization-config",
        "authorization-kubeconfig",
        "authorization-policy-file",
        "authorization-webhook-config-file",
        "basic-auth-file",
        "cert-file",
        "client-ca-file",
        "cloud-config",
        "cluster-signing-cert-file",
        "cluster-signing-key-file",
        CONFIG,
        "config-file",
        "egress-selector-config-file",
        "encryption-provider-config",
        "etcd-cafile",
        "etcd-certfile",
        "etcd-keyfile",
        "experimental-encryption-provider-config",
        "key-file",
        "kubeconfig",
        "kubelet-certificate-authority",
        "kubelet-client-certificate",
        "kubelet-client-key",
        "oidc-ca-file",
        "peer-cert-file",
        "peer-key-file",
        "peer-trusted-ca-file",
        "policy-config-file",
        "proxy-client-cert-file",
        "proxy-client-key-file",
        "requestheader-client-ca-file",
        "root-ca-file",
        "service-account-key-file",
        "service-account-private-key-file",
        "service-account-signing-key-file",
        "tls-cert-file",
        "tls-private-key-file",
        "token-auth-file",
        "tracing-config-file",
        "trusted-ca-file",
    )
)
# Folders that images have files of their own in.
OF_IMAGES = ("/etc/ssl/", "/etc/pki/", "/usr/", "/opt/", "/home/", "/bin/")
# What a kubelet asks of the path of a volume before it starts a pod.
ASKED = {
    "Directory": "directory",
    "File": "file",
    "Socket": "socket",
    "CharDevice": "character device",
    "BlockDevice": "block device",
}
MADE = ("DirectoryOrCreate", "FileOrCreate")
UNREAD = ("", "denied")


@dataclass(frozen=True)
class Problem:
    """One path that a component needs and does not get.

    flag: the flag that names it, empty where a volume itself is at fault
    path: as the component has it
    host_path: where it should be on the host, empty where no volume leads there
    kind: what lies there
    runs: whether the component runs, which it will not at its next start
    """

    use: FileUse
    reason: str
    path: str
    flag: str = ""
    host_path: str = ""
    kind: str = ""
    runs: bool = False


def problems(document: Mapping[str, Any], plane: ControlPlane) -> list[Problem]:
    """Return what the components of this host's manifests lack, each path once."""
    paths = contract.answer(document, StaticPodPaths).paths
    kinds = {row.path.rstrip("/") or "/": row.kind for row in paths}
    logs = {log.component: log for log in contract.answer(document, ComponentEnd).components}
    by_path: dict[tuple[str, str], Problem] = {}
    for use in plane.files:
        for problem in (*_of_volumes(use, plane, kinds), *_of_flags(use, plane, kinds)):
            if _was_read(use, problem, logs.get(use.component)):
                continue
            by_path.setdefault((use.path, problem.path), problem)
    return list(by_path.values())


def _was_read(use: FileUse, problem: Problem, log: ComponentLog | None) -> bool:
    """Tell whether a component has read its file of --config that no volume shows, as of an image.

    Its log is newer than the manifest and is about a kind that the file has.
    """
    if problem.reason != NOT_MOUNTED or problem.flag != CONFIG or log is None:
        return False
    is_newer = log.last is not None and log.last >= use.changed
    return is_newer and any(go_error.of_schema(line) is not None for line in log.lines)


def _of_volumes(use: FileUse, plane: ControlPlane, kinds: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the volumes whose path is not of the sort that they ask for."""
    for mount in use.mounts:
        if mount.host_path is None or mount.kind not in ASKED:
            continue
        kind = kinds.get(mount.host_path.rstrip("/") or "/", "")
        if kind in UNREAD or kind == ASKED[mount.kind]:
            continue
        reason = MISSING if kind == "missing" else WRONG_KIND
        runs = _runs(plane, use, None)
        yield Problem(use, reason, mount.path, "", mount.host_path, kind, runs)


def _of_flags(use: FileUse, plane: ControlPlane, kinds: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the files of flags that the component does not see."""
    for flag in sorted(FILES - _unknown(use)):
        for path in pflag.string_flags(use.words, flag):
            if not path.startswith("/") or "*" in path or "$" in path:
                continue
            problem = _of_path(use, flag, path, kinds)
            runs = _runs(plane, use, path)
            if problem is not None and not (runs and problem.reason == NOT_MOUNTED):
                yield Problem(
                    use,
                    problem.reason,
                    path,
                    flag,
                    problem.host_path,
                    problem.kind,
                    runs,
                )


def _unknown(use: FileUse) -> set[str]:
    """Return the flags that the release of this component no longer has."""
    if use.version is None:
        return set()
    rows = (row for row in use.refused if row.kind == FLAG)
    return {row.name for row in rows if row.since <= use.version}


def _of_path(use: FileUse, flag: str, path: str, kinds: Mapping[str, str]) -> Problem | None:
    """Return what is wrong with the path of a flag, None where nothing is known to be."""
    mount = _mount_of(use, path)
    if mount is None:
        if path.startswith(OF_IMAGES):
            return None
        return Problem(use, NOT_MOUNTED, path, flag)
    if mount.host_path is None:
        return None
    rest = path[len(mount.path.rstrip("/")) :]
    host_path = mount.host_path.rstrip("/") + rest
    kind = kinds.get(host_path, "")
    if kind == "missing" and (rest or mount.kind not in MADE):
        return Problem(use, MISSING, path, flag, host_path, kind)
    if kind == "directory":
        return Problem(use, WRONG_KIND, path, flag, host_path, kind)
    return None


def _mount_of(use: FileUse, path: str) -> Mount | None:
    """Return the deepest volume of a container that shows a path."""
    mounts = [
        mount
        for mount in use.mounts
        if path == mount.path.rstrip("/") or path.startswith(mount.path.rstrip("/") + "/")
    ]
    return max(mounts, key=lambda mount: len(mount.path), default=None)


def _runs(plane: ControlPlane, use: FileUse, path: str | None) -> bool:
    """Tell whether a static pod of the component runs, and with this path where one is named."""
    return any(
        process.component == use.component
        and process.static
        and (path is None or any(path in word for word in process.argv))
        for process in plane.processes
    )
