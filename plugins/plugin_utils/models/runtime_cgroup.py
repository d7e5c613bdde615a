# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroup drivers of a kubelet and of its runtime, as both have them now. Pure.

A kubelet of 1.31 or newer asks its runtime, where that answers RuntimeConfig (containerd 2.0,
CRI-O 1.28), when it starts. Where the runtime was given another driver since, the cgroup that the
kubelet made for pods tells. Any other kubelet has its own setting, cgroupfs by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cri import ConfigFile, ConfigLine, Cri
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.pinning import Pinning
from ..evidence.document import one_line
from ..parsers import pflag, release_number
from . import containerd_merge, containerd_tables
from .kubelet import config as kubelet_config
from .kubelet.config import Setting
from .result import EvidenceRef

SYSTEMD, CGROUPFS = "systemd", "cgroupfs"
FIRST_ASKING = (1, 31)  # KubeletCgroupDriverFromCRI is beta, and on
FIRST_ANSWERING = {"containerd": "2.0.0-rc.0", "cri-o": "1.28.0"}
KEY = "SystemdCgroup"
ROOTS = {"kubepods.slice": SYSTEMD, "kubepods": CGROUPFS}


@dataclass(frozen=True)
class Drivers:
    """The two drivers.

    setting: what sets the kubelet's, None where it is the default
    root: the cgroup that shows what the kubelet has, where its runtime told it one
    """

    kubelet: str
    runtime: str
    setting: Setting | None = None
    root: str = ""

    @property
    def differ(self) -> bool:
        """Tell whether the two differ."""
        return self.kubelet != self.runtime


def drivers(document: Mapping[str, Any]) -> Drivers | None:
    """Return the drivers of a node, None where one of them is not known."""
    cri, kubelet = contract.answer(document, Cri), contract.answer(document, Kubelet)
    runtime = _of_runtime(cri)
    config = kubelet_config.read(kubelet)
    setting = config.setting("cgroupDriver", "cgroup-driver")
    if runtime is None or kubelet.process is None or not config.certain(setting):
        return None
    configured = Drivers(setting.value if setting else CGROUPFS, runtime, setting)
    version = pflag.parse_version(_version(document))
    if not _takes_driver_from_runtime(cri, version):
        return configured
    shown = _shown(document, runtime)
    if shown is None and version is not None:
        return Drivers(runtime, runtime, setting)
    return shown


def _takes_driver_from_runtime(cri: Cri, version: tuple[int, int] | None) -> bool:
    """Tell whether the kubelet asks its runtime for the driver, and gets an answer."""
    if version is None:
        return cri.driver is not None
    return version >= FIRST_ASKING and (cri.driver is not None or _answers_runtime_config(cri))


def _answers_runtime_config(cri: Cri) -> bool:
    """Tell whether a runtime answers the kubelet about its driver, although not this run."""
    first = FIRST_ANSWERING.get(cri.name)
    return first is not None and release_number.is_within(cri.version, first, "999")


def _shown(document: Mapping[str, Any], runtime: str) -> Drivers | None:
    """Return the drivers where the kubelet's one cgroup for pods is of another than the runtime's.

    Where both are there, its driver changed since the boot, and none is known to be the present.
    """
    names = [name for name in contract.answer(document, Pinning).pod_cgroups if name in ROOTS]
    if len(names) != 1 or ROOTS[names[0]] == runtime:
        return None
    return Drivers(ROOTS[names[0]], runtime, None, names[0])


def _version(document: Mapping[str, Any]) -> str:
    return (contract.answer(document, Pinning).kubelet_version or "").rpartition(" ")[2]


def _of_runtime(cri: Cri) -> str | None:
    if cri.driver is not None:
        return cri.driver
    if cri.config is None or cri.config.systemd_cgroup is None:
        return None
    return SYSTEMD if cri.config.systemd_cgroup else CGROUPFS


def places(document: Mapping[str, Any], host: str) -> Iterator[EvidenceRef]:
    """Yield the lines of the runtime's files that set its driver, or that no line does."""
    cri = contract.answer(document, Cri)
    files, shown = cri.files, False
    for file in files:
        for line in file.lines:
            if line.key not in (KEY, "systemd_cgroup"):
                continue
            shown = True
            reason = _not_read(cri, file, line)
            text = f"[{line.table}] {line.key} = {line.value}{_after(reason)}"
            yield EvidenceRef("file", host, path=file.path, line=line.line, text=text)
    if files and not shown:
        text = files[0].error or f"no line with {KEY}: the default is false"
        yield EvidenceRef("file", host, path=files[0].path, text=one_line(text, 200))


def unread(document: Mapping[str, Any]) -> str:
    """Return the clause that a line sets the driver where the runtime does not read it, or ""."""
    cri = contract.answer(document, Cri)
    for file in cri.files:
        for line in file.lines:
            reason = _not_read(cri, file, line) if line.key == KEY else ""
            if reason:
                return f"{KEY} in {one_line(file.path, 200)}:{line.line} is in {reason}"
    return ""


def _not_read(cri: Cri, file: ConfigFile, line: ConfigLine) -> str:
    """Return why a line has no effect: by its own file, or by what that is merged with."""
    reason = containerd_tables.not_read(file, line, cri.version or "")
    row = containerd_merge.of_line(containerd_merge.dropped(cri), file, line)
    if reason or row is None:
        return reason
    return f"a table that is dropped: {row.reason}"


def _after(reason: str) -> str:
    return f": {reason}" if reason else ""
