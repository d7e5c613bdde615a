# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The default components and amounts of log queries."""

COMPONENTS = ("kubelet", "kube-scheduler", "kube-controller-manager", "kube-apiserver")
SECONDS_BACK = 600.0
MAX_BYTES = 8 * 1024 * 1024
MAX_LINE_BYTES = 8192
