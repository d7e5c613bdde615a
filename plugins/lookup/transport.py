# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file of tasks reads the hosts; the playbooks ask it when they are loaded."""

from __future__ import annotations

DOCUMENTATION = r"""
name: transport
author: The kubemend authors (@kubemend)
short_description: Return whether one task can read all hosts
version_added: 0.1.0
description:
  - Returns V(fleet) where M(kubemend.remediation.fleet_evidence_info) can read the hosts of this
    call of ansible-playbook, else V(task), with a warning that says why.
  - It is not able to where the command line gives a password for all hosts (C(-k), C(-K), a file
    of a password, a password in C(-e)), and where this ansible-core does not have what it needs.
options:
  _terms:
    description:
      - Nothing.
    required: false
"""

EXAMPLES = r"""
- name: Collect evidence of each host
  ansible.builtin.import_tasks: "{{ lookup('kubemend.remediation.transport') }}.yml"
"""

RETURN = r"""
_raw:
  description: One word, V(fleet) or V(task).
  type: list
  elements: str
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ..plugin_utils.transport.fleet.shared_password import shared_password

WARNING = "kubemend_transport is not used: {reason}. Each host is read by a task of its own."


class LookupModule(LookupBase):
    """Look whether one task can read all hosts."""

    def run(
        self, terms: Iterable[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[str]:
        """Return the one word."""
        reason = shared_password(variables or {}) or _missing()
        if not reason:
            return ["fleet"]
        Display().warning(WARNING.format(reason=reason))
        return ["task"]


def _missing() -> str:
    try:
        from ..plugin_utils.transport.fleet import hosts as _hosts
    except ImportError as error:
        return f"this ansible-core is unknown to it ({error})"
    del _hosts
    return ""
