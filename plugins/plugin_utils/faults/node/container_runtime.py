# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fault KM508: the container runtime of a node is stopped, silent, or speaks no language of the
kubelet's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.shared.start_refusal import Refusal
from ...evidence.document import one_line, shell_name
from ...models import control_plane
from ...models import unit_start as start_refused
from ...models.cluster import Host
from ...models.kubelet import exit_cause as kubelet_death
from ...models.kubelet import status as kubelet_why
from ...models.result import Missing, Proof
from ...parsers import (
    pflag as flags,
)
from ...parsers import (
    runtime_journal as runtime_words,
)
from ...parsers import (
    systemd_unit as kubelet_unit,
)
from ...parsers import (
    unit_journal as kubelet_starts,
)
from ...parsers.runtime_journal import Words
from ...parsers.systemd_unit import Unit
from ..base import Hit, Outcome, node_check
from . import kubelet_unit as nodes

# As the collector has them: collect.runtime and collect.cri.
CONTAINERD, DOCKER, CRI_DOCKER, EMBEDDED = "containerd", "docker", "cri-docker", "embedded"
OK, UNIMPLEMENTED, SILENT = 0, 12, "no answer"
EXIT_LIMITS = 205  # of which KM409 tells more
ENDED = frozenset(
    (kubelet_unit.LOOPING, kubelet_unit.GAVE_UP, kubelet_unit.FAILED, kubelet_unit.STOPPED)
)
UNSURE = frozenset((kubelet_unit.STARTING, kubelet_unit.STOPPING, kubelet_unit.UNKNOWN))
# v1 came with 1.23, v1alpha2 went with 1.26, dockershim with 1.24.
FIRST_V1, ONLY_V1, NO_DOCKERSHIM = (1, 23), (1, 26), (1, 24)
CRI_PLUGINS = frozenset(
    (
        "cri",
        "io.containerd.grpc.v1.cri",
        "io.containerd.cri.v1.runtime",
        "io.containerd.cri.v1.images",
    )
)
RECENT = 120  # seconds: the kubelet says it again every few seconds while it lasts
# "pleg has yet to be successful" is a kubelet's first seconds
_PLEG = re.compile(r"PLEG is not healthy: pleg was last seen active ([\w.]{1,20}) ago")
_LEAVE = "is yours to do: nothing here restarts one that runs"
DOCKERD = "docker.service"
ENDS = "dockerd without live-restore, its default, ends containers that still run"


