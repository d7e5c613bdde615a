# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation fragment of modules that do one step on a node."""

from __future__ import annotations


class ModuleDocFragment:
    """Options that only the action of the same name sets."""

    DOCUMENTATION = r"""
options:
  _run_id:
    description:
      - Set by the action itself.
    type: str
  _step:
    description:
      - Set by the action itself.
    type: dict
  _lock:
    description:
      - Set by the action itself.
    type: dict
  _check:
    description:
      - Set by the action itself.
    type: bool
    default: false
  _timeout:
    description:
      - Set by the action itself.
    type: int
  _patience:
    description:
      - Set by the action itself.
    type: float
"""
