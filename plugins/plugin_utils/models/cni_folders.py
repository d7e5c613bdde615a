# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose folders of the CNI are not the usual ones, which plugins have in their settings.

Pure. K3s and MicroK8s have the runtime look elsewhere, and the folder of programs of an older K3s
has the hash of its release in its path: a template of containerd's configuration that is a copy of
a rendered file keeps that of a former release. The configuration of Multus stays after its removal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cni import Cni
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.document import one_line, shell_name

MULTUS = frozenset(("multus", "multus-shim"))
USUAL_FOLDER = "/etc/cni/net.d"
# By what the name of the kubelet's unit has, where the runtime does not tell it.
_OF_LAYOUTS = (
    ("k3s", "/var/lib/rancher/k3s/agent/etc/cni/net.d"),
    ("microk8s", "/var/snap/microk8s/current/args/cni-network"),
)
# A plugin that asks the API by a file of its own, below the folder that it takes for the node's.
_OF_PLUGIN = re.compile(
    r"(?P<path>/etc/cni/net\.d/[\w./-]{1,160}): no such file"
    r"|\berror adding container to network \\*\"(?P<network>[\w./-]{1,120})\\*\": config file not"
    r" found"
)
_PROGRAM = re.compile(
    r"failed to find plugin \\*\"(?P<name>[\w.-]{1,80})\\*\" in path"
    r" \[(?P<folder>/[\w./ -]{1,200})\]"
)


# libcni refuses the version of a configuration that its program does not know.
_OLD_PROGRAM = re.compile(
    r"incompatible CNI versions; config is|plugin [a-z0-9-]{1,40} does not support config version"
)
# A folder that K3s unpacks for one release of it.
_OF_RELEASE = re.compile(r"(?P<data>/[\w./-]{1,150})/data/[0-9a-f]{6,64}/bin")
_TEMPLATE = "agent/etc/containerd/config.toml.tmpl"
RKE2 = "rke2"


