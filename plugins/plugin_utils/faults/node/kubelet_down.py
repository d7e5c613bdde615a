# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about a kubelet that does not run.

KM502, and the causes that its last words name (KM505 to KM517).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...evidence.document import one_line, shell_name
from ...models import control_plane
from ...models import unit_start as start_refused
from ...models.cluster import Host
from ...models.kubelet import (
    exit_cause as kubelet_death,
)
from ...models.kubelet import (
    refused_configuration as kubelet_refused,
)
from ...models.kubelet import (
    status as kubelet_why,
)
from ...models.kubelet.exit_cause import Death
from ...models.kubelet.status import Why
from ...models.result import Missing, Proof
from ...parsers import systemd_unit as kubelet_unit
from ..base import Hit, Outcome, node_check
from ..limits import kernel as limits_kernel
from ..limits import process as limits_process
from . import (
    client_certificate as node_certificate,
)
from . import (
    container_runtime as node_runtime,
)
from . import (
    kubelet_configuration as node_configuration,
)
from . import (
    kubelet_exit_advice as kubelet_cures,
)
from . import (
    kubelet_unit as nodes,
)
from . import (
    swap as node_swap,
)

# of one that was stopped, or not started since the boot: it need not say anything of that
LAST = "the last line of its journal: "
# The causes that are faults of their own; the others are told by KM502, which names the fault that
# owns them where there is one.
CODES = {
    kubelet_death.UNKNOWN_FLAG: "KM505",
    kubelet_death.REMOVED_GATE: "KM505",
    kubelet_death.BAD_CONFIGURATION: "KM506",
    kubelet_death.CLIENT_CERTIFICATE: "KM507",
    kubelet_death.STATE_FILE: "KM510",
    kubelet_death.CGROUP_V1: "KM515",
    kubelet_death.CGROUP_DRIVER: "KM516",
    kubelet_death.KERNEL_DEFAULTS: "KM517",
}
EMPTY = "it is empty"  # files.EMPTY of the collector
SHOWN = 5


