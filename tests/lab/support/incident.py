# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What every incident has in common.

Its record on disk, what it saved, and finding incidents by name.
"""

from __future__ import annotations

import base64
import importlib
import json
import pkgutil
import shlex
import subprocess

from tests.lab import incidents as package
from tests.lab.cluster.host import note

MANIFESTS = "/etc/kubernetes/manifests/"
OCCUPIES = ("kernel", "cluster", "control_plane", "worker")


class Incident:
    """One way in which clusters really broke.

    A file in tests/lab/incidents ends with INCIDENT = Its().
    """

    name = ""
    title = ""
    # What no other incident of the same round may touch. Only `worker` incidents run side by side.
    occupies = "control_plane"
    target = "m2"
    # Whether every verdict must be certain; expect_unknown names single ones that must not be.
    nothing_unknown = False

    def applies(self, version: tuple) -> bool:
        """Return whether a version can have this incident.

        An incident that the version cannot have is no case there.

        version: the version, as (1, 36, 3)
        """
        return True

    def break_(self, cluster, target: str) -> None:
        raise NotImplementedError

    def symptom(self, cluster, target: str) -> None:
        """Wait until the symptom really shows.

        Raises TimeoutError or AssertionError with what it saw instead.
        """
        raise NotImplementedError

    def undo(self, cluster, target: str) -> None:
        """Must also work after a break that was interrupted anywhere."""
        self.restore(cluster, target)

    def expect(self, cluster, target: str) -> set:
        """Exactly the present faults: (code, inventory host or None, component or None)."""
        raise NotImplementedError

    def expect_unknown(self, cluster, target: str) -> set:
        """Faults that must read unknown because evidence is missing: (code, component or None)."""
        return set()

    def consequences(self, cluster, target: str) -> set:
        """List findings that follow from the expected ones sooner or later.

        A slow machine shows them already, a fast one not yet: a test accepts both.
        """
        return set()

    def audit(self, cluster, target: str) -> dict:
        """Return how this audit differs from the plain one.

        args: list for ansible-playbook
        inventory: data of another inventory
        """
        return {"args": [], "inventory": None}

    # -- its record
    # ---------------------------------------------------------------------------------------------
    def _path(self, cluster, target: str):
        return cluster.folder / "open" / f"{self.name}@{target}.json"

    def record(self, cluster, target: str) -> dict:
        path = self._path(cluster, target)
        return (
            json.loads(path.read_text())
            if path.is_file()
            else {"name": self.name, "target": target, "files": []}
        )

    def store(self, cluster, target: str, record: dict) -> None:
        path = self._path(cluster, target)
        path.parent.mkdir(exist_ok=True)
        temp = path.with_name(f".{path.name}.tmp")
        temp.write_text(json.dumps(record, indent=1) + "\n")
        temp.rename(path)

    def remember(self, cluster, target: str, **values) -> None:
        self.store(cluster, target, {**self.record(cluster, target), **values})

    def keep(self, cluster, target: str, node: str, path: str) -> bytes | None:
        """Save a file as it is (or that it is absent) before it is touched.

        The result is the file's content, None if it is absent.
        """
        record = self.record(cluster, target)
        for saved in record["files"]:
            if (saved["node"], saved["path"]) == (node, path):
                return base64.b64decode(saved["data"]) if saved["data"] is not None else None
        quoted = shlex.quote(path)
        said = cluster.exec(
            node, f"if [ -e {quoted} ]; then stat -c '%a %.9Y' {quoted}; cat {quoted}; fi"
        ).stdout
        first, _newline, content = said.partition(b"\n")
        saved = {"node": node, "path": path, "data": None}
        if first:
            mode, mtime = first.decode().split()
            saved.update(data=base64.b64encode(content).decode(), mode=mode, mtime=mtime)
        record["files"].append(saved)
        self.store(cluster, target, record)
        return content if first else None

    def restore(self, cluster, target: str) -> None:
        """Restore files, with their old time too.

        A manifest that looks newer than its process is a fault of its own.
        """
        for saved in reversed(self.record(cluster, target)["files"]):
            if saved["data"] is None:
                cluster.exec(saved["node"], ["rm", "-f", saved["path"]])
            else:
                cluster.write(
                    saved["node"],
                    saved["path"],
                    base64.b64decode(saved["data"]),
                    mode=saved["mode"],
                    mtime=saved["mtime"],
                )

    # -- for the command line and the runner
    # --------------------------------------------------------------------
    def start(self, cluster, target: str) -> None:
        # The record comes first: a break that is interrupted half-way can still be healed.
        self.store(cluster, target, self.record(cluster, target))
        self.break_(cluster, target)

    def finish(self, cluster, target: str) -> None:
        self.undo(cluster, target)
        # A manifest that comes back to bytes that ran before meets the kubelet's back-off, up to
        # five minutes of it after some
        # rounds; a kubelet that starts has forgotten it.
        for node in sorted(
            {
                saved["node"]
                for saved in self.record(cluster, target)["files"]
                if MANIFESTS in saved["path"]
            }
        ):
            cluster.exec(node, ["systemctl", "restart", "kubelet"])
        self._path(cluster, target).unlink(missing_ok=True)


def discover() -> dict:
    """Name -> incident, of every file in tests/lab/incidents that has an INCIDENT."""
    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        one = getattr(loaded, "INCIDENT", None)
        if one is not None:
            if one.occupies not in OCCUPIES or one.name != module.name.replace("_", "-"):
                raise ValueError(
                    f"{module.name}: name {one.name!r} or occupies {one.occupies!r} is not right"
                )
            found[one.name] = one
    return found


def by_name(name: str) -> Incident:
    known = discover()
    try:
        return known[name.replace("_", "-")]
    except KeyError:
        raise SystemExit(
            f"lab: no incident {name}; there are: {', '.join(sorted(known))}"
        ) from None


def break_by_name(cluster, name: str, target: str | None) -> None:
    one = by_name(name)
    target = target or one.target
    with cluster.locked():
        cluster.node(target)
        note(f"{one.name} on {target} of {cluster.name}: {one.title}")
        made(cluster, one, target)
        note("the symptom shows")


def made(cluster, one: Incident, target: str) -> None:
    """Make the incident with its symptom.

    If the symptom does not appear, the incident is undone and made once more.
    """
    try:
        one.start(cluster, target)
        one.symptom(cluster, target)
    except (TimeoutError, RuntimeError, subprocess.TimeoutExpired) as error:
        note(f"{one.name} once more: {error}")
        one.finish(cluster, target)
        cluster.wait_healthy()
        one.start(cluster, target)
        one.symptom(cluster, target)


def heal(cluster) -> None:
    """Undoes every incident that is recorded as open, the latest first."""
    with cluster.locked():
        records = sorted(
            cluster.folder.glob("open/*.json"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        for path in records:
            record = json.loads(path.read_text())
            note(f"undoing {record['name']} on {record['target']} of {cluster.name}")
            by_name(record["name"]).finish(cluster, record["target"])
        cluster.wait_healthy()
        note(f"{cluster.name} is healthy")
