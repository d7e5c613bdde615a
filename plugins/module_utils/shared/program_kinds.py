# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file is that is to be a program, as a node names it and the controller reads it."""

EMPTY, SCRIPT, NO_PROGRAM = "empty", "script", "none"
