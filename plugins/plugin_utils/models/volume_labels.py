# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of a volume that has not the label of a container's files. Pure.

The kubelet asks the runtime to label the volumes that it makes. A hostPath keeps its labels.
"""

from __future__ import annotations

from ..evidence.document import one_line, shell_name
from ..parsers.avc_denial import AvcDenial
from ..parsers.known_age import Versions
from ..parsers.release_number import is_within
from .denied_file import Denial

# What the policies give to files below /var/lib, and so to what the kubelet makes there.
_OF_VAR_LIB = frozenset(("var_lib_t", "container_var_lib_t", "kubelet_var_lib_t"))
_FOLDER = "/var/lib/"
_LINK = "lnk_file"
# Its library labels what a link leads to, and not the link itself (opencontainers/selinux 1.10.0).
CONTAINERD, FIRST, FIXED = "containerd", "1.6.0", "1.6.4"
_THREADS = (
    "https://github.com/containerd/containerd/issues/6767",
    "https://github.com/containerd/containerd/pull/6878",
)
_LOOK = "ausearch -m avc -ts boot shows the denials"


def read(row: AvcDenial, path: str, versions: Versions) -> Denial:
    """Return why a file that a container may not use has the label of /var/lib, or nothing.

    path: of the file, as the container has it
    versions: the releases of the kernel and the runtime of the node
    """
    if row.label not in _OF_VAR_LIB or path.startswith(_FOLDER):
        return Denial()
    version = dict(versions).get(CONTAINERD)
    if row.kind == _LINK and is_within(version, FIRST, FIXED):
        return _of_links(one_line(version or "", 40))
    return Denial(
        f". {row.label} is a label of what lies below /var/lib of the machine: there, and not at"
        " this path of the machine, is the volume that has the file",
        _of_volume(row, path),
    )


def _of_links(version: str) -> Denial:
    """Return the defect of these releases: no link of a ConfigMap or Secret gets its label."""
    return Denial(
        f". containerd {version} labels what the links in a volume lead to, and not the links"
        f" (releases {FIRST} to 1.6.3), so that confined containers read no ConfigMap or Secret",
        f"install containerd {FIXED} or later, or the corrected package of the distribution, and"
        " restart containerd; until then label the links of the pods that are there: find"
        " /var/lib/kubelet/pods -path '*/volumes/*' -type l -exec chcon -h -t container_file_t {}"
        f" + (see {', '.join(_THREADS)}). {_LOOK}",
    )


def _of_volume(row: AvcDenial, path: str) -> str:
    """Return how that volume is found, and gets its label, by its kind."""
    name = shell_name(path.rsplit("/", 1)[-1], "NAME")
    label = "container_file_t"
    if row.domain.startswith("svirt_"):
        label = "svirt_lxc_file_t or svirt_sandbox_file_t, whichever the policy has"
    return (
        "see which volume of the pod that is (its volumeMounts), and its label on the node: find"
        f" /var/lib/kubelet/pods -name {name} -exec ls -dZ {{}} +. A folder of the machine"
        f" (hostPath) keeps its label: give it {label} (semanage fcontext -a -t LABEL"
        " 'FOLDER(/.*)?' and restorecon -Rv FOLDER) where only containers use it. Another volume"
        " gets its label from the runtime when a container starts, where the kubelet asks for it:"
        " see enable_selinux of containerd, SELINUX of the kubelet's log, and seLinuxMount of the"
        f" driver (kubectl get csidriver -o yaml); {_LOOK}"
    )
