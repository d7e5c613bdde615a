# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup faults: the catalogue of faults as data."""

from __future__ import annotations

DOCUMENTATION = r"""
name: faults
short_description: The faults that kubemend can find, as data
version_added: 0.1.0
author: The kubemend authors (@kubemend)
description:
  - Returns the catalogue of this version of the collection, as C(docs/catalogue.json) has it. It
    reads no host and no file.
options:
  _terms:
    description:
      - Fault codes, or shell globs of them such as V(KM4*). Without any, all faults.
      - A code or glob that no fault has is an error that names the nearest code.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Show what the faults of limits are called
  ansible.builtin.debug:
    msg: "{{ query('kubemend.remediation.faults', 'KM4*') | map(attribute='title') | list }}"

- name: List the critical faults that kubemend can repair without a restart
  ansible.builtin.debug:
    msg: >-
      {{ query('kubemend.remediation.faults') | selectattr('severity', 'equalto', 'critical')
         | selectattr('max_risk', 'equalto', 1) | map(attribute='code') | list }}
"""

RETURN = r"""
_list:
  description: A fault each, in the order of the codes.
  type: list
  elements: dict
  contains:
    code:
      description: The code, such as V(KM101). It is never used for another fault.
      type: str
    title:
      description: What the fault is.
      type: str
    severity:
      description: V(critical), V(warning) or V(info). A finding can have another one.
      type: str
    scope:
      description: V(node) where it is judged for each host, V(cluster) where over all of them.
      type: str
    applies:
      description: Which hosts or clusters it is about.
      type: str
    tier:
      description: V(core), or V(deep) where only C(kubemend_deep) or the playbook of a symptom
        judges it.
      type: str
    component:
      description: The component that its findings name, where it is always the same; else none.
      type: str
    symptoms:
      description: The playbooks of symptoms that judge it.
      type: list
      elements: str
    needs:
      description: The collectors that it reads, of a C(host) and of the C(api).
      type: dict
    max_risk:
      description: The highest risk of a step that repairs it; none where it is fixed by hand only.
      type: int
    causes:
      description: Codes of faults that can cause it.
      type: list
      elements: str
    consequences:
      description: Codes of faults that it can cause.
      type: list
      elements: str
    page:
      description: Its page, below the folder of the collection.
      type: str
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.faults import CATALOGUE
from ..plugin_utils.reports import fault_catalogue
from ..plugin_utils.run.settings import nearest, shown


class LookupModule(LookupBase):
    """The plugin that Ansible loads."""

    def run(
        self, terms: Iterable[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the faults that a term names, each once."""
        self.set_options(var_options=variables, direct=kwargs)
        patterns = [str(term) for term in terms]
        for pattern in patterns:
            if not any(fnmatchcase(code, pattern) for code in CATALOGUE):
                near = nearest(pattern.upper(), CATALOGUE)
                raise AnsibleLookupError(
                    f"No fault has the code {shown(pattern)}; the nearest one is {near or 'none'}."
                )
        return fault_catalogue.rows(
            code
            for code in CATALOGUE
            if not patterns or any(fnmatchcase(code, pattern) for pattern in patterns)
        )
