# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaying a scheduler's node tree: seconds for each algorithm, over clusters of several sizes."""

from __future__ import annotations

import sys
import time

from tests.gate import venvs

SIZES = ((500, 10), (5000, 100), (15000, 100))


def main() -> None:
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
        node_tree,
    )

    print(
        "replaying the scheduler's node tree (every node joins, a round, a hundredth leaves, a"
        " round, a tenth joins in new zones, a round)"
    )
    for size, zones in SIZES:
        events = [
            {"add": f"node-{number}", "zone": f"zone-{number % zones}"} for number in range(size)
        ]
        late = [
            {"add": f"late-{number}", "zone": f"new-{number % 7}"} for number in range(size // 10)
        ]
        events = [
            *events,
            {"round": 1},
            *({"remove": f"node-{number}"} for number in range(size // 100)),
            {"round": 1},
            *late,
            {"round": 1},
        ]
        for which in node_tree.ALGORITHMS:
            begin = time.perf_counter()
            found = node_tree.replay(events, which)
            print(
                f"  {size:6} nodes in {zones:3} zones, {which:5}:"
                f" {time.perf_counter() - begin:5.3f} s, {len(found.lost)} lost"
            )


if __name__ == "__main__":
    main()
