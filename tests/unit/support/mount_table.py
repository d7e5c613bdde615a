# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mounts of a node, with a network folder among them."""

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    pressure,
)

# Linux 5.10: a node with a disk of its own for containers, and a volume of a pod on NFS
MOUNTINFO = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /tmp rw shared:5 - tmpfs tmpfs rw
31 22 254:16 / /var/lib/containerd rw shared:7 - xfs /dev/vdb rw,attr2
40 22 0:61 / /var/lib/kubelet/pods/a/volumes/kubernetes.io~nfs/data rw shared:9 \
- nfs4 10.0.0.9:/x rw
41 22 254:1 /elsewhere /mnt/with\\040blank rw shared:1 - ext4 /dev/vda1 rw
"""
TABLE = pressure.mounts(MOUNTINFO)
