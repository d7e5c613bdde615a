# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else of a release a configuration can name: plugins, API groups, versions, limits."""

from __future__ import annotations

import re
from pathlib import Path

_PLUGIN = re.compile(r"(?m)^\t+[\w.]+,[ \t]*//[ \t]*([A-Z]\w+)[ \t]*$")
_GROUP = re.compile(r"GroupName = \"([\w.-]+)\"")
# A package of versions that has the group's name before it: flowcontrolv1beta1.AddToScheme
_INSTALLED = re.compile(r"\b[a-z]*?(v\d+(?:(?:alpha|beta)\d+)?)\.AddToScheme")
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d+)?\Z")
_SKEW = re.compile(r"MaximumAllowedMinorVersionKubeletSkew = (\d+)")
_TIDIED = re.compile(r"unwantedFlags := \[\]string\{([^}]*)\}")
_TEXT = re.compile(r"(?m)^\s*\"([\w-]+)\",")
_ETCD = re.compile(r"MinExternalEtcdVersion = \"([\d.]+)")


def plugins(folders: dict[str, Path]) -> frozenset[str]:
    """Return the admission plugins of the API server."""
    path = folders["kubernetes"] / "pkg/kubeapiserver/options/plugins.go"
    text = path.read_text(encoding="utf-8")
    ordered = text.partition("AllOrderedPlugins = []string{")[2].partition("\n}")[0]
    return frozenset(_PLUGIN.findall(ordered))


def groups(folders: dict[str, Path]) -> frozenset[str]:
    """Return the groups of the API server's own APIs."""
    paths = (folders["kubernetes"] / "pkg/apis").glob("*/register.go")
    return frozenset(
        name for path in paths for name in _GROUP.findall(path.read_text(encoding="utf-8"))
    )


def group_versions(folders: dict[str, Path]) -> frozenset[str]:
    """Return the versions of these groups that the API server registers, such as batch/v1."""
    found = set()
    for path in (folders["kubernetes"] / "pkg/apis").glob("*/install/install.go"):
        register = (path.parents[1] / "register.go").read_text(encoding="utf-8")
        installed = _INSTALLED.findall(path.read_text(encoding="utf-8"))
        found |= {f"{name}/{one}" for name in _GROUP.findall(register) for one in installed}
    return frozenset(found)


def scheduler_versions(folders: dict[str, Path]) -> frozenset[str]:
    """Return the versions of KubeSchedulerConfiguration."""
    return _versions(folders["kubernetes"] / "pkg/scheduler/apis/config")


def kubeadm_versions(folders: dict[str, Path]) -> frozenset[str]:
    """Return the versions of ClusterConfiguration."""
    return _versions(folders["kubernetes"] / "cmd/kubeadm/app/apis/kubeadm")


def _versions(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir() if _VERSION.match(path.name))


def external_etcd(folders: dict[str, Path]) -> str:
    """Return the oldest release of an external etcd that kubeadm takes."""
    path = folders["kubernetes"] / "cmd/kubeadm/app/constants/constants.go"
    return _ETCD.findall(path.read_text(encoding="utf-8"))[0]


def kubelet_skew(folders: dict[str, Path]) -> str:
    """Return by how many minor releases a kubelet may be older than where kubeadm upgrades to."""
    path = folders["kubernetes"] / "cmd/kubeadm/app/phases/upgrade/policy.go"
    return _SKEW.findall(path.read_text(encoding="utf-8"))[0]


def tidied(folders: dict[str, Path]) -> frozenset[str]:
    """Return the flags that `kubeadm upgrade` takes out of kubeadm-flags.env by itself."""
    path = folders["kubernetes"] / "cmd/kubeadm/app/cmd/phases/upgrade/postupgrade.go"
    if not path.is_file():
        return frozenset()
    match = _TIDIED.search(path.read_text(encoding="utf-8"))
    return frozenset(_TEXT.findall(match.group(1)) if match else ())
