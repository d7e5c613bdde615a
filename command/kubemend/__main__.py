# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the command as a module: python -m kubemend."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
