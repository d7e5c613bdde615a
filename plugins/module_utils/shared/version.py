# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: its version, as evidence and reports state it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

TOOL_VERSION = "0.1.0"
