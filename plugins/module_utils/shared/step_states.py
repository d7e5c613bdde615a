# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a step ended on its node, as the node's answer says it."""

DONE, ROLLED_BACK, REFUSED, FAILED, SKIPPED = "done", "rolled_back", "refused", "failed", "skipped"
STATES = (DONE, ROLLED_BACK, REFUSED, FAILED, SKIPPED)
RUNNING = "at_work"  # It has not ended. Who sends the same step again waits for it again.
