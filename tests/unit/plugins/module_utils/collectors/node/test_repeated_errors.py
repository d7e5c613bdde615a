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
    """Return what the collector answers; journal is what journalctl prints.

    earlier: whether the journal reaches back to the window; units: those of which it has a line
    """

    def collect(
        journal="",
        unit="kubelet.service",
        started=1.0,
        component="kube-scheduler",
        owner=None,
        earlier=True,
        units=("kubelet.service", "containerd.service", "etcd.service"),
        **more,
    ):
        def run(argv, seconds, limit):
            assert argv[0] == "journalctl"
            if "-t" in argv:
                return printed(argv[argv.index("-u") + 1] in units and "x", limit)
            if "--system" in argv:
                assert "-r" in argv  # without it, systemd 252 prints nothing
                collect.until = next(word for word in argv if word.startswith("--until=@"))
                return printed(earlier and "x", limit)
            collect.argv = argv
            return printed(journal, limit)

        def printed(text, limit):
            if isinstance(text, Exception):
                raise text
            if not text:
                raise command.Silent("journalctl: it said nothing")
            return text[:limit]

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
        data.update(more)
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


def test_units_that_say_nothing_are_quiet_where_the_journal_has_earlier_lines_of_them(answer):
    rows = answer()
    for unit in ("kubelet", "containerd"):
        assert (rows[unit]["error"], rows[unit]["lines"], rows[unit]["cut"]) == (None, 0, False)


def test_a_unit_of_which_the_journal_has_no_line_is_an_error(answer):
    # it writes to a file, or to a journal of its own
    rows = answer(journal_line(5, "kubelet", "I1126 18:00:00 x") + "\n", units=("kubelet.service",))
    assert (rows["kubelet"]["error"], rows["kubelet"]["lines"]) == (None, 1)
    assert "the journal has no line of it" in rows["containerd"]["error"]


def test_a_unit_that_was_started_a_moment_ago_needs_no_line(answer):
    assert answer(started=time.time(), units=())["kubelet"]["error"] is None


def test_an_absent_journal_is_no_quiet_one(answer):
    silent = command.Silent("journalctl: No journal files were found.")
    rows = answer(silent, earlier=False, units=())
    for unit in ("kubelet", "containerd"):
        assert rows[unit]["error"]
        assert rows[unit]["cut"]


def test_a_journal_that_begins_within_the_window_is_cut(answer):
    lines = [journal_line(ago, "kubelet", KLOG + "a") for ago in (10, 50, 100)]
    row = answer("\n".join(lines) + "\n", earlier=False)["kubelet"]
    assert (row["cut"], row["errors"]) == (True, 3)
    assert row["since"] == pytest.approx(time.time() - 100, abs=2)


def test_lines_that_journald_left_out_are_a_cut(answer):
    lines = [
        journal_line(10, "kubelet", KLOG + "a"),
        journal_line(11, "systemd-journald", "Suppressed 500 messages from kubelet.service"),
    ]
    rows = answer("\n".join(lines) + "\n")
    assert rows["kubelet"]["cut"]
    assert not rows["containerd"]["cut"]


def test_a_static_pod_without_a_log_is_an_error(answer, tmp_path):
    row = answer()["kube-scheduler"]
    assert (row["source"], row["lines"]) == (str(tmp_path), 0)
    assert "no log" in row["error"]


def test_a_log_that_cannot_be_opened_is_an_error(answer, log):
    log.mkdir()
    assert answer()["kube-scheduler"]["error"]


@pytest.mark.parametrize(
    ("first", "is_cut"), [(700, False), (598, True), (300, True), (None, True)]
)
def test_a_log_that_begins_within_the_window_is_cut(answer, log, first, is_cut):
    # docker with one file, or files before it that were compressed
    lines = [f"{stamp(ago)} stderr F {KLOG}a\n" for ago in (first, 5) if first]
    log.write_text("".join(lines), encoding="utf-8")
    row = answer()["kube-scheduler"]
    assert (row["cut"], row["errors"]) == (is_cut, sum((bool(first), first in (598, 300))))


def test_a_log_of_a_component_that_was_just_started_is_whole(answer, log):
    now = time.time()
    log.write_text(f"{stamp(200)} stderr F {KLOG}a\n{stamp(5)} stderr F {KLOG}a\n", "utf-8")
    row = answer(started=now - 201)["kube-scheduler"]
    assert (row["cut"], row["errors"]) == (False, 1)


def docker_line(ago: float) -> str:
    entry = {"log": KLOG + "a\n", "stream": "stderr", "time": stamp(ago)}
    return json.dumps(entry, separators=(",", ":")) + "\n"


