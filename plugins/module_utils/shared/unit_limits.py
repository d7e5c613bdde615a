# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units whose limits count, and the drop-in in which kubemend sets the limit of a unit."""

import re

# Each unit with what it runs.
ROLES = (
    ("kubelet.service", "kubelet"),
    ("containerd.service", "runtime"),
    ("crio.service", "runtime"),
    ("docker.service", "runtime"),
    ("cri-docker.service", "runtime"),
    ("ssh.service", "sshd"),
    ("sshd.service", "sshd"),
)
DROPINS = "/etc/systemd/system"
OURS = "99-zz-kubemend.conf"
# A name that needs no quotes and is no option.
UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9@:._-]*\.service\Z")
