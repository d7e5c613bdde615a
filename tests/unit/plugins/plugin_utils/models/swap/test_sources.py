# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which swap is on, which will be, where it comes from and what would undo it."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    swap as swap_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap import (
    generators,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.evidence import (
    Source,
    Undo,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap.sources import (
    off_is_safe,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import swap_files
from tests.unit.support.swap_evidence import (
    CLEAN,
    DPHYS,
    LINE,
    TARGET,
    ZRAM,
    after_boot,
    files,
    node,
    one,
    record,
    running,
    service,
    source,
)

SDA2, UUID = "/dev/sda2 partition 1048572 0 -2\n", "/dev/disk/by-uuid/f9fe"
GENERATOR = "/usr/lib/systemd/system-generators/zram-generator"
FSTAB_UNIT = {
    "Id": swap_files.unit_name(UUID),
    "What": UUID,
    "LoadState": "loaded",
    "UnitFileState": "generated",
    "ActiveState": "active",
    "FragmentPath": "/run/systemd/generator/x.swap",
    "SourcePath": "/etc/fstab",
}
GPT_UNIT = {
    "Id": "dev-sda2.swap",
    "What": "/dev/sda2",
    "LoadState": "loaded",
    "UnitFileState": "generated",
    "ActiveState": "active",
    "FragmentPath": "/run/systemd/generator.late/dev-sda2.swap",
}
ZRAM_UNIT = {
    "Id": "dev-zram0.swap",
    "What": "/dev/zram0",
    "LoadState": "loaded",
    "UnitFileState": "generated",
    "ActiveState": "active",
    "FragmentPath": "/run/systemd/generator/dev-zram0.swap",
}
OWN_UNIT = {
    "Id": "swapfile.swap",
    "What": "/swapfile",
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
    "FragmentPath": "/etc/systemd/system/swapfile.swap",
}
MASKED = {
    "Id": "swap.target",
    "LoadState": "masked",
    "UnitFileState": "masked",
    "ActiveState": "inactive",
}


def test_a_machine_without_swap():
    assert running(node()) == []
    assert after_boot(node()).on is False
    assert after_boot(node()).unknown == ()


@pytest.mark.parametrize("part", ["fstab", "units", "cmdline", "files"])
@pytest.mark.parametrize("value", [None, 5, "", {}])
def test_what_is_missing_is_never_clear(part, value):
    # systemd that shows no unit at all knows no swap either
    if not (part == "units" and value == ""):
        assert after_boot(node() | {part: value}).on is None
    evidence = node()
    del evidence[part]
    assert after_boot(evidence).on is None


def collected(data):
    """Return what a check gets of an answer of this type."""
    collectors = {"swap": {"status": "ok", "data": data}}
    document = contract.checked({"host": "w1", "collectors": collectors})
    return contract.record(document, "swap")["data"]


def test_nothing_is_known():
    assert running({}) is None
    assert running(collected(None)) is None
    assert running(collected("x")) is None
    assert after_boot(collected(None)).on is None
    assert after_boot(collected([])).on is None


@pytest.mark.parametrize("gone", range(len(CLEAN)))
def test_a_file_that_nobody_asked_for_is_not_clear(gone):
    """Any service; one of two rc.local is enough.

    Zram-generator's files count for nothing without it, and it does nothing without them.
    """
    path, rest = CLEAN[gone]["path"], [*CLEAN[:gone], *CLEAN[gone + 1 :]]
    optional = path in (ZRAM, *generators.SCRIPTS) or path.endswith("/zram-generator")
    assert after_boot(node(files=rest)).on is (False if optional else None)
    if optional:
        also = [
            one
            for one in rest
            if one["path"]
            not in (
                (ZRAM, path)
                if path.endswith("/zram-generator")
                else (GENERATOR, *generators.SCRIPTS)
            )
        ]
        assert after_boot(node(files=also)).on is None


def test_a_line_of_fstab():
    evidence = node(FSTAB_UNIT, fstab=LINE, swaps=SDA2)
    found = one(evidence)
    assert (found.origin, found.place, found.on, found.unit) == (
        "fstab",
        "/etc/fstab:2",
        True,
        FSTAB_UNIT["Id"],
    )
    assert [(undo.kind, undo.target) for undo in found.undo] == [("comment", "/etc/fstab:2")]
    assert "gpt-auto" in found.undo[0].note
    assert source(evidence) == found
    assert running(evidence)[0].active.size_kib == 1048572


@pytest.mark.parametrize(
    ("change", "on"),
    [
        ({}, True),
        ({"cmdline": "quiet systemd.swap=0"}, False),
        ({"cmdline": "systemd.swap=0", "systemd": None}, None),
        ({"cmdline": "systemd.swap=0", "systemd": 239}, True),
        ({"cmdline": "fstab=no"}, False),
        ({"cmdline": "systemd.mask=swap.target"}, False),
        ({"container": True}, False),
        ({"units": [MASKED]}, False),
        ({"units": []}, None),
        ({"units": None}, None),
        ({"cmdline": None}, None),
        (
            {
                "units": [
                    TARGET,
                    {"Id": FSTAB_UNIT["Id"], "LoadState": "masked", "UnitFileState": "masked"},
                ]
            },
            False,
        ),
        (
            {
                "units": [
                    TARGET,
                    {
                        "Id": FSTAB_UNIT["Id"],
                        "LoadState": "masked",
                        "UnitFileState": "masked-runtime",
                    },
                ]
            },
            True,
        ),
        ({"units": [{**MASKED, "UnitFileState": "masked-runtime"}]}, True),
        ({"cmdline": "systemd.swap=0", "units": [TARGET, FSTAB_UNIT]}, True),
        ({"fstab": record("/etc/fstab", LINE.replace("sw ", "noauto "))}, False),
    ],
)
def test_what_holds_a_line_back(change, on):
    assert (
        one(
            node(fstab=LINE, **{key: value for key, value in change.items() if key != "fstab"})
            | change
        ).on
        is on
    )


def test_a_line_that_was_commented_leaves_its_unit_until_the_next_reload():
    """While fstab names swap, what systemd-gpt-auto-generator would do is not known."""
    evidence = node(FSTAB_UNIT, fstab="# UUID=f9fe none swap sw 0 0\n", swaps=SDA2)
    assert after_boot(evidence).sources == ()
    assert after_boot(evidence).on is None
    assert "gpt-auto" in after_boot(evidence).unknown[0]
    assert after_boot(evidence | {"cmdline": "systemd.gpt_auto=no"}).on is False
    assert after_boot(evidence | {"units": [FSTAB_UNIT, MASKED]}).on is False
    assert (source(evidence).origin, source(evidence).on) == ("fstab", False)


def test_partitions_of_gpt():
    evidence = node(GPT_UNIT, swaps=SDA2)
    found = one(evidence)
    assert (found.origin, found.place, found.on) == ("gpt-auto", "dev-sda2.swap", True)
    assert source(evidence) == found
    assert [(undo.kind, undo.target) for undo in found.undo] == [
        ("mask", "dev-sda2.swap"),
        ("mask", "swap.target"),
    ]
    assert after_boot(evidence | {"units": [GPT_UNIT, MASKED]}).on is False
    late = after_boot(
        evidence | {"fstab": record("/etc/fstab", "/swapfile none swap sw,noauto 0 0\n")}
    )
    assert late.on is None
    assert [known.on for known in late.sources] == [False, None]


@pytest.mark.parametrize(
    ("change", "on"),
    [
        ({}, True),
        ({"UnitFileState": "disabled"}, False),
        ({"UnitFileState": "enabled-runtime"}, False),
        ({"UnitFileState": "static"}, None),
        ({"UnitFileState": "static", "WantedBy": "swap.target"}, True),
        ({"UnitFileState": "static", "WantedBy": "", "RequiredBy": ""}, False),
        ({"UnitFileState": "disabled", "WantedBy": "a.service"}, True),
        ({"FragmentPath": "/run/systemd/system/swapfile.swap"}, False),
        ({"UnitFileState": ""}, None),
        ({"UnitFileState": "x" * 9}, None),
    ],
)
def test_own_unit_files(change, on):
    assert one(node({**OWN_UNIT, **change})).on is on


def test_own_unit_files_beside_masks():
    evidence = node(OWN_UNIT, swaps="/swapfile file 10 0 -2\n")
    assert source(evidence).place == "/etc/systemd/system/swapfile.swap"
    assert source(evidence).undo == (Undo("mask", "swapfile.swap"),)
    masked = {"Id": "swapfile.swap", "LoadState": "masked", "UnitFileState": "masked"}
    assert after_boot(node(masked)).on is False
    assert after_boot(node({**masked, "UnitFileState": "masked-runtime"})).on is None
    for wanted, on in (
        (None, None),
        ("swap.target", False),
        ("swap.target multi-user.target", True),
    ):
        unit = OWN_UNIT if wanted is None else {**OWN_UNIT, "WantedBy": wanted}
        assert after_boot(node() | {"units": [unit, MASKED]}).on is on
    assert after_boot(node(OWN_UNIT, container=True)).on is False


INSTALLED = record(GENERATOR, None, binary=True, size=900000)


@pytest.mark.parametrize(
    ("text", "more", "change", "on"),
    [
        ("[zram0]\n", [INSTALLED], {}, True),
        ("[zram0]\n", [], {}, False),
        ("[zram0]\nzram-size=0\n", [INSTALLED], {}, False),
        ("[zram0]\nmount-point=/x\n", [INSTALLED], {}, False),
        ("[zram0]\n", [INSTALLED], {"cmdline": "systemd.zram=0"}, False),
        ("[zram0]\n", [INSTALLED], {"units": [MASKED]}, False),
        ("[zram0]\n", [INSTALLED], {"container": True}, False),
        ("[zram0]\nhost-memory-limit=9\n", [INSTALLED], {}, None),
        ("[zram0]\nhost-memory-limit=9\n", [INSTALLED], {"units": [ZRAM_UNIT, TARGET]}, True),
        (
            "[zram0]\n",
            [
                INSTALLED,
                record(
                    "/etc/systemd/system-generators/zram-generator",
                    None,
                    kind="symlink",
                    link="/dev/null",
                ),
            ],
            {},
            False,
        ),
        (
            "[zram0]\n",
            [INSTALLED, record("/etc/systemd/system-generators/zram-generator", "", size=0)],
            {},
            False,
        ),
        ("[zram0]\n", [record(GENERATOR, None, error="denied")], {}, None),
        ("[zram0]\n", [INSTALLED, record("/etc/systemd/zram-generator.conf", "")], {}, False),
    ],
)
def test_zram_generator(text, more, change, on):
    forecast = after_boot(node(files=files(record(ZRAM, text), *more)) | change)
    assert forecast.on is on
    assert all(source.place == f"{ZRAM}:1" for source in forecast.sources)


def test_running_zram():
    evidence = node(
        ZRAM_UNIT,
        swaps="/dev/zram0 partition 8388604 0 100\n",
        files=files(record(ZRAM, "#\n[zram0]\n"), INSTALLED),
    )
    assert source(evidence) == one(evidence)
    assert source(evidence).place == f"{ZRAM}:2"
    assert source(evidence).undo == (
        Undo("generator", "/etc/systemd/system-generators/zram-generator"),
    )
    both = evidence | {
        "files": files(record(ZRAM, "[zram0]\n[zram1]\nmount-point=/x\n"), INSTALLED)
    }
    assert [(undo.kind, undo.target) for undo in source(both).undo] == [("mask", "dev-zram0.swap")]
    assert source(evidence | {"files": CLEAN}).on is False
    assert after_boot(evidence | {"files": CLEAN}).on is False
    assert source(evidence | {"files": []}).on is None
    asked = after_boot(evidence | {"files": CLEAN, "cmdline": "systemd.zram=1"})
    assert asked.on is True
    assert asked.sources[0].undo == (Undo("mask", "dev-zram0.swap"),)


@pytest.mark.parametrize(
    ("units", "file", "on"),
    [
        ([service("dphys-swapfile.service")], DPHYS, True),
        ([service("dphys-swapfile.service", UnitFileState="disabled")], DPHYS, False),
        (
            [service("dphys-swapfile.service", LoadState="masked", UnitFileState="masked")],
            DPHYS,
            False,
        ),
        ([], DPHYS, None),
        ([service("dphys-swapfile.service")], record(DPHYS["path"], "CONF_SWAPSIZE=0\n"), False),
        ([service("dphys-swapfile.service", UnitFileState="generated")], DPHYS, None),
        ([service("zramswap.service")], DPHYS, True),
        (
            [service("dphys-swapfile.service", LoadState="not-found", UnitFileState="")],
            DPHYS,
            False,
        ),
        (
            [service("waagent.service")],
            record("/etc/waagent.conf", "# x\nResourceDisk.EnableSwap=y\n"),
            True,
        ),
        (
            [service("waagent.service")],
            record("/etc/waagent.conf", "ResourceDisk.EnableSwap=n\n"),
            False,
        ),
        ([service("waagent.service")], record("/etc/waagent.conf", None, error="denied"), None),
    ],
)
def test_services(units, file, on):
    assert after_boot(node(*units, files=files(file))).on is on


@pytest.mark.parametrize(
    ("mode", "text", "on"),
    [
        ("0755", "#!/bin/sh\nswapon /x\n", None),
        ("0644", "\nswapon /x\n", False),
        ("0755", "\n# swapon /x\n", False),
        ("x", "\nswapon -a", None),
        ("0755", "\n/sbin/swapon /x", None),
        ("0755", "\nexit 0", False),
    ],
)
def test_scripts(mode, text, on):
    forecast = after_boot(node(files=files(record("/etc/rc.local", text, mode=mode))))
    assert forecast.on is on
    assert all(source.undo == (Undo("comment", "/etc/rc.local:2"),) for source in forecast.sources)


def test_the_kernel_asks_for_swap():
    unit = {**FSTAB_UNIT, "Id": "dev-sdb1.swap", "What": "/dev/sdb1", "SourcePath": "/proc/cmdline"}
    evidence = node(
        unit, cmdline="systemd.swap-extra=/dev/sdb1:nofail", swaps="/dev/sdb1 partition 5 0 -2\n"
    )
    assert (one(evidence).origin, one(evidence).on, source(evidence)) == (
        "kernel",
        True,
        one(evidence),
    )
    assert one(node(cmdline="systemd.swap-extra=/dev/sdb1", systemd=None)).on is None
    assert one(node(cmdline="systemd.swap-extra=/dev/sdb1", systemd=249)).on is False
    assert after_boot(node(cmdline="systemd.swap-extra=nonsense")).on is False


def test_swap_that_somebody_switched_on():
    mirror = {
        "Id": "dev-sda2.swap",
        "What": "/dev/sda2",
        "LoadState": "loaded",
        "UnitFileState": "",
        "ActiveState": "active",
        "FragmentPath": "",
    }
    assert source(node(mirror, swaps=SDA2)) == Source("hand", "", "/dev/sda2", on=False)
    assert after_boot(node(mirror, swaps=SDA2)).on is False
    for part in ("units", "fstab", "links", "files"):
        assert source(node(mirror, swaps=SDA2) | {part: None}).origin == "unknown"
    assert source(node(fstab=LINE.replace("sw ", "noauto "), swaps=SDA2)).place == "/etc/fstab:2"
    assert source(node(swaps=SDA2, container=True)).origin == "unknown"
    assert source(node(swaps="x\n")).origin == "unknown"


def test_what_a_device_follows():
    """Without the links of /dev/disk, systemd joins a device with the line of its UUID."""
    mirror = {
        "Id": "dev-sda2.swap",
        "What": "/dev/sda2",
        "LoadState": "loaded",
        "ActiveState": "active",
        "FragmentPath": "",
        "Following": FSTAB_UNIT["Id"],
    }
    assert (
        source(node(mirror, FSTAB_UNIT, fstab=LINE, swaps=SDA2, links=None)).place == "/etc/fstab:2"
    )
    assert (
        source(
            node({**mirror, "Following": ""}, FSTAB_UNIT, fstab=LINE, swaps=SDA2, links=None)
        ).origin
        == "unknown"
    )


@pytest.mark.parametrize(
    ("used", "free", "safe"),
    [
        (0, 0, True),
        (0, None, True),
        (1, None, None),
        (None, 9**9, None),
        (1000, 1000 + 102400, False),
        (1000, 1001 + 102400, True),
        (5, 4, False),
        (-1, 9**9, None),
        (True, 9**9, None),
        ("0", 9**9, None),
        (1.5, 9**9, None),
    ],
)
def test_switching_off_needs_memory(used, free, safe):
    raw = {"swap_total_kib": used, "mem_available_kib": free}
    memory = decode(swap_answer.Memory, raw).answer
    assert off_is_safe(memory.swap_total_kib, memory.mem_available_kib) is safe


ANY = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(("/dev/sda2", "a.swap", "masked", "enabled", "/run/systemd/generator/a")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "Id",
                    "What",
                    "FragmentPath",
                    "path",
                    "text",
                    "LoadState",
                    "UnitFileState",
                    "Following",
                    "mode",
                )
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=10,
)
FULL = node(
    FSTAB_UNIT,
    ZRAM_UNIT,
    service("dphys-swapfile.service"),
    fstab=LINE,
    swaps=SDA2,
    files=files(DPHYS, INSTALLED),
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(FULL)), ANY, max_size=4))
def test_hostile_evidence_does_not_raise(parts):
    before = copy.deepcopy(parts)
    evidence = FULL | parts
    for found in running(evidence) or ():
        assert found.source.on in (True, False, None)
    assert after_boot(evidence).on in (True, None, False)
    assert parts == before


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(("fstab", "units", "cmdline", "files"))), st.booleans())
def test_less_evidence_never_clears(gone, line):
    """Taking a part away never turns on or unknown into off."""
    full = (
        node(FSTAB_UNIT, fstab=LINE)
        if line
        else node(files=files(record("/etc/rc.local", "swapon /x", mode="0755")))
    )
    assert after_boot(full).on is not False
    assert (
        after_boot({key: value for key, value in full.items() if key not in gone}).on is not False
    )
