# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that several packages of the node raise and catch."""


class PreconditionFailed(Exception):
    """One sentence about what stands in the way of a step; nothing was changed."""
