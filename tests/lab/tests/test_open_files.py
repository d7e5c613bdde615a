# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings that are used up, or would not last, on a real cluster.

They are planned, raised where they last, proven, and reverted.
"""

from __future__ import annotations

import contextlib
import shlex

import yaml

from tests.lab.cluster import kernel
from tests.lab.support import limits, logins, playbook
from tests.lab.support.repairing import broken
from tests.lab.support.report import findings

CONSENT = ("-e", "kubemend_max_risk=1")


def ours(cluster) -> dict[str, str]:
    """Our file on each node, an empty text where there is none."""
    return {
        node.name: (
            cluster.exec(node, f"cat {shlex.quote(limits.FILE)} 2>/dev/null; true").stdout.decode()
        )
        for node in cluster.nodes
    }


def found(report) -> set[str]:
    """Return the codes of the present faults."""
    return {item["code"] for item in findings(report)}


def ready(cluster, name: str) -> bool:
    path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
    return cluster.kubectl("get", "node", name, "-o", path).stdout == b"True"


def kubelet(cluster, name: str) -> bytes:
    return cluster.exec(name, ["systemctl", "show", "-p", "MainPID", "--value", "kubelet"]).stdout


def test_too_few_instances_are_raised_where_it_lasts_and_the_node_comes_back(
    cluster, play, tmp_path
):
    with broken(cluster, "inotify-default", target="w1"):
        limit = int(kernel.read(kernel.INOTIFY))
        done, report = play("--check", "--diff", *CONSENT, name="too_many_open_files")
        assert (done.returncode, "KM402" in found(report)) == (0, True), done.stdout[-3000:]
        assert {step["remedy"] for step in report["plan"]} == {"kernel_setting"}
        assert f"+{limits.INSTANCES} = 8192" in done.stdout
        assert int(kernel.read(kernel.INOTIFY)) == limit
        assert set(ours(cluster).values()) == {""}
        done, report = play(*CONSENT, name="too_many_open_files")
        assert (done.returncode, {step["state"] for step in report["steps"]}, found(report)) == (
            0,
            {"done"},
            {"KM410"},
        ), done.stdout[-4000:]
        # The nodes share their kernel: one step, on one of them.
        assert int(kernel.read(kernel.INOTIFY)) == 8192
        assert [f"{limits.INSTANCES} = 8192" in text for text in ours(cluster).values()].count(
            True
        ) == 1
        # Nobody started the kubelet: its unit tries again, and now it can.
        cluster.wait(lambda: ready(cluster, "w1"), 240, "w1 to be Ready again")
        again, second = play(*CONSENT, name="too_many_open_files")
        assert (again.returncode, second["plan"], second["steps"]) == (0, [], []), again.stdout[
            -3000:
        ]
        before = kubelet(cluster, "w1")
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={report['run_id']}",
            report=str(tmp_path / "revert"),
        )
        assert done.returncode == 0, done.stdout[-3000:]
        assert set(ours(cluster).values()) == {""}, done.stdout[-3000:]
        assert int(kernel.read(kernel.INOTIFY)) == 8192
        assert kubelet(cluster, "w1") == before


def test_watches_that_are_used_up_are_raised_where_it_lasts(cluster, play):
    with broken(cluster, "inotify-watches", target="w1"):
        few = int(kernel.read(limits.MAX_WATCHES))
        done, report = play("--check", "--diff", *CONSENT, name="too_many_open_files")
        assert (done.returncode, int(kernel.read(limits.MAX_WATCHES))) == (0, few), done.stdout[
            -3000:
        ]
        assert {"KM403"} <= found(report), done.stdout[-3000:]
        assert {step["remedy"] for step in report["plan"]} == {"kernel_setting"}
        assert f"+{limits.WATCHES} = 524288" in done.stdout
        done, report = play(*CONSENT, name="too_many_open_files")
        assert (done.returncode, {step["state"] for step in report["steps"]}) == (
            0,
            {"done"},
        ), done.stdout[-4000:]
        assert "KM403" not in found(report), done.stdout[-4000:]
        assert int(kernel.read(limits.MAX_WATCHES)) == 524288
        assert [f"{limits.WATCHES} = 524288" in text for text in ours(cluster).values()].count(
            True
        ) == 1
        again, second = play(*CONSENT, name="too_many_open_files")
        assert (again.returncode, second["plan"], second["steps"]) == (0, [], []), again.stdout[
            -3000:
        ]


def test_a_value_that_is_overridden_is_written_where_nothing_overrides_it(cluster, play):
    with broken(cluster, "sysctl-overridden", target="w1"):
        try:
            done, report = play(*CONSENT, "-e", "kubemend_faults=KM407")
            assert (
                done.returncode,
                [step["state"] for step in report["steps"]],
                found(report),
            ) == (0, ["done"], set()), done.stdout[-4000:]
            # sysctl --system reads /etc/sysctl.conf last, which no file of sysctl.d can help: the
            # plan names the line.
            assert "sysctl --system reads" in done.stdout
            assert "says 512" in done.stdout
            assert ours(cluster)["w1"].splitlines()[1:] == [f"{limits.INSTANCES} = 8192"]
        finally:
            cluster.exec("w1", ["rm", "-f", limits.FILE])


def test_a_line_that_is_read_after_ours_is_raised_where_it_stands(cluster, play, tmp_path):
    theirs, text = (
        "/etc/sysctl.d/99-zzz-lab.conf",
        "# the application's\n{0}=300\nvm.swappiness = 60\n",
    )
    lies = f"cat {theirs}; stat -c '%a %U' {theirs}"
    with broken(cluster, "sysctl-overridden", target="w1"):
        try:
            cluster.write("w1", theirs, text.format(limits.INSTANCES))
            before = cluster.exec("w1", lies).stdout
            asked = (*CONSENT, "-e", "kubemend_faults=KM407")
            done, report = play("--check", "--diff", *asked)
            (step,) = report["plan"]
            assert (done.returncode, step["target"], step["blocked_by"]) == (
                0,
                theirs,
                None,
            ), done.stdout[-3000:]
            assert f"-{limits.INSTANCES}=300" in done.stdout
            assert f"+{limits.INSTANCES}=8192" in done.stdout
            assert cluster.exec("w1", lies).stdout == before
            assert ours(cluster)["w1"] == ""
            done, report = play(*asked)
            assert (done.returncode, [one["state"] for one in report["steps"]], found(report)) == (
                0,
                ["done"],
                set(),
            ), done.stdout[-4000:]
            assert cluster.exec("w1", lies).stdout == before.replace(b"=300", b"=8192")
            assert ours(cluster)["w1"] == ""
            assert int(kernel.read(kernel.INOTIFY)) >= 8192
            again, second = play(*asked)
            assert (again.returncode, second["plan"], second["steps"]) == (0, [], []), again.stdout[
                -3000:
            ]
            done = playbook.run(
                "revert",
                cluster.inventory,
                "-e",
                f"kubemend_run_id={report['run_id']}",
                report=str(tmp_path / "revert"),
            )
            assert done.returncode == 0, done.stdout[-3000:]
            assert cluster.exec("w1", lies).stdout == before, done.stdout[-3000:]
        finally:
            cluster.exec("w1", ["rm", "-f", theirs])


def test_one_process_that_holds_most_is_named_and_raising_buys_time(cluster, play):
    with broken(cluster, "inotify-one-holder", target="w1"):
        _done, report = play(name="too_many_open_files")
        (leak,) = [item for item in report["findings"] if item["code"] == "KM401"]
        assert (leak["host"], "python3 (holder.service)" in leak["summary"]) == (
            "w1",
            True,
        ), leak
        assert "only buys time" in leak["remedy"], leak
        pid = int(
            cluster.exec("w1", ["systemctl", "show", "-p", "MainPID", "--value", "holder"]).stdout
        )
        assert pid in [proof["pid"] for proof in leak["evidence"]]


def nofile(cluster, pid: int, node: str = "w1") -> list[str]:
    """Return how many files the kernel lets a process of a node have open: soft, hard."""
    line = cluster.exec(node, f"grep '^Max open files' /proc/{pid}/limits").stdout.decode()
    return line.split()[3:5]


def test_a_service_at_its_limit_gets_more_at_once_and_from_its_next_start(cluster, play, tmp_path):
    dropin = "/etc/systemd/system/holder.service.d/99-zz-kubemend.conf"
    written = f"cat {dropin} 2>/dev/null; true"
    # the lab's nodes may have 20000
    more = (
        *CONSENT,
        "-e",
        "kubemend_nofile=18000",
        "-e",
        "kubemend_faults=KM404",
        "-e",
        "kubemend_deep=true",
    )
    with broken(cluster, "process-at-nofile", target="w1"):
        try:
            pid = int(
                cluster.exec(
                    "w1", ["systemctl", "show", "-p", "MainPID", "--value", "holder"]
                ).stdout
            )
            assert nofile(cluster, pid) == ["2000", "15000"]
            done, report = play("--check", "--diff", *more)
            (step,) = report["plan"]
            assert (done.returncode, step["remedy"], step["target"], step["blocked_by"]) == (
                0,
                "unit_limit",
                dropin,
                None,
            ), done.stdout[-3000:]
            assert "+LimitNOFILE=18000" in done.stdout
            assert (
                f"process {pid} (python3): 2000 (hard 15000) -> 15000 (hard 15000)" in done.stdout
            )
            assert nofile(cluster, pid) == ["2000", "15000"]
            assert cluster.exec("w1", written).stdout == b""
            done, report = play("-e", "kubemend_nofile=30000", *more[:2], *more[4:])
            assert "is above 20000 (the hard limit of PID 1" in report["plan"][0]["blocked_by"], (
                done.stdout[-3000:]
            )
            assert done.returncode == 2, done.stdout[-3000:]
            done, report = play(*more)
            assert (done.returncode, [one["state"] for one in report["steps"]], found(report)) == (
                0,
                ["done"],
                set(),
            ), done.stdout[-4000:]
            # Without CAP_SYS_RESOURCE, which these nodes lack, no more than its hard limit; the
            # unit gives the rest.
            assert nofile(cluster, pid) == ["15000", "15000"]
            assert cluster.exec("w1", written).stdout.decode().splitlines()[1:] == [
                "[Service]",
                "LimitNOFILE=18000",
            ]
            again, second = play(*more)
            assert (again.returncode, second["plan"], second["steps"]) == (0, [], []), again.stdout[
                -3000:
            ]
            cluster.exec("w1", "systemctl daemon-reload")
            assert (
                cluster.exec("w1", "systemctl show -p LimitNOFILE --value holder").stdout.strip()
                == b"18000"
            )
            revert = ("-e", f"kubemend_run_id={report['run_id']}")
            done = playbook.run(
                "revert", cluster.inventory, *revert, report=str(tmp_path / "revert")
            )
            assert done.returncode == 0, done.stdout[-3000:]
            assert cluster.exec("w1", written).stdout == b"", done.stdout[-3000:]
            assert nofile(cluster, pid) == ["15000", "15000"]
            assert "revert_runtime" in done.stdout
            done = playbook.run(
                "revert",
                cluster.inventory,
                *revert,
                "-e",
                "kubemend_allow=revert_runtime",
                report=str(tmp_path / "again"),
            )
            assert done.returncode == 0, done.stdout[-3000:]
            assert nofile(cluster, pid) == ["2000", "15000"], done.stdout[-3000:]
        finally:
            cluster.exec("w1", f"rm -rf {dropin.rpartition('/')[0]}; systemctl daemon-reload")


INOTIFY = "/proc/sys/fs/inotify"
EVENTS = "fs.inotify.max_queued_events"


def queued(cluster) -> tuple[int, set]:
    """Return what the kernel has, and what the managed files of the nodes set.

    All nodes share the kernel.
    """
    said = {
        cluster.exec(node, f"grep '^{EVENTS} ' {limits.FILE} 2>/dev/null; true")
        .stdout.decode()
        .strip()
        for node in cluster.nodes
        if node.joined
    }
    return int(cluster.read("w1", "/proc/sys/fs/inotify/max_queued_events")), said


def test_a_setting_is_lowered_where_that_is_allowed_and_raised_again_by_a_revert(
    cluster, play, tmp_path
):
    (machines, files), name = queued(cluster), tmp_path / "role.yml"
    before, wanted = machines + 2000, machines + 1000
    name.write_text(
        yaml.safe_dump(
            [{"hosts": "all", "gather_facts": False, "roles": ["kubemend.remediation.open_files"]}]
        )
    )
    # All else is asked for as it is: the lab's nodes may have 20000 files, and the machine is not
    # theirs to raise.
    asked = (
        "-e",
        f"kubemend_inotify_queued_events={wanted}",
        "-e",
        "kubemend_nofile=20000",
        "-e",
        "kubemend_nproc=4096",
        *(
            f"-ekubemend_inotify_{what}={int(cluster.read('w1', f'{INOTIFY}/max_user_{what}'))}"
            for what in ("instances", "watches")
        ),
    )
    assert files == {""}
    cluster.exec("w1", f"echo {before} > /proc/sys/fs/inotify/max_queued_events")
    try:
        done, report = play("--check", "--diff", *asked, name=str(name))
        assert done.returncode == 0, done.stdout[-3000:]
        assert not [step for step in report["plan"] if f"-> {wanted}" in step["diff"]], done.stdout[
            -3000:
        ]
        done, report = play(
            "--check", "--diff", *asked, "-e", "kubemend_allow=lower_limits", name=str(name)
        )
        lowered = {
            step["host"]
            for step in report["plan"]
            if f"+{EVENTS} = {wanted}\nthe kernel: {before} -> {wanted}\n" in step["diff"]
        }
        assert (done.returncode, lowered, queued(cluster)) == (
            0,
            {node.name for node in cluster.nodes if node.joined},
            (before, {""}),
        ), done.stdout[-3000:]
        done, report = play(*asked, "-e", "kubemend_allow=lower_limits", name=str(name))
        assert (done.returncode, {step["state"] for step in report["steps"]}) == (
            0,
            {"done"},
        ), done.stdout[-4000:]
        assert queued(cluster) == (wanted, {f"{EVENTS} = {wanted}"})
        again, second = play(*asked, "-e", "kubemend_allow=lower_limits", name=str(name))
        assert (again.returncode, second["plan"]) == (0, []), again.stdout[-3000:]
        done = playbook.run(
            "revert",
            cluster.inventory,
            "-e",
            f"kubemend_run_id={report['run_id']}",
            report=str(tmp_path / "revert"),
        )
        assert (done.returncode, queued(cluster)) == (0, (before, {""})), done.stdout[-3000:]
    finally:
        cluster.exec("w1", f"echo {machines} > /proc/sys/fs/inotify/max_queued_events")
        for node in cluster.nodes:
            cluster.exec(node, f"rm -f {limits.FILE} {LOGINS}")


FULL = """
import os, resource, time
soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1495)]
print("holds", len(held), "of", soft, flush=True)
time.sleep(86400)
"""
RESTART = (
    "-e",
    "kubemend_allow=service_restart",
    "-e",
    "kubemend_nofile=18000",
    "-e",
    "kubemend_faults=KM404",
    "-e",
    "kubemend_deep=true",
)


def main_pid(cluster, unit: str, node: str = "w1") -> int:
    return int(cluster.exec(node, ["systemctl", "show", "-p", "MainPID", "--value", unit]).stdout)


def test_a_service_restarts_if_allowed_and_is_as_it_was_if_it_does_not_come_up(cluster, play):
    dropin, program = (
        "/etc/systemd/system/holder.service.d/99-zz-kubemend.conf",
        "/usr/local/bin/kubemend-lab-full",
    )
    cluster.write("w1", program, FULL)
    cluster.write(
        "w1",
        limits.UNIT,
        f"[Service]\nLimitNOFILE=1500\nExecStart=/usr/bin/env python3 {program}\n",
    )
    try:
        cluster.exec("w1", "systemctl daemon-reload && systemctl start holder")
        pid = main_pid(cluster, "holder")
        cluster.wait(
            lambda: int(cluster.exec("w1", f"ls /proc/{pid}/fd | wc -l").stdout) > 1490,
            60,
            "a service that has as many files open as it may",
        )
        # Without the word: the file alone, and how the rest is to be had.
        done, report = play("--check", "--diff", "-e", "kubemend_max_risk=1", *RESTART[2:])
        (step,) = report["plan"]
        assert (done.returncode, step["risk"]) == (
            0,
            1,
        ), done.stdout[-3000:]
        assert "-e kubemend_allow=service_restart -e kubemend_max_risk=2" in step["note"], (
            done.stdout[-3000:]
        )
        # A program that refuses to run with more: the service as it was, and said so.
        cluster.exec(
            "w1",
            f"sed -i '2a import sys; resource.getrlimit(7)[0] > 1500 and sys.exit(3)' {program}",
        )
        done, report = play("-e", "kubemend_max_risk=2", *RESTART)
        (one,) = report["steps"]
        assert one["state"] == "rolled_back", done.stdout[-3000:]
        assert "is as it was, and it runs with that" in one["reason"], done.stdout[-3000:]
        again = main_pid(cluster, "holder")
        assert done.returncode == 2
        assert again not in (0, pid)
        assert nofile(cluster, again) == ["1500", "1500"]
        assert cluster.exec("w1", f"ls {dropin}", check=False).returncode != 0
        cluster.exec("w1", f"sed -i '/sys.exit/d' {program}")
        cluster.wait(
            lambda: int(cluster.exec("w1", f"ls /proc/{again}/fd | wc -l").stdout) > 1490,
            60,
            "the service at its limit again",
        )
        # Somebody's change of the unit waits for its next start: refused, in check mode already.
        cluster.exec("w1", f"touch -d '+1 hour' {limits.UNIT}")
        done, report = play("--check", "-e", "kubemend_max_risk=2", *RESTART)
        assert done.returncode == 2, done.stdout[-3000:]
        assert "would also load changes of others" in done.stdout, done.stdout[-3000:]
        cluster.exec("w1", f"touch -d '2020-01-01' {limits.UNIT}; systemctl daemon-reload")
        done, report = play("-e", "kubemend_max_risk=2", *RESTART)
        assert (done.returncode, [one["state"] for one in report["steps"]], found(report)) == (
            0,
            ["done"],
            set(),
        ), done.stdout[-4000:]
        now = main_pid(cluster, "holder")
        assert now not in (0, again)
        assert nofile(cluster, now) == ["18000", "18000"]
        second, report = play("-e", "kubemend_max_risk=2", *RESTART)
        assert (second.returncode, report["plan"], main_pid(cluster, "holder")) == (
            0,
            [],
            now,
        ), second.stdout[-3000:]
    finally:
        cluster.exec(
            "w1",
            f"systemctl stop holder; systemctl reset-failed holder 2>/dev/null; rm -rf {program}"
            f" {limits.UNIT} {dropin.rpartition('/')[0]}; systemctl daemon-reload",
        )


def test_a_runtime_is_restarted_where_that_is_allowed_and_its_containers_run_on(cluster, play):
    """The runtime is that of a master, whose control plane runs in its containers."""
    opened = "ls /proc/$(systemctl show -p MainPID --value containerd)/fd | wc -l"
    held = "pgrep 'containerd-shim|kube-scheduler|kube-controller|kube-apiserver' | sort"
    pid, containers = main_pid(cluster, "containerd", "m3"), cluster.exec("m3", held).stdout.split()
    try:
        count = int(cluster.exec("m3", opened).stdout)
        cluster.exec("m3", f"prlimit --pid {pid} --nofile={count}:{count}")
        done, report = play("--check", "--diff", "-e", "kubemend_max_risk=3", *RESTART)
        (step,) = report["plan"]
        assert (done.returncode, step["host"], step["risk"], step["allowed"]) == (
            0,
            "m3",
            3,
            True,
        ), done.stdout[-3000:]
        assert "systemctl restart containerd.service" in step["diff"]
        assert main_pid(cluster, "containerd", "m3") == pid
        done, report = play("-e", "kubemend_max_risk=3", *RESTART)
        assert (done.returncode, [one["state"] for one in report["steps"]], found(report)) == (
            0,
            ["done"],
            set(),
        ), done.stdout[-4000:]
        now = main_pid(cluster, "containerd", "m3")
        assert now not in (0, pid)
        assert int(nofile(cluster, now, "m3")[0]) >= 18000
        assert len(containers) > 6
        assert cluster.exec("m3", held).stdout.split() == containers
    finally:
        if main_pid(cluster, "containerd", "m3") == pid:
            cluster.exec("m3", "systemctl restart containerd")


LOGINS = "/etc/security/limits.d/99-zz-kubemend.conf"


def lines(cluster) -> list[str]:
    """Our file for logins of w1, below its headline."""
    return cluster.exec("w1", f"cat {LOGINS} 2>/dev/null; true").stdout.decode().splitlines()[1:]


@contextlib.contextmanager
def ours_gone(cluster):
    """Our file for logins is gone afterwards, whatever happened."""
    try:
        yield
    finally:
        cluster.exec("w1", ["rm", "-f", LOGINS])


def taken_back(cluster, report, folder) -> None:
    """Revert its run, and require that the managed file is gone."""
    done = playbook.run(
        "revert", cluster.inventory, "-e", f"kubemend_run_id={report['run_id']}", report=str(folder)
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert lines(cluster) == [], done.stdout[-3000:]


def test_a_limit_that_no_process_can_have_is_mended_while_the_open_session_stays(
    cluster, play, tmp_path
):
    with (
        broken(cluster, "limits-lock-out", target="w1"),
        ours_gone(cluster),
        logins.person(cluster),
        logins.login(cluster) as opened,
    ):
        shell, had = opened("echo $$"), opened("ulimit -Hn")
        assert shell.isdigit()
        assert had.isdigit()
        asked = (*CONSENT, "-e", "kubemend_faults=KM406")
        planned, report = play("--check", "--diff", *asked)
        assert (
            planned.returncode,
            [(step["remedy"], step["target"]) for step in report["plan"]],
            lines(cluster),
        ) == (0, [("file_limit", LOGINS)], []), planned.stdout[-3000:]
        done, report = play(*asked)
        assert (done.returncode, [step["state"] for step in report["steps"]], found(report)) == (
            0,
            ["done"],
            set(),
        ), done.stdout[-4000:]
        (line,) = lines(cluster)
        assert line.startswith("* hard nofile ")
        assert f"+{line}" in planned.stdout
        # The way back is still open, as it was; a second login has what the line says.
        assert opened("echo $$ $(ulimit -Hn)") == f"{shell} {had}"
        with logins.login(cluster) as second:
            assert second("ulimit -Hn") == line.split()[3]
        again, second_report = play(*asked)
        assert (again.returncode, second_report["plan"], second_report["steps"]) == (
            0,
            [],
            [],
        ), again.stdout[-3000:]
        taken_back(cluster, report, tmp_path / "revert")
        assert opened("echo $$") == shell


def test_a_login_at_its_limit_has_more_from_the_next_one_on(cluster, play, tmp_path):
    theirs, asked = (
        "/etc/security/limits.d/50-lab.conf",
        (
            *CONSENT,
            "-e",
            "kubemend_nofile=18000",
            "-e",
            "kubemend_faults=KM404",
            "-e",
            "kubemend_deep=true",
        ),
    )
    cluster.write("w1", theirs, "* - nofile 1500\n")
    cluster.write("w1", "/usr/local/bin/kubemend-lab-hold", limits.HOLD)
    try:
        with logins.person(cluster), logins.login(cluster) as opened:
            assert opened("ulimit -Hn") == "1500"
            shell = logins.session(cluster, opened)
            opened.begin("python3 /usr/local/bin/kubemend-lab-hold files 1500")
            held = f"ls /proc/$(pgrep -u {logins.USER} -f kubemend-lab-hold)/fd 2>/dev/null | wc -l"
            cluster.wait(
                lambda: int(cluster.exec("w1", held).stdout) > 1490,
                120,
                "a login that has as many files open as it may",
            )
            done, report = play("--check", "--diff", *asked)
            (step,) = report["plan"]
            assert (done.returncode, step["remedy"], step["target"], step["blocked_by"]) == (
                0,
                "file_limit",
                LOGINS,
                None,
            ), done.stdout[-3000:]
            done, report = play(*asked)
            # What runs keeps its limit, and is found still: that is no failure of a step that
            # counts from the next login.
            assert (done.returncode, [one["state"] for one in report["steps"]], found(report)) == (
                0,
                ["done"],
                {"KM404"},
            ), done.stdout[-4000:]
            assert lines(cluster) == ["* hard nofile 18000"]
            assert nofile(cluster, shell) == [
                "1500",
                "1500",
            ]
            with logins.login(cluster) as second:
                assert (
                    second("echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Sn 9000; ulimit -Sn)")
                    == "1500 18000 9000"
                )
            again, second_report = play(*asked)
            assert (again.returncode, second_report["plan"], second_report["steps"]) == (
                0,
                [],
                [],
            ), again.stdout[-3000:]
            taken_back(cluster, report, tmp_path / "revert")
    finally:
        cluster.exec("w1", f"rm -f {theirs} {LOGINS} /usr/local/bin/kubemend-lab-hold")