@pytest.mark.parametrize(
    ("rotated", "count", "is_cut"), [((700, 500), 2, False), ((400,), 2, True), ((), 1, True)]
)
def test_a_log_of_docker_that_was_rotated(answer, log, tmp_path, rotated, count, is_cut):
    real = tmp_path / "containers" / "0a1b-json.log"
    real.parent.mkdir()
    real.write_text(docker_line(5), encoding="utf-8")
    if rotated:
        text = "".join(docker_line(ago) for ago in rotated)
        real.with_name(real.name + ".1").write_text(text, encoding="utf-8")
        real.with_name(real.name + ".2").write_text(docker_line(800), encoding="utf-8")
    log.symlink_to(real)
    row = answer()["kube-scheduler"]
    assert (row["errors"], row["cut"]) == (count, is_cut)


def test_an_ordinary_user_is_denied(answer, monkeypatch):
    monkeypatch.setattr(repeated_errors.os, "geteuid", lambda: 1000)
    with pytest.raises(base.Denied):
        answer(units=(), earlier=False)


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
    assert "kubelet" not in answer("", unit="k0sworker.service")


@pytest.mark.parametrize(
    ("unit", "identifier"),
    [
        ("k3s.service", "k3s"),
        ("k3s-agent.service", "k3s"),
        ("rke2-server.service", "rke2"),
        ("k0sworker.service", "k0s"),
    ],
)
def test_the_journal_of_a_program_that_has_the_kubelet_within_it(answer, unit, identifier):
    line = 'time="2026-11-26T18:00:00Z" level=error msg="database or disk is full"'
    journal = "\n".join(journal_line(ago, identifier, line) for ago in (5, 70, 130))
    rows = answer(journal, unit=unit)
    assert "kubelet" not in rows
    assert (rows[identifier]["source"], rows[identifier]["errors"]) == (unit, 3)


def test_the_journal_of_kubelite_has_the_name_of_its_snap(answer):
    unit, text = "snap.microk8s.daemon-kubelite.service", KLOG + "No space left on device"
    journal = "\n".join(journal_line(ago, "microk8s.daemon-kubelite", text) for ago in (5, 70))
    row = answer(journal, unit=unit)["kubelite"]
    assert (row["source"], row["lines"], row["errors"]) == (unit, 2, 2)


def test_k0s_logs_what_its_components_say(answer):
    head = 'time="2026-11-26 18:00:00" level=info msg="{}1126 18:00:0{}.000001    1234 a.go:10] '
    rows = [
        head.format(level, ago) + f'No space left on device" component={name} stream=stderr'
        for level, ago, name in (("E", 1, "kubelet"), ("E", 2, "kubelet"), ("I", 3, "kubelet"))
    ]
    journal = "\n".join(journal_line(70 * number, "k0s", text) for number, text in enumerate(rows))
    (entry,) = answer(journal, unit="k0sworker.service")["k0s"]["entries"]
    assert entry["count"] == 2


WRAPPED = (
    KLOG + '"Failed to watch" err=<',
    "\tfailed to list *v1.Node: nodes is forbidden: User",
    "\tE1126 18:00:00.000001       1 of_its_output.go:1] x",
    ' > type="*v1.Node"',
)
PANIC = (
    KLOG + "Observed a panic: runtime error: invalid memory address",
    "goroutine 17 [running]:",
    "k8s.io/kubernetes/pkg/a.(*b).c(0xc000123, 0x1)",
    "\t/go/src/a.go:11 +0x1d",
    "panic: runtime error [recovered]",
)


def test_errors_of_several_lines_count_once(answer, log):
    texts = (*WRAPPED, *PANIC)
    journal = [journal_line(5, "kubelet", text) for text in reversed(texts)]
    log.write_text("".join(f"{stamp(5)} stderr F {text}\n" for text in texts), encoding="utf-8")
    rows = answer("\n".join(journal) + "\n")
    for component in ("kubelet", "kube-scheduler"):
        row = rows[component]
        assert (row["errors"], [entry["count"] for entry in row["entries"]]) == (2, [1, 1])
        lines = [entry["line"] for entry in row["entries"]]
        assert any("failed to list *v1.Node: nodes is forbidden" in line for line in lines)


def test_the_limits():
    limits = (repeated_errors.WINDOW, repeated_errors.SETTLE, repeated_errors.LOG_BYTES)
    assert limits == (600, 120, 1024 * 1024)
    assert (repeated_errors.JOURNAL_LINES, repeated_errors.JOURNAL_BYTES) == (6000, 1536 * 1024)


@pytest.mark.parametrize(
    ("unit", "identifier"),
    [
        ("containerd.service", "containerd"),
        ("crio.service", "crio"),
        ("docker.service", "dockerd"),
        ("cri-docker.service", "cri-dockerd"),
        ("cri-dockerd.service", "cri-dockerd"),
    ],
)
def test_each_runtime_logs_by_the_name_of_its_program(answer, unit, identifier):
    line = journal_line(5, identifier, KLOG + "x") + "\n"
    units = [{"name": unit, "active_state": "active", "main_pid": 4}]
    row = answer(line, runtime={"units": units})[identifier]
    assert (row["source"], row["errors"]) == (unit, 1)


