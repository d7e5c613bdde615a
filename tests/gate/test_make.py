# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What make gives to the programs."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.gate import machine

DEFAULTS = {"K8S": "v1.36.3", "MASTERS": "3", "WORKERS": "1", "VMS": "0", "LAYOUT": "kubeadm"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([], DEFAULTS),
        (["MASTERS=1", "LAYOUT=kubespray"], {**DEFAULTS, "MASTERS": "1", "LAYOUT": "kubespray"}),
    ],
)
def test_what_is_not_given_has_its_default(tmp_path, given, wanted):
    """An export defines a variable as empty, and ?= leaves it so.

    The defaults have to come first.
    """
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="ascii")
    python.chmod(0o755)
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in wanted and not key.startswith(("MAKE", "MFLAGS"))
    }
    ran = subprocess.run(
        ["make", "-s", "lab-up", f"PYTHON={python}", *given],
        cwd=machine.ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == [
        "-m",
        "tests.lab",
        "up",
        "--k8s",
        wanted["K8S"],
        "--masters",
        wanted["MASTERS"],
        "--workers",
        wanted["WORKERS"],
        "--vms",
        wanted["VMS"],
        "--layout",
        wanted["LAYOUT"],
    ]
