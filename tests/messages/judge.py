# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection says of each form, against its class.

A form is put where a component writes it: as the last line of a kubelet's journal the way klog
1.18 and 1.36 writes it, in a static pod's log, and in a runtime's journal.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    runtime,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import exit_cause
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    component_log,
    runtime_journal,
    systemd_unit,
)
from tests.messages import matching, tables
from tests.messages.plausible import NESTED, filled
from tests.messages.tables import Row

UNKNOWN = "unknown"
UNREAD = "what no table has"
OF_KUBELET: Mapping[str, str] = {
    exit_cause.SWAP: "kernel",
    exit_cause.UNKNOWN_FLAG: "configuration",
    exit_cause.REMOVED_GATE: "configuration",
    exit_cause.BAD_CONFIGURATION: "configuration",
    exit_cause.SUPERVISOR: "configuration",
    exit_cause.CPU_MANAGER_STATE: "state_file",
    exit_cause.MEMORY_MANAGER_STATE: "state_file",
    exit_cause.STATE_FILE: "state_file",
    exit_cause.CLIENT_CERTIFICATE: "credential",
    exit_cause.CGROUP_V1: "cgroup",
    exit_cause.KERNEL_DEFAULTS: "kernel",
    exit_cause.CGROUP_DRIVER: "cgroup",
    exit_cause.CGROUP: "cgroup",
    exit_cause.CONTROLLER: "cgroup",
    exit_cause.KERNEL_FILE: "kernel",
    exit_cause.ORPHAN: "runtime",
    exit_cause.RUNTIME: "runtime",
    exit_cause.INOTIFY: "resources",
    exit_cause.PORT_IN_USE: "port",
    exit_cause.NODE_NAME: "credential",
    exit_cause.DISK_FULL: "disk",
    **{cause: meaning for meaning, cause in exit_cause.OF_CLASS.items()},
}
_PREFIX = "2026-11-22T10:00:00+0000 node-1 {}: {}"
HEADER = "{}1122 10:00:00.000000    4242 {}:1] "
# Forms that a command writes itself; any other is an error that others wrap (chains.tsv).
_ENDS = frozenset(("fatal", "exit"))
_STRUCTURED = frozenset(
    ("Failed to start cAdvisor", "Failed to start ContainerManager", "Failed to listen and serve")
)
# Before 1.24 a kubelet wrote its end with klog.Fatal, from then on in structure.
_LAST_OLD, _FIRST_NEW = (1, 22), (1, 24)
# What stands in a form that has a place for another error, and its class.
INNER: tuple[tuple[str, str], ...] = (
    ("disk", "write /var/lib/kubelet/example: no space left on device"),
    ("cgroup", "mkdir /sys/fs/cgroup/memory/kubepods: no space left on device"),
    ("port", "listen tcp 0.0.0.0:10250: bind: address already in use"),
    ("resources", "inotify_init: too many open files"),
    ("credential", "x509: certificate has expired or is not yet valid"),
    ("api", "dial tcp 10.0.0.1:6443: connect: connection refused"),
)


def main() -> None:
    """Print a table per component, and each form of which the collection says another class."""
    for title, rows, said in _ways():
        counts: Counter[tuple[str, str]] = Counter()
        wrong = []
        for row in rows:
            answer = said(row)
            result = _result(row.meaning, answer)
            if result == "wrong" and row.meaning == "wrapper":
                # What others write around it may tell a class.
                around = said(replace(row, form=UNREAD, nested=False))
                result = "same" if answer == around else result
            counts[row.meaning, result] += 1
            if result == "wrong":
                wrong.append(f"    {row.meaning} -> {answer}: {row.form} ({row.place})")
        _print(title, counts, wrong)
    _print("kubelet of 1.36, by the class of the error inside", *_nested())
    _print("kubelet of 1.36, read with the whole table (matching.py)", *_modelled())


def _ways() -> Iterator[tuple[str, list[Row], Callable[[Row], str]]]:
    """Yield (title, forms, what the collection says of one)."""
    kubelet = tables.forms("kubelet")
    old = [row for row in kubelet if _version(row.first) <= _LAST_OLD]
    new = [row for row in kubelet if _version(row.last) >= _FIRST_NEW]
    yield "kubelet, klog of 1.18", old, lambda row: _of_kubelet(*_old(row, _alone(row)))
    yield "kubelet, klog of 1.36", new, lambda row: _of_kubelet(*_new(row, _alone(row)))
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        rows = tables.forms(component)
        yield f"{component}, static pod", rows, lambda row: _of_pod(row, _command(row))
    yield "etcd, static pod", tables.forms("etcd"), lambda row: _of_pod(row, _zap(row))
    yield "containerd", tables.forms("containerd"), lambda row: _of_runtime("containerd", row)
    yield "cri-o", tables.forms("cri-o"), lambda row: _of_runtime("crio", row)


def _modelled() -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return the results of the model that reads texts with the whole table."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    for row in tables.forms("kubelet"):
        if _version(row.last) < _FIRST_NEW:
            continue
        answer = matching.meaning(_chain(row)[1].replace("{}", filled(row)), "kubelet") or UNKNOWN
        result = _result(row.meaning, answer)
        counts[row.meaning, result] += 1
        if result == "wrong":
            wrong.append(f"    {row.meaning} -> {answer}: {row.form}")
    return counts, wrong


