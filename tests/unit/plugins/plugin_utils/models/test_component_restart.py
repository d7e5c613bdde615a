# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends of components; the tests of KM117 have their reasons."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.component_restart import (
    End,
    Restarts,
)


def test_what_counts_is_what_came_after_the_last_new_manifest():
    ends = (
        End("etcd", 100.0, "oom"),
        End("etcd", 200.0, "manifest"),
        End("etcd", 300.0, "unknown"),
        End("etcd", 400.0, "exit"),
        End("etcd", 500.0, "lock", excused="kube-apiserver"),
        End("etcd", 600.0, "terminated"),
    )
    restarts = Restarts(ends)
    assert [end.at for end in restarts.unintended] == [300.0, 400.0]
    assert [end.at for end in restarts.lasting] == [400.0]


@pytest.mark.parametrize(
    ("kind", "is_unintended", "is_lasting"),
    [
        ("exit", True, True),
        ("lock", True, True),
        ("probe", True, True),
        ("oom", True, True),
        ("killed", True, True),
        ("sandbox", True, True),
        ("removed", True, True),
        ("runtime", True, False),
        ("unknown", True, False),
        ("terminated", False, False),
        ("definition", False, False),
        ("manifest", False, False),
        ("reboot", False, False),
    ],
)
def test_which_ends_a_person_brings_about_and_which_come_back(kind, is_unintended, is_lasting):
    restarts = Restarts((End("etcd", 100.0, kind),))
    assert bool(restarts.unintended) is is_unintended
    assert bool(restarts.lasting) is is_lasting
