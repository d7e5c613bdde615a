# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation fragment of modules that do one step on a node."""

from __future__ import annotations


class ModuleDocFragment:
    """Options that only the action of the same name sets."""

    DOCUMENTATION = r"""
options:
  run_id:
    description:
      - Set by the action itself.
    type: str
  step:
    description:
      - Set by the action itself.
    type: dict
  lock:
    description:
      - Set by the action itself.
    type: dict
  check:
    description:
      - Set by the action itself.
    type: bool
    default: false
  timeout:
    description:
      - Set by the action itself.
    type: int
  patience:
    description:
      - Set by the action itself.
    type: float
"""
