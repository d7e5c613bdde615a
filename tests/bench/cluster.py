# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of a cluster of 50,000 pods, against reading the same pages of the API alone.

The API is a fake one (fake_api) behind a real unix socket; the program is the one that a
control-plane node runs. Raw reads are the requests that the program made, made again: once thrown
away, once parsed as JSON. A page that lies on a disk costs nothing, so that the reads are also
timed with what an API server needs for one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import fake_api
from tests.gate import venvs

PODS, ROUNDS, DELAYS = 50000, 3, (0.0, 0.1)
# Small, because what a process held when it was forked counts as its peak.
PARENT = r"""
import json, resource, subprocess, sys, time
begin = time.monotonic()
text = sys.stdin.buffer.read()
answer = subprocess.run(sys.argv[1:], input=text, stdout=subprocess.PIPE, check=True).stdout
seconds, used = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, answer.decode()]))
"""
RAW = r"""
import http.client, json, socket, sys
given = json.load(sys.stdin)
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(given["socket"])
size = 0
for target in given["asked"]:
    connection.request("GET", target)
    answer = connection.getresponse().read()
    size += len(answer)
    if given["parse"]:
        json.loads(answer)
print(size)
"""


def main() -> None:
    print(
        f"evidence of a cluster of {PODS} pods on {fake_api.NODES} nodes (median of {ROUNDS};"
        " seconds, processor seconds, peak memory)"
    )
    with (
        tempfile.TemporaryDirectory(prefix="kubemend-bench-") as folder,
        fake_api.serving(Path(folder), PODS) as api,
    ):
        for tier, deep in (("core", False), ("deep", True)):
            for delay in DELAYS:
                _compare(api, tier, deep, delay)


def _compare(api: fake_api.Api, tier: str, deep: bool, delay: float) -> None:
    api.delay = delay
    rounds: list[dict[str, list]] = []
    for _round in range(ROUNDS):
        api.asked.clear()
        ours = _measured(["-I", "-S", "-"], _program(deep, api.kubectl))
        _check(ours[3])
        asked = list(api.asked)
        one = {"ours": ours}
        for name, parse in (("raw", False), ("parsed", True)):
            given = {"socket": str(api.server_address), "asked": asked, "parse": parse}
            one[name] = _measured(["-I", "-S", "-c", RAW], json.dumps(given).encode())
        rounds.append(one)
    size, middle = (
        int(rounds[0]["raw"][3]),
        {
            name: [statistics.median(one[name][part] for one in rounds) for part in range(3)]
            for name in rounds[0]
        },
    )
    print(f"  {tier}, {1000 * delay:.0f} ms for a page: {len(asked)} requests, {size / 1e6:.0f} MB")
    for title, name in (
        ("raw reads", "raw"),
        ("raw reads, parsed", "parsed"),
        ("evidence", "ours"),
    ):
        seconds, cpu, memory = middle[name]
        print(
            f"    {title:18} {seconds:6.1f} s, {cpu:6.1f} s of the processor, {memory:4.0f} MB; "
            f"{statistics.median(one[name][0] / one['raw'][0] for one in rounds):5.2f}x raw, "
            f"{statistics.median(one[name][0] / one['parsed'][0] for one in rounds):5.2f}x parsed"
        )


def _measured(arguments: list[str], given: bytes) -> list:
    """[seconds, processor seconds, MB, what it printed]."""
    run = subprocess.run(
        ["/usr/bin/python3", "-I", "-S", "-c", PARENT, "/usr/bin/python3", *arguments],
        input=given,
        stdout=subprocess.PIPE,
        check=True,
        timeout=1800,
    )
    return json.loads(run.stdout)


def _program(deep: bool, kubectl: Path) -> bytes:
    sys.path.insert(0, str(venvs.collections()))
    from ansible_collections.kubemend.remediation.plugins.action.cluster_evidence_info import (
        ActionModule,
    )
    from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

    params = {"deep": deep, "kubectl": str(kubectl), "kubeconfig": str(kubectl), "timeout": 1000}
    return node_program.build(ActionModule.ENTRY, ActionModule.SHIP, params, "BENCH")


def _check(answer: str) -> None:
    """Require that the whole reading was measured."""
    said = json.loads(answer.partition("BENCH ")[2])
    wrong = {
        name: one["error"]
        for name, one in said["collectors"].items()
        if one["status"] not in ("ok", "absent")
    }
    if said["status"] != "ok" or wrong:
        raise SystemExit(f"the cluster's evidence is {said['status']}: {said['reason']} {wrong}")
