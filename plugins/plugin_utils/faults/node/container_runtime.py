# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM508: check that a node's container runtime runs, answers, and speaks the kubelet's CRI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.shared import systemd_results
from ....module_utils.shared.start_refusal import Refusal
from ...evidence import contract
from ...evidence.answers.http_answer import HttpAnswer
from ...evidence.answers.node import runtime
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.pinning import Pinning
from ...evidence.answers.node.runtime import RuntimeUnit
from ...evidence.document import ends, one_line, shell_name
from ...models import package_changes, runtime_work
from ...models import unit_start as model_unit_start
from ...models.cluster import Host
from ...models.kubelet import exit_cause
from ...models.kubelet import status as kubelet_status
from ...models.result import EvidenceRef, Missing
from ...parsers import (
    known_message,
    message_class,
    pflag,
    runtime_journal,
    systemd_unit,
    unit_journal,
)
from ...parsers.runtime_journal import Words
from ...parsers.systemd_unit import Unit
from ..base import CheckResult, Detection, causes, node_check, not_applicable, unknown
from ..known_causes import Source, explained, with_rule
from . import kubelet_unit as node_kubelet_unit

# As the collector has them: collect.runtime and collect.cri.
CONTAINERD, DOCKER, CRI_DOCKER, EMBEDDED = "containerd", "docker", "cri-docker", "embedded"
OTHER = "other"
OK, UNIMPLEMENTED, SILENT = 0, 12, "no answer"
EXIT_LIMITS = 205  # of which KM409 tells more
ENDED = runtime_work.ENDED
UNSURE = frozenset((systemd_unit.STARTING, systemd_unit.STOPPING, systemd_unit.UNKNOWN))
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
_LEAVE = "is yours to do: nothing here restarts one that runs"
DOCKERD = "docker.service"
ENDS = "dockerd without live-restore, its default, ends containers that still run"


