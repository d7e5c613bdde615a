# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet cannot make the next container of a component. Pure.

The log that a component has then is of an earlier container, and does not say why none runs.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ..evidence.answers.node.component_end import ComponentLog
from ..evidence.document import one_line
from ..parsers import klog
from .kubelet import status

# Reasons of kubelets 1.14 to 1.36 (pkg/kubelet/container, images, kuberuntime). CrashLoopBackOff is
# none: such a container was made, and ended.
_REFUSED = re.compile(
    r"\bwith (?P<reason>CreateContainerError|CreateContainerConfigError|RunContainerError"
    r"|RunInitContainerError|PreCreateHookError|PreStartHookError|CreatePodSandboxError"
    r"|ConfigPodSandboxError"
    r"|ErrImagePull|ImagePullBackOff|ErrImageNeverPull|ImageInspectError|InvalidImageName"
    r"|RegistryUnavailable|SignatureValidationFailed): (?P<text>.*)",
    re.DOTALL,
)
_STAMP = re.compile(r'\btime="[^"]{1,40}" ')  # of each line of runc


def is_refused(log: ComponentLog) -> bool:
    """Return whether the kubelet failed to make a container after the last line of the log."""
    line = log.kubelet or ""
    if not _REFUSED.search(line):
        return False
    time = status.moment(line)
    return log.last is None or (time is not None and time > log.last)


def without_earlier(log: ComponentLog) -> ComponentLog:
    """Return the log without the lines of an earlier container, where no next one can be made."""
    if not is_refused(log):
        return log
    return replace(log, lines=(), first=None, last=None)


def message(line: str) -> str:
    """Return the reason and the error with which a kubelet makes no container, "" without one."""
    match = _REFUSED.search(klog.parse(line).get("err", "error"))
    if match is None:
        return ""
    text = re.sub(r"\\+n", " ", match["text"]).replace("\\", "")
    text = _STAMP.sub("", text).strip().strip('"').strip()
    return one_line(f"{match['reason']}: {text}", 400)
