#!/usr/bin/python
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action run_history_info."""

DOCUMENTATION = r"""
module: run_history_info
short_description: Print which findings came, stayed and went over earlier runs
version_added: 0.1.0
description:
  - Reads the reports of the O(newest) runs in C(~/.kubemend/runs), as far as they judged a cluster,
    and prints a table of them for each cluster. Below it stand the findings that are there now,
    those that the newest run did not judge, and those that are gone.
  - A finding is gone where a later run judged its fault at that place, with nothing missing, and
    did not find it. Replays are of another time, and are left out.
  - It runs on the controller, reads no host, and changes nothing.
author: The kubemend authors (@kubemend)
options:
  newest:
    description:
      - The number of runs, the newest ones. At most 64 MB of reports are read.
    type: int
    default: 20
extends_documentation_fragment:
  - kubemend.remediation.attributes
  - kubemend.remediation.attributes.info
attributes:
  action:
    support: full
seealso:
  - module: kubemend.remediation.diagnose
"""

EXAMPLES = r"""
- name: Show which findings came, stayed and went
  kubemend.remediation.run_history_info:
    newest: 50
  run_once: true
"""

RETURN = r"""
runs:
  description: The ids of the runs that are in the trend.
  returned: success
  type: list
  elements: str
  sample: ["20261121T090000Z-1a2b3c"]
older:
  description: The number of runs that were not read, because there are more.
  returned: success
  type: int
  sample: 0
"""