@node_check(
    "KM508",
    "Container runtime does not work",
    severity="critical",
    applies="nodes whose container runtime has a unit of systemd",
    risk=2,
    needs=("system", "kubelet", "pinning", "runtime", "unit_start", "package_changes"),
    explained_by=causes("KM536"),
)
def not_working(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM508: report a runtime that does not run, does not answer, or speaks another CRI version."""
    missing = host.missing("kubelet") or host.missing("runtime")
    if missing:
        yield unknown(*missing, host=host.host)
    elif "absent" in (host.statuses.get("kubelet"), host.statuses.get("runtime")):
        yield not_applicable("no kubelet", host=host.host)
    else:
        yield Runtime(host, document).result()


def broken(host: Host, document: Mapping[str, Any]) -> bool:
    """Tell whether KM508 reports the runtime that a kubelet exits because of."""
    hits = [hit for outcome in not_working(host, document) for hit in outcome.hits]
    return any(hit.severity != "warning" for hit in hits)


def starters(record: RuntimeUnit) -> list[str]:
    """Return the units that start this one at a boot although it is not enabled itself.

    These are units that want it, a target by the vendor's files, and a socket.
    """
    names = [name for name in record.wanted_by if name.endswith(".service")]
    if record.unit_file_state == "disabled":
        names += record.brought_by or ()
    if record.trigger is not None and record.trigger.unit_file_state == "enabled":
        names.append(record.trigger.name)
    return names


def on_demand(record: RuntimeUnit) -> bool:
    """Tell whether a unit only waits for a connection to its socket, which systemd accepts."""
    if record.trigger is None or record.trigger.active_state != "active":
        return False
    return systemd_unit.state(systemd_unit.unit(record)).kind == systemd_unit.STOPPED


def lasting(record: RuntimeUnit) -> str:
    """Return why another start of a unit would end as the last one did, or ""."""
    words = runtime_journal.last_words(record)
    passes = words.meaning == "" or words.meaning in message_class.PASSING
    if passes or not words.ends or record.result not in systemd_unit.ENDED_ITSELF:
        return ""
    return (
        f"another start would end as the last one did: {words.what}; {words.cure}; once that is"
        " done, start it by hand, because its last log lines stay the same until then"
    )


class Runtime:
    """The runtime of one host, as its collector read it."""

    def __init__(self, host: Host, document: Mapping[str, Any]) -> None:
        self.host, self.document = host, document
        self.evidence = contract.answer(document, runtime.Runtime)
        self.kind, self.name = self.evidence.kind, host.node or host.host
        self.path = one_line(self.evidence.path or "", 200)
        unit = node_kubelet_unit.unit_of(document) or Unit()
        self.alone = unit.family in ("kubelet", "other")  # no other program contains it
        version = contract.answer(document, Pinning).kubelet_version or ""
        self.version = pflag.parse_version(version.rpartition(" ")[2])
        self.lost = runtime_journal.damaged(self.evidence.metadata)
        self.notes: list[str] = []
        self.on_demand = False  # a socket of systemd starts it
        self.lacking = False

    def result(self) -> CheckResult:
        """Return the one result of the check."""
        if self.kind == EMBEDDED or (not self.alone and not self._there()):
            note = "its runtime is part of another program, and has no unit of its own"
            return self._not_applicable(note)
        if self.kind is None:
            return self._unknown(
                "which runtime the kubelet uses cannot be determined: nothing names its socket"
            )
        hits = [hit for record in self._there() for hit in self._of_unit(record)]
        if not any(hit.severity != "warning" for hit in hits) and not self.lacking:
            hits += self._of_socket()
        return self._outcome([*hits, *self._emptied()])

    def _outcome(self, hits: Sequence[Detection], note: str = "") -> CheckResult:
        missing: tuple[Missing, ...] = ()
        if self.lacking and not hits:
            missing = (Missing(self.host.host, "runtime", "error"),)
        return CheckResult(
            tuple(hits),
            missing,
            host=self.host.host,
            component=self._component(),
            note=note or "; ".join(self.notes),
        )

    def _not_applicable(self, note: str) -> CheckResult:
        return not_applicable(note, host=self.host.host)

    def _component(self) -> str | None:
        if self.kind in (CONTAINERD, DOCKER, CRI_DOCKER, "crio"):
            return self.kind
        return None

    def _unknown(self, reason: str) -> CheckResult:
        self.lacking = True
        return self._outcome([], note=reason)

    def _there(self) -> list[RuntimeUnit]:
        return [record for record in self.evidence.units if not record.absent]

    # -- units

    def _masked(self, unit: Unit, name: str) -> Detection:
        running, severity = "", None
        if unit.runs:
            running, severity = "; its process runs on until it ends", "warning"
        return self._hit(
            unit,
            f"the container runtime is masked ({name}): it was taken out on purpose{running}",
            (node_kubelet_unit.proof(self.host, unit),),
            "ask who masked it, and why; an empty unit file reads as masked too (systemctl"
            f" cat); systemctl unmask {name} ends it, and nothing here does",
            risk=0,
            severity=severity,
        )

    def _of_unit(self, record: RuntimeUnit) -> Iterator[Detection]:
        """Yield what is wrong with a unit, and note what is not certain."""
        unit, state = systemd_unit.unit(record), systemd_unit.state(systemd_unit.unit(record))
        name = shell_name(unit.name, "UNIT")
        if unit.masked:
            yield self._masked(unit, name)
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
            boot = systemd_unit.at_boot(unit)
            yield self._hit(
                unit,
                f"the container runtime runs, and will not after the next boot:"
                f" {name}: {boot.why}, and no other unit starts it",
                (node_kubelet_unit.proof(self.host, unit),),
                f"systemctl enable --no-reload {name}",
                risk=1,
                severity="warning",
            )

    def _down(
        self, unit: Unit, state: systemd_unit.State, disabled: bool, record: RuntimeUnit
    ) -> Detection:
        name = shell_name(unit.name, "UNIT")
        refused = model_unit_start.find_refusals(self.document, record, record.said)
        wrote = runtime_journal.last_words(record)
        words = self._told(unit, state, wrote, refused)
        reasons = [words.what]
        if not words.instead:
            reasons = [reason for reason in (state.why, words.what) if reason]
        advice = self._start_advice(unit, state, disabled, bool(words.instead))
        if words.cure:
            advice = f"{words.cure}; then: {advice}"
        log = []
        if words.line:
            log.append(EvidenceRef("log", self.host.host, object=name, text=words.line))
        proofs = dict.fromkeys(
            (
                node_kubelet_unit.proof(self.host, unit),
                *model_unit_start.proofs(self.host.host, unit.name, refused),
                *log,
                *self._words(),
            )
        )
        changes = package_changes.of_unit(
            self.document,
            unit.name,
            package_changes.RUNTIMES,
            is_stopped=state.kind == systemd_unit.STOPPED,
        )
        hit = self._hit(
            unit,
            f"the container runtime does not run: {name}: {'; '.join(reasons)}"
            f"{package_changes.clause(changes)}",
            (*proofs, *package_changes.proofs(self.host.host, changes)),
            advice,
            risk=_start_risk(unit, state),
        )
        if state.kind == systemd_unit.STOPPED:
            return hit
        texts = [words.line]
        if not wrote.what and not refused:
            texts += reversed(runtime_journal.of_last_start(record.said))
        hit = self._explained(hit, texts)
        source = Source(name=unit.name)
        return hit if refused else with_rule(hit, (words.line,), source)

    def _explained(self, hit: Detection, texts: Iterable[str]) -> Detection:
        """Return a hit with the known cause of what a runtime wrote."""
        source = Source(versions=self.host.releases.of_node)
        return explained(hit, known_message.RUNTIMES, texts, is_of_program=True, source=source)

    def _start_advice(
        self, unit: Unit, state: systemd_unit.State, disabled: bool, by_systemd: bool
    ) -> str:
        """Return how a runtime that is down starts again.

        by_systemd: whether systemd refused its start
        """
        name = shell_name(unit.name, "UNIT")
        enable = ""
        if disabled:
            enable = f"systemctl enable --no-reload {name}, and "
        if by_systemd:
            return f"{enable}systemctl start {name}"
        if state.kind == systemd_unit.LOOPING:
            return (
                f"read its last log lines (journalctl -u {name} -n 100) and fix what they name:"
                " systemd starts it again by itself"
            )
        effect = "containers that were running still do"
        if unit.name == DOCKERD:
            effect = f"but {ENDS}"
        killed = systemd_results.after_kill(name, unit.result, unit.status)
        search = killed or (
            f"find out who stopped it, and why, or what it ended of (journalctl -u {name})"
        )
        return f"{search}; {enable}systemctl start {name} brings it back; {effect}"

    def _told(
        self, unit: Unit, state: systemd_unit.State, words: Words, refused: Sequence[Refusal]
    ) -> Words:
        """Return what systemd refused, else the runtime's last log line.

        If no cause is known, the last line is quoted with the log that it is from.
        """
        past, coming = model_unit_start.past(refused), model_unit_start.future(refused)
        if past is not None and unit.status != EXIT_LIMITS:
            stopped = state.kind == systemd_unit.STOPPED
            words = Words(words.line, past.what, past.cure, instead=stopped)
        elif words.line and not words.what:
            words = replace(words, what=unit_journal.quoted(words.line, unit.name))
        if coming is None:
            return words
        refusals = [words.what, f"{model_unit_start.WOULD_NOT}{coming.what}"]
        reason = "; ".join(refusal for refusal in refusals if refusal)
        return replace(words, what=reason, cure=words.cure or coming.cure)

    def _not_at_boot(self, unit: Unit, record: RuntimeUnit) -> bool:
        """Tell whether the next boot does not start a unit.

        Neither its own enablement, nor a socket's, nor another unit that wants it starts it then.
        """
        if systemd_unit.at_boot(unit).answer != systemd_unit.NO or unit.masked:
            return False
        other_units = starters(record)
        if other_units:
            self.notes.append(
                f"{one_line(other_units[0], 80)} starts {unit.name}, which is not enabled itself"
            )
        return not other_units

    # -- socket

    def _of_socket(self) -> list[Detection]:
        """Return what is wrong with how the runtime answers."""
        error = self.evidence.error
        gone = self._dockershim()
        if gone:
            return [gone]
        if self._is_unserved():
            return [self._unserved()]
        if self._is_absent():
            return [self._absent()]
        if self._is_without_socket():
            return [self._without_socket()]
        if not self.evidence.asked:
            self.lacking = not self.on_demand
            if not self.on_demand:
                self.notes.append(f"whether it answers at {self.path} was not asked")
            return []
        if error:
            return [
                self._at_socket(
                    f"its unit runs, and {self.path} takes no connection ({ends(error, 80)})",
                    error,
                    f"read what it says (journalctl -u {self._unit_name()} -n 100);"
                    f" {self._leave()}",
                )
            ]
        return self._of_calls()

    def _elsewhere(self) -> list[tuple[str, str]]:
        """Return (unit, path of its socket) of the runtimes that run and listen elsewhere."""
        return [
            (one_line(row.unit, 80), one_line(path, 200))
            for row in self.evidence.serving
            for path in row.paths
        ]

    def _is_unserved(self) -> bool:
        """Tell whether no runtime is known that makes the socket that the kubelet is told to use.

        Its kubelet says that too, or a runtime listens elsewhere.
        """
        is_unknown = self.kind == OTHER and not self.evidence.units
        if not is_unknown or self.evidence.socket not in ("missing", "other"):
            return False
        return bool(self._elsewhere()) or self._death() is not None

    def _unserved(self) -> Detection:
        proof = EvidenceRef("file", self.host.host, path=self.path, text=self.evidence.socket)
        return self._hit(
            None,
            f"the kubelet is configured to use the runtime at {self.path}, where no socket is"
            f"{self._served()}",
            (proof, *self._words()),
            self._endpoint_advice(),
            risk=0,
        )

    def _served(self) -> str:
        """Return where the runtimes of this machine listen, as a clause, or ""."""
        places = [f"{unit} listens at {path}" for unit, path in self._elsewhere()[:4]]
        return "".join(f"; {place}" for place in places)

    def _endpoint_advice(self) -> str:
        """Return how kubelet and runtime come to one socket."""
        places = self._elsewhere()
        path = next((path for _unit, path in places), "/run/containerd/containerd.sock")
        return (
            f"give the kubelet the socket of its runtime: containerRuntimeEndpoint: unix://{path}"
            " in its configuration, or --container-runtime-endpoint where that is given (systemctl"
            " cat kubelet, /var/lib/kubelet/kubeadm-flags.env; it counts before the file), then"
            " systemctl restart kubelet; with kubeadm the annotation"
            " kubeadm.alpha.kubernetes.io/cri-socket of the Node names it too"
        )

    def _is_absent(self) -> bool:
        """Tell whether neither the unit nor the socket of the runtime is there."""
        if self.kind not in (CRI_DOCKER, CONTAINERD, "crio") or not self.evidence.units:
            return False
        return self.evidence.units[-1].absent and self.evidence.socket == "missing"

    def _is_without_socket(self) -> bool:
        if self.evidence.socket not in ("missing", "other") or self.kind == DOCKER:
            return False
        return any(systemd_unit.unit(record).runs for record in self._there())

    def _without_socket(self) -> Detection:
        advice = ""
        if self._elsewhere():
            advice = f"{self._endpoint_advice()}; or "
        return self._at_socket(
            f"its unit runs, and there is no socket at {self.path}{self._served()}"
            f"{self._own_endpoint()}",
            "no socket is there",
            f"{advice}see where it listens (systemctl cat; address of [grpc] in containerd's"
            " configuration, listen of crio's), compare that with the kubelet's"
            " --container-runtime-endpoint or containerRuntimeEndpoint; where the socket"
            f" was removed, only a restart of the runtime makes another: {self._leave()}",
        )

    def _own_endpoint(self) -> str:
        """Return which socket cri-dockerd is told to make, as a clause, or ""."""
        value = (self.evidence.flags or {}).get("container-runtime-endpoint")
        if not value:
            return ""
        return f"; --container-runtime-endpoint of cri-dockerd is {one_line(value, 160)}"

    def _of_calls(self) -> list[Detection]:
        calls = self.evidence.calls or {}
        v1, old = calls.get("v1"), calls.get("v1alpha2")
        pleg = runtime_work.pleg(self.document)
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
                f"what it answers to a call of the CRI shows nothing ({one_line(v1, 60)})"
            )
            return []
        return self._language(v1, old)

    def _hangs(self, silent: bool, pleg: tuple[str, str] | None) -> Detection:
        """Report calls without an answer: a warning, unless the kubelet confirms it.

        A busy node may be so slow that one call has no answer.
        """
        proofs, symptoms = [], []
        unwell = None
        if silent:
            symptoms.append("answers no call within 2 s")
            text = "nothing within 2 s (runtime.v1.RuntimeService/Version)"
            proofs.append(EvidenceRef("http", self.host.host, object=self.path, text=text))
            unwell = self._unwell()
        if pleg:
            symptoms.append(f"the kubelet has had no list of its containers for {pleg[0]}")
            proofs.append(EvidenceRef("log", self.host.host, object="kubelet", text=pleg[1]))
        elif unwell:
            symptoms.append("the kubelet's healthz is not well either")
        if unwell:
            proofs.append(unwell)
        advice = (
            "see what holds it up: a full or slow disk (iostat, df of its state folder), a shim"
            " or runc that does not end (ps in state D), too little memory; journalctl -u"
            f" {self._unit_name()}; {self._leave()}"
        )
        if pleg or unwell:
            summary = f"hangs: {self.path} takes connections, and {', '.join(symptoms)}"
            severity = None
        else:
            summary = (
                f"did not answer within 2 s: {self.path} took a connection, one call had no answer,"
                " and no word of a running kubelet confirms it"
            )
            advice = f"audit again, as a busy node may be that slow; {advice}"
            severity = "warning"
        return self._hit(
            None,
            f"the container runtime {summary}",
            proofs,
            advice,
            risk=0,
            severity=severity,
        )

    def _unwell(self) -> EvidenceRef | None:
        """Return the healthz of a kubelet that runs, if it is not well.

        A kubelet that exited for another reason shows nothing about its runtime.
        """
        status = kubelet_status.read(self.document)
        if status is None or status.state.kind != systemd_unit.RUNNING:
            return None
        kubelet = contract.answer(self.document, Kubelet)
        healthz = kubelet.healthz
        if kubelet.argv_source != "process" or healthz is None or _is_well(healthz):
            return None
        error = healthz.error or f"HTTP {healthz.status}"
        return EvidenceRef(
            "http",
            self.host.host,
            object=one_line(healthz.url or "healthz", 100),
            text=ends(error, 100),
        )

    def _without_dockershim(self) -> bool:
        """Tell whether this kubelet is certainly of 1.24 or newer.

        Up to 1.23 docker's own socket is the default, and another needs --container-runtime=remote.
        """
        argv = contract.answer(self.document, Kubelet).argv
        if len(argv) < 2 or self.kind not in (CONTAINERD, "crio"):
            return False
        return pflag.string_flag(argv, "container-runtime") is None

    def _language(self, v1: int | str | None, old: int | str | None) -> list[Detection]:
        """Return a hit if kubelet and runtime share no version of the CRI: one of them answered."""
        needs_v1 = self.version and self.version >= ONLY_V1
        if v1 == UNIMPLEMENTED and (needs_v1 or self._death()):
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
        if self.version is None and UNIMPLEMENTED in (v1, old):
            self._note_language(v1)
        return []

    def _note_language(self, v1: int | str | None) -> None:
        """Note a runtime with one version of the CRI next to a kubelet of unknown version."""
        spoken = "v1alpha2"
        if v1 != UNIMPLEMENTED:
            if self._without_dockershim():
                return
            spoken = "v1"
        self.lacking = True
        self.notes.append(
            f"the runtime of {self.host.node or self.host.host} speaks {spoken} of the CRI only,"
            " and the kubelet's version is not known"
        )

    def _no_cri(self) -> Detection:
        """Report a runtime without a CRI, as docker's packages configure containerd."""
        config = self.evidence.config or runtime.RuntimeConfig()
        disabled = [name for name in config.disabled_plugins or () if name in CRI_PLUGINS]
        path = one_line(config.path or "its configuration", 200)
        if not disabled and self.lost:
            return self._damaged(self.lost)
        if not disabled:
            return self._not_loaded(path)
        names = ", ".join(disabled)
        text = f"disabled_plugins = {names}"
        return self._at_calls(
            f"serves no CRI: its plugin {names} is disabled in {path}",
            f"take {names} out of disabled_plugins in {path} (packages of docker write"
            " it so), and see that its cgroup driver is the kubelet's; then systemctl restart"
            f" {self._unit_name()}: {self._leave()}",
            EvidenceRef("file", self.host.host, path=path, line=config.line, text=text),
        )

    def _not_loaded(self, path: str) -> Detection:
        """Report a containerd that runs without its CRI plugin, and what it logged of it."""
        failure = runtime_journal.plugin_failure(self.evidence.plugin_failures or ())
        if failure is None:
            return self._at_calls(
                "serves no CRI at all",
                "see what it says of its plugin cri at its start (journalctl -u"
                f" {self._unit_name()}; ctr plugins ls), and disabled_plugins in {path};"
                f" {self._leave()}",
            )
        hit = self._at_calls(
            f"serves no CRI: it did not load its plugin {failure.plugin}: {failure.reason}",
            f"{failure.cure or f'correct what it names in {path}'}; then systemctl restart"
            f" {self._unit_name()}: {self._leave()}",
            EvidenceRef("log", self.host.host, object=self._unit_name(), text=failure.line),
        )
        return self._explained(hit, [failure.line])

    def _damaged(self, path: str) -> Detection:
        """Report a containerd that runs without its database, and without all that needs it."""
        return self._at_calls(
            "serves no CRI: its database of containers and images is damaged, as a power cut"
            f" leaves it ({path})",
            f"stop kubelet and {self._unit_name()}, move what lies in {path.rpartition('/io.')[0]}"
            " away (all of it: the snapshots belong to that database) and reboot, which ends the"
            " containers that it no longer knows: containerd starts empty, and images are pulled"
            " again",
            EvidenceRef(
                "file", self.host.host, path=path, text="it has not the header of a database"
            ),
        )

    def _emptied(self) -> list[Detection]:
        """Report a configuration of 0 bytes, which containerd reads without an error."""
        if self.kind != CONTAINERD or not self.evidence.emptied:
            return []
        path = one_line(self.evidence.emptied, 200)
        return [
            self._hit(
                None,
                f"the configuration of containerd is an empty file ({path}), as a"
                " power cut leaves it: it has its own defaults from its next start on, the cgroup"
                " driver cgroupfs and no mirrors of registries among them",
                (EvidenceRef("file", self.host.host, path=path, text="0 bytes"),),
                "write it again as the installer of your nodes does (kubespray's playbook; else"
                f" containerd config default > {path}, with SystemdCgroup = true where the"
                " kubelet's cgroupDriver is systemd, and your mirrors), compare it with another"
                " node's, and look at the file system (journalctl -k, fsck): one file is seldom"
                f" alone; then systemctl restart {self._unit_name()}: {self._leave()}. Where it is"
                " meant to be so, a comment in the file says it",
                risk=0,
                severity="warning",
            )
        ]

    def _dockershim(self) -> Detection | None:
        """Report a kubelet without dockershim that is configured to use docker."""
        if self.kind != DOCKER or not self.version or self.version < NO_DOCKERSHIM:
            return None
        endpoint = self.evidence.endpoint or ""
        if "dockershim" in endpoint:
            flag = f"--container-runtime-endpoint={one_line(endpoint, 100)}"
        elif self.evidence.docker:
            flag = "--container-runtime=docker"
        else:
            return None
        return self._hit(
            None,
            f"the kubelet is configured to use docker itself ({flag}), which kubelets from"
            " 1.24 on cannot: cri-dockerd has to be in between",
            (EvidenceRef("process", self.host.host, object="kubelet", text=flag), *self._words()),
            "install cri-dockerd and give the kubelet unix:///run/cri-dockerd.sock, or containerd's"
            " unix:///run/containerd/containerd.sock; drain the node before",
            risk=0,
        )

    def _absent(self) -> Detection:
        unit = one_line(self.evidence.units[-1].name, 80)
        reason, suffix = "there is no such runtime", ""
        if self.kind == CRI_DOCKER:
            reason = "cri-dockerd is not there"
            suffix = "; kubelets from 1.24 on reach docker by cri-dockerd alone"
        return self._hit(
            None,
            f"the kubelet is configured to use {self.path}, and {reason}: neither that"
            f" socket nor a unit {unit}{self._served()}",
            (
                EvidenceRef("file", self.host.host, path=self.path, text="missing"),
                EvidenceRef("unit", self.host.host, object=unit, text="not-found"),
            ),
            "install it, or give the kubelet the socket of the runtime that is there"
            f" (--container-runtime-endpoint or containerRuntimeEndpoint){suffix}",
            risk=0,
        )

    # -- hits and their evidence

    def _hit(
        self,
        unit: Unit | None,
        summary: str,
        proofs: Sequence[EvidenceRef],
        remedy: str,
        risk: int | None = None,
        severity: str | None = None,
    ) -> Detection:
        component = self._component()
        if unit:
            component = one_line(unit.name, 80).removesuffix(".service")
        return Detection(
            one_line(summary, 800),
            tuple(proofs),
            remedy,
            host=self.host.host,
            node=self.host.node,
            component=component,
            risk=risk,
            severity=severity,
        )

    def _at_socket(self, problem: str, proof: str, remedy: str) -> Detection:
        units = [
            node_kubelet_unit.proof(self.host, systemd_unit.unit(record))
            for record in self._there()
        ]
        return self._hit(
            None,
            f"the container runtime cannot be reached: {problem}",
            (
                *units,
                EvidenceRef("file", self.host.host, path=self.path, text=one_line(proof, 100)),
                *self._words(),
            ),
            remedy,
            risk=0,
        )

    def _at_calls(self, problem: str, remedy: str, *places: EvidenceRef) -> Detection:
        calls = self.evidence.calls or {}
        answers = ", ".join(
            f"runtime.{name}.RuntimeService: {_answer(calls.get(name))}"
            for name in ("v1", "v1alpha2")
            if name in calls
        )
        proofs = (
            *places,
            EvidenceRef("http", self.host.host, object=self.path, text=answers),
            *self._words(),
        )
        summary = f"the container runtime {problem}"
        return self._hit(None, summary, proofs, remedy, risk=0)

    def _unit_name(self) -> str:
        records = self._there()
        if not records:
            return "UNIT"
        return shell_name(systemd_unit.unit(records[-1]).name, "UNIT")

    def _death(self) -> exit_cause.Death | None:
        """Return the kubelet's exit, if its last log line blames the runtime."""
        status = kubelet_status.read(self.document)
        if status is None or status.death is None:
            return None
        if status.death.certain and status.death.cause == exit_cause.RUNTIME:
            return status.death
        return None

    def _leave(self) -> str:
        """Return what a restart of the runtime does to containers, and who decides on it."""
        effect = "a restart of the runtime leaves containers running, and"
        if self.kind == DOCKER:
            effect = f"at a restart {ENDS}; that"
        elif self.kind == CRI_DOCKER:
            effect = (
                "a restart of it leaves containers running (of docker, only with live-restore), and"
            )
        return f"{effect} {_LEAVE}"

    def _words(self) -> list[EvidenceRef]:
        death = self._death()
        if death is None or not death.line:
            return []
        return [EvidenceRef("log", self.host.host, object="kubelet", text=ends(death.line, 400))]


def _is_well(healthz: HttpAnswer) -> bool:
    """Tell whether a kubelet's healthz shows no problem, or was not asked."""
    code, error = healthz.status, healthz.error
    return code == 200 or error == "switched off" or (code is None and not error)


def _answer(status: object) -> str:
    if status == OK:
        return "ok"
    return f"status {one_line(status, 40)}"


def _start_risk(unit: Unit, state: systemd_unit.State) -> int | None:
    if state.kind == systemd_unit.LOOPING:
        return 0
    if unit.name == DOCKERD:
        return 3
    return None
