# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of an audit of 100 and 1,000 hosts for the controller, compared with a ping of Ansible.

The hosts are simulated by a connection (connection/recorded.py) that answers at once with recorded
evidence. The measure is therefore of Ansible, the action, the verdicts and the reports. The ping is
`ansible.builtin.ping`.
"""

from __future__ import annotations

import base64
import json
import re
import string
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.bench import judging, memory
from tests.gate import machine, venvs

SIZES, FORKS = (100, 1000), 8
HERE = Path(__file__).resolve().parent
LETTERS = (string.ascii_lowercase + string.digits).replace("m", "")  # m1 is the master


def main() -> None:
    print(
        f"the controller's cost over simulated hosts ({FORKS} at once; memory of the largest"
        " process, and of all by their shares)"
    )
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as name:
            folder = Path(name)
            costs = {
                title: _run(title, command, folder)
                for title, command in _commands(folder, size).items()
            }
        for title, cost in costs.items():
            ping = costs["ping"]
            print(
                f"  {size:5} hosts, {title:5}: {cost.seconds:6.1f} s"
                f" ({cost.seconds / ping.seconds:.2f}x ping), {cost.cpu:6.1f} s of the processor"
                f" ({cost.cpu / ping.cpu:.2f}x), largest process {cost.largest:.0f} MB, together"
                f" {cost.together:.0f} MB ({cost.together / ping.together:.2f}x)"
            )


def _named(number: int) -> str:
    """Return two letters, as the recorded worker's name has: its certificate can name each host."""
    return LETTERS[number // len(LETTERS)] + LETTERS[number % len(LETTERS)]


def _commands(folder: Path, size: int) -> Mapping[str, list[str]]:
    fleet = folder / "fleet"
    judging.write_fleet(fleet, size, _named)
    masters, authority = (
        [path.name.partition(".")[0] for path in fleet.glob("*.cluster.json")],
        None,
    )
    for path in sorted(fleet.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if path.name.endswith(".cluster.json"):
            continue
        if path.stem in masters:
            authority = _authority(document)
        _certify(document, path.stem)
        path.write_text(json.dumps(document), encoding="ascii")
    for path in fleet.glob("*.cluster.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**document, "ca": {"pem": authority}}), encoding="ascii")
    workers = [
        path.stem
        for path in fleet.glob("*.json")
        if path.stem not in masters and not path.stem.endswith(".cluster")
    ]
    hosts = {
        "all": {
            "vars": {
                "ansible_connection": "recorded",
                "ansible_python_interpreter": "/usr/bin/python3",
            },
            "children": {
                "kube_control_plane": {"hosts": dict.fromkeys(masters)},
                "kube_node": {"hosts": dict.fromkeys(workers)},
            },
        }
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    (folder / "ping.yml").write_text(
        yaml.safe_dump(
            [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}]}]
        ),
        encoding="utf-8",
    )
    playbook = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        str(folder / "hosts.yml"),
    ]
    return {
        "ping": [*playbook, str(folder / "ping.yml")],
        "audit": [
            *playbook,
            "kubemend.remediation.audit",
            "-e",
            f"kubemend_report_dir={folder / 'report'}",
            "-e",
            "kubemend_fail_on=never",
        ],
    }


def _authority(document: dict) -> str:
    """Return the cluster's certificate authority, as the kubelet's kubeconfig has it."""
    found = re.search(
        r"certificate-authority-data: ([A-Za-z0-9+/=]+)",
        document["collectors"]["kubelet"]["data"]["kubeconfig"]["text"],
    )
    if found is None:
        raise SystemExit("the recorded control-plane node names no certificate authority")
    return base64.b64decode(found.group(1)).decode("ascii")


def _certify(document: dict, name: str) -> None:
    """Let the kubelet's certificate name this host; its signature is not verified."""
    certificate = document["collectors"]["kubelet"]["data"]["client_certificate"]
    der = base64.b64decode("".join(certificate["pem"].splitlines()[1:-1]))
    renamed = der.replace(
        b"system:node:" + judging.WORKER.encode(), b"system:node:" + name.encode()
    )
    certificate["pem"] = (
        f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(renamed).decode()}-----END"
        " CERTIFICATE-----\n"
    )


def _run(title: str, command: list[str], folder: Path) -> memory.Cost:
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()),
        ANSIBLE_CONNECTION_PLUGINS=str(HERE / "connection"),
        ANSIBLE_FORKS=str(FORKS),
        ANSIBLE_PIPELINING="True",
        KUBEMEND_BENCH_FLEET=str(folder / "fleet"),
    )
    code, said, cost = memory.measured(command, env, folder, 1800)
    if code:
        raise SystemExit(f"{title} failed:\n{said[-2000:]}")
    if title == "audit":
        _check(folder)
    return cost


def _check(folder: Path) -> None:
    """Require that the audit of every host was measured."""
    hosts = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))["hosts"]
    silent = [row["host"] for row in hosts if row["status"] != "ok"]
    if silent or len(hosts) != len(list((folder / "fleet").glob("*.json"))) - 1:
        raise SystemExit(f"{len(hosts)} hosts were audited, of which did not answer: {silent[:9]}")
