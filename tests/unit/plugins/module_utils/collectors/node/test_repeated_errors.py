# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector repeated_errors: the journal of units and the logs of static pods, bounded."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_end,
    repeated_errors,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command

UID = "0123456789abcdef0123456789abcdef"
KLOG = "E1126 18:00:00.000001       1 reflector.go:204] "


def stamp(ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime(time.time() - ago))


def journal_line(ago: float, identifier: str, text: str) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime(time.time() - ago))
    return f"{moment} w1 {identifier}[7]: {text}"


@pytest.fixture
def log(tmp_path):
    """Return the log of a scheduler's static pod, and where logs of pods are."""
    folder = tmp_path / f"kube-system_kube-scheduler-m1_{UID}" / "kube-scheduler"
    folder.mkdir(parents=True)
    return folder / "1.log"


@pytest.fixture
def answer(monkeypatch, tmp_path):
    """Return what the collector answers; journal is what journalctl prints."""

    def collect(
        journal="", unit="kubelet.service", started=1.0, component="kube-scheduler", owner=None
    ):
        def run(argv, seconds, limit):
            assert argv[0] == "journalctl"
            collect.argv = argv
            if isinstance(journal, Exception):
                raise journal
            return journal[:limit]

        monkeypatch.setattr(component_end, "PODS", str(tmp_path))
        monkeypatch.setattr(command, "run", run)
        monkeypatch.setattr(repeated_errors.procfs, "started_at", lambda pid: 1.0)
        data = {
            "kubelet": {"process": {"pid": 5, "started_at": started}, "unit": {"name": unit}},
            "runtime": {
                "units": [
                    {"name": "containerd.service", "active_state": "active", "main_pid": 4},
                    {"name": "docker.service", "absent": True},
                ]
            },
            "instances": {
                "processes": [
                    {
                        "component": component,
                        "static": owner is None,
                        "unit": owner,
                        "started_at": started,
                    }
                ]
            },
        }
        context = base.Context({}, [], data)
        rows = repeated_errors.collect(context)["components"]
        return {row["component"]: row for row in rows}

    return collect


def test_errors_of_kubelet_and_runtime_are_told_apart(answer):
    lines = [journal_line(10 * ago, "kubelet", KLOG + '"a"') for ago in range(9)]
    lines.append(journal_line(95, "kubelet", "I1126 18:00:00.000001 1 a.go:1] b"))
    lines.append(
        journal_line(96, "containerd", 'time="2026-11-26T18:00:00.1Z" level=error msg="c"')
    )
    lines.append(journal_line(97, "systemd", "E1126 18:00:00.000001 1 a.go:1] of another"))
    rows = answer("\n".join(lines) + "\n")
    kubelet, runtime = rows["kubelet"], rows["containerd"]
    assert (kubelet["lines"], kubelet["errors"], kubelet["cut"]) == (10, 9, False)
    assert [entry["count"] for entry in kubelet["entries"]] == [9]
    assert (runtime["source"], runtime["errors"]) == ("containerd.service", 1)
    assert {"-u", "kubelet.service", "containerd.service"} < set(answer.argv)
    assert "docker.service" not in answer.argv


def test_what_is_said_at_the_start_does_not_count(answer):
    started = time.time() - repeated_errors.SETTLE - 60
    lines = [journal_line(ago, "kubelet", KLOG + '"a"') for ago in (10, 50, 70, 150)]
    row = answer("\n".join(lines), started=started)["kubelet"]
    assert row["errors"] == 2
    assert row["since"] == pytest.approx(started + repeated_errors.SETTLE, abs=1)


def test_lines_before_the_window_do_not_count(answer, log):
    log.write_text(
        f"{stamp(700)} stderr F {KLOG}a\n{stamp(500)} stderr F {KLOG}a\n", encoding="utf-8"
    )
    row = answer()["kube-scheduler"]
    assert (row["lines"], row["errors"], row["cut"], row["source"]) == (2, 1, False, str(log))


def test_a_long_log_is_read_from_its_end(answer, log):
    line = f"{stamp(60)} stderr F {KLOG}" + "x" * 200 + "\n"
    early = f"{stamp(300)} stderr F {KLOG}early\n" * 10
    log.write_text(early + line * (repeated_errors.LOG_BYTES // len(line) + 10), encoding="utf-8")
    row = answer()["kube-scheduler"]
    assert row["cut"]
    assert time.time() - row["since"] < 70
    assert [("early" in entry["line"]) for entry in row["entries"]] == [False]


def test_the_file_that_was_rotated_last_is_read_too(answer, log):
    for name, ago in (("20261126-170000", 400), ("20261126-180000", 200)):
        log.with_name(f"1.log.{name}").write_text(
            f"{stamp(ago)} stderr F {KLOG}a\n", encoding="utf-8"
        )
    log.with_name("1.log.20261126-190000.gz").write_bytes(b"x")
    log.write_text(f"{stamp(5)} stderr F {KLOG}a\n", encoding="utf-8")
    assert answer()["kube-scheduler"]["entries"][0]["count"] == 2


def test_a_log_of_docker(answer, log):
    entry = {"log": KLOG + 'err="\\"x\\""\n', "stream": "stderr", "time": stamp(5)}
    log.write_text((json.dumps(entry, separators=(",", ":")) + "\n") * 3, encoding="utf-8")
    (row,) = answer()["kube-scheduler"]["entries"]
    assert (row["count"], row["line"]) == (3, KLOG + 'err="\\"x\\""')


def test_a_component_that_does_not_run_is_not_read(answer, log):
    log.write_text(f"{stamp(5)} stderr F {KLOG}a\n", encoding="utf-8")
    assert "kube-scheduler" not in answer(component="etcd")


def test_a_journal_that_is_cut_tells_from_when_on_it_was_read(answer):
    lines = [journal_line(100, "kubelet", KLOG + "a")] * repeated_errors.JOURNAL_LINES
    row = answer("\n".join(lines) + "\n")["kubelet"]
    assert row["cut"]
    assert time.time() - row["since"] < 110


@pytest.mark.parametrize("problem", [command.CommandError("journalctl did not end within 5 s")])
def test_a_journal_that_is_not_read_is_an_error(answer, problem):
    row = answer(problem)["kubelet"]
    assert (row["error"], row["entries"]) == ("journalctl did not end within 5 s", [])


def test_a_journal_without_lines_is_none(answer):
    row = answer(command.Silent("journalctl: it said nothing"))["kubelet"]
    assert (row["error"], row["lines"]) == (None, 0)


def test_an_ordinary_user_is_denied(answer, monkeypatch):
    monkeypatch.setattr(repeated_errors.os, "geteuid", lambda: 1000)
    with pytest.raises(base.Denied):
        answer(command.Silent("journalctl: it said nothing"))


def test_a_machine_without_components(monkeypatch):
    with pytest.raises(base.Absent):
        repeated_errors.collect(base.Context({}, [], {}))


def test_a_component_that_is_a_unit(answer):
    line = '{"level":"warn","ts":"2026-11-26T18:00:00Z","msg":"prober detected unhealthy status"}'
    journal = "\n".join([journal_line(5, "etcd", line)] * 3)
    row = answer(journal, component="etcd", owner="etcd.service")["etcd"]
    assert (row["source"], row["entries"][0]["count"]) == ("etcd.service", 3)
    assert "etcd" not in answer(journal, component="etcd", owner="k3s.service")


def test_a_kubelet_that_is_part_of_another_program_is_not_read(answer):
    assert "kubelet" not in answer("", unit="k3s.service")
