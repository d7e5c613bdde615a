# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of hosts and people: how they are gathered, numbered and replaced."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle.anonymize import (
    evidence as anonymize_evidence,
)

SECRET = b"of the test"


def of(*documents, **more):
    return anonymize_evidence.Anonymizer(
        [{"host": "h", "collectors": {}, **one} for one in documents] or [more], SECRET
    )


def test_the_order_of_hosts_stays():
    names = ["a1", "b-2", "b10", "m1.x.acme.net", "m2.x.acme.net", "w1", "w10", "w2", "z_1"] + [
        f"n{number}" for number in range(120)
    ]
    change = of(*({"host": name} for name in names))
    assert [change.text(name) for name in sorted(names)] == sorted(
        change.text(name) for name in names
    )
    assert len({change.text(name) for name in names}) == len(names)
