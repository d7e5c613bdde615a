# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states and folders of modules mean the same to the collector and to the controller."""

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import boot
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import kernel_modules
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.boot import NodeBoot
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import modules_load_fstab
from tests.unit.support.file_evidence import file


@pytest.mark.parametrize("name", kernel_modules.MODULES)
@pytest.mark.parametrize(
    ("loaded", "builtin", "state"),
    [
        ("{} 1 0 - Live 0x0\n", "", kernel_modules.LOADED),
        ("ext4 1 0 - Live 0x0\n", "kernel/x/{}.ko\n", kernel_modules.BUILTIN),
        ("ext4 1 0 - Live 0x0\n", "", kernel_modules.ABSENT),
    ],
)
def test_the_model_knows_every_state_that_a_node_answers(tmp_path, name, loaded, builtin, state):
    for folder in ("proc", "sys", "tree"):
        (tmp_path / folder).mkdir()
    (tmp_path / "proc" / "modules").write_text(loaded.format(name))
    (tmp_path / "tree" / "modules.builtin").write_text(builtin.format(name))
    paths = [str(tmp_path / folder) for folder in ("proc", "sys", "tree")]
    node = SimpleNamespace(answer=SimpleNamespace(modules=boot.modules(*paths)))
    assert NodeBoot.module(node, name) == state


def test_no_state_is_taken_for_another():
    states = {kernel_modules.LOADED, kernel_modules.BUILTIN, kernel_modules.ABSENT}
    assert len(states) == 3


def test_a_file_of_every_folder_names_modules_and_the_first_folder_counts():
    records = [
        file(f"{folder}/k8s.conf", f"module{rank}\n")
        for rank, folder in enumerate(kernel_modules.LOAD)
    ]
    for rank, record in enumerate(records):
        assert [one.name for one in modules_load_fstab.modules([record])] == [f"module{rank}"]
    (first,) = modules_load_fstab.modules(records[::-1])
    assert first.path.startswith("/etc/")
