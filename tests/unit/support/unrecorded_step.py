# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step whose end was never recorded, and the recovery that the next run begins with."""

import json
from pathlib import Path

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import executor

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"


def recover_unrecorded(root, step_id):
    """Act as if the program had been killed before it wrote how the step ended."""
    path = Path(root) / "journal" / RUN / f"proof-{step_id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "awaited", "by": {}}))
    return executor.work(
        {
            "run_id": NEXT,
            "root": root,
            "lock": None,
            "step": {"id": "recover", "host": "w1", "remedy": "recover", "expect": {}},
        }
    )
