# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says of its swap.

Texts of the kernel, made-up folders, what systemctl of several versions prints, and this very
machine.
"""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    base,
    registry,
    runner,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import swap
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    systemd,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.swap import (
    generators,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import swap_files
from tests.unit.support import swap_evidence

# /proc/swaps of Linux 4.18 and of 6.1: the columns are other ones
SWAPS = (
    "Filename\t\t\t\tType\t\tSize\tUsed\tPriority\n/dev/dm-1                              "
    " partition\t8257532\t524\t-2\n"
)
NEWER = (
    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/swap\\040file\\134x                       "
    " file\t\t65532\t\t0\t\t-2\n"
)
MEMINFO = (
    "MemTotal:       24512340 kB\nMemFree:        20000000 kB\nMemAvailable:   22613724"
    " kB\nSwapCached:            0 kB\nSwapTotal:       8257532 kB\nSwapFree:        8257008 kB\n"
)
# systemctl show of systemd 252 (Debian 12), with the properties of PROPERTIES; one that is not
# there has fewer of them
V252 = """\
What=/dev/disk/by-uuid/f9fe
Id=dev-disk-by\\x2duuid-f9fe.swap
LoadState=loaded
ActiveState=active
FragmentPath=/run/systemd/generator/dev-disk-by\\x2duuid-f9fe.swap
SourcePath=/etc/fstab
UnitFileState=generated
RequiredBy=swap.target
WantedBy=

Id=swap.target
WantedBy=sysinit.target
LoadState=loaded
ActiveState=active
FragmentPath=/lib/systemd/system/swap.target
UnitFileState=static

