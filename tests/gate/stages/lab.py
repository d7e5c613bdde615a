# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stages on real nodes: the lab's binaries and images, molecule, and the clusters."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import sys

from tests.gate import counts, machine, venvs
from tests.gate.runner import Context
from tests.gate.stages.code import pytest

# The node images, and the Python that each Debian brings.
SUITES = {"bullseye": "3.9", "bookworm": "3.11", "trixie": "3.13"}
# systemd 256 and newer start on a host with cgroup v1 only when told to.
LEGACY_CGROUPS = (
    "SYSTEMD_PROC_CMDLINE=systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
)
HOUR = 3600


def build(context: Context) -> counts.Counts:
    """Make what the lab of this run needs, cached outside the checkout.

    Only the first run takes minutes.
    """
    from tests.lab.cluster import host, paths
    from tests.lab.support import results, sampling

    found = counts.Counts()
    possible = []
    for version in paths.pinned():
        reason = host.version_unavailable_reason(version)
        if reason:
            found.skipped.append(reason)
        else:
            possible.append(version)
    if not context.full:
        possible = [sampling.release(possible, results.tree()["commit"])]
    for version in possible:
        machines = ["--vms"] if context.full or sampling.has_machine(version) else []
        returncode, _text = context.run(
            [sys.executable, "-m", "tests.lab", "build", *machines, "--k8s", version], timeout=HOUR
        )
        found.check("python -m tests.lab build --k8s " + version, returncode == 0)
    return found


def molecule(context: Context) -> counts.Counts:
    """Test the audit, and roles that need no cluster, on plain nodes of each available Debian."""
    found = counts.Counts()
    images = {}
    for suite in SUITES:
        returncode, text = context.run(
            [sys.executable, "-m", "tests.lab", "image", "--suite", suite], timeout=HOUR
        )
        names = [line.strip() for line in text.splitlines() if line.startswith("localhost/")]
        if returncode or not names:
            found.skipped.append(f"Debian {suite}: its image could not be made")
            continue
        images[suite] = names[-1]
    if not images:
        found.failed.append("no node image could be made")
        return found
    home = venvs.ensure("test")
    # What an earlier run found must not be what this one is judged by.
    reports = machine.OUTPUT / "molecule"
    shutil.rmtree(reports, ignore_errors=True)
    paths = os.pathsep.join([str(venvs.collections()), str(venvs.bundled("containers.podman"))])
    env = machine.environment(
        KUBEMEND_INVENTORY=str(inventory(images)),
        KUBEMEND_REPORTS=str(reports),
        KUBEMEND_ROOT=str(machine.ROOT),
        ANSIBLE_COLLECTIONS_PATH=paths,
        ANSIBLE_HOME=str(machine.VENV / "ansible-home"),
        NO_COLOR="1",
        ANSIBLE_NOCOLOR="1",
        PY_COLORS="0",
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    # Roles that need a cluster have scenarios on the lab: tests/lab/tests/test_roles.py.
    from tests.lab.support import results, sampling

    left_out = [] if context.full else sampling.scenarios_left_out(results.tree()["commit"])
    elsewhere = [
        word
        for role in ("leader_election", "log_capture", *left_out)
        for word in ("--exclude", role)
    ]
    returncode, _text = context.run(
        [home / "bin" / "molecule", "test", "--all", *elsewhere], env=env, timeout=1200
    )
    for suite in images:
        found.check("the audit and a role on a node of Debian " + suite, returncode == 0)
    return found


def fresh(context: Context) -> counts.Counts:
    """Test the quick start, word by word, and an audit as an ordinary user, on plain machines."""
    return pytest(context, "tests/fresh", timeout=2700)


def inventory(images: dict[str, str]) -> pathlib.Path:
    """Name the nodes of molecule by the checkout, so that two checkouts do not meet."""
    legacy = (
        [] if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists() else ["-e", LEGACY_CGROUPS]
    )
    checkout = hashlib.sha256(str(machine.ROOT).encode()).hexdigest()[:6]
    hosts = {}
    for suite, image in images.items():
        hosts["debian-" + suite] = {
            "ansible_host": f"kubemend-molecule-{checkout}-{suite}",
            "node_container": f"kubemend-molecule-{checkout}-{suite}",
            "node_image": image,
            "node_options": legacy if suite == "trixie" else [],
            "node_python": SUITES[suite],
        }
    # No user is named, and plain nodes have no sudo: the nodes say themselves that they are root
    # already.
    connection = {"ansible_connection": "containers.podman.podman"}
    path = machine.VENV / "molecule-inventory.yml"
    path.write_text(
        json.dumps({"nodes": {"hosts": hosts, "vars": connection}}, indent=1), encoding="utf-8"
    )
    return path


def lab(context: Context) -> counts.Counts:
    """Incidents in real clusters, as many as this commit draws (tests/lab/support/sampling.py).

    Full: the whole matrix, or what CASES picks of it.
    """
    extra = {"KUBEMEND_TEST_FULL": "1"} if context.full else {"KUBEMEND_DRAW": "1"}
    if context.full and os.environ.get("CASES"):
        extra["KUBEMEND_CASES"] = os.environ["CASES"]
    if context.resumed:
        extra["KUBEMEND_RESUMED"] = "1"
    # A gate that was killed left its nodes, and what they hold fills the disk.
    context.run([sys.executable, "-m", "tests.lab", "clean"], timeout=900)
    return pytest(context, "tests/lab", timeout=12 * HOUR if context.full else 4200, **extra)
