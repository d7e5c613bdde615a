# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what the next release of Kubernetes refuses, KM720 to KM749."""

# What these checks apply to.
UPGRADE_OF = "clusters whose API answers, in `before_upgrade`"
# The first kubelet without dockershim.
WITHOUT_DOCKERSHIM = (1, 24)