def _version(release: str) -> tuple[int, int]:
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def _nested() -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return the results for forms with another error in them, by the class of that error."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong: Counter[str] = Counter()
    for row in tables.forms("kubelet"):
        if NESTED not in filled(row) or _version(row.last) < _FIRST_NEW:
            continue
        for meaning, inner in INNER:
            answer = _of_kubelet(*_new(row, filled(row, inner)))
            # A form that has a class of its own may keep it: both are true.
            result = "same" if answer == row.meaning else _result(meaning, answer)
            counts[meaning, result] += 1
            if result == "wrong":
                wrong[f"    {meaning} -> {answer}: {row.form}"] += 1
    return counts, list(wrong)


def _result(meaning: str, answer: str) -> str:
    """Return same, unknown or wrong; of a wrapper alone nothing is known."""
    if answer in {UNKNOWN, meaning}:
        return UNKNOWN if answer == UNKNOWN else "same"
    return "wrong"


def _print(title: str, counts: Counter[tuple[str, str]], wrong: list[str]) -> None:
    print(f"{title}\n  {'class':20}{'same':>6}{'wrong':>6}{'unknown':>8}")
    for meaning in sorted({meaning for meaning, _result in counts}):
        same, other, unknown = (counts[meaning, name] for name in ("same", "wrong", UNKNOWN))
        print(f"  {meaning:20}{same:6}{other:6}{unknown:8}")
    print("\n".join(("  wrong:", *wrong)))


@functools.cache
def _chains() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    return tuple(
        (re.compile(line["place"]), line["old"], line["new"])
        for line in tables.lines(tables.HERE / "chains.tsv")
    )


def _chain(row: Row) -> tuple[str, str]:
    """Return what others write around an error of this place, before 1.24 and from then on."""
    if row.kind in _ENDS:
        return "{}", "{}"
    return next((old, new) for place, old, new in _chains() if place.search(row.place))


def _old(row: Row, text: str) -> tuple[str, int]:
    """Return the last line of a kubelet of 1.18, and its exit status."""
    if row.kind == "panic":
        return f"panic: {text}", 2
    return HEADER.format("F", "server.go") + _chain(row)[0].replace("{}", text), 255


def _new(row: Row, text: str) -> tuple[str, int]:
    """Return the last line of a kubelet of 1.36, and its exit status."""
    if row.kind == "panic":
        return f"panic: {text}", 2
    text = _chain(row)[1].replace("{}", text)
    head, colon, rest = text.partition(": ")
    if colon and head in _STRUCTURED:
        return structured("kubelet.go", head, rest), 1
    return structured("run.go", "command failed", text), 1


def structured(file: str, message: str, error: str) -> str:
    return HEADER.format("E", file) + f'"{message}" err={json.dumps(error)}'


def _of_kubelet(line: str, status: int) -> str:
    return of_kubelet(line, status)[0]


def of_kubelet(line: str, status: int) -> tuple[str, str]:
    """Return the class of a kubelet's last line, and the keys that it names."""
    lines = [
        _PREFIX.format("kubelet[4242]", line),
        _PREFIX.format(
            "systemd[1]",
            f"kubelet.service: Main process exited, code=exited, status={status}/n/a",
        ),
        _PREFIX.format("systemd[1]", "kubelet.service: Failed with result 'exit-code'."),
    ]
    unit = systemd_unit.Unit(active="failed", result="exit-code", status=status)
    death = exit_cause.death(lines, unit)
    if death is None:
        return UNKNOWN, ""
    return OF_KUBELET.get(death.cause, UNKNOWN), " ".join(death.keys) or death.what


def _command(row: Row) -> str:
    return structured("run.go", "command failed", _alone(row))


def _zap(row: Row) -> str:
    return json.dumps({"level": "fatal", "caller": "a.go:1", "msg": _alone(row)})


def _alone(row: Row) -> str:
    """Return a form with plausible values; of a prefix alone nothing is known."""
    if row.meaning == "wrapper":
        return filled(row, UNREAD)
    return filled(row)


def _of_pod(row: Row, line: str) -> str:
    return of_pod(row.component, line)[0]


def of_pod(component: str, line: str) -> tuple[str, str]:
    """Return the class and the keys of a static pod's last line, as the finding tells it."""
    last = component_log.last_word([line])
    telling = component_log.telling([line], last, component)
    if telling.reading is None:
        return UNKNOWN, ""
    return telling.reading.meaning, telling.reading.key


def _of_runtime(program: str, row: Row) -> str:
    return of_runtime(program, f"{program}: {_alone(row)}")


def of_runtime(program: str, line: str) -> str:
    """Return the class of the last line of a container runtime."""
    said = (_PREFIX.format(f"{program}[700]", line),)
    unit = runtime.RuntimeUnit(
        name=f"{program}.service", result="exit-code", exec_main_status=1, said=said
    )
    return runtime_journal.last_words(unit).meaning or UNKNOWN
