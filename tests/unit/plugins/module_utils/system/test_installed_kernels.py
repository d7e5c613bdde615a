# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels beside the one that runs, in a folder that stands for a machine."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import installed_kernels

OLD, NEW = "6.1.0-25-amd64", "6.1.0-26-amd64"
LOADED = "overlay 200 3 - Live 0x0\nnf_conntrack 1 2 - Live 0x0\nnvidia 9 1 - Live 0x0 (POE)\n"
WHOLE = (
    "kernel/fs/overlayfs/overlay.ko:\nkernel/net/netfilter/nf_conntrack.ko.xz: kernel/lib/x.ko\n"
    "updates/dkms/nvidia.ko:\n"
)


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "boot").mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").write_text(LOADED)
    for name in (OLD, NEW):
        (tmp_path / f"boot/vmlinuz-{name}").touch()
        (tmp_path / f"lib/modules/{name}").mkdir(parents=True)
        (tmp_path / f"lib/modules/{name}/modules.dep").write_text(WHOLE)
        (tmp_path / f"lib/modules/{name}/modules.builtin").write_text("")
    return tmp_path


def kernels(machine, running=OLD):
    answer = installed_kernels.installed(running, str(machine), str(machine / "proc"))
    assert answer["running"] == running
    return answer["kernels"]


def test_another_kernel_with_all_modules(machine):
    assert kernels(machine) == [
        {"release": NEW, "tree": True, "lacks": [], "is_default": False},
    ]


@pytest.mark.parametrize(
    "name", [f"vmlinux-{NEW}.gz", f"vmlinuz-{NEW}.dpkg-new", f"vmlinuz-{OLD}.old"]
)
def test_a_copy_of_an_image_is_no_kernel(machine, name):
    (machine / "boot" / name).touch()
    assert [row["release"] for row in kernels(machine)] == [NEW]


def test_the_kernel_of_the_link(machine):
    (machine / "vmlinuz").symlink_to(f"boot/vmlinuz-{NEW}")
    assert [row["is_default"] for row in kernels(machine)] == [True]
    assert [row["is_default"] for row in kernels(machine, NEW)] == [False]


def test_a_driver_that_was_not_built(machine):
    tree = machine / f"lib/modules/{NEW}"
    (tree / "modules.dep").write_text(WHOLE.replace("updates/dkms/nvidia.ko:\n", ""))
    assert [row["lacks"] for row in kernels(machine)] == [["nvidia"]]


def test_what_is_built_in_is_not_lacking(machine):
    tree = machine / f"lib/modules/{NEW}"
    (tree / "modules.dep").write_text("updates/dkms/nvidia.ko:\n")
    (tree / "modules.builtin").write_text(
        "kernel/fs/overlayfs/overlay.ko\nkernel/net/netfilter/nf_conntrack.ko\n"
    )
    assert [row["lacks"] for row in kernels(machine)] == [[]]


def test_modules_that_are_not_installed(machine):
    (machine / f"lib/modules/{NEW}/modules.dep").unlink()
    (row,) = kernels(machine)
    assert (row["tree"], row["lacks"]) == (False, ["overlay", "nf_conntrack", "nvidia"])


def test_a_module_that_nobody_uses_is_not_lacking(machine):
    (machine / "proc/modules").write_text("")
    (machine / f"lib/modules/{NEW}/modules.dep").unlink()
    assert [row["lacks"] for row in kernels(machine)] == [[]]


def test_a_machine_without_kernels(tmp_path):
    answer = installed_kernels.installed(OLD, str(tmp_path), str(tmp_path))
    assert answer == {"running": OLD, "kernels": []}
