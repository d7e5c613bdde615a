# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run python -m tests.docs [--check]."""

from __future__ import annotations

import sys

from tests.docs import main

sys.exit(main(sys.argv[1:]))
