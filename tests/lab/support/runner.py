# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Packs cases onto clusters, breaks, audits, compares, heals.

Goes on where an interrupted run stopped.
"""

from __future__ import annotations

import dataclasses
import time

from tests.lab.cluster import inventory
from tests.lab.cluster.clusters import Cluster
from tests.lab.cluster.host import note, unavailable_reason, version_unavailable_reason
from tests.lab.support import incident as support_incident
from tests.lab.support import results
from tests.lab.support.report import findings

SHOWN = 600  # characters of a finding that no test expected
# The gentle first: what may leave a scar on the kernel or the cluster comes when the rest is done.
ORDER = ("worker", "control_plane", "cluster", "kernel")


@dataclasses.dataclass(frozen=True)
class Case:
    """One incident on one version.

    alone: its audit differs from the plain one, so it cannot share it.
    """

    incident: str
    k8s: str
    target: str | None = None
    occupies: str = "control_plane"
    alone: bool = False

    @property
    def key(self) -> str:
        return self.incident if self.target is None else f"{self.incident}@{self.target}"


@dataclasses.dataclass(frozen=True)
class Round:
    k8s: str
    cases: tuple


def case(name: str, k8s: str, target: str | None = None, alone: bool = False) -> Case:
    """Return the case of an incident as it declares itself."""
    return Case(name, k8s, target, support_incident.by_name(name).occupies, alone)


def plan_rounds(cases, workers) -> list:
    """Return rounds of cases that do not disturb each other; rounds of a version are adjacent.

    Pure.

    workers: names of the workers that every cluster has. A worker case without a target gets
    one of them.
    """
    rounds = []
    for k8s in dict.fromkeys(one.k8s for one in cases):
        mine = [one for one in cases if one.k8s == k8s]
        shared = [one for one in mine if one.occupies == "worker" and not one.alone]
        rounds += [Round(k8s, tuple(packed)) for packed in _pack(shared, list(workers))]
        single = [one for one in mine if one not in shared]
        single.sort(key=lambda one: ORDER.index(one.occupies))
        rounds += [Round(k8s, (_with_target(one, workers),)) for one in single]
    return rounds


def _with_target(one: Case, workers) -> Case:
    if one.occupies == "worker" and one.target is None:
        return dataclasses.replace(one, target=next(iter(workers)))
    return one


def _pack(cases, workers) -> list:
    """Pack first fit: each worker, and each incident with its fixed names, once per round."""
    rounds = []
    # Those with a worker of their own choice first: the others take what is left.
    for one in sorted(cases, key=lambda each: each.target is None):
        for packed in rounds:
            target = _free_worker(one, packed, workers)
            if target:
                packed.append(dataclasses.replace(one, target=target))
                break
        else:
            rounds.append(
                [dataclasses.replace(one, target=_free_worker(one, [], workers) or one.target)]
            )
    return rounds


def _free_worker(one: Case, packed, workers):
    if any(other.incident == one.incident for other in packed):
        return None
    taken = {other.target for other in packed}
    if one.target:
        return one.target if one.target not in taken else None
    return next((worker for worker in workers if worker not in taken), None)


def differences(
    report: dict,
    expected: set,
    unknown: set,
    nothing_unknown: bool = False,
    consequences: frozenset = frozenset(),
) -> list:
    """Return what a report has too much or too little, as [(host or None, sentence)].

    consequences: findings that may be there already, or not yet. Components that restarted
    several times within the hour are no difference: earlier incidents and a busy machine do
    that.
    """
    # One finding of hosts that share a kernel, as the lab's do, is of each of them.
    found = {
        (f["code"], host, f.get("component")): f.get("summary", "")[:SHOWN]
        for f in findings(report)
        for host in f.get("hosts") or [f.get("host")]
    }
    doubtful = {
        (v["code"], v.get("component")) for v in report["verdicts"] if v["verdict"] == "unknown"
    }
    wrong = [
        (host, f"not found: {code} {host} {component}")
        for code, host, component in sorted(expected - found.keys(), key=str)
    ]
    wrong += [
        (key[1], f"found but not there: {' '.join(map(str, key))}: {found[key]}")
        for key in sorted(found.keys() - expected - consequences, key=str)
    ]
    wrong += [
        (None, f"not unknown: {code} {component}")
        for code, component in sorted(unknown - doubtful, key=str)
    ]
    if nothing_unknown:
        wrong += [
            (None, f"unknown: {code} {component}") for code, component in sorted(doubtful, key=str)
        ]
    return wrong


class Unprepared(Exception):
    """The lab did not come to show the incident: nothing was audited yet."""


class Runner:
    """audit(cluster, inventory path, extra arguments) -> report.json as data."""

    def __init__(
        self, audit, masters: int = 3, workers: int = 1, timers: str = "short", resume: bool = False
    ):
        self.audit, self.masters, self.workers, self.timers, self.resume = (
            audit,
            masters,
            workers,
            timers,
            resume,
        )
        self.book = results.Book()

    def run(self, cases) -> list:
        reason = unavailable_reason()
        if reason:
            return [self.book.add(one, self.timers, 0, "skipped", reason) for one in cases]
        if self.resume:
            done = self.book.passed(self.timers)
            cases = [one for one in cases if (one.k8s, one.key) not in done]
        written = []
        for one in plan_rounds(cases, [f"w{n}" for n in range(1, self.workers + 1)]):
            written += self._round(one)
        return written

    def _round(self, one: Round) -> list:
        reason = version_unavailable_reason(one.k8s)
        version = tuple(int(part) for part in one.k8s.lstrip("v").split("."))
        skipped = [
            c
            for c in one.cases
            if reason or not support_incident.by_name(c.incident).applies(version)
        ]
        written = [
            self.book.add(c, self.timers, 0, "skipped", reason or f"{one.k8s} cannot have it")
            for c in skipped
        ]
        todo = [c for c in one.cases if c not in skipped]
        return written + (self._run(one.k8s, todo) if todo else [])

    def _run(self, k8s: str, cases) -> list:
        started = time.monotonic()
        wrong = {}
        for attempt in (1, 2):
            try:
                cluster = self._up(k8s)
                with cluster.locked():
                    wrong = self._broken(cluster, cases)
                break
            except Unprepared as error:
                # Two leaders do not always make a Job's second pod in time: what the lab failed to
                # show is tried once more;
                # what an audit found or missed never is.
                wrong = {c: [str(error)] for c in cases}
                note(f"attempt {attempt}: {error}")
            except Exception as error:  # a round that fails must not take the others with it
                wrong = {c: [f"{type(error).__name__}: {error}"] for c in cases}
                break
        seconds = time.monotonic() - started
        return [
            self.book.add(
                c,
                self.timers,
                seconds,
                "failed" if wrong.get(c) else "passed",
                "; ".join(wrong.get(c, [])),
            )
            for c in cases
        ]

    def _up(self, k8s: str) -> Cluster:
        """Cheap where the last round left the cluster healthy; a new cluster where it did not."""
        try:
            return Cluster(k8s, self.masters, self.workers, self.timers).up()
        except Exception as error:
            raise Unprepared(
                f"the cluster did not come up: {type(error).__name__}: {error}"
            ) from error

    def _broken(self, cluster, cases) -> dict:
        chosen = [(c, support_incident.by_name(c.incident)) for c in cases]
        begun = []
        try:
            try:
                for one, incident in chosen:
                    note(f"{cluster.name}: {one.key}")
                    begun.append((one, incident))
                    incident.start(cluster, one.target or incident.target)
                for one, incident in chosen:
                    incident.symptom(cluster, one.target or incident.target)
            except Exception as error:
                raise Unprepared(
                    f"the incident could not be made: {type(error).__name__}: {error}"
                ) from error
            return self._judge(cluster, chosen)
        finally:
            for one, incident in reversed(begun):
                incident.finish(cluster, one.target or incident.target)
            cluster.wait_healthy()

    def _judge(self, cluster, chosen) -> dict:
        path, args = cluster.inventory, []
        expected, unknown, consequences = set(), set(), set()
        for one, incident in chosen:
            target = one.target or incident.target
            how = incident.audit(cluster, target)
            args += how["args"]
            if how["inventory"]:
                path = inventory.write(cluster.folder / "inventory-case.yml", how["inventory"])
            expected |= incident.expect(cluster, target)
            unknown |= incident.expect_unknown(cluster, target)
            consequences |= incident.consequences(cluster, target)
        certain = any(incident.nothing_unknown for _one, incident in chosen)
        wrong = {}
        report = self.audit(cluster, path, args)
        for host, sentence in differences(report, expected, unknown, certain, consequences):
            # Of cases side by side only the one on that host is to blame; of the rest all are.
            blamed = [one for one, incident in chosen if host == (one.target or incident.target)]
            for one in blamed or [one for one, _incident in chosen]:
                wrong.setdefault(one, []).append(sentence)
        return wrong
