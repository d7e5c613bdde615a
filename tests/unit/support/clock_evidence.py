# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts whose clocks differ, and what KM526 says of them."""

from __future__ import annotations

NOW = 1800000000.0


def set_clocks(world, **ahead):
    """Let every host be asked at NOW and answer after two seconds; some are so many s ahead."""
    for name, document in world.documents.items():
        document.update(asked_at=NOW, received_at=NOW + 2)
        document["collectors"]["system"]["data"]["clock"] = NOW + 1 + ahead.get(name, 0.0)


def judge_clocks(world, *codes):
    result = world.judge(faults=frozenset(codes or ("KM526",)))
    verdicts = {item.code: item.verdict for item in result.verdicts}
    verdicts.update({item.code: "not judged" for item in result.not_judged})
    return verdicts["KM526"], list(result.findings)
