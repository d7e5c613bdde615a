# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible-playbook runs against the lab's nodes.

And evidence recorded from them for the unit tests.

python -m tests.lab.support.playbook record INCIDENT --k8s v1.36.3 [--layout kubespray] FOLDER
[ansible-playbook arguments]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.gate import machine, venvs
from tests.lab.cluster import inventory
from tests.lab.cluster.clusters import Cluster
from tests.lab.support import incident

# What was started, of ours or with ours in it: a test that comes to grief before that says nothing
# of us.
BEGUN: list[str] = []


def _how(
    name: str, hosts: Path, arguments: tuple[str, ...], report: str, env: dict[str, str] | None
) -> dict:
    BEGUN.append(name)
    environment = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()), ANSIBLE_NOCOLOR="1", **(env or {})
    )
    return {
        "args": [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "-i",
            str(hosts),
            name if "/" in name else f"kubemend.remediation.{name}",
            "-e",
            json.dumps({"kubemend_report_dir": report}),
            *arguments,
        ],
        "env": environment,
        "stdin": subprocess.DEVNULL,
        "stderr": subprocess.STDOUT,
        "text": True,
    }


def run(
    name: str, hosts: Path, *arguments: str, report: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Run a playbook by its name or path, with no Ansible settings of the caller."""
    return subprocess.run(
        **_how(name, hosts, arguments, report, env),
        stdout=subprocess.PIPE,
        timeout=900,
        check=False,
    )


def start(
    name: str, hosts: Path, *arguments: str, report: str, env: dict[str, str] | None = None, output
) -> subprocess.Popen:
    """Start a playbook in the background; its output goes to a file."""
    return subprocess.Popen(
        **_how(name, hosts, arguments, report, env), stdout=output, start_new_session=True
    )


def audit(cluster: Cluster, hosts: Path, arguments: list[str], keep: Path | None = None) -> dict:
    """Return report.json of an audit.

    keep: a folder that gets the evidence it was judged from
    """
    with tempfile.TemporaryDirectory(prefix="kubemend-report-") as folder:
        done = run("audit", hosts, *arguments, report=folder)
        report = Path(folder) / "report.json"
        if not report.exists():
            raise AssertionError(
                f"ansible-playbook ended with {done.returncode} and no"
                f" report:\n{done.stdout[-3000:]}"
            )
        if keep is not None:
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(Path(folder) / "evidence", keep)
        return json.loads(report.read_text(encoding="utf-8"))


def record(name: str, cluster: Cluster, folder: Path, arguments: list[str]) -> None:
    """Break, see the symptom, keep what an audit collects, heal."""
    one = incident.by_name(name)
    with cluster.locked():
        try:
            incident.made(cluster, one, one.target)
            how = one.audit(cluster, one.target)
            path = cluster.inventory
            if how["inventory"]:
                path = inventory.write(cluster.folder / "inventory-case.yml", how["inventory"])
            report = audit(cluster, path, [*how["args"], *arguments], folder)
        finally:
            one.finish(cluster, one.target)
            cluster.wait_healthy()
    for finding in report["findings"]:
        print(finding["code"], finding["host"], finding["component"], finding["summary"])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.support.playbook", description=__doc__
    )
    parser.add_argument("what", choices=["record"])
    parser.add_argument("incident")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--k8s", default="v1.36.3")
    parser.add_argument("--layout", default="kubeadm")
    given, rest = parser.parse_known_args()
    record(given.incident, Cluster.find(given.k8s, layout=given.layout), given.folder, rest)


if __name__ == "__main__":
    main()
