# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings against files: what a boot brings back, and what overrides a written value."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    limits,
    persistent_sysctl,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import (
    EVENTS,
    INSTANCES,
)
from tests.unit.support.fake_limits import record

OWN = "/etc/sysctl.d/10-own.conf"


def read(running, *files):
    data = {"kernel": running, "sysctl_files": [record(path, text) for path, text in files]}
    return limits.read({"collectors": {"limits": {"status": "ok", "data": data}}})


@pytest.mark.parametrize(
    ("running", "files", "wanted"),
    [
        ("128", [], None),
        ("512", [], 512),
        ("512", [(OWN, f"{INSTANCES} = 512\n")], None),
        ("512", [(OWN, f"{INSTANCES} = 256\n")], 512),
        ("256", [(OWN, f"{INSTANCES} = 512\n")], 512),
        ("256", [("/usr/lib/sysctl.d/10-vendor.conf", f"{INSTANCES} = 512\n")], None),
        (
            "256",
            [(OWN, f"{INSTANCES} = 512\n"), ("/etc/sysctl.d/20-b.conf", f"{INSTANCES} = 256\n")],
            512,
        ),
    ],
)
def test_a_setting_lasts_where_a_boot_makes_the_same_of_it(running, files, wanted):
    found = list(persistent_sysctl.lasting(read({INSTANCES: running}, *files)))
    assert [(one.key, one.wanted) for one in found] == ([(INSTANCES, wanted)] if wanted else [])


def test_files_that_contradict_each_other_are_of_this_host_alone():
    files = [(OWN, f"{INSTANCES} = 512\n"), ("/etc/sysctl.d/20-b.conf", f"{INSTANCES} = 256\n")]
    (one,) = persistent_sysctl.lasting(read({INSTANCES: "256"}, *files))
    assert one.own
    assert [path for path, _line, _text in one.places] == [path for path, _text in files]


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        (INSTANCES, "512", 512),
        (INSTANCES, str(2**31), None),
        (INSTANCES, "-1", None),
        ("another.key", str(2**31), 2**31),
        (EVENTS, "many", None),
    ],
)
def test_the_kernel_takes_a_number_up_to_its_most(key, text, number):
    assert persistent_sysctl.accepted_number(key, text) == number


@pytest.mark.parametrize(
    ("name", "text", "edit", "overridden"),
    [
        ("10-a.conf", f"{INSTANCES} = 256\n", None, False),
        ("99-zzz.conf", f"{INSTANCES} = 256\n", f"{INSTANCES} = 512", True),
        ("99-zzz.conf", f"{INSTANCES} = 1024\n", None, False),
        ("99-zzz.conf", f"-{INSTANCES}\n", None, True),
    ],
)
def test_a_line_that_is_read_later_overrides_the_written_value(name, text, edit, overridden):
    node = read({INSTANCES: "128"}, (f"/etc/sysctl.d/{name}", text))
    later = persistent_sysctl.later(node, INSTANCES, 512)
    assert bool(later.why) is overridden
    assert (later.edit and later.edit.new) == edit
    assert bool(later.blocked) is (overridden and edit is None)


def test_lines_that_ask_for_more_are_named_and_a_vendors_are_not():
    node = read(
        {INSTANCES: "128"},
        (OWN, f"#\n{INSTANCES} = 1024\n"),
        ("/usr/lib/sysctl.d/05-vendor.conf", f"{INSTANCES} = 2048\n"),
    )
    assert persistent_sysctl.above(node, INSTANCES, 512) == [f"{OWN}:2"]
    assert persistent_sysctl.above(node, INSTANCES, 1024) == []
