# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation fragment of modules that run the collectors of nodes."""

from __future__ import annotations


class ModuleDocFragment:
    """Options that choose the collectors."""

    DOCUMENTATION = r"""
options:
  collectors:
    description:
      - Names of collectors to run. Those that they need run too. By default all of the tier.
    type: list
    elements: str
  deep:
    description:
      - Also run the collectors that are expensive on a busy node.
    type: bool
    default: false
"""