@node_check(
    "KM502",
    "Kubelet does not run",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    risk=2,
    needs=("system", "kubelet", "kubelet_end", "unit_start"),
)
def not_running(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM502: the kubelet does not run, and none of the faults of their own is why."""
    why = kubelet_why.read(document)
    if why is None:
        yield nodes.without(host)
        return
    owner = _owner(why, document) or _runtime(host, why, document)
    if why.unit.masked or (why.ended and owner):
        yield Outcome(
            (),
            host=host.host,
            component="kubelet",
            applies=False,
            note="it is masked (KM503)" if why.unit.masked else f"{owner} is why",
        )
        return
    hits = [_down(host, why, document)] if why.ended else []
    lacking = (
        (Missing(host.host, "kubelet", "error"),)
        if not hits
        and why.state.kind not in (kubelet_unit.RUNNING, kubelet_unit.ABSENT, *kubelet_why.ENDED)
        else ()
    )
    yield Outcome(
        tuple(hits),
        lacking,
        host=host.host,
        component="kubelet",
        note=why.state.why if lacking else "it runs, but not its unit" if why.runs else "",
    )


def _down(host: Host, why: Why, document: Mapping[str, Any]) -> Hit:
    death, unit = why.death, why.unit
    restarts = (
        f"; {unit.restarts} restarts so far"
        if why.state.kind == kubelet_unit.LOOPING and unit.restarts
        else ""
    )
    since = f", since {why.since}" if why.since and why.state.kind != kubelet_unit.LOOPING else ""
    summary = (
        f"the kubelet of {host.node or host.host} does not run:"
        f" {why.state.why}{since}{restarts}{kubelet_cures.causes(why)}"
    )
    return Hit(
        one_line(summary, 800),
        _proofs(host, why),
        kubelet_cures.remedy(why, shell_name(unit.name, "UNIT")),
        host=host.host,
        node=host.node,
        component="kubelet",
        because=_because(host, death, document) if death is not None else (),
        # one that systemd starts anyway is not started
        risk=0 if why.state.kind == kubelet_unit.LOOPING else None,
    )


def _because(host: Host, death: Death, document: Mapping[str, Any]) -> tuple[str, ...]:
    """The faults of their own that explain this death and are found here too."""
    if death.cause == kubelet_death.RUNTIME and node_runtime.broken(host, document):
        return ("KM508",)
    if not death.certain:
        return ()
    predicate = {
        kubelet_death.SWAP: (("KM504", node_swap.swap_on),),
        kubelet_death.LIMITS: (("KM409", limits_process.refused),),
        kubelet_death.INOTIFY: (
            ("KM401", limits_kernel.one_holder),
            ("KM402", limits_kernel.too_small),
            ("KM403", limits_kernel.watches),
        ),
    }
    return tuple(
        code
        for code, judged in predicate.get(death.cause, ())
        if any(outcome.hits for outcome in judged(host, document))
    )


@node_check(
    "KM505",
    "Kubelet does not know a flag or feature gate",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end"),
)
def flag(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM505: it does not know a flag or a feature gate that it was given."""
    yield from _caused(host, document, "KM505")


@node_check(
    "KM506",
    "Kubelet refuses its configuration",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end", "pinning"),
)
def configuration(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM506: it refuses its configuration, or would at its next start."""
    (outcome,) = _caused(host, document, "KM506")
    yield node_configuration.told(host, document, outcome) if outcome.applies else outcome


@node_check(
    "KM507",
    "Kubelet has no valid client certificate, or soon has none",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end"),
)
def certificate(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM507: it has no client certificate that is good, and no way to another.

    Or soon it has none.
    """
    (outcome,) = _caused(host, document, "KM507")
    yield (
        outcome
        if outcome.hits or not outcome.applies
        else node_certificate.dated(host, document, outcome)
    )


@node_check(
    "KM510",
    "A file of the kubelet is empty or damaged",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end"),
)
def emptied(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM510: a file of its own is empty or damaged."""
    yield from _caused(host, document, "KM510")


@node_check(
    "KM515",
    "Kubelet refuses cgroup v1",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end"),
)
def cgroup_v1(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM515: it refuses a machine with cgroup v1."""
    yield from _caused(host, document, "KM515")


@node_check(
    "KM516",
    "Kubelet and runtime differ in their cgroup driver",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end"),
)
def cgroup_driver(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM516: its cgroup driver is another than the runtime's."""
    yield from _caused(host, document, "KM516")


@node_check(
    "KM517",
    "Kubelet refuses the kernel's settings",
    severity="critical",
    applies="nodes whose kubelet has a unit of systemd",
    needs=("system", "kubelet", "kubelet_end"),
)
def kernel_defaults(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM517: it refuses the kernel's settings, and was told not to change them."""
    yield from _caused(host, document, "KM517")


def _caused(host: Host, document: Mapping[str, Any], code: str) -> Iterator[Outcome]:
    """The fault of this code, where the kubelet's death proves it.

    Unknown where it died and does not say clearly of what.
    """
    why = kubelet_why.read(document)
    if why is None:
        yield nodes.without(host)
        return
    if why.unit.masked:
        yield Outcome(
            (), host=host.host, component="kubelet", applies=False, note="it is masked (KM503)"
        )
        return
    mine = why.ended and _owner(why, document) == code
    hits = [_death(host, document, why, why.death, code)] if mine and why.death is not None else []
    lacking, note = ((), "") if hits or _owner(why, document) else _lacking(host, why)
    yield Outcome(tuple(hits), lacking, host=host.host, component="kubelet", note=note)


def _lacking(host: Host, why: Why) -> tuple[tuple[Missing, ...], str]:
    """What keeps a cause from being clear: of a kubelet that ended by itself one must be proven."""
    kinds = (kubelet_unit.STARTING, kubelet_unit.STOPPING, kubelet_unit.UNKNOWN)
    if why.state.kind in kinds:
        return (Missing(host.host, "kubelet", "error"),), why.state.why
    if not why.ended or (why.death is not None and why.death.certain) or _stopped(why):
        return (), ""
    missing = host.missing("kubelet_end", absent_is_answer=False)
    return missing or (Missing(host.host, "kubelet_end", "error"),), (
        "" if missing else "its last words do not say for certain why it ended"
    )


def _stopped(why: Why) -> bool:
    """Whether it was stopped in order, or never started: it died of nothing."""
    return why.state.kind == kubelet_unit.STOPPED and why.unit.result == "success"


def _owner(why: Why, document: Mapping[str, Any]) -> str:
    """The fault of its own that its death is.

    "" where there is none, or where it is not certain.
    """
    if why.death is None:
        return ""
    if not why.death.certain:
        unnamed = why.death.cause in (kubelet_death.UNKNOWN, kubelet_death.BAD_CONFIGURATION)
        return "KM506" if unnamed and why.ended and kubelet_refused.read(document).refused else ""
    code = CODES.get(why.death.cause, "")
    return (
        "KM510"
        if code in ("KM506", "KM507") and _emptied(document, why.death.cause, why.death.what)
        else code
    )


def _runtime(host: Host, why: Why, document: Mapping[str, Any]) -> str:
    """KM508 where its runtime is why, and it is started again by itself once that is back.

    "" else.
    """
    dies = why.death is not None and why.death.certain and why.death.cause == kubelet_death.RUNTIME
    return (
        "KM508"
        if dies and why.state.kind == kubelet_unit.LOOPING and node_runtime.broken(host, document)
        else ""
    )


def _death(host: Host, document: Mapping[str, Any], why: Why, death: Death, code: str) -> Hit:
    cause, what, unit = death.cause, death.what, shell_name(why.unit.name, "UNIT")
    node = host.node or host.host
    if code == "KM510":
        paths = _emptied(document, cause, what) or [what.partition(": ")[0]]
        summary = f"the kubelet of {node} does not start: {' and '.join(paths)} is empty or damaged"
        cure = "; ".join(kubelet_cures.emptied(path, node) for path in paths)
        places: Iterable[Proof] = tuple(
            Proof("file", host.host, path=path, text="0 bytes")
            for path in paths
            if _emptied(document, cause, what)
        )
    else:
        summary = f"the kubelet of {node} does not start: {kubelet_cures.words(cause, what)}"
        found = _places(host, document, cause, what)
        cure, places = (
            kubelet_cures.cure(cause, what, node, found[0].path or "" if found else ""),
            found,
        )
    return Hit(
        one_line(summary, 400),
        (*places, *_proofs(host, why)),
        f"{cure}; then {kubelet_cures.started(why.state.kind, unit)}",
        host=host.host,
        node=host.node,
        component="kubelet",
    )


def _emptied(document: Mapping[str, Any], cause: str, what: str) -> list[str]:
    """The files of 0 bytes that this death is of."""
    kubelet = control_plane.data(document, "kubelet")
    files = [
        one
        for one in (
            kubelet.get("config"),
            kubelet.get("kubeconfig"),
            *_items(kubelet.get("config_dropins")),
        )
        if isinstance(one, Mapping)
    ]
    found = [
        one["path"]
        for one in files
        if one.get("size") == 0
        and one.get("kind") in ("file", "symlink")
        and isinstance(one.get("path"), str)
    ]
    secrets = [kubelet.get(name) for name in ("client_certificate", "ca")]
    found += [
        one["path"]
        for one in secrets
        if isinstance(one, Mapping)
        and one.get("error") == EMPTY
        and isinstance(one.get("path"), str)
    ]
    mine = {
        path
        for one in (kubelet.get("kubeconfig"), kubelet.get("client_certificate"))
        if isinstance(one, Mapping)
        for path in [one.get("path")]
    }
    named = what.partition(": ")[0]
    return [
        one_line(path, 200)
        for path in found
        if path == named or (cause == kubelet_death.CLIENT_CERTIFICATE and path in mine)
    ]


def _places(host: Host, document: Mapping[str, Any], cause: str, what: str) -> list[Proof]:
    """The lines that give it the flag or the gate, or where its configuration is wrong."""
    kubelet = control_plane.data(document, "kubelet")
    unit = kubelet.get("unit")
    files = _items(unit.get("environment_files")) if isinstance(unit, Mapping) else []
    word = what.partition("=")[0]
    if cause not in (kubelet_death.UNKNOWN_FLAG, kubelet_death.REMOVED_GATE) or len(word) < 3:
        named = (
            kubelet_refused.named(document, what)
            if cause == kubelet_death.BAD_CONFIGURATION
            else ()
        )
        if named:
            return kubelet_refused.places(document, named, host.host)
        path, _dummy, rest = what.partition(": ")
        number = (
            int(rest[5:])
            if rest.startswith("line ") and rest[5:].isdecimal() and len(rest) < 12
            else None
        )
        return (
            [Proof("file", host.host, path=path, line=number, text=rest or None)]
            if cause == kubelet_death.BAD_CONFIGURATION and path[:1] == "/"
            else []
        )
    if cause == kubelet_death.REMOVED_GATE:
        files = [*files, kubelet.get("config"), *_items(kubelet.get("config_dropins"))]
    found = []
    for one in files:
        if (
            isinstance(one, Mapping)
            and isinstance(one.get("text"), str)
            and isinstance(one.get("path"), str)
        ):
            found += [
                Proof("file", host.host, path=one["path"], line=number, text=one_line(line, 300))
                for number, line in enumerate(one["text"].splitlines(), 1)
                if word in line and not line.lstrip().startswith("#")
            ]
    return found[:SHOWN]


def _proofs(host: Host, why: Why) -> tuple[Proof, ...]:
    told = start_refused.proofs(host.host, why.unit.name, why.refused)
    line = f"{LAST}{why.last}" if why.last else ""
    if why.death is not None and why.death.line:
        line = why.death.line
    elif any(one.kind == "log" for one in told):
        line = ""
    said = (
        [Proof("log", host.host, object=one_line(why.unit.name, 80), text=one_line(line, 400))]
        if line
        else []
    )
    return tuple(dict.fromkeys((nodes.proof(host, why.unit), *told, *said)))


def _items(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
