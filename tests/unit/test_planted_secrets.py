# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets planted wherever a node of Kubernetes has some.

No secret leaves the node, whatever the audit writes or prints.

The node is this machine with an /etc, a /var/lib and processes of its own (namespaces of mounts and
of processes), so that the real collector reads the real paths.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.support import planted_secrets

PLAYBOOK_FIXTURES = {"run"}
INSIDE = """#!/bin/sh
set -e
mount --bind {root}/etc /etc
mount --bind {root}/var /var/lib
export PYTHONHOME={home}
{root}/kubelet -I -S -c 'import time; time.sleep(600)' {kubelet} </dev/null >/dev/null 2>&1 &
one=$!
{root}/kube-scheduler -I -S -c 'import time; time.sleep(600)' {scheduler} \
</dev/null >/dev/null 2>&1 &
two=$!
unset PYTHONHOME
# not this shell any more
until grep -qx kubelet /proc/$one/comm && grep -qx kube-scheduler /proc/$two/comm; do
  sleep 0.05
done
exec {python} "$@"
"""


def possible() -> bool:
    return (
        bool(shutil.which("unshare"))
        and subprocess.run(
            ["unshare", "-mpf", "--mount-proc", "true"], capture_output=True, check=False
        ).returncode
        == 0
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not possible():
        pytest.skip("no namespaces here: this needs root and unshare")
    from tests.unit.conftest import Operator

    folder = tmp_path_factory.mktemp("planted")
    root = folder / "node"
    planted_secrets.write(root)
    python = Path(sys.executable).resolve()
    for name in ("kubelet", "kube-scheduler"):
        shutil.copy(python, root / name)
    (root / "inside").write_text(
        INSIDE.format(
            root=root,
            python=python,
            home=sys.base_prefix,
            kubelet=" ".join(planted_secrets.KUBELET),
            scheduler=" ".join(planted_secrets.SCHEDULER),
        )
    )
    (root / "python").write_text(f'#!/bin/sh\nexec unshare -mpf --mount-proc {root}/inside "$@"\n')
    for name in ("inside", "python"):
        (root / name).chmod(0o755)
    (folder / "home").mkdir()
    (folder / "report").mkdir(mode=0o700)  # the bundle lies in it
    operator = Operator(folder)
    operator.write(
        "one.ini",
        "[kube_control_plane]\nm1 ansible_connection=local"
        f" ansible_python_interpreter={root}/python kubemend_become=false\n",
    )
    done = operator.run(
        "audit",
        "-vvv",
        "-e",
        '{"kubemend_report_formats": ["terminal", "json", "html", "junit", "prometheus", "sarif"]}',
        "-e",
        "kubemend_deep=true",
        "-e",
        f"kubemend_bundle={folder}/report/case.tar.gz",
        inventory="one.ini",
    )
    assert done.rc == 0, done.output[-3000:]
    (folder / "report" / "output").write_text(done.output)
    (folder / "report" / "output").chmod(0o600)
    return folder


def test_the_node_was_read(run: Path) -> None:
    """If the node was not read, finding no secret would mean nothing."""
    text = (run / "report" / "evidence" / "m1.json").read_text()
    for public in (
        "--leader-elect=true",
        "kube-scheduler.yaml",
        "kubelet.conf",
        "staticPodPath",
        "planted.example.org",
        "--node-labels=public=yes",
    ):
        assert public in text, public
    assert "*" * 12 in text


def test_no_planted_secret_left_the_node(run: Path) -> None:
    assert planted_secrets.found_in(run / "report") == []


def test_the_scanner_finds_what_it_looks_for(tmp_path: Path) -> None:
    for secret in planted_secrets.SECRETS:
        for kind, form in (
            ("plain", secret),
            ("base64", base64.b64encode(f"x{secret}y".encode()).decode()),
        ):
            path = tmp_path / kind
            path.write_text(f"before {form} after")
            assert planted_secrets.found_in(tmp_path), (kind, secret)
            path.unlink()
    assert len(planted_secrets.SECRETS) == len(set(planted_secrets.SECRETS)) > 15


def test_every_file_is_its_owners_and_every_folder(run: Path) -> None:
    found = {
        str(path.relative_to(run)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in [run / "report", *(run / "report").rglob("*")]
    }
    assert len(found) > 5
    assert {
        name: mode
        for name, mode in found.items()
        if mode != ("0o700" if (run / name).is_dir() else "0o600")
    } == {}


def test_the_audit_wrote_nothing_on_the_node(run: Path) -> None:
    known = {str(path.relative_to(run / "node")) for path in planted_secrets.paths(run / "node")}
    there = {
        str((Path(where) / name).relative_to(run / "node"))
        for where, _folders, names in os.walk(run / "node")
        for name in names
    }
    assert there - known == {"inside", "python", "kubelet", "kube-scheduler"}


def test_no_secret_lies_in_the_checkout() -> None:
    """Secrets are put together when they are needed, so that no scanner reports harmless ones."""
    assert not [
        secret
        for secret in planted_secrets.SECRETS
        if re.search(re.escape(secret), Path(planted_secrets.__file__).read_text())
    ]
