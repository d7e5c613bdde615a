# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate docs/verification.md: incidents that were made and recorded, and those of others."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.docs import ROOT

RECORDED = ROOT / "tests" / "fixtures" / "recorded"
# Recorded by lab tests of their own, which are no incident files.
OTHERS = {
    "component-new-manifest": (
        "nothing at the time of the audit: the manifests of a master were changed and put back, and"
        " the kubelet started new pods each time"
    ),
    "component-restarted": (
        "the etcd client key of a master's API server was missing for some minutes, and its"
        " scheduler and controller manager ended"
    ),
    "crio-parts-missing": (
        "a worker of CRI-O 1.34 lacks conmon, and CRI-O of a master names an image of sandboxes"
        " that is not there"
    ),
    "crio-refused-containers": "CRI-O 1.34 can make no container of the control plane",
    "interrupted-change": "a repair was killed between its steps",
    "k3s-containerd-template": (
        "the template for the containerd of an agent of K3s is no TOML, so that containerd and the"
        " agent end"
    ),
    "k3s-cpu-policy": "an agent of K3s has another CPU manager policy than its state file",
    "k3s-go-fault": "a server of K3s ends with a fault of Go, and prints 37,000 lines of stacks",
    "k3s-healthy": "nothing is broken: K3s with three servers and an agent",
    "k3s-no-quorum": "two of the three servers of K3s were stopped",
    "k3s-server-stopped": "one of the three servers of K3s was stopped",
    "k3s-wrong-server": "an agent of K3s has an address at which no server is",
    "kubespray-scheduler-config-file": (
        "a master's scheduler has leader election switched off in its configuration file, on nodes"
        " as kubespray lays them out"
    ),
    "pods-pending": "pods wait for what no node offers",
    "runtime-hung": "the container runtime of a worker does not answer",
}
# What no node of the lab can have, and what stands for it instead.
UNMADE = (
    (
        "KM329 to KM331, the managers' rejections",
        (
            "on two CPUs the kubelet says OutOfcpu before its CPU manager refuses anything, and one"
            " NUMA node leaves the memory and the topology manager nothing to refuse. Unit tests"
            " stand for them, with the texts of all releases"
        ),
    ),
    (
        "KM405, file handles",
        (
            "fs.file-max is one number for the whole machine and as high as the kernel counts: it"
            " cannot be filled, and lowered it would be for everybody's programs. Unit tests stand"
            " for it"
        ),
    ),
    (
        "KM409, 205/LIMITS",
        (
            "systemd gives a unit that wants more than PID 1 may have just that (tried:"
            " LimitNOFILE=1073741817 starts with 20000). It fails only where fs.nr_open was lowered"
            " below PID 1's own limit, and fs.nr_open is the machine's. Unit tests stand for it"
        ),
    ),
    (
        "KM520, a kernel module",
        (
            "the machine's modules are the nodes', and they have no /lib/modules to load one from;"
            " of a container nothing is said. Its settings are tried (ip-forward-off); unit tests"
            " stand for the modules"
        ),
    ),
    (
        "KM522 and KM528, SELinux",
        (
            "a kernel has one SELinux or none, and where the lab was tried it has none. Unit tests"
            " stand for them, with lines of audit logs that others published"
        ),
    ),
    (
        "KM526, a clock",
        (
            "no namespace holds the time of day: a node's clock is the machine's, and setting it"
            " would set that of every program. Unit tests stand for it"
        ),
    ),
    (
        "KM527, firewalld and ufw",
        (
            "a firewalld that the next boot brings is put on a node by its files"
            " (firewall-enabled); none of the lab's nodes runs one, or ufw"
        ),
    ),
)


