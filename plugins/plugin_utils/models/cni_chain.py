# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plugin of the CNI that adds itself to the configuration of another one. Pure.

The agent of Istio adds its plugin to the file that the runtime takes, and is not ready while it is
not in there. Cilium writes its own file again whenever it changes, and renames others, unless
cni.exclusive is false (daemon/cmd/cni/config.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cni import Cni, CniFile
from ..evidence.document import one_line
from .cni_folders import MULTUS
from .moments import moment

PLUGIN, AGENT = "istio-cni", "istio-cni-node"  # the plugin, and the name of its agent's pods
_CILIUM, _LOOPBACK = "cilium-cni", {"loopback"}
NOT_EXCLUSIVE = (
    "let Cilium leave other files alone (helm upgrade with cni.exclusive=false; cni-exclusive:"
    ' "false" in the ConfigMap cilium-config, then restart its DaemonSet)'
)


@dataclass(frozen=True)
class CniChain:
    """The configuration that a node's runtime takes, where the plugin of Istio is in none.

    file: its path, "" where the plugin is in one, or nothing is known
    aside: the file of Istio that Cilium renamed, or ""
    written: when the file was written
    """

    file: str = ""
    plugins: tuple[str, ...] = ()
    aside: str = ""
    written: datetime | None = None

    def clause(self, pod: str, since: datetime | None) -> tuple[str, str]:
        """Return why the agent of Istio is not ready, and what to do; "" for nothing.

        since: when its probes began to fail
        """
        if not self.file or not pod.startswith(AGENT):
            return "", ""
        lacking = f"{self.file}, which the runtime takes, does not have its plugin {PLUGIN}"
        if _CILIUM not in self.plugins:
            return lacking, ""
        if self.aside:
            return f"{lacking}: Cilium has put {self.aside} aside (cni.exclusive)", NOT_EXCLUSIVE
        if since is None or self.written is None or self.written <= since:
            return lacking, ""
        return (
            f"{lacking}: Cilium wrote it after these probes began to fail"
            f" ({self.written:%Y-%m-%dT%H:%M:%SZ}), as it does whenever another program"
            " changes it, unless its option cni.exclusive is false",
            NOT_EXCLUSIVE,
        )


def extract(document: Mapping[str, Any]) -> CniChain:
    """Return the configuration of one node that has the plugin's program, and not the plugin."""
    cni = contract.optional_answer(document, Cni)
    if cni is None or PLUGIN not in (cni.programs or ()):
        return CniChain()
    files = _readable(cni)
    if not files or any(PLUGIN in file.plugins for file in files):
        return CniChain()
    if not MULTUS.isdisjoint(files[0].plugins):  # it may have the plugin within
        return CniChain()
    return _without(cni, files[0])


def _readable(cni: Cni) -> list[CniFile]:
    """Return the configurations of networks, none where one of them was not read."""
    if cni.error or any(file.error for file in cni.files):
        return []
    return [file for file in cni.files if set(file.plugins) - _LOOPBACK]


def _without(cni: Cni, file: CniFile) -> CniChain:
    aside = next((name for name in cni.aside if PLUGIN in name), "")
    path = f"{one_line(cni.folder, 200)}/{one_line(file.name, 120)}"
    return CniChain(path, file.plugins, one_line(aside, 120), moment(file.mtime))
