# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors in files of the host in which programs of a network plugin log beside their container."""

import re
import time

from ..system import files

# By the container. The daemon of the VPC CNI and Open vSwitch say nothing of their errors in it.
PATHS = {
    "aws-node": "/var/log/aws-routed-eni/ipamd.log",
    "antrea-ovs": "/var/log/antrea/openvswitch/ovs-vswitchd.log",
    "openvswitch": "/var/log/openvswitch/ovs-vswitchd.log",
}
FILE_BYTES, KEPT, LONGEST = 64 * 1024, 3, 1000
RECENT = 3600  # seconds
# zap's JSON, and Open vSwitch
_ERROR = re.compile(
    rb'^[^\n]{0,200}?(?:"level":"(?:error|fatal|panic)"|\|(?:ERR|EMER)\|)[^\n]*', re.M
)
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def errors(container, now):
    """Return {path, lines, error} of the last errors in a program's file, or None without one.

    Lines are those of the last hour, oldest first, each once.
    """
    path = PATHS.get(container)
    if path is None:
        return None
    try:
        data = files.last_lines(path, FILE_BYTES)[0]
    except OSError as error:
        return {"path": path, "lines": [], "error": files.reason(error)}
    return {"path": path, "lines": _last(data, now), "error": None}


def _last(data, now):
    """Return the last errors of late, oldest first."""
    lines = []
    for match in reversed(list(_ERROR.finditer(data))):
        line = files.masked_line(match.group().decode("utf-8", "replace"), LONGEST)
        if _is_recent(match.group(), now) and line not in lines:
            lines.append(line)
        if len(lines) == KEPT:
            break
    return lines[::-1]


def _is_recent(raw, now):
    """Return whether a line was written of late; its time is in UTC."""
    match = _TIME.search(raw)
    if match is None:
        return False
    import calendar  # most nodes have no such file

    try:
        moment = calendar.timegm(time.strptime(match.group().decode(), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return False
    return now - RECENT <= moment <= now + RECENT
