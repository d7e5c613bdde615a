# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of pods as kubectl shows them."""

# A container ends again and again.
CRASHES = ("CrashLoopBackOff", "Init:CrashLoopBackOff", "Error", "Init:Error", "RunContainerError")