@node_check(
    "KM508",
    "Container runtime does not work",
    severity="critical",
    applies="nodes whose container runtime has a unit of systemd",
    risk=2,
    needs=("system", "kubelet", "pinning", "runtime", "unit_start"),
)
def not_working(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM508: the runtime that the kubelet uses does not run, does not answer, or serves no CRI
    that this kubelet speaks.
    """
    missing = host.missing("kubelet") or host.missing("runtime")
    if missing or "absent" in (host.statuses.get("kubelet"), host.statuses.get("runtime")):
        yield Outcome(
            (), missing, host=host.host, applies=bool(missing), note="" if missing else "no kubelet"
        )
        return
    yield Runtime(host, document).judged()


def broken(host: Host, document: Mapping[str, Any]) -> bool:
    """Whether a kubelet that dies of its runtime is told by KM508 already."""
    return any(
        hit.severity != "warning" for outcome in not_working(host, document) for hit in outcome.hits
    )


def starters(record: Mapping[str, Any]) -> list[str]:
    """The units that start this one at a boot although it is not enabled itself.

    Those that want it, a target by the vendor's files, and a socket.
    """
    wanted, brought, trigger = (
        record.get("wanted_by"),
        record.get("brought_by"),
        kubelet_unit.unit(record.get("trigger")),
    )
    others = (
        [one for one in wanted if isinstance(one, str) and one.endswith(".service")]
        if isinstance(wanted, (list, tuple))
        else []
    )
    others += (
        [one for one in brought if isinstance(one, str)]
        if isinstance(brought, (list, tuple)) and record.get("unit_file_state") == "disabled"
        else []
    )
    return others + ([trigger.name] if trigger.file_state == "enabled" else [])


def on_demand(record: Mapping[str, Any]) -> bool:
    """Whether it only waits for a connection, which systemd takes for it."""
    return (
        kubelet_unit.state(kubelet_unit.unit(record)).kind == kubelet_unit.STOPPED
        and kubelet_unit.unit(record.get("trigger")).active == "active"
    )


class Runtime:
    """The runtime of one host, as its collector saw it."""

    def __init__(self, host: Host, document: Mapping[str, Any]) -> None:
        self.host, self.document = host, document
        self.told = control_plane.data(document, "runtime")
        self.kind, self.name = self.told.get("kind"), host.node or host.host
        self.path = one_line(self.told.get("path") or "", 200)
        records = self.told.get("units")
        self.records = (
            [one for one in records if isinstance(one, Mapping)]
            if isinstance(records, (list, tuple))
            else []
        )
        family = kubelet_unit.unit(control_plane.data(document, "kubelet").get("unit")).family
        self.alone = family in ("kubelet", "other")  # no other program has it
        self.version = flags.parse_version(
            str(control_plane.data(document, "pinning").get("kubelet_version") or "").rpartition(
                " "
            )[2]
        )
        self.lost = runtime_words.damaged(self.told.get("metadata"))
        self.notes: list[str] = []
        self.on_demand = False  # a socket of systemd starts it
        self.lacking = False

    def judged(self) -> Outcome:
        """Its one outcome."""
        if self.kind == EMBEDDED or (not self.alone and not self._there()):
            return self._outcome(
                [],
                applies=False,
                note="its runtime is part of another program, and has no unit of its own",
            )
        if not isinstance(self.kind, str):
            return self._unknown(
                "which runtime the kubelet uses cannot be told: nothing names its socket"
            )
        hits = [hit for record in self._there() for hit in self._of_unit(record)]
        if not any(hit.severity != "warning" for hit in hits) and not self.lacking:
            hits += self._of_socket()
        return self._outcome([*hits, *self._emptied()])

    def _outcome(self, hits: Sequence[Hit], applies: bool = True, note: str = "") -> Outcome:
        lacking = (
            (Missing(self.host.host, "runtime", "error"),) if self.lacking and not hits else ()
        )
        return Outcome(
            tuple(hits),
            lacking,
            host=self.host.host,
            component=self._component() if applies else None,
            applies=applies,
            note=note or "; ".join(self.notes),
        )

    def _component(self) -> str | None:
        return (
            self.kind
            if isinstance(self.kind, str) and self.kind in (CONTAINERD, DOCKER, CRI_DOCKER, "crio")
            else None
        )

    def _unknown(self, why: str) -> Outcome:
        self.lacking = True
        return self._outcome([], note=why)

    def _there(self) -> list[Mapping[str, Any]]:
        return [one for one in self.records if one.get("absent") is False]

    # -- its units
    # --------------------------------------------------------------------------------------------------

    def _of_unit(self, record: Mapping[str, Any]) -> Iterator[Hit]:
        """What is wrong with a unit; notes and lacking of what is not certain."""
        unit, state = kubelet_unit.unit(record), kubelet_unit.state(kubelet_unit.unit(record))
        name = shell_name(unit.name, "UNIT")
        if unit.masked:
            yield self._hit(
                unit,
                f"the container runtime of {self.name} is masked ({name}): somebody took it out on"
                " purpose" + ("; its process runs on until it ends" if unit.runs else ""),
                (nodes.proof(self.host, unit),),
                "ask who masked it, and why; an empty unit file reads as masked too (systemctl"
                f" cat); systemctl unmask {name} ends it, and nothing here does",
                risk=0,
                severity="warning" if unit.runs else None,
            )
        elif on_demand(record):
            self.on_demand = True
            self.notes.append(
                f"{name} does not run, and a socket of systemd starts it at the next connection"
            )
        elif state.kind in ENDED:
            yield self._down(unit, state, self._not_at_boot(unit, record), record)
        elif state.kind in UNSURE:
            self.lacking = True
            self.notes.append(f"{name}: {state.why}")
        elif self._not_at_boot(unit, record):
            boot = kubelet_unit.at_boot(unit)
            yield self._hit(
                unit,
                f"the container runtime of {self.name} runs, and will not after the next boot:"
                f" {name}: {boot.why}, and no other unit starts it",
                (nodes.proof(self.host, unit),),
                f"systemctl enable --no-reload {name}",
                risk=1,
                severity="warning",
            )

    def _down(
        self, unit: Unit, state: kubelet_unit.State, disabled: bool, record: Mapping[str, Any]
    ) -> Hit:
        looping, name = state.kind == kubelet_unit.LOOPING, shell_name(unit.name, "UNIT")
        refused = start_refused.of(self.document, record, control_plane.lines(record.get("said")))
        words = self._told(unit, state, runtime_words.told(record), refused)
        enable = f"systemctl enable --no-reload {name}, and " if disabled else ""
        cure = (
            f"read its last words (journalctl -u {name} -n 100) and mend what they name: systemd"
            " starts it again by itself"
            if looping
            else (
                f"find out who stopped it, and why, or what it ended of (journalctl -u {name});"
                f" {enable}systemctl start {name} brings it back; "
                + (
                    f"but {ENDS}"
                    if unit.name == DOCKERD
                    else "containers that were running still do"
                )
            )
        )
        if words.instead:  # systemd did, not an operator
            cure = f"{enable}systemctl start {name}"
        said = (Proof("log", self.host.host, object=name, text=words.line),) if words.line else ()
        why = [words.what] if words.instead else [state.why, *([words.what] if words.what else [])]
        proofs = dict.fromkeys(
            (
                nodes.proof(self.host, unit),
                *start_refused.proofs(self.host.host, unit.name, refused),
                *said,
                *self._words(),
            )
        )
        return self._hit(
            unit,
            f"the container runtime of {self.name} does not run: {name}: {'; '.join(why)}",
            tuple(proofs),
            f"{words.cure}; then: {cure}" if words.cure else cure,
            risk=0 if looping else 3 if unit.name == DOCKERD else None,
        )

    def _told(
        self, unit: Unit, state: kubelet_unit.State, words: Words, refused: Sequence[Refusal]
    ) -> Words:
        """What systemd refused, else its last words.

        Where no cause is known, the last of them and the log that they are of.
        """
        past, coming = start_refused.past(refused), start_refused.future(refused)
        if past is not None and unit.status != EXIT_LIMITS:
            words = Words(
                words.line, past.what, past.cure, instead=state.kind == kubelet_unit.STOPPED
            )
        elif words.line and not words.what:
            words = replace(words, what=kubelet_starts.quoted(words.line, unit.name))
        if coming is not None:
            told = f"{start_refused.WOULD_NOT}{coming.what}"
            words = replace(
                words,
                what=f"{words.what}; {told}" if words.what else told,
                cure=words.cure or coming.cure,
            )
        return words

    def _not_at_boot(self, unit: Unit, record: Mapping[str, Any]) -> bool:
        """Whether the next boot does not bring it.

        Neither its own enablement, nor a socket's, nor another unit that wants it.
        """
        if kubelet_unit.at_boot(unit).answer != kubelet_unit.NO or unit.masked:
            return False
        others = starters(record)
        if others:
            self.notes.append(
                f"{one_line(others[0], 80)} starts {unit.name}, which is not enabled itself"
            )
        return not others

    # -- its socket
    # -------------------------------------------------------------------------------------------------

    def _of_socket(self) -> list[Hit]:
        """What is wrong with how it answers."""
        socket, error = self.told.get("socket"), self.told.get("error")
        gone = self._dockershim()
        if gone:
            return [gone]
        if (
            self.kind in (CRI_DOCKER, CONTAINERD, "crio")
            and self.records
            and self.records[-1].get("absent") is True
            and socket == "missing"
        ):
            return [self._absent()]
        if (
            socket in ("missing", "other")
            and self.kind != DOCKER
            and any(kubelet_unit.unit(one).runs for one in self._there())
        ):
            cure = (
                "see where it listens (systemctl cat; address of [grpc] in containerd's"
                " configuration, listen of crio's), compare that with the kubelet's"
                " --container-runtime-endpoint or containerRuntimeEndpoint; where somebody removed"
                f" the socket only a restart of the runtime makes another: {self._leave()}"
            )
            return [
                self._at_socket(
                    "its unit runs, and there is no socket at " + self.path,
                    "no socket is there",
                    cure,
                )
            ]
        if self.told.get("asked") is not True:
            self.lacking = not self.on_demand
            self.notes += (
                [] if self.on_demand else [f"whether it answers at {self.path} was not asked"]
            )
            return []
        if isinstance(error, str) and error:
            return [
                self._at_socket(
                    f"its unit runs, and {self.path} takes no connection ({one_line(error, 80)})",
                    error,
                    f"read what it says (journalctl -u {self._unit_name()} -n 100);"
                    f" {self._leave()}",
                )
            ]
        return self._of_calls()

    def _of_calls(self) -> list[Hit]:
        raw = self.told.get("calls")
        calls = raw if isinstance(raw, Mapping) else {}
        v1, old = calls.get("v1"), calls.get("v1alpha2")
        pleg = self._pleg()
        silent = SILENT in (v1, old)
        if silent or pleg:
            return [self._hangs(silent, pleg)]
        if self.kind == DOCKER:
            return []
        if v1 == UNIMPLEMENTED and old == UNIMPLEMENTED:
            return [self._no_cri()]
        if OK not in (v1, old):
            self.lacking = True
            self.notes.append(
                f"what it answers to a call of the CRI tells nothing ({one_line(v1, 60)})"
            )
            return []
        return self._language(v1, old)

    def _hangs(self, silent: bool, pleg: tuple[str, str] | None) -> Hit:
        """One call without an answer is a warning, as a busy node may be that slow.

        With what the kubelet says of it too it is more.
        """
        unwell = self._unwell() if silent else None
        proofs = (
            [
                Proof(
                    "http",
                    self.host.host,
                    object=self.path,
                    text="nothing within 2 s (runtime.v1.RuntimeService/Version)",
                )
            ]
            if silent
            else []
        )
        proofs += [Proof("log", self.host.host, object="kubelet", text=pleg[1])] if pleg else []
        proofs += [unwell] if unwell else []
        sure = bool(pleg or unwell)
        what = ["answers no call within 2 s"] if silent else []
        what += (
            [f"the kubelet has had no list of its containers for {pleg[0]}"]
            if pleg
            else ["the kubelet's healthz is not well either"]
            if unwell
            else []
        )
        said = (
            f"hangs: {self.path} takes connections, and {', '.join(what)}"
            if sure
            else (
                f"did not answer within 2 s: {self.path} took a connection, one call had no answer,"
                " and no word of a running kubelet confirms it"
            )
        )
        return self._hit(
            None,
            f"the container runtime of {self.name} {said}",
            proofs,
            ("" if sure else "audit again, as a busy node may be that slow; ")
            + "see what holds it up: a full or slow disk (iostat, df of its state folder), a shim"
            " or runc that does not end (ps in state D), too little memory; journalctl -u"
            f" {self._unit_name()}; {self._leave()}",
            risk=0,
            severity=None if sure else "warning",
        )

    def _unwell(self) -> Proof | None:
        """The healthz of a kubelet that runs, where it does not say that it is well.

        One that ended of something else says nothing of its runtime.
        """
        kubelet, why = control_plane.data(self.document, "kubelet"), kubelet_why.read(self.document)
        healthz = kubelet.get("healthz")
        if (
            why is None
            or why.state.kind != kubelet_unit.RUNNING
            or kubelet.get("argv_source") != "process"
            or not isinstance(healthz, Mapping)
        ):
            return None
        status, error = healthz.get("status"), healthz.get("error")
        if status == 200 or error == "switched off" or (status is None and not error):
            return None
        return Proof(
            "http",
            self.host.host,
            object=one_line(healthz.get("url") or "healthz", 100),
            text=one_line(error or f"HTTP {status}", 100),
        )

    def _without_dockershim(self) -> bool:
        """Whether this kubelet is of 1.24 or newer for certain.

        Up to 1.23 docker's own socket is the default, and another needs --container-runtime=remote.
        """
        argv = control_plane.data(self.document, "kubelet").get("argv")
        return (
            isinstance(argv, list)
            and len(argv) > 1
            and self.kind in (CONTAINERD, "crio")
            and flags.string_flag(argv, "container-runtime") is None
        )

    def _language(self, v1: Any, old: Any) -> list[Hit]:
        """Whether kubelet and runtime share a version of the CRI: one of them answered."""
        died = self._death()
        if v1 == UNIMPLEMENTED and ((self.version and self.version >= ONLY_V1) or died):
            return [
                self._at_calls(
                    "speaks v1alpha2 of the CRI only, and a kubelet of 1.26 or newer v1 only",
                    "install containerd 1.6 or newer, CRI-O 1.26 or newer or cri-dockerd 0.3 or"
                    " newer; drain the node before",
                )
            ]
        if old == UNIMPLEMENTED and self.version and self.version < FIRST_V1:
            return [
                self._at_calls(
                    "speaks v1 of the CRI only, and a kubelet up to 1.22 v1alpha2 only",
                    "bring the kubelet to 1.23 or newer, or use containerd 1.6 or 1.7, which speak"
                    " both; drain the node before",
                )
            ]
        if (
            UNIMPLEMENTED in (v1, old)
            and self.version is None
            and not (v1 != UNIMPLEMENTED and self._without_dockershim())
        ):
            self.lacking = True
            self.notes.append(
                f"the runtime of {self.host.node or self.host.host} speaks"
                f" {'v1alpha2' if v1 == UNIMPLEMENTED else 'v1'} of the CRI only, and the kubelet's"
                " version is not known"
            )
        return []

    def _no_cri(self) -> Hit:
        """It answers and serves no CRI: containerd as docker's packages configure it."""
        raw = self.told.get("config")
        config = raw if isinstance(raw, Mapping) else {}
        names = [
            one
            for one in config.get("disabled_plugins") or ()
            if isinstance(one, str) and one in CRI_PLUGINS
        ]
        path, line = one_line(config.get("path") or "its configuration", 200), config.get("line")
        if not names and self.lost:
            return self._damaged(self.lost)
        if not names:
            return self._at_calls(
                "serves no CRI at all",
                "see what it says of its plugin cri at its start (journalctl -u"
                f" {self._unit_name()}; ctr plugins ls), and disabled_plugins in {path};"
                f" {self._leave()}",
            )
        place = Proof(
            "file",
            self.host.host,
            path=path,
            line=line if isinstance(line, int) else None,
            text=f"disabled_plugins = {', '.join(names)}",
        )
        return self._at_calls(
            f"serves no CRI: its plugin {', '.join(names)} is disabled in {path}",
            f"take {', '.join(names)} out of disabled_plugins in {path} (packages of docker write"
            " it so), and see that its cgroup driver is the kubelet's; then systemctl restart"
            f" {self._unit_name()}: {self._leave()}",
            place,
        )

    def _damaged(self, path: str) -> Hit:
        """Containerd runs on without its database, and without all that needs it."""
        return self._at_calls(
            "serves no CRI: its database of containers and images is damaged, as a power cut"
            f" leaves it ({path})",
            f"stop kubelet and {self._unit_name()}, move what lies in {path.rpartition('/io.')[0]}"
            " away (all of it: the snapshots belong to that database) and reboot, which ends the"
            " containers that nobody knows then: containerd begins anew, and images are pulled"
            " again",
            Proof("file", self.host.host, path=path, text="it has not the header of a database"),
        )

    def _emptied(self) -> list[Hit]:
        """Containerd reads a file of 0 bytes like one that changes nothing, and says nothing of
        it.
        """
        raw = self.told.get("emptied")
        if self.kind != CONTAINERD or not isinstance(raw, str) or not raw:
            return []
        path = one_line(raw, 200)
        return [
            self._hit(
                None,
                f"the configuration of containerd on {self.name} is an empty file ({path}), as a"
                " power cut leaves it: it has its own defaults from its next start on, the cgroup"
                " driver cgroupfs and no mirrors of registries among them",
                (Proof("file", self.host.host, path=path, text="0 bytes"),),
                "write it again as whoever installs your nodes does (kubespray's playbook; else"
                f" containerd config default > {path}, with SystemdCgroup = true where the"
                " kubelet's cgroupDriver is systemd, and your mirrors), compare it with another"
                " node's, and look at the file system (journalctl -k, fsck): one file is seldom"
                f" alone; then systemctl restart {self._unit_name()}: {self._leave()}. Where it is"
                " meant to be so, a comment in the file says it",
                risk=0,
                severity="warning",
            )
        ]

    def _dockershim(self) -> Hit | None:
        """A kubelet without dockershim that was told to use docker."""
        endpoint = self.told.get("endpoint")
        named = isinstance(endpoint, str) and "dockershim" in endpoint
        if (
            self.kind != DOCKER
            or not (named or self.told.get("docker") is True)
            or not self.version
            or self.version < NO_DOCKERSHIM
        ):
            return None
        flag = (
            f"--container-runtime-endpoint={one_line(endpoint, 100)}"
            if named
            else "--container-runtime=docker"
        )
        return self._hit(
            None,
            f"the kubelet of {self.name} is told to use docker itself ({flag}), which kubelets from"
            " 1.24 on cannot: cri-dockerd has to be in between",
            (Proof("process", self.host.host, object="kubelet", text=flag), *self._words()),
            "install cri-dockerd and give the kubelet unix:///run/cri-dockerd.sock, or containerd's"
            " unix:///run/containerd/containerd.sock; drain the node before",
            risk=0,
        )

    def _absent(self) -> Hit:
        unit = one_line(self.records[-1].get("name") or "", 80)
        what = "cri-dockerd is not there" if self.kind == CRI_DOCKER else "there is no such runtime"
        return self._hit(
            None,
            f"the kubelet of {self.name} is told to use {self.path}, and {what}: neither that"
            f" socket nor a unit {unit}",
            (
                Proof("file", self.host.host, path=self.path, text="missing"),
                Proof("unit", self.host.host, object=unit, text="not-found"),
            ),
            "install it, or give the kubelet the socket of the runtime that is there"
            " (--container-runtime-endpoint or containerRuntimeEndpoint)"
            + (
                "; kubelets from 1.24 on reach docker by cri-dockerd alone"
                if self.kind == CRI_DOCKER
                else ""
            ),
            risk=0,
        )

    # -- helpers
    # ----------------------------------------------------------------------------------------------------

    def _hit(
        self,
        unit: Unit | None,
        summary: str,
        proofs: Sequence[Proof],
        remedy: str,
        risk: int | None = None,
        severity: str | None = None,
    ) -> Hit:
        component = one_line(unit.name, 80).removesuffix(".service") if unit else self._component()
        return Hit(
            one_line(summary, 800),
            tuple(proofs),
            remedy,
            host=self.host.host,
            node=self.host.node,
            component=component,
            risk=risk,
            severity=severity,
        )

    def _at_socket(self, what: str, proof: str, remedy: str) -> Hit:
        units = [nodes.proof(self.host, kubelet_unit.unit(one)) for one in self._there()]
        return self._hit(
            None,
            f"the container runtime of {self.name} cannot be reached: {what}",
            (
                *units,
                Proof("file", self.host.host, path=self.path, text=one_line(proof, 100)),
                *self._words(),
            ),
            remedy,
            risk=0,
        )

    def _at_calls(self, what: str, remedy: str, *places: Proof) -> Hit:
        raw = self.told.get("calls")
        calls = raw if isinstance(raw, Mapping) else {}
        told = ", ".join(
            f"runtime.{name}.RuntimeService:"
            f" {'ok' if calls.get(name) == OK else f'status {one_line(calls.get(name), 40)}'}"
            for name in ("v1", "v1alpha2")
            if name in calls
        )
        proofs = (
            *places,
            Proof("http", self.host.host, object=self.path, text=told),
            *self._words(),
        )
        return self._hit(
            None, f"the container runtime of {self.name} {what}", proofs, remedy, risk=0
        )

    def _unit_name(self) -> str:
        there = self._there()
        return shell_name(kubelet_unit.unit(there[-1]).name, "UNIT") if there else "UNIT"

    def _death(self) -> kubelet_death.Death | None:
        """The kubelet's own last words, where they are of its runtime."""
        why = kubelet_why.read(self.document)
        death = why.death if why is not None else None
        return (
            death
            if death is not None and death.certain and death.cause == kubelet_death.RUNTIME
            else None
        )

    def _leave(self) -> str:
        """What a restart of it does to containers, and whose it is."""
        leaves = (
            f"at a restart {ENDS}; that"
            if self.kind == DOCKER
            else (
                "a restart of it leaves containers running (of docker, only with live-restore), and"
                if self.kind == CRI_DOCKER
                else "a restart of the runtime leaves containers running, and"
            )
        )
        return f"{leaves} {_LEAVE}"

    def _words(self) -> list[Proof]:
        death = self._death()
        return (
            [Proof("log", self.host.host, object="kubelet", text=one_line(death.line, 400))]
            if death is not None and death.line
            else []
        )

    def _pleg(self) -> tuple[str, str] | None:
        """(how long ago, the line) of a kubelet that misses the runtime's lists now.

        None of one that does not say so.
        """
        lines, clock = (
            control_plane.data(self.document, "kubelet_log").get("lines"),
            control_plane.data(self.document, "system").get("clock"),
        )
        if not isinstance(lines, (list, tuple)) or not isinstance(clock, (int, float)):
            return None
        for line in reversed([one for one in lines if isinstance(one, str)]):
            match = _PLEG.search(line)
            at = kubelet_why.moment(line) if match else None
            if match and at is not None:
                return (
                    (match.group(1), one_line(line, 400))
                    if -RECENT <= clock - at <= RECENT
                    else None
                )
        return None
