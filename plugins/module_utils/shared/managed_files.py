# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of files that kubemend manages on a node, and what it writes there."""

import re

PINNED_POD = "kubemend-pinned.json"  # The manifest of the pod that shows CPU pinning.
# A line of limits.conf: a domain has no blank and no #.
LOGIN_LIMIT_KEY = re.compile(r"[!-\"$-~]+ hard (nofile|nproc)\Z")
