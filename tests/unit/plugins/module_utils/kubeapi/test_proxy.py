# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of proxies' sockets: each run removes those of killed runs, and no other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import proxy

SPACE = proxy._pid_space()
ENDED = 2**22 + 1  # above the kernel's highest process id


# The processes of a parallel run compare the ids of their tests, so that no id holds a process id
# or a namespace.
@pytest.mark.parametrize(
    ("template", "is_removed"),
    [
        ("{folder}{ended}-{space}-abc", True),
        ("{folder}{running}-{space}-abc", False),
        ("{folder}{ended}-1-abc", False),
        ("{folder}x-{space}-abc", False),
        ("other-{ended}-{space}-abc", False),
    ],
)
def test_directories_of_ended_processes_of_this_namespace_are_removed(
    tmp_path, template, is_removed
):
    name = template.format(folder=proxy.FOLDER, ended=ENDED, running=os.getpid(), space=SPACE)
    (tmp_path / name).mkdir()
    proxy._sweep(str(tmp_path), SPACE)
    assert (tmp_path / name).exists() is not is_removed


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="unshare needs root"
)
def test_a_run_in_another_pid_namespace_removes_no_directory_that_is_in_use():
    program = f"from {proxy.__name__} import folder\nwith folder():\n    pass\n"
    apart = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", program]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with proxy.folder() as path:
        subprocess.run(apart, env=environment, check=True, timeout=120)
        assert Path(path).is_dir()
