# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What ran, when, on which commit, and how it ended."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from tests.lab.cluster import paths
from tests.lab.cluster.host import note, run
from tests.lab.cluster.store import digest


def _git(*argv) -> bytes:
    done = run(["git", "-C", paths.ROOT, *argv], check=False, timeout=60)
    return done.stdout if done.returncode == 0 else b""


def tree() -> dict:
    """Return the commit, and its changed files: a result counts for exactly these bytes."""
    changed = _git("diff", "HEAD") + _git("status", "--porcelain")
    return {
        "commit": _git("rev-parse", "HEAD").decode().strip() or "none",
        "dirty": bool(changed),
        "tree": digest(changed.hex()) if changed else "",
    }


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
        entry = {
            **self.tree,
            "k8s": case.k8s,
            "case": case.key,
            "timers": timers,
            "seconds": round(seconds),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "outcome": outcome,
            "reason": reason,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as handle:
            handle.write(json.dumps(entry) + "\n")
        note(
            f"{outcome}: {case.key} on {case.k8s} ({seconds:.0f}"
            f" s){': ' + reason if reason else ''}"
        )
        return entry

    def passed(self, timers: str) -> set:
        """(version, case) that need not run again: passed last on these very bytes."""
        last = {}
        for entry in self.entries():
            if entry["timers"] == timers and all(
                entry.get(key) == value for key, value in self.tree.items()
            ):
                last[entry["k8s"], entry["case"]] = entry["outcome"]
        return {key for key, outcome in last.items() if outcome == "passed"}
