# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that programs activate: which of them do after a boot, and how each is undone."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap import generators
from tests.unit.support.swap_evidence import CLEAN, DPHYS, ZRAM, node, record, seen, service


def machine(*units, **records):
    """Return the evidence of a machine; records replace those of their paths."""
    replaced = {one["path"] for one in records.get("files", ())}
    kept = [one for one in CLEAN if one["path"] not in replaced]
    return seen(node(*units, files=[*records.get("files", ()), *kept]))


@pytest.mark.parametrize(
    ("folder", "more", "there"),
    [
        (2, {}, True),
        (0, {}, True),
        (0, {"link": "/dev/null", "kind": "symlink"}, False),
        (0, {"size": 0}, False),
        (2, {"error": "denied"}, None),
    ],
)
def test_a_generator_is_there_unless_an_earlier_folder_masks_it(folder, more, there):
    path = f"{generators.GENERATORS[folder]}/zram-generator"
    found = machine(files=[record(path, None, **more)])
    assert generators.generator(found, "zram-generator") is there


def test_without_its_files_a_generator_is_unknown():
    assert generators.generator(seen({}), "zram-generator") is None
    assert generators.generator(machine(), "zram-generator") is False


@pytest.mark.parametrize(
    ("state", "on"),
    [("enabled", True), ("disabled", False), ("static", None), ("enabled-runtime", False)],
)
def test_a_service_activates_its_swap_where_it_is_enabled(state, on):
    (source,) = generators.from_services(machine(service("zramswap.service", UnitFileState=state)))
    assert (source.unit, source.on) == ("zramswap.service", on)
    assert [(undo.kind, undo.target) for undo in source.undo] == [("disable", "zramswap.service")]


@pytest.mark.parametrize(
    ("text", "on", "why"),
    [
        (DPHYS["text"], True, ""),
        ("CONF_SWAPSIZE=0\n", False, "/etc/dphys-swapfile:1 leaves it off"),
    ],
)
def test_a_configuration_may_leave_the_swap_of_a_service_off(text, on, why):
    found = machine(service("dphys-swapfile.service"), files=[record(DPHYS["path"], text)])
    (source,) = generators.from_services(found)
    assert (source.on, source.why) == (on, why)


@pytest.mark.parametrize(
    ("mode", "on"), [("0755", None), ("0644", False), (None, None), ("rwxr-xr-x", None)]
)
def test_a_script_is_run_where_it_may_be_executed(mode, on):
    path = generators.SCRIPTS[0]
    script = record(path, "#!/bin/sh\n# swapon -a\nswapon /swap\n", mode=mode)
    (source,) = generators.from_scripts(machine(files=[script]))
    assert (source.place, source.on) == (f"{path}:3", on)


def test_what_was_not_asked_for_is_unknown():
    assert list(generators.unknown(machine())) == []
    assert len(list(generators.unknown(seen({})))) == 3
    (text,) = generators.unknown(machine(files=[record(ZRAM, None, error="denied")]))
    assert text.startswith(ZRAM)