Id=zramswap.service
LoadState=not-found
ActiveState=inactive
"""
MAPS = "7f00-7f01 r--p 00000000 08:01 393 %s\n"


def test_the_controller_and_the_node_know_the_same_services_files_and_folders():
    assert set(swap.SERVICES) == {name for one in generators.SERVICES for name in one.units}
    assert set(swap.FILES) == {one.file for one in generators.SERVICES} | set(generators.SCRIPTS)
    assert swap.GENERATORS == generators.GENERATORS


def test_paths():
    assert swap.paths(SWAPS) == ["/dev/dm-1"]
    assert swap.paths(NEWER) == ["/swap file\\x"]
    assert swap.paths("") == swap.paths("Filename\n") == []
    assert swap.paths(NEWER[:-20]) == ["/swap file\\x"]  # cut off


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("BOOT_IMAGE=/vmlinuz ro quiet\n", []),
        (
            "quiet systemd.swap=0 systemd.gpt-auto=no fstab=no",
            ["systemd.swap=0", "systemd.gpt-auto=no", "fstab=no"],
        ),
        (
            'x="a systemd.swap=0 b" systemd.mask=swap.target systemd.zram',
            ["systemd.mask=swap.target", "systemd.zram"],
        ),
        (
            'systemd.swap-extra="/a b" inst.ks=https://user:word@host systemd.setenv=A=secret',
            ['systemd.swap-extra="/a b"'],
        ),
        ("", []),
    ],
)
def test_of_the_command_line_only_what_matters_here_leaves_the_node(line, kept):
    told = swap.cmdline(line)
    assert told == " ".join(["-", *kept])
    wanted = [one for one in swap_files.words(line) or [] if one[0] in swap.WORDS]
    assert [one for one in swap_files.words(told) if one[0] != "_"] == wanted
    assert swap.cmdline(None) is None
    assert swap_files.words(told) is not None


def test_memory():
    assert swap.memory(MEMINFO) == {
        "swap_total_kib": 8257532,
        "swap_free_kib": 8257008,
        "mem_available_kib": 22613724,
    }
    assert swap.memory(MEMINFO[:110])["swap_total_kib"] is None
    for text in ("", "SwapTotal:\n", "SwapTotal: x kB\n", "SwapTotal: 5 MB\n"):
        assert swap.memory(text)["swap_total_kib"] is None


def test_units_of_systemd():
    blocks = {one["Id"][0]: one for one in systemd.parse(V252)}
    told = swap_files.units(swap.units(blocks))
    assert [(one.name, one.state, one.load) for one in told] == [
        ("dev-disk-by\\x2duuid-f9fe.swap", "generated", "loaded"),
        ("swap.target", "static", "loaded"),
        ("zramswap.service", "", "not-found"),
    ]
    assert (told[0].source, told[0].wanted) == ("/etc/fstab", ("swap.target",))
    assert (
        len(
            swap.units(
                {
                    f"{number}.swap": {"Id": [str(number)], "What": ["x" * 9999]}
                    for number in range(2000)
                }
            )
        )
        == swap.MAX_UNITS
    )


def test_a_unit_that_was_masked_since_systemd_read_it_is_what_it_will_be(tmp_path):
    """No step runs daemon-reload here: it can take devices away from containers."""
    blocks = {
        "a.swap": "/run/systemd/generator/a.swap",
        "b.swap": "/lib/b.swap",
        "c.swap": "/lib/c.swap",
        "swap.target": "/lib/swap.target",
        "d.swap": "/d",
        "zramswap.service": "/lib/zramswap.service",
        "x/../a.swap": "/x",
    }
    blocks = {
        name: {"Id": [name], "LoadState": ["loaded"], "FragmentPath": [path]}
        for name, path in blocks.items()
    }
    for name in ("a.swap", "zramswap.service"):
        (tmp_path / name).write_text("")
    (tmp_path / "b.swap").symlink_to("/dev/null")
    (tmp_path / "c.swap").write_text("[Swap]\n")
    (tmp_path / "swap.target").symlink_to("/lib/swap.target")
    told = swap_files.units(swap.units(blocks, str(tmp_path)))
    assert [one.name for one in told if one.masked] == ["a.swap", "b.swap"]


@pytest.mark.parametrize(
    ("library", "number"),
    [
        ("/usr/lib/systemd/libsystemd-shared-252.so", 252),
        ("/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-257.so", 257),
        ("/usr/lib/systemd/libsystemd-shared-239.so (deleted)", 239),
        ("/usr/lib/systemd/libsystemd-shared-255.4-1.fc40.so", 255),
        ("/usr/lib/systemd/libsystemd-shared-255~rc3.so", 255),
        ("/lib/systemd/libsystemd-shared-x.so", None),
        ("/usr/lib64/libc.so", None),
    ],
)
def test_the_version_of_systemd(library, number):
    assert swap.version(MAPS % "/usr/lib/libc.so.6" + MAPS % library) == number


@pytest.mark.parametrize(
    ("environ", "path", "answer"),
    [
        ("PATH=/bin\0container=podman\0", None, True),
        ("container=\0", None, False),
        ("PATH=/bin\0xcontainer=lxc\0", None, False),
        ("", "systemd/container", True),
        ("", "host/container-manager", True),
        ("", "x", False),
    ],
)
def test_a_container(tmp_path, environ, path, answer):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "environ").write_text(environ)
    if path:
        (tmp_path / "run" / path).parent.mkdir(parents=True)
        (tmp_path / "run" / path).write_text("lxc\n")
    assert swap.container(str(tmp_path), str(tmp_path / "run")) is answer


def test_links_of_devices_that_are_on(tmp_path):
    for folder in ("disk/by-uuid", "mapper", "vg0"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("dm-1", "dm-2"):
        (tmp_path / name).write_text("")
    for link, device in (
        ("disk/by-uuid/F9", "../../dm-1"),
        ("mapper/vg0-swap", "../dm-1"),
        ("vg0/swap", "../dm-1"),
        ("vg0/root", "../dm-2"),
        ("disk/by-uuid/x", "../../gone"),
    ):
        (tmp_path / link).symlink_to(device)
    base = str(tmp_path)
    assert swap.links([base + "/dm-1", "/swapfile"], base) == {
        os.path.join(base, link): base + "/dm-1"  # noqa: PTH118 - a key as the node gives it
        for link in ("disk/by-uuid/F9", "mapper/vg0-swap", "vg0/swap")
    }
    assert swap.links(["/swapfile"], base) == {}
    assert swap.links([], base) == {}


def test_own_files(tmp_path):
    (tmp_path / "swap").write_text("")
    (tmp_path / "link").symlink_to("swap")
    assert swap.own_files([str(tmp_path / name) for name in ("swap", "gone", "link", ".")]) == [
        str(tmp_path / "swap")
    ]


def test_generators(tmp_path):
    folders = [str(tmp_path / name) for name in ("a", "b", "c", "d")]
    for folder in folders[:3]:
        Path(folder).mkdir()
    Path(folders[0] + "/zram-generator").symlink_to("/dev/null")
    (tmp_path / "b" / "zram-generator").write_text("")
    (tmp_path / "c" / "zram-generator").write_text("ELF")
    told = swap.generators(folders)
    assert [(one["kind"], one["link"], one["size"], one["error"]) for one in told] == [
        ("symlink", "/dev/null", 0, None),
        ("file", None, 0, None),
        ("file", None, 3, None),
        ("other", None, None, "missing"),
    ]


def test_configuration_of_zram_generator(tmp_path, monkeypatch):
    (tmp_path / "z.conf.d").mkdir()
    for name in ("b.conf", "a.conf", "c.txt"):
        (tmp_path / "z.conf.d" / name).write_text("")
    main = str(tmp_path / "z.conf")
    monkeypatch.setattr(swap, "ZRAM", (main, str(tmp_path / "gone.conf")))
    assert swap.zram_files() == (
        [main, str(tmp_path / "gone.conf"), main + ".d/a.conf", main + ".d/b.conf"],
        [],
    )
    (tmp_path / "gone.conf.d").write_text("no folder")
    assert swap.zram_files()[1] == []  # what is no folder holds none


def test_a_file_that_is_missing_says_no_more(tmp_path):
    path = str(tmp_path / "x")
    assert swap.record(path) == {"path": path, "error": "missing"}
    Path(path).symlink_to("nowhere")
    assert swap.record(path)["link"] == "nowhere"


def test_this_machine():
    record = runner.run({"timeout": 20}, registry.select(["swap"]), [])["swap"]
    found = record["data"]
    assert (record["status"], record["error"]) == ("ok", None)
    assert set(found) == {
        "swaps",
        "memory",
        "fstab",
        "units",
        "cmdline",
        "links",
        "own",
        "container",
        "systemd",
        "files",
    }
    assert found["swaps"].startswith("Filename")
    assert found["memory"]["mem_available_kib"] > 0
    assert len(swap_evidence.running(found)) == found["swaps"].count("\n") - 1
    if found["units"] is not None:
        assert swap_evidence.after_boot(found).unknown == ()


def test_one_question_to_systemd_and_none_without(monkeypatch):
    asked = []
    monkeypatch.setattr(systemd, "show", lambda *given: asked.append(given) or {})
    monkeypatch.setattr(swap.os.path, "isdir", lambda path: path == "/run/systemd/system")
    assert swap.collect(base.Context({}, [], {}))["units"] == []
    assert len(asked) == 1
    assert asked[0][0][:2] == ("*.swap", "swap.target")
    monkeypatch.setattr(swap.os.path, "isdir", lambda path: False)
    assert swap.collect(base.Context({}, [], {}))["units"] is None
    assert len(asked) == 1


def test_a_systemd_that_does_not_answer_is_not_one_without_swap(monkeypatch):
    def fails(*dummy):
        raise command.CommandError("systemctl did not end within 5 s")

    monkeypatch.setattr(systemd, "show", fails)
    monkeypatch.setattr(swap.os.path, "isdir", lambda path: path == "/run/systemd/system")
    context = base.Context({}, [], {})
    found = swap.collect(context)
    assert found["units"] is None
    assert "did not end" in context.source
    assert swap_evidence.after_boot(found).on is not False


@given(st.text())
def test_no_text_raises(text):
    swap.paths("\n" + text)
    swap.memory(text)
    swap.cmdline(text)
    swap.version(swap.LIBRARY + text)
    swap.units({one.get("Id", [""])[0]: one for one in systemd.parse(text)})
