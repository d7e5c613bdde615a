# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of the programs of a host, and the settings with which their defects show. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node import pinning
from ..evidence.answers.node.cri import Cri
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.swap import Swap
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import known_age, message_table
from ..parsers.known_age import Versions
from .control_plane import ControlPlane
from .kubelet import config as kubelet_config
from .machine import Machine

KUBEADM_FLAGS = "kubeadm-flags.env"
RUNTIME_TYPE, MAX_SHIMS = "runtime_type", 5
VERSION_3 = 3  # of containerd's configuration, which came with containerd 2
_WITHOUT_FLAGS = re.compile(r"(?m)^[ \t]*KUBELET_KUBEADM_ARGS=(?:\"[ \t]*\"|'[ \t]*'|)[ \t]*$")
# "systemd 237" in Debian and Ubuntu; the first line of `mount --version` of util-linux.
_UTIL_LINUX = re.compile(r"util-linux (\d[\w.~+-]{0,30})")


@dataclass(frozen=True)
class Releases:
    """What the evidence of a host says of the releases of its programs.

    programs: the version of each program that is known
    cgroup_driver: the one that the kubelet is configured with, empty where it is not certain
    without_flags: the file of kubeadm's flags for the kubelet, where it has none; otherwise empty
    shims: file, line and kind of the shims that containerd's configuration names
    of_node: the releases of its kernel and of the runtime that answers its kubelet
    without_runtimes: containerd's configuration where it is older than version 3 and no file of it
    names a runtime; otherwise empty
    """

    programs: tuple[tuple[str, str], ...] = ()
    cgroup_driver: str = ""
    without_flags: str = ""
    shims: tuple[tuple[str, int | None, str], ...] = ()
    of_node: Versions = ()
    without_runtimes: str = ""

    def version(self, program: str) -> str | None:
        """Return the version of a program, None where it is not known."""
        return dict(self.programs).get(program)


UNKNOWN = Releases()


def extract(
    document: Mapping[str, Any], machine: Machine | None = None, plane: ControlPlane | None = None
) -> Releases:
    """Return what one node's evidence says of releases."""
    state = contract.answer(document, pinning.Pinning)
    kubelet = contract.answer(document, Kubelet)
    systemd = contract.answer(document, Swap).systemd
    util_linux = _UTIL_LINUX.search(state.mount or "")
    versions = {"runc": state.runc or "", "systemd": str(systemd or "")}
    if util_linux:
        versions["util-linux"] = util_linux.group(1)
    versions.update(_of_kubelet(kubelet, machine or Machine()))
    versions.update(_of_components(plane or ControlPlane()))
    programs = tuple((name, one_line(text, 100)) for name, text in versions.items() if text)
    return Releases(
        programs,
        _cgroup_driver(kubelet),
        _without_flags(kubelet),
        tuple(_shims(contract.answer(document, Cri)))[:MAX_SHIMS],
        of_node(document),
        _without_runtimes(contract.answer(document, Cri)),
    )


def of_node(document: Mapping[str, Any]) -> Versions:
    """Return the releases of a node's kernel and runtime, where its evidence has them."""
    cri = contract.answer(document, Cri)
    kernel = contract.answer(document, System).kernel
    rows = ((known_age.KERNEL, kernel), (cri.name, cri.version))
    return tuple((one_line(name, 40), one_line(text, 80)) for name, text in rows if name and text)


def _of_kubelet(kubelet: Kubelet, machine: Machine) -> dict[str, str]:
    """Return the release of a kubelet that runs, or would start, and of what is one with it."""
    if machine.version is None or machine.is_replaced:
        return {}
    names = ["kubelet"]
    if kubelet.distribution is not None:
        names.append(kubelet.distribution.program)
        names += message_table.EMBEDDED.get(kubelet.distribution.program, ())
    # k3s has a release of etcd within it
    return {name: machine.version for name in names if name != "etcd"}


def _of_components(plane: ControlPlane) -> dict[str, str]:
    """Return the releases of what runs the control plane: of processes, else of their images."""
    versions = {
        use.component: use.tag for use in plane.files if use.usual and use.version and use.tag
    }
    versions.update(
        {row.component: row.release for row in plane.processes if row.ours and row.release}
    )
    return versions


def _shims(cri: Cri) -> Iterator[tuple[str, int | None, str]]:
    for file in cri.files:
        for row in file.lines:
            if row.key == RUNTIME_TYPE:
                yield one_line(file.path, 253), row.line, one_line(row.value.strip("\"'"), 100)


def _without_runtimes(cri: Cri) -> str:
    """Return containerd's older configuration where no file of it names a runtime."""
    if not cri.files or any(file.error for file in cri.files):
        return ""
    if (cri.files[0].version or 1) >= VERSION_3 or next(_shims(cri), None) is not None:
        return ""
    return one_line(cri.files[0].path, 253)


def _cgroup_driver(kubelet: Kubelet) -> str:
    config = kubelet_config.read(kubelet)
    setting = config.setting("cgroupDriver", "cgroup-driver")
    return str(setting.value) if setting is not None and config.certain(setting) else ""


def _without_flags(kubelet: Kubelet) -> str:
    """Return the path of kubeadm's file of flags where that has none."""
    if kubelet.unit is None:
        return ""
    for file in kubelet.unit.environment_files:
        is_kubeadm = (file.path or "").endswith(f"/{KUBEADM_FLAGS}")
        if is_kubeadm and _WITHOUT_FLAGS.search(file.text or ""):
            return one_line(file.path, 300)
    return ""
