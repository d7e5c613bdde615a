# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make bench`: figures as ratios taken in one run. Benchmarks are no tests.

They print, they do not judge.
"""

from __future__ import annotations

import argparse

from tests.bench import (
    audit,
    cluster,
    controller,
    drain,
    fleet,
    judging,
    node_cost,
    node_tree,
    repair,
    reports,
)

LOCAL = {
    "judging": judging.main,
    "node_tree": node_tree.main,
    "reports": reports.main,
    "cluster": cluster.main,
    "controller": controller.main,
}
IN_A_CLUSTER = {
    "audit": audit.main,
    "node_cost": node_cost.main,
    "fleet": fleet.main,
    "repair": repair.main,
    "drain": drain.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only", choices=(*LOCAL, *IN_A_CLUSTER), help="one benchmark instead of all"
    )
    parser.add_argument("--k8s", default="v1.36.3", help="the lab cluster that is measured on")
    chosen = parser.parse_args()
    for name, run in LOCAL.items():
        if chosen.only in (None, name):
            run()
    for name, run_in in IN_A_CLUSTER.items():
        if chosen.only in (None, name):
            run_in(chosen.k8s)


if __name__ == "__main__":
    main()