@dataclass(frozen=True)
class CniFolders:
    """Where a node has its CNI configuration, and its programs.

    folder: of the configuration, "" where it is not known; programs: None where not known
    left: the configuration that the runtime takes, where it is of Multus and the node has no pod
    of Multus
    running: the folder of the program that runs the kubelet, "" where it is not known
    unit: the name of the unit that runs it
    """

    folder: str = ""
    bin_dirs: tuple[str, ...] = ()
    programs: frozenset[str] | None = None
    left: str = ""
    running: str = ""
    unit: str = ""

    def clause(self, text: str) -> tuple[str, str]:
        """Return what a message of a pod's network means here, and what to do; "" for nothing."""
        meanings = (
            self._of_configuration,
            self._of_program,
            self._of_release,
            self._of_old_program,
            self._of_removal,
        )
        return next(filter(None, (meaning(text) for meaning in meanings)), ("", ""))

    def _of_release(self, text: str) -> tuple[str, str] | None:
        match = _PROGRAM.search(text)
        is_missing = match is not None and match.group("folder") in self.bin_dirs
        return self.of_release() if is_missing or _OLD_PROGRAM.search(text) else None

    def of_release(self) -> tuple[str, str] | None:
        """Return that the runtime may take the programs of a release of K3s which does not run."""
        release = next(filter(None, map(_OF_RELEASE.fullmatch, self.bin_dirs)), None)
        if release is None or release.group(0) == self.running:
            return None
        data, template = release.group("data"), f"{release.group('data')}/{_TEMPLATE}"
        release_clause = "which K3s made for one release. If another release runs now,"
        if _OF_RELEASE.fullmatch(self.running):
            release_clause = f"and the release of K3s that runs is in {self.running}:"
        return (
            f"containerd of that node takes the programs of the CNI from {release.group(0)}"
            f" (bin_dir), {release_clause} {template} is a copy of a config.toml that K3s rendered"
            " earlier",
            f"ls -l {data}/data shows which release is current. Make {template}"
            " (config-v3.toml.tmpl with containerd 2) a template again: bin_dir ="
            ' "{{ .NodeConfig.AgentConfig.CNIBinDir }}", or {{ template "base" . }} and the own'
            " lines below it, or remove it where registries.yaml does what it is for; then"
            f" systemctl restart {shell_name(self.unit, 'UNIT')}",
        )

    def _of_old_program(self, text: str) -> tuple[str, str] | None:
        """Return where the runtime takes a program that is too old."""
        if not self.bin_dirs or not _OLD_PROGRAM.search(text):
            return None
        folders = ", ".join(self.bin_dirs)
        advice = f"ls -l {' '.join(self.bin_dirs)} on that node shows how old each program is"
        if self.unit.startswith(RKE2):
            advice += (
                f"; a template of containerd (/var/lib/rancher/rke2/{_TEMPLATE}) may name another"
                " folder (bin_dir) than RKE2 does"
            )
        return f"the runtime of that node takes the programs of the CNI from {folders}", advice

    def _of_removal(self, text: str) -> tuple[str, str] | None:
        """Return that a plugin was removed whose configuration the runtime still takes."""
        if not self.left or "multus" not in text.lower():
            return None
        return (
            f"the runtime still takes {self.left} of Multus, although no pod of Multus is on that"
            " node: Multus was removed, or its pod does not run there, and its files stayed",
            f"where Multus was removed, delete {self.left} and the folder multus.d next to it on"
            " each node: the runtime takes the next file by itself; where it was not, start its pod"
            " again (kubectl get daemonset -A | grep multus)",
        )

    def _of_configuration(self, text: str) -> tuple[str, str] | None:
        match = _OF_PLUGIN.search(text)
        if match is None or self.folder in ("", USUAL_FOLDER):
            return None
        place = match.group("path") or f"its own file below {USUAL_FOLDER}"
        return (
            f"the runtime of that node has its CNI configuration in {self.folder}, and this plugin"
            f" looks for {place}",
            f"give the plugin the folder {self.folder}: in its DaemonSet the hostPath of its"
            " volume cni and the path of its kubeconfig (of Multus --multus-kubeconfig-file-host,"
            " of the chart hostCNINetDir), in each network configuration of Whereabouts"
            " configuration_path and kubernetes.kubeconfig",
        )

    def _of_program(self, text: str) -> tuple[str, str] | None:
        """Return that the program is there in another folder than the message has."""
        match = _PROGRAM.search(text)
        if match is None or self.programs is None or not self.bin_dirs:
            return None
        name, folder = match.group("name"), match.group("folder")
        if folder in self.bin_dirs or name not in self.programs:
            return None
        return (
            f"the runtime of that node has {name} in {', '.join(self.bin_dirs)}, and {folder} is"
            " the folder of an earlier release, or of another layout",
            f"restart what has {folder} in its settings: the runtime, and the pod of Multus on that"
            " node, which writes it into its configuration (binDir)",
        )


def extract(document: Mapping[str, Any]) -> CniFolders:
    """Return the folders of one node, by what its runtime says, else by its layout."""
    cni = contract.optional_answer(document, Cni)
    kubelet = contract.answer(document, Kubelet)
    name = one_line(kubelet.unit.name or "", 200) if kubelet.unit is not None else ""
    if cni is not None and cni.folder:
        programs = None if cni.programs is None else frozenset(cni.programs)
        folders = tuple(one_line(path, 200) for path in cni.bin_dirs or ())
        running = _running(kubelet)
        return CniFolders(one_line(cni.folder, 200), folders, programs, _left(cni), running, name)
    return CniFolders(next((folder for part, folder in _OF_LAYOUTS if part in name), ""))


def _running(kubelet: Kubelet) -> str:
    """Return the folder of the program that runs the kubelet, or ""."""
    exe = kubelet.process.exe if kubelet.process is not None else None
    return one_line(exe or "", 200).rpartition("/")[0]


def _left(cni: Cni) -> str:
    """Return the path of the first configuration, where Multus left it, or ""."""
    usable = [file for file in cni.files if not file.error and any(file.plugins)]
    if cni.multus is not False or not usable or MULTUS.isdisjoint(usable[0].plugins):
        return ""
    return f"{one_line(cni.folder, 200)}/{one_line(usable[0].name, 120)}"