def test_a_kubelet_without_a_process_is_not_read(answer):
    assert "kubelet" not in answer(kubelet={"process": None, "unit": {"name": "kubelet.service"}})


def test_a_unit_with_lines_needs_no_earlier_one(answer):
    rows = answer(journal_line(5, "kubelet", KLOG + "x") + "\n", units=())
    assert rows["kubelet"]["error"] is None


def test_a_counter_that_left_errors_out_is_a_cut(answer, monkeypatch):
    monkeypatch.setattr(repeated_errors.repeated_lines, "MAX_FOLDS", 1)
    lines = [journal_line(5, "kubelet", KLOG + text) for text in ("a", "b")]
    assert answer("\n".join(lines) + "\n")["kubelet"]["cut"]


def test_a_journal_of_too_many_bytes_is_cut_at_its_last_whole_line(answer, monkeypatch):
    lines = [journal_line(ago, "kubelet", KLOG + "a") for ago in (10, 100, 200)]
    monkeypatch.setattr(repeated_errors, "JOURNAL_BYTES", len("\n".join(lines)) - 20)
    row = answer("\n".join(lines) + "\n")["kubelet"]
    assert row["cut"]
    assert row["since"] == pytest.approx(time.time() - 100, abs=2)


def test_the_folder_of_logs_is_that_of_the_kubelets_configuration(answer, tmp_path):
    folder = tmp_path / "logs" / f"kube-system_kube-scheduler-m1_{UID}" / "kube-scheduler"
    folder.mkdir(parents=True)
    (folder / "0.log").write_text(f"{stamp(5)} stderr F {KLOG}a\n", encoding="utf-8")
    kubelet = {"config": {"text": f"podLogsDir: {tmp_path / 'logs'}\n"}}
    assert answer(kubelet=kubelet)["kube-scheduler"]["errors"] == 1


def test_the_youngest_process_of_a_component_counts(answer, log):
    log.write_text(f"{stamp(700)} stderr F {KLOG}a\n{stamp(5)} stderr F {KLOG}a\n", "utf-8")
    process = {"component": "kube-scheduler", "static": True, "unit": None}
    now = time.time()
    processes = [{**process, "started_at": moment} for moment in (1.0, now - 100, 2.0)]
    row = answer(instances={"processes": processes})["kube-scheduler"]
    assert (row["started"], row["errors"]) == (now - 100, 0)


def test_the_newest_line_of_a_log_is_quoted(answer, log):
    texts = ('pod="a/old"', 'pod="a/new"')
    lines = [
        f"{stamp(ago)} stderr F {KLOG}{text}\n" for ago, text in zip((9, 5), texts, strict=True)
    ]
    log.write_text("".join(lines), encoding="utf-8")
    (entry,) = answer()["kube-scheduler"]["entries"]
    assert (entry["count"], entry["line"]) == (2, KLOG + texts[1])


def test_the_limit_of_a_log_is_for_all_of_its_files(answer, log, monkeypatch):
    line = f"{stamp(60)} stderr F {KLOG}a\n"
    monkeypatch.setattr(repeated_errors, "LOG_BYTES", 3 * len(line) + 5)
    log.write_text(line * 2, encoding="utf-8")
    log.with_name("1.log.20261126-170000").write_text(line * 9, encoding="utf-8")
    log.with_name("1.log.20261126-180000").write_text(line * 9, encoding="utf-8")
    log.with_name("1.log.20261126-190000.tmp").write_text(line * 9, encoding="utf-8")
    assert answer()["kube-scheduler"]["lines"] == 3
    log.write_text(line * 9, encoding="utf-8")
    assert answer()["kube-scheduler"]["lines"] == 3


def test_the_newest_rotated_file_is_read(answer, log):
    for name, count in (("20261126-170000", 5), ("20261126-180000", 2), ("20261126-190000.tmp", 7)):
        text = f"{stamp(60)} stderr F {KLOG}a\n" * count
        log.with_name(f"1.log.{name}").write_text(text, encoding="utf-8")
    log.write_text(f"{stamp(5)} stderr F {KLOG}a\n", encoding="utf-8")
    assert answer()["kube-scheduler"]["errors"] == 3


def test_the_journal_has_to_reach_back_to_the_longest_window(answer):
    now = time.time()
    answer(started=now - 200)
    assert int(answer.until.partition("@")[2]) == pytest.approx(now - repeated_errors.WINDOW, abs=2)


def test_the_time_of_the_first_line_that_can_be_read():
    line = b"2026-11-22T04:00:10.000000000Z stderr F E1122 04:00:10.000001       1 a.go:1] x\n"
    moment = repeated_errors._first_moment(line)
    assert moment is not None
    assert repeated_errors._first_moment(b"\0\0\0garbage\n" * 3 + line) == moment
    many = b"\0\n" * repeated_errors.UNREADABLE
    assert repeated_errors._first_moment(many + line) is None
    assert repeated_errors._first_moment(b"") is None
