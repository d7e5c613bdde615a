# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/docsite/rst/guide.rst.

A docs site of many collections shows that page of this one, next to its plugins.
"""

from __future__ import annotations

LABEL = "ansible_collections.kubemend.remediation.docsite"
HEAD = f"""\
..
  Copyright (c) kubemend contributors
  GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
  SPDX-License-Identifier: GPL-3.0-or-later
  Generated from the fault catalogue: run python -m tests.docs after a change of the literals.

.. _{LABEL}.guide:

Symptoms and faults
===================

This collection finds out why a Kubernetes cluster misbehaves at the level of its nodes and control
plane, shows the evidence, and repairs what was proven, up to the risk that you consent to.

.. code-block:: shell

    ansible-playbook -i INVENTORY kubemend.remediation.audit

The folder ``docs`` of the collection has a page for each symptom and each fault, a quick start, and
what rights it needs.
"""


def page(catalogue, symptoms) -> str:
    parts = [HEAD]
    for symptom in symptoms.values():
        parts += [
            f".. _{LABEL}.{symptom.name}:",
            "",
            symptom.title,
            "-" * len(symptom.title),
            "",
            (
                f"Playbook ``kubemend.remediation.{symptom.name}``, page"
                f" ``docs/symptoms/{symptom.name}.md``. What it can be:"
            ),
            "",
            *(
                f"- {code} {catalogue[code].title} ({catalogue[code].severity})"
                for code in symptom.causes
            ),
            "",
        ]
    theirs = {code for symptom in symptoms.values() for code in symptom.causes}
    rest = [fault for fault in catalogue.values() if fault.code not in theirs]
    parts += ["Judged by every audit", "---------------------", ""]
    return "\n".join(
        [*parts, *(f"- {fault.code} {fault.title} ({fault.severity})" for fault in rest), ""]
    )
