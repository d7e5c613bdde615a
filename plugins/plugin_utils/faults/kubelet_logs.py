# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name the log of a host's own kubelet in an advice: k3s, RKE2 and others run it in their unit."""

from __future__ import annotations

import re
from dataclasses import replace

from ..models.cluster import Host
from ..models.kubelet import log_command
from .base import Detection

_USUAL = re.compile(re.escape(log_command.USUAL) + r"(?![\w.-])")


def with_log(hit: Detection, host: Host) -> Detection:
    """Return a hit whose advice has the command for the log of this host's kubelet."""
    if host.kubelet_log == log_command.USUAL or log_command.USUAL not in hit.remedy:
        return hit
    return replace(hit, remedy=_USUAL.sub(lambda _match: host.kubelet_log, hit.remedy))
