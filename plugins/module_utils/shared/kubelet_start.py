# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a kubelet that has just started is recognized."""

COMPONENT = "kubelet"
# A kubelet that its state ends has answered healthz for a moment before.
SETTLED_SECONDS = 10
