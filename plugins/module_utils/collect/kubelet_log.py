# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: collector kubelet_log: what the kubelet and the runtime said of late, of a few matters."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible_collections.kubemend.remediation.plugins.module_utils.collect import command, files
from ansible_collections.kubemend.remediation.plugins.module_utils.collect.spec import Failed

RUNTIMES = ("containerd.service", "crio.service", "docker.service", "cri-docker.service")
MATTERS = ("unable to freeze", "cpu manager", "cpumanager", "memory manager", "memorymanager", "static policy", "failed to start containermanager",
           "failed to run kubelet", "failed to initialize cpu manager")
READ_LINES, READ_BYTES, KEPT, LONGEST = 5000, 4 * 1024 * 1024, 60, 600


def collect(context):
    """{lines}: the last lines that name one of MATTERS, oldest first, each once; as journald has them, with their time."""
    unit = ((context.data.get("kubelet") or {}).get("unit") or {}).get("name") or "kubelet.service"
    units = [word for name in (unit,) + RUNTIMES for word in ("-u", name)]
    context.source = "journalctl of %s and the runtime" % unit
    try:
        text = command.run(["journalctl", "--no-pager", "-q", "-o", "short-iso", "-n", str(READ_LINES)] + units, context.seconds(8), READ_BYTES)
    except command.Silent:
        return {"lines": []}
    except command.CommandError as error:
        raise Failed(str(error))
    return {"lines": chosen(text)}


def chosen(text):
    """The lines that matter; of those that differ in their time only, the last."""
    found = {}
    for line in text.splitlines():
        if any(matter in line.lower() for matter in MATTERS):
            said = line.partition("]: ")[2]
            # klog's own header counts the time too
            key = said.partition("] ")[2] or said or line
            found.pop(key, None)
            found[key] = files.masked(files.one_line(line, LONGEST).encode("utf-8"))[0].decode("utf-8", "replace")
    return list(found.values())[-KEPT:]
