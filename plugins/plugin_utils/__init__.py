# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on the controller: evaluation of evidence, planning, reports."""

from __future__ import annotations

from .transport import bytecode

bytecode.install()