def page() -> str:
    from tests.lab.support import incident

    known, rows, made = incident.discover(), [], set()
    cases: dict[str, list[tuple[str, Path]]] = {}
    for version, name, folder in _recorded():
        cases.setdefault(name, []).append((version, folder))
    for name in sorted(cases):
        title = OTHERS.get(name)
        if name in known:
            title = known[name].title
        if title is None:
            raise ValueError(f"{name}: say in OTHERS what is broken in this recording")
        for version, folder in cases[name]:
            made.add(name)
            rows.append(f"| {name} | {title} | {version} | {_date(folder)} | {_present(folder)} |")
    left = [f"| {name} | {known[name].title} |" for name in sorted(known.keys() - made)]
    return "\n".join(
        [
            "# Verified on real clusters",
            "",
            (
                "<!-- Generated from tests/fixtures/recorded and the lab's incidents: run `python"
                " -m tests.docs`. -->"
            ),
            "",
            (
                "Each incident was made in a kubeadm cluster of that release, and its symptom was"
                " seen. What an audit collected then is kept in `tests/fixtures/recorded`. Every"
                " run of the tests judges that evidence again, and expects exactly the verdicts"
                " that are kept next to it. It also makes some of the incidents again, which the"
                " commit draws, in clusters of the newest and the oldest release. A full run makes"
                " them all. The incidents whose names begin with k3s were made by hand, in a K3s"
                " that was built from its source. No test makes them again."
            ),
            "",
            "| incident | what is broken | release | recorded | faults found |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "Made in the lab only, where what tells them is the audit at that moment:",
            "",
            "| incident | what is broken |",
            "|---|---|",
            *left,
            "",
            "## What no node of the lab can have",
            "",
            "Its nodes are containers, and share the kernel of the machine.",
            "",
            "| fault | why, and what stands for it |",
            "|---|---|",
            *(f"| {what} | {why} |" for what, why in UNMADE),
            "",
            *_first_tries(),
        ]
    )


def _first_tries() -> Iterator[str]:
    """Yield how the first answers to each batch of public cases were graded."""
    from tests.cases import case_file

    yield "## Incidents of others"
    yield ""
    yield (
        "A batch is twenty public threads with a confirmed cause (`tests/cases`). The eighth has"
        " seventeen, which its searches found. Their operators are not known to this project. Each"
        " thread was judged before anything was changed for it, by evidence that has what the"
        " thread says:"
    )
    yield ""
    yield f"| batch | searched | {' | '.join(case_file.GRADES)} |"
    yield "|---" * (2 + len(case_file.GRADES)) + "|"
    for batch in case_file.batches():
        cases = map(case_file.read, case_file.of_batch(batch["batch"]))
        counts = Counter(case.get("first_try", {}).get("grade") for case in cases)
        if set(counts) <= set(case_file.GRADES):
            row = " | ".join(str(counts[grade]) for grade in case_file.GRADES)
            yield f"| {batch['batch']} | {batch['date']} | {row} |"
    yield ""
    yield (
        "The grades are:\n\n"
        "- right: names the cause and blames nothing else;\n"
        "- partly: names its place or a part of it;\n"
        "- wrong: blames something else;\n"
        "- silent: finds nothing of severity warning or critical;\n"
        "- harmful: plans a step that does harm."
    )
    yield ""


def _recorded() -> Iterator[tuple[str, str, Path]]:
    """Yield release, incident and directory, the oldest release first."""
    for folder in sorted(RECORDED.iterdir(), key=_release):
        version, _dash, name = folder.name.partition("-")
        yield version, name, folder


def _release(path: Path) -> list[int]:
    return [_number(word) for word in re.split(r"[v.-]", path.name)[1:4]]


def _number(word: str) -> int:
    if word.isdigit():
        return int(word)
    return 0


def _date(folder: Path) -> str:
    """Return the day of a recording's evidence."""
    days = {
        json.loads(path.read_text(encoding="utf-8")).get("collected_at")
        for path in (folder / "evidence").glob("*.json")
    }
    return min(str(day) for day in days if day)[:10]


def _present(folder: Path) -> str:
    found = {
        row[1]
        for row in json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        if row[0] == "present"
    }
    return " ".join(sorted(found)) or "none"
