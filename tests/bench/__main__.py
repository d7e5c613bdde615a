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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        choices=(
            "judging",
            "node_tree",
            "reports",
            "cluster",
            "controller",
            "audit",
            "node_cost",
            "fleet",
            "repair",
            "drain",
        ),
        help="one benchmark instead of all",
    )
    parser.add_argument("--k8s", default="v1.36.3", help="the lab cluster that is measured on")
    chosen = parser.parse_args()
    if chosen.only in (None, "judging"):
        judging.main()
    if chosen.only in (None, "node_tree"):
        node_tree.main()
    if chosen.only in (None, "reports"):
        reports.main()
    if chosen.only in (None, "cluster"):
        cluster.main()
    if chosen.only in (None, "controller"):
        controller.main()
    if chosen.only in (None, "audit"):
        audit.main(chosen.k8s)
    if chosen.only in (None, "node_cost"):
        node_cost.main(chosen.k8s)
    if chosen.only in (None, "fleet"):
        fleet.main(chosen.k8s)
    if chosen.only in (None, "repair"):
        repair.main(chosen.k8s)
    if chosen.only in (None, "drain"):
        drain.main(chosen.k8s)


if __name__ == "__main__":
    main()
