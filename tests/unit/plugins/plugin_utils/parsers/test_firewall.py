# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that the files of a firewall load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.support.firewall_records import (
    ZONES,
    red_hat,
    ubuntu,
    walls,
)


@given(st.text(max_size=400), st.integers(0, 70000))
def test_whatever_the_files_hold_nothing_breaks(text, port):
    for seen in (
        red_hat(text),
        red_hat(**{ZONES + "public.xml": text}),
        ubuntu(text),
        ubuntu(**{"/etc/ufw/ufw.conf": text, "/etc/default/ufw": text}),
    ):
        for wall in walls(seen):
            assert wall.lets_in(port) in (True, False, None)


FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "firewall"


@pytest.mark.parametrize(
    ("name", "opened", "shut"),
    [("firewalld", (6443,), (10250, 2380)), ("ufw", (22, 6443, 10250), (80, 2380))],
)
def test_what_debian_12_gave(name, opened, shut):
    """The evidence is as the collector read it on Debian 12, after these commands.

    firewall-cmd --permanent --add-port=6443/tcp; ufw allow 22/tcp, 6443, 10250 from a net.
    """
    (wall,) = walls(json.loads((FIXTURES / f"debian-12-{name}.json").read_text(encoding="utf-8")))
    assert (wall.name, wall.active, wall.comes) == (name, True, True)
    assert {port: wall.lets_in(port) for port in (*opened, *shut)} == {
        **dict.fromkeys(opened, True),
        **dict.fromkeys(shut, False),
    }
