# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubemend.prom, for the textfile collector of node_exporter (docs/prometheus.md).

Each name of a cluster stands for one cluster of the run: those with the same name get their key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ..models import result as model_result
from . import phrases, times
from .run_info import Run, exit_of
from .text_page import escape

SHORT_KEY = 8
STATUSES = ("ok", "unreachable", "error")
HELP = {
    "kubemend_findings": "Faults that are present, 1 each.",
    "kubemend_verdicts": "Verdicts by kind.",
    "kubemend_hosts": "Hosts by how they answered.",
    "kubemend_last_run_timestamp_seconds": "When the last run ended, in seconds since the epoch.",
    "kubemend_last_run_duration_seconds": "How long the last run took.",
    "kubemend_last_run_exit_code": "The exit code of the last run, 0 or 2.",
    "kubemend_waivers_expired": "Waivers that have no effect any more.",
}
Sample = tuple[str, float]  # labels, value


def render(result: model_result.Result, run: Run) -> str:
    """Return the whole file."""
    names = _cluster_names(result, run)
    samples: dict[str, Iterable[Sample]] = {
        "kubemend_findings": _findings(result, names),
        "kubemend_verdicts": _verdicts(result, names),
        "kubemend_hosts": _hosts(result, names),
        **{name: [("", value)] for name, value in _of_run(result, run).items()},
        "kubemend_waivers_expired": [("", len(run.waivers_expired))],
    }
    return "".join(
        line + "\n" for name, help_text in HELP.items() for line in _gauge(name, help_text, samples)
    )


def _gauge(name: str, help_text: str, samples: Mapping[str, Iterable[Sample]]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples.get(name, ()):
        yield f"{name}{labels} {value:.15g}"


def _cluster_names(result: model_result.Result, run: Run) -> dict[str | None, str]:
    """Return the label of each cluster: its name, with its key where two have the same one."""
    keys = phrases.cluster_keys(result)
    names = {key: run.cluster_names.get(key) or key or "" for key in keys}
    counts = Counter(names.values())
    return {
        key: f"{name}-{(key or '')[:SHORT_KEY]}" if counts[name] > 1 else name
        for key, name in names.items()
    }


def _findings(result: model_result.Result, names: Mapping[str | None, str]) -> Iterator[Sample]:
    """Yield each place of a fault once: several pods of one host are one sample."""
    labels = (
        _labels(
            cluster=names[item.cluster],
            code=item.code,
            severity=item.severity,
            host=item.host or item.node or "",
            component=item.component or "",
            waived=str(item.waived is not None).lower(),
        )
        for item in result.findings
    )
    for text in dict.fromkeys(labels):
        yield text, 1


def _verdicts(result: model_result.Result, names: Mapping[str | None, str]) -> Iterator[Sample]:
    counts = Counter((item.cluster, item.verdict) for item in result.verdicts)
    for key, name in names.items():
        for verdict in model_result.VERDICTS:
            yield _labels(cluster=name, verdict=verdict), counts[key, verdict]


def _hosts(result: model_result.Result, names: Mapping[str | None, str]) -> Iterator[Sample]:
    counts = Counter((item.cluster, item.status) for item in result.hosts)
    further = sorted({item.status for item in result.hosts}.difference(STATUSES))
    for key, name in names.items():
        for status in (*STATUSES, *further):
            yield _labels(cluster=name, status=status), counts[key, status]


def _of_run(result: model_result.Result, run: Run) -> dict[str, float]:
    """Return the gauges of the run; a time that cannot be read has none."""
    started, finished = times.moment(run.started), times.moment(run.finished)
    values: dict[str, float] = {"kubemend_last_run_exit_code": exit_of(result, run)[0]}
    if finished is not None:
        values["kubemend_last_run_timestamp_seconds"] = finished.timestamp()
    if started is not None and finished is not None:
        seconds = (finished - started).total_seconds()
        values["kubemend_last_run_duration_seconds"] = max(0.0, seconds)
    return values


def _labels(**values: str) -> str:
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in values.items()) + "}"


def _quoted(value: str) -> str:
    """Return a value of a label: what is not printable is spelled, then what quotes it."""
    return escape(value).replace("\\", "\\\\").replace('"', '\\"')
