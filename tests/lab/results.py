# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What ran, when, on which commit, and how it ended; and the page that is made of it."""
from __future__ import annotations

import datetime
import json
from pathlib import Path

from . import paths
from .host import note, run
from .store import digest


def _git(*argv) -> bytes:
    done = run(["git", "-C", paths.ROOT, *argv], check=False, timeout=60)
    return done.stdout if done.returncode == 0 else b""


def tree() -> dict:
    """The commit, and what of it is changed: a result counts for exactly these bytes."""
    changed = _git("diff", "HEAD") + _git("status", "--porcelain")
    return {"commit": _git("rev-parse", "HEAD").decode().strip() or "none", "dirty": bool(changed),
            "tree": digest(changed.hex()) if changed else ""}


# What no node of the lab can have, and what stands for it instead.
UNMADE = (
    ("KM329 to KM331, the managers' rejections", "on two CPUs the kubelet says OutOfcpu before its CPU manager refuses anything, and one NUMA node "
     "leaves the memory and the topology manager nothing to refuse. Unit tests stand for them, with the texts of all releases"),
    ("KM405, file handles", "fs.file-max is one number for the whole machine and as high as the kernel counts: it cannot be filled, and lowered it would be "
     "for everybody's programs. Unit tests stand for it"),
    ("KM409, 205/LIMITS", "systemd gives a unit that wants more than PID 1 may have just that (tried: LimitNOFILE=1073741817 starts with 20000). It fails only "
     "where fs.nr_open was lowered below PID 1's own limit, and fs.nr_open is the machine's. Unit tests stand for it"),
    ("KM520, a kernel module", "the machine's modules are the nodes', and they have no /lib/modules to load one from; of a container nothing is said. Its "
     "settings are tried (ip-forward-off); unit tests stand for the modules"),
    ("KM522 and KM528, SELinux", "a kernel has one SELinux or none, and where the lab was tried it has none. Unit tests stand for them, with lines of audit "
     "logs that others published"),
    ("KM526, a clock", "no namespace holds the time of day: a node's clock is the machine's, and setting it would set that of every program. Unit tests stand "
     "for it"),
    ("KM527, firewalld and ufw", "a firewalld that the next boot brings is put on a node by its files (firewall-enabled); none of the lab's nodes runs one, "
     "or ufw"),
)


class Book:
    def __init__(self, path: Path | None = None):
        self.path = path or paths.STATE / "results.jsonl"
        self.tree = tree()

    def entries(self) -> list:
        if not self.path.is_file():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # the half line of a run that was killed while writing
        return found

    def add(self, case, timers: str, seconds: float, outcome: str, reason: str) -> dict:
        entry = {**self.tree, "k8s": case.k8s, "case": case.key, "timers": timers, "seconds": round(seconds),
                 "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                 "outcome": outcome, "reason": reason}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as handle:
            handle.write(json.dumps(entry) + "\n")
        note(f"{outcome}: {case.key} on {case.k8s} ({seconds:.0f} s){': ' + reason if reason else ''}")
        return entry

    def passed(self, timers: str) -> set:
        """(version, case) that need not run again: passed last on these very bytes."""
        last = {}
        for entry in self.entries():
            if entry["timers"] == timers and all(entry.get(key) == value for key, value in self.tree.items()):
                last[entry["k8s"], entry["case"]] = entry["outcome"]
        return {key for key, outcome in last.items() if outcome == "passed"}


def document(entries) -> str:
    """The newest result of each case and version, as a page."""
    last = {(entry["k8s"], entry["case"], entry["timers"]): entry for entry in entries}
    lines = ["# Verified on real clusters", "",
             "Generated from the stored results of the lab (`python3 -m tests.lab verify-doc`): each incident was made",
             "in a kubeadm cluster, its symptom seen, the audit's findings compared with the exact expectation.", ""]
    for k8s in sorted({key[0] for key in last}, key=paths.version_tuple):
        lines += [f"## Kubernetes {k8s}", "", "| incident | timers | outcome | seconds | date | commit |",
                  "|---|---|---|---|---|---|"]
        for (version, case, timers), entry in sorted(last.items()):
            if version == k8s:
                outcome = entry["outcome"] + (f": {entry['reason']}" if entry["reason"] else "")
                commit = entry["commit"][:12] + (" with changes" if entry["dirty"] else "")
                cells = (case, timers, outcome.replace("|", "\\|").replace("\n", " "), str(entry["seconds"]),
                         entry["date"], commit)
                lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += ["## What no node of the lab can have", "", "Its nodes are containers, and share the kernel of the machine.", "",
              "| fault | why, and what stands for it |", "|---|---|", *(f"| {what} | {why} |" for what, why in UNMADE), ""]
    return "\n".join(lines)


def write_document(path: Path | None = None) -> Path:
    path = path or paths.ROOT / "docs" / "verification.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(document(Book().entries()))
    return path
