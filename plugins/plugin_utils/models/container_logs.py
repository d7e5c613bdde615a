# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large the kubelet lets the logs of containers become, and folders that hold more.

pkg/kubelet/logs of Kubernetes rotates a log that has reached containerLogMaxSize, so that no file
is much larger. It looks every ten seconds, and at one container after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...module_utils.shared import quantity
from ..evidence.document import one_line
from .kubelet.config import KubeletConfig, Setting

FOLDER = "/var/log/pods"
KEY, FLAG = "containerLogMaxSize", "container-log-max-size"
DEFAULT = "10Mi"


@dataclass(frozen=True)
class Rotation:
    """How a kubelet rotates the logs of containers.

    most: bytes of a file at which it rotates it; below 0 where it rotates none
    wording: the setting and its place
    """

    most: int
    wording: str

    def is_exceeded(self, path: str, size: int, files: int) -> bool:
        """Tell whether a folder of such logs holds more than so many files may."""
        if path != FOLDER and not path.startswith(f"{FOLDER}/"):
            return False
        return self.most < 0 or size > self.most * files

    def clause(self, bound: str) -> str:
        """Return what is wrong with logs that hold more than this bound."""
        if self.most < 0:
            return f"the kubelet rotates no logs of containers: {self.wording}"
        return (
            f"logs in it are larger than {self.wording} lets them become, with which so many files"
            f" hold at most {bound}: they grow faster than the kubelet rotates them, or it does not"
            " rotate them"
        )

    @property
    def advice(self) -> str:
        """Return what to do about logs that hold more."""
        if self.most < 0:
            return f"set {KEY} of the kubelet to a size above 0, such as {DEFAULT}, and restart it"
        return (
            f"find {FOLDER} -type f -size +{self.most}c lists the logs that are too large: let"
            " their containers write less; containerLogMaxWorkers and containerLogMonitorInterval"
            " (since 1.30) let the kubelet rotate several at a time and more often; its journal"
            " says where it cannot rotate one (Failed to rotate log)"
        )


def rotation(config: KubeletConfig) -> Rotation | None:
    """Return how a kubelet with this configuration rotates them; None where that is not known."""
    setting = config.setting(KEY, FLAG)
    if setting is not None and setting.path and not setting.value:
        setting = None  # an empty value of a file is the default
    if not config.certain(setting):
        return None
    value = DEFAULT
    if setting is not None:
        value = setting.value
    most = quantity.parse(value)
    if most is None:
        return None
    return Rotation(int(most), f"{KEY} {one_line(value, 40)} ({_place(setting)})")


def _place(setting: Setting | None) -> str:
    if setting is None:
        return "the kubelet's default"
    if setting.path:
        return f"{setting.path}:{setting.line}"
    return one_line(setting.text, 120)
