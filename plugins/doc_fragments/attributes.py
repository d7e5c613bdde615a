# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation fragments about what a module supports."""

from __future__ import annotations


class ModuleDocFragment:
    """The attributes that every module of this collection states.

    Each module gives its own support.
    """

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return what it would change without changing the
      target.
  diff_mode:
    description: Returns what it changed, or would change in C(check_mode), when in diff mode.
  idempotent:
    description: Run again with the same options on the same state, it changes nothing and says so.
  action:
    description: Has an action plugin of the same name, so that part of it runs on the controller.
"""

    # For modules that use the API or the client certificate of a kubeconfig.
    ACTION_GROUP = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/kubemend.remediation.kubemend) in C(module_defaults) to set defaults
      of the modules that take a kubeconfig.
    support: full
    membership:
      - kubemend.remediation.kubemend
"""

    # For modules that only read: no change is ever made, so check mode is the same as any other.
    INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: Reads only, and does the same in check mode.
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
    details: Changes nothing.
"""
