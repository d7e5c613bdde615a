# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of systemd units that both sides treat by name."""

KUBELET = "kubelet.service"
# The units whose limits count, with what each of them runs.
ROLES = (
    (KUBELET, "kubelet"),
    ("containerd.service", "runtime"),
    ("crio.service", "runtime"),
    ("docker.service", "runtime"),
    ("cri-docker.service", "runtime"),
    ("ssh.service", "sshd"),
    ("sshd.service", "sshd"),
)
