# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a repair from the write to its verification, against the kubelet's own time.

Both from the write until the new process's healthz and configz show election, polled every 100 ms.
A label changes each time, because the kubelet holds back a pod that returns to bytes which it ran
before.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from pathlib import Path

from tests.lab.cluster.clusters import Cluster
from tests.lab.support import playbook
from tests.lab.support.static_pod import MANAGER, manifest, set_flag, wait_election_off

ROUNDS, NODE = 5, "m2"
# Independent of the collection's own waiting: it writes as an editor does and asks as an operator
# would.
KUBELET = r"""
import base64, glob, json, os, re, ssl, sys, time, urllib.request
path, new = sys.argv[1], sys.stdin.read()
conf = open("/etc/kubernetes/admin.conf").read()
names = []
for key in ("client-certificate-data", "client-key-data"):
    names.append("/run/bench-" + key)
    with open(os.open(names[-1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(base64.b64decode(re.search(key + ": (.+)", conf).group(1)))
context = ssl._create_unverified_context()
context.load_cert_chain(*names)
def pids():
    found = set()
    for one in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(one, "rb").read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"kube-controller-manager"):
            found.add(one)
    return found
def get(what):
    url = "https://127.0.0.1:10257/" + what
    return urllib.request.urlopen(url, context=context, timeout=2).read().decode()
old = pids()
# the kubelet passes over dotfiles
temporary = os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".bench")
with open(temporary, "w") as file:
    file.write(new)
begin = time.monotonic()
os.rename(temporary, path)
while time.monotonic() - begin < 300:
    time.sleep(0.1)
    if not pids() - old or pids() & old:
        continue
    try:
        if "leaderElection" in get("healthz?verbose") and re.search(
            '"leaderElect": ?true', get("configz"), re.I
        ):
            print(time.monotonic() - begin)
            break
    except OSError:
        pass
for name in names:
    os.unlink(name)
"""


def main(k8s: str) -> None:
    if k8s not in Cluster.known():
        print(
            f"repair against the kubelet: skipped, no lab cluster {k8s} is up (make lab-up"
            f" K8S={k8s})"
        )
        return
    cluster = Cluster.find(k8s)
    with cluster.locked():
        former = cluster.read(NODE, manifest(MANAGER))
        try:
            own, ours = zip(
                *(_round(cluster, former.decode(), number) for number in range(ROUNDS)), strict=True
            )
        finally:
            cluster.write(NODE, manifest(MANAGER), former)
            cluster.exec(NODE, "systemctl restart kubelet")
            cluster.wait_healthy()
    kubelet, repair = statistics.median(own), statistics.median(ours)
    print(
        f"write to proof of a controller manager ({k8s}; median of {ROUNDS}): kubelet {kubelet:.1f}"
        f" s, repair {repair:.1f} s = {repair / kubelet:.2f}x"
    )
    print(
        f"    kubelet {' '.join(f'{one:.1f}' for one in own)}; repair"
        f" {' '.join(f'{one:.1f}' for one in ours)}"
    )


def _labelled(text: str, label: str) -> str:
    return re.sub(r"(?m)^  labels:\n", f'  labels:\n    bench: "{label}"\n', text, count=1)


def _round(cluster: Cluster, text: str, number: int) -> tuple[float, float]:
    """Return (the kubelet's seconds, the repair's)."""
    _off(cluster, text, f"{number}-a")
    script = ["python3", "-c", KUBELET, manifest(MANAGER)]
    own = float(
        cluster.exec(NODE, script, timeout=320, input=_labelled(text, f"{number}-b")).stdout
    )
    _off(cluster, text, f"{number}-c")
    with tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder:
        done = playbook.run(
            "remediate", cluster.inventory, "-e", "kubemend_max_risk=2", report=folder
        )
        steps = [
            json.loads(line)
            for line in (Path(folder) / "steps.jsonl").read_text(encoding="utf-8").splitlines()
        ]
    if [step["state"] for step in steps] != ["done"]:
        raise SystemExit(f"the repair did not end well:\n{done.stdout[-2000:]}")
    return own, steps[0]["seen"]["proof_seconds"]


def _off(cluster: Cluster, text: str, label: str) -> None:
    cluster.write(
        NODE, manifest(MANAGER), _labelled(set_flag(text, "leader-elect", "false"), label)
    )
    wait_election_off(cluster, NODE, MANAGER)
