# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the kernel, KM401 to KM403, KM405 and KM407.

The tests check what each is and is not, what is said of it, and what is not known.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import (
    EVENTS,
    FILE_MAX,
    INSTANCES,
    PID_MAX,
    WATCHES,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_limits import CONF, LINK, POD, SYSCTL, Node, holder, record


@pytest.fixture
def node(world):
    return Node(world)


# KM401 and KM402


def test_one_process_holds_more_than_half(node):
    node.used_up(holder(7, "leaky", 66, 3, unit="leaky.service"), holder(8, "small", 9))
    found = node.finding("KM401")
    assert node.verdict("KM402") == "not_applicable"
    facts(node.note("KM402"), "one process", "KM401")
    facts(
        found.summary,
        "fs.inotify.max_user_instances=128",
        "root",
        "leaky",
        "leaky.service",
        "66",
    )
    assert (found.severity, found.component, found.risk) == ("critical", INSTANCES, 1)
    assert "leaky (leaky.service): 66 instances, 3 watches" in node.said("KM401")
    assert [one.pid for one in found.evidence] == [None, 7, 8]
    assert found.remedy.startswith(
        "find out why leaky (leaky.service) holds so many, and restart it when it leaks"
    )
    assert "the plan writes fs.inotify.max_user_instances=8192" in found.remedy
    assert "kubemend_inotify_instances=NUMBER" in found.remedy


def test_half_of_them_is_not_most_of_them(node):
    node.used_up(holder(7, "one", 64), holder(8, "two", 63))
    assert node.present() == ["KM402"]
    assert node.verdict("KM401") == "clear"
    found = node.finding("KM402")
    facts(found.summary, "fs.inotify.max_user_instances=128", "used up", "root")
    assert found.severity == "critical"
    assert node.said("KM402").startswith(
        "another inotify instance could not be made by root (EMFILE)\none: 64 instances"
    )
    assert found.remedy.startswith("raise it: the plan writes")


def shims(*counts):
    rows = enumerate(counts, 7)
    return [holder(pid, "containerd-shim", n, 2 * n, unit="containerd.service") for pid, n in rows]


def test_the_processes_of_one_program_count_together(node):
    node.used_up(*shims(30, 20, 15), holder(90, "small", 9))
    found = node.finding("KM401")
    assert "3 processes of containerd-shim (containerd.service) with 65" in found.summary
    assert "65 instances, 130 watches" in node.said("KM401")
    assert [one.pid for one in found.evidence] == [None, 7, 90]
    assert node.verdict("KM402") == "not_applicable"
    facts(node.note("KM402"), "one program", "KM401")


def test_programs_of_one_name_in_several_containers_are_several(node):
    ids = ("0123456789abcdef" * 4, "fedcba9876543210" * 4)
    rows = (
        holder(pid, "app", 40, pod_uid=POD, container_id=name) for pid, name in enumerate(ids, 7)
    )
    node.used_up(*rows)
    assert node.verdict("KM401") == "clear"
    assert [one.pid for one in node.finding("KM402").evidence] == [None, 7, 8]


@pytest.mark.parametrize(
    ("version", "cgroup", "is_known"),
    [("1.5.7", "v2", True), ("1.6.0", "v2", False), ("1.5.7", "v1", False), ("", "v2", False)],
)
def test_the_known_leak_of_the_shims_is_told_where_the_node_has_it(node, version, cgroup, is_known):
    node.used_up(*shims(66))
    node.world.data("w1", "system")["cgroup"] = cgroup
    answer = {"name": "containerd", "version": version}
    node.document["collectors"]["cri"] = {"status": "ok", "data": answer}
    found = node.finding("KM401")
    assert ("containerd before 1.6.0" in found.summary) is is_known
    assert ("issues/5670" in found.remedy) is is_known


def test_the_pod_of_a_process_can_be_found(node):
    node.used_up(holder(7, "app", 100, pod_uid=POD, container_id="0123456789abcdef" * 4))
    assert "crictl inspect 0123456789ab names its pod" in node.finding("KM401").remedy
    assert f"app (pod {POD}, container 0123456789ab)" in node.finding("KM401").summary
    node.walk["inotify"][0]["container_id"] = "$(reboot)"
    assert "crictl" not in node.finding("KM401").remedy  # what an operator may copy


def test_a_pod_whose_name_is_known_is_told_by_it(node):
    node.used_up(
        holder(
            7,
            "app",
            100,
            pod_uid=POD,
            container_id="0" * 64,
            pod="shop/leaky-5f8c",
            container="main",
        )
    )
    found = node.finding("KM401")
    assert "app (pod shop/leaky-5f8c, container main) with 100" in found.summary
    assert "crictl" not in found.remedy
    assert POD not in found.summary


def test_a_few_that_are_left_are_not_enough_for_a_kubelet(node):
    node.used_up(opened=3)
    assert "=128 is nearly used up for root" in node.finding("KM402").summary
    assert "after 3 that were left: a kubelet that starts needs more" in node.said("KM402")


def test_without_a_walk_it_is_km402_and_that_nobody_looked_is_said(node):
    node.used_up().without_walk()
    assert node.present() == ["KM402"]
    assert node.verdict("KM401") == "not judged"
    assert (
        "who holds them was not looked at: the playbook too_many_open_files, or -e"
        " kubemend_deep=true, does" in node.said("KM402")
    )
    assert node.verdict("KM402", deep=False) == "present"
    node.without_walk("timeout")
    assert node.verdict("KM401") == "unknown"
    assert "could not be looked at (timeout)" in node.said("KM402")


@pytest.mark.parametrize("cut", [{"complete": False}, {"denied": 3}, {"denied": None}])
def test_a_walk_that_left_out_processes_clears_nobody(node, cut):
    node.walk.update(cut)
    assert (node.verdict("KM401"), node.verdict("KM402"), node.verdict("KM404")) == (
        "unknown",
        "clear",
        "unknown",
    )
    node.used_up(holder(7, instances=30))
    assert (node.verdict("KM401"), node.verdict("KM402")) == (
        "unknown",
        "present",
    )
    assert "not all processes could be looked at" in node.said("KM402")


def test_another_user_at_its_limit_by_count(node):
    node.walk["uids"] += [
        {"uid": 1000, "instances": 128, "watches": 5, "holders": 2},
        {"uid": 1001, "instances": 127, "watches": 0, "holders": 1},
    ]
    node.walk["inotify"] = [holder(9, "ide", 60, uid=1000), holder(10, "roots", 100)]
    found = node.finding("KM402")
    assert found.severity == "warning"
    facts(found.summary, "fs.inotify.max_user_instances=128", "used up", "uid 1000")
    assert (
        "processes of uid 1000 hold 128 inotify instances; what a process inherited counts for each"
        " of them" in node.said("KM402")
    )
    assert "roots" not in node.said("KM402")
    assert "ide: 60 instances" in node.said("KM402")
    node.walk["inotify"][0]["instances"] = 100
    assert node.present() == ["KM401"]
    assert node.finding("KM401").severity == "warning"


def test_several_users_are_one_finding_and_roots_comes_first(node):
    node.walk["uids"] = [
        {"uid": uid, "instances": 128, "watches": 0, "holders": 1} for uid in range(1000, 1008)
    ]
    node.used_up()
    found = node.finding("KM402")
    assert found.summary.endswith("for root, uid 1000, uid 1001, uid 1002, uid 1003 and 4 more")
    assert found.severity == "critical"


@pytest.mark.parametrize(
    "inotify",
    [
        {"instance": "untried", "watch": "untried", "uid": 0, "opened": 0},
        {"instance": "ENFILE", "watch": "ENOMEM", "uid": 0},
        {},
        None,
        [],
        "EMFILE",
        {"uid": 0, "opened": 8},
        {"instance": None, "watch": None, "uid": 1000},
        {"instance": None, "watch": None},
        {"instance": None, "watch": None, "uid": "0"},
        {"instance": [], "watch": {}, "uid": 0},
    ],
)
def test_where_root_could_not_try_nobody_can_tell(node, inotify):
    node.seen["inotify"] = inotify
    assert {node.verdict(code) for code in ("KM401", "KM402", "KM403")} == {"unknown"}


def test_what_root_could_have_is_not_used_up_whatever_was_counted(node):
    node.walk["uids"][0]["instances"] = 500  # inherited ones count for each process
    assert node.present() == []


def test_an_audit_without_root_tells_nothing_of_root(node):
    node.seen["inotify"]["uid"] = 1000
    assert {
        lack.status
        for item in node.result().verdicts
        if item.code == "KM402"
        for lack in item.missing
    } == {"denied"}
    node.used_up()
    assert node.finding("KM402").severity == "warning"
    assert node.finding("KM402").summary.endswith("used up for uid 1000")
    node.walk["uids"] = [{"uid": 0, "instances": 128, "watches": 0, "holders": 1}]
    assert node.finding("KM402").severity == "critical"
    assert node.finding("KM402").summary.endswith("used up for root, uid 1000")


@pytest.mark.parametrize("limit", [None, "-5", "many", 128])
def test_a_limit_that_is_not_known_is_not_reached_and_not_clear(node, limit):
    node.used_up()
    node.seen["kernel"][INSTANCES] = limit
    assert {node.verdict(code) for code in ("KM401", "KM402")} == {"unknown"}


def test_at_the_usual_limit_already_more_is_asked_for(node):
    node.used_up()
    node.seen["kernel"][INSTANCES] = "8192"
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 8192\n"))
    assert "it is 8192 already" in node.finding("KM402").remedy
    assert "-e kubemend_inotify_instances=NUMBER" in node.finding("KM402").remedy


@pytest.mark.parametrize(
    ("key", "line", "is_shown"),
    [
        (INSTANCES, "kubelet: inotify_init: too many open files", True),
        (INSTANCES, "write /x: no space left on device", False),
        (WATCHES, "kubelet: inotify_add_watch /x: No space left on device", True),
        (WATCHES, "write /x: no space left on device", False),
        (INSTANCES, "accept tcp 127.0.0.1:1: accept4: too many open files", False),
        (WATCHES, "write /var/lib/watch/x: no space left on device", False),
        (FILE_MAX, "open /etc/hosts: too many open files in system", True),
        (FILE_MAX, "open /x: too many open files", False),
    ],
)
def test_lines_of_the_log_that_speak_of_it_and_no_others(node, key, line, is_shown):
    node.put(
        "kubelet_log",
        {"lines": ["early: " + line, "something else", line, line + " again"]},
    )
    if key == INSTANCES:
        node.used_up()
    node.seen["inotify"].update({"watch": "ENOSPC"} if key == WATCHES else {})
    node.seen["file_nr"] = [800000, 800000] if key == FILE_MAX else [1, 800000]
    (found,) = node.result().findings
    assert [proof.text for proof in found.evidence if proof.kind == "log"] == (
        [line, line + " again"] if is_shown else []
    )
    for wrong in (7, "too many open files", None, {"a": 1}, [line, 7], [None, line]):
        node.put("kubelet_log", {"lines": wrong})
        assert not [proof for proof in node.result().findings[0].evidence if proof.kind == "log"]


# KM403 and KM405


def test_watches(node):
    node.seen["inotify"]["watch"] = "ENOSPC"
    node.walk["inotify"] = [
        holder(7, "few", 3, 10),
        holder(8, "many", 1, 40000, unit="many.service"),
    ]
    found = node.finding("KM403")
    assert node.present() == ["KM403"]
    assert found.component == WATCHES
    assert found.severity == "critical"
    facts(
        found.summary,
        "fs.inotify.max_user_watches=65536",
        "root",
        "many",
        "many.service",
        "40000",
    )
    facts(node.said("KM403").splitlines()[0], "inotify watch", "root", "ENOSPC")
    assert "many (many.service): 1 instance, 40000 watches" in node.said("KM403")
    assert [proof.pid for proof in found.evidence] == [
        None,
        8,
        7,
    ]
    assert "fs.inotify.max_user_watches=524288" in found.remedy
    node.seen["inotify"].update(instance="EMFILE", watch="untried")
    assert node.verdict("KM403") == "unknown"
    facts(node.note("KM403"), "inotify instance", "EMFILE", "KM402")


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ([94, 100], "clear"),
        ([95, 100], "present"),
        ([9223372036854775807, 9223372036854775807], "present"),
        (None, "unknown"),
        ([100, 0], "unknown"),
        ([-1, 100], "unknown"),
        (["100", "100"], "unknown"),
        ([100], "unknown"),
        ([True, True], "unknown"),
        ([10**400, 10**400], "unknown"),
        (7, "unknown"),
    ],
)
def test_file_handles(node, told, verdict):
    node.seen["file_nr"] = told
    assert node.verdict("KM405") == verdict


def test_who_has_so_many_files_open_can_be_seen(node):
    node.seen["file_nr"] = [990, 1000]
    found = node.finding("KM405")
    assert found.component == FILE_MAX
    facts(found.summary, "fs.file-max=1000", "used up")
    assert "990 file handles of 1000 are in use" in node.said("KM405")
    assert "the plan writes fs.file-max=2097152" in found.remedy
    assert "ls $p/fd" in found.remedy
    assert "not looked at" not in node.said("KM405")


# KM407


def test_overridden_by_a_later_file(node):
    node.seen["kernel"][INSTANCES] = "512"
    node.sysctl(
        (f"{SYSCTL}/99-kubernetes.conf", f"\n{INSTANCES} = 8192\n"), (CONF, f"{INSTANCES}=512\n")
    )
    node.seen["sysctl_files"].append(
        record(LINK, f"{INSTANCES}=512\n", kind="symlink", link="../sysctl.conf")
    )
    found = node.finding("KM407")
    facts(
        found.summary,
        INSTANCES,
        f"{SYSCTL}/99-kubernetes.conf:2",
        "8192",
        f"{LINK}:1",
        CONF,
        "512",
        "the kernel has 512",
    )
    assert node.said("KM407").splitlines() == [
        f"{SYSCTL}/99-kubernetes.conf:2 {INSTANCES} = 8192",
        f"{LINK}:1 {INSTANCES} = 512",
    ]
    facts(
        found.remedy,
        f"{INSTANCES} = 8192",
        "/etc/sysctl.d/99-zz-kubemend.conf",
        f"sysctl -w {INSTANCES}=8192",
    )
    assert (found.severity, found.component) == ("warning", INSTANCES)


def test_a_line_that_is_read_after_ours_is_named_with_what_it_must_read(node):
    node.seen["kernel"][INSTANCES] = "8192"
    node.sysctl(
        (f"{SYSCTL}/60-a.conf", f"{INSTANCES} = 8192\n"),
        (f"{SYSCTL}/99-zzz-local.conf", f"{INSTANCES} = 128\n"),
    )
    stated = (
        f"{SYSCTL}/99-zzz-local.conf:1",
        "/etc/sysctl.d/99-zz-kubemend.conf",
        "128",
        f"{INSTANCES} = 8192",
        "the plan",
    )
    facts(node.finding("KM407").remedy, *stated)
    node.seen["kernel"][INSTANCES] = "128"
    facts(node.finding("KM407").remedy, *stated, f"sysctl -w {INSTANCES}=8192")


def test_a_vendors_file_that_is_read_after_ours_is_for_somebodys_hand(node):
    node.seen["kernel"][INSTANCES] = "128"
    node.sysctl(
        (f"{SYSCTL}/60-a.conf", f"{INSTANCES} = 8192\n"),
        ("/usr/lib/sysctl.d/99-zzz.conf", f"{INSTANCES} = 128\n"),
    )
    remedy = node.finding("KM407").remedy
    facts(
        remedy,
        "/usr/lib/sysctl.d/99-zzz.conf:1",
        "/etc/sysctl.d/99-zz-kubemend.conf",
        "128",
        f"sysctl -w {INSTANCES}=8192",
    )
    assert "the plan" not in remedy


def test_a_vendors_file_is_there_to_be_overridden(node):
    node.seen["kernel"][PID_MAX] = "65536"
    assert node.sysctl((f"{SYSCTL}/60-a.conf", f"{PID_MAX} = 65536\n")).present() == []
    assert (
        node.sysctl((f"{SYSCTL}/50-b.conf", f"{PID_MAX} = 70000\n")).finding("KM407").component
        == PID_MAX
    )


def test_a_vendors_file_that_overrides_somebodys(node):
    node.seen["kernel"][WATCHES] = "1000"
    node.sysctl(
        (f"{SYSCTL}/10-a.conf", f"{WATCHES} = 524288\n"),
        ("/usr/lib/sysctl.d/90-b.conf", f"{WATCHES} = 1000\n"),
    )
    assert (
        "/usr/lib/sysctl.d/90-b.conf:1, which is read later, says 1000"
        in node.finding("KM407").summary
    )


def test_what_a_distribution_ships_is_nobodys_wish(node):
    """Debian's 50-pid-max.conf on a kernel that has less, as in a container."""
    node.seen["kernel"][PID_MAX] = "32768"
    assert node.verdict("KM407") == "clear"
    assert (
        node.sysctl((f"{SYSCTL}/60-ours.conf", "kernel.pid_max = 4194304\n")).verdict("KM407")
        == "present"
    )


def test_a_file_that_bounds_what_systemd_left_unbounded_is_a_wish(node):
    assert (
        node.sysctl((f"{SYSCTL}/60-ours.conf", "fs.file-max = 2097152\n")).verdict("KM407")
        == "clear"
    )
    node.seen["kernel"][FILE_MAX] = "4194304"
    assert node.verdict("KM407") == "present"


def test_an_exact_name_beats_a_pattern_that_is_read_later(node):
    node.seen["kernel"].update({INSTANCES: "256", WATCHES: "9000", EVENTS: "9000"})
    node.sysctl(
        (f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 256\n"),
        (f"{SYSCTL}/20-b.conf", "fs.inotify.* = 9000\n"),
    )
    (found,) = node.result().findings
    facts(
        found.summary,
        INSTANCES,
        f"{SYSCTL}/20-b.conf:1",
        "9000",
        f"{SYSCTL}/10-a.conf:1",
        "pattern",
        "256",
        "the kernel has 256",
    )


def test_more_runs_than_the_files_say(node):
    node.seen["kernel"][INSTANCES] = "8192"
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 512\n"))
    facts(
        node.finding("KM407").summary,
        INSTANCES,
        "the kernel has 8192",
        f"{SYSCTL}/10-a.conf:1",
        "512",
        "boot",
    )
    assert "sysctl -w" not in node.finding("KM407").remedy
    assert f"{INSTANCES} = 8192" in node.finding("KM407").remedy


def test_the_files_say_more_than_runs(node):
    node.sysctl((f"{SYSCTL}/10-a.conf", f"# for kind\n{INSTANCES} = 512\n"))
    found = node.finding("KM407")
    facts(
        found.summary,
        INSTANCES,
        f"{SYSCTL}/10-a.conf:2",
        "512",
        "the kernel has 128",
        "never loaded",
    )
    assert f"sysctl -w {INSTANCES}=512" in found.remedy


def test_more_than_the_kernels_default_and_no_file(node):
    node.seen["kernel"][INSTANCES] = "129"
    facts(
        node.finding("KM407").summary,
        INSTANCES,
        "the kernel has 129",
        "no file of sysctl.d",
        "128",
        "DaemonSet",
    )
    assert node.said("KM407") == "/proc/sys/fs/inotify/max_user_instances is 129"
    # whose default is a matter of memory
    node.seen["kernel"].update({INSTANCES: "128", WATCHES: "1048576"})
    assert node.present() == []


def test_sysctl_conf_without_a_link_is_nothing_at_boot(node):
    node.seen["kernel"].update({INSTANCES: "8192", WATCHES: "65536"})
    node.sysctl((CONF, f"{INSTANCES} = 8192\n{WATCHES} = 1\n"))
    (found,) = node.result().findings
    facts(
        found.summary,
        INSTANCES,
        f"{CONF}:1",
        "8192",
        "boot",
        "sysctl --system",
        "sysctl -p",
        "the kernel has 8192",
    )


@pytest.mark.parametrize("value", ["-1", "8192k", "", "99999999999", "0x", "1e9", "9" * 5000])
def test_a_value_that_the_kernel_refuses_is_none(node, value):
    assert node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = {value}\n")).present() == []


@pytest.mark.parametrize(
    "change",
    [
        {"sysctl_files": None},
        {"sysctl_files": [record(f"{SYSCTL}/10-a.conf", None, error="denied")]},
        {"sysctl_files": [record(SYSCTL, None, kind="directory", error="denied")]},
        {"kernel": None},
        {"kernel": {}},
        {"kernel": {INSTANCES: 8192}},
    ],
)
def test_settings_that_nobody_could_read_are_not_clear(node, change):
    node.seen["kernel"][INSTANCES] = "8192"
    node.seen.update(change)
    assert node.verdict("KM407") == "unknown"


def test_the_file_that_could_not_be_read_is_named(node):
    node.seen["sysctl_files"].append(record(f"{SYSCTL}/10-a.conf", None, error="denied"))
    facts(node.note("KM407"), f"{SYSCTL}/10-a.conf", "not be read")
    node.seen["sysctl_files"].pop()
    assert node.verdict("KM407") == "clear"
    node.put("limits", node.seen, truncated=True)
    assert node.verdict("KM407") == "unknown"
    facts(node.note("KM407"), "first hundred", "not be read")


# KM411


@pytest.mark.parametrize(
    ("threads", "pid_max", "most", "verdict"),
    [
        (700, "4194304", "127432", "clear"),
        (31129, "32768", "127432", "clear"),
        (31130, "32768", "127432", "present"),
        (121060, "4194304", "127432", "clear"),
        (121061, "4194304", "127432", "present"),
        (None, "32768", "127432", "unknown"),
        (700, None, "127432", "unknown"),
        (700, "32768", "much", "unknown"),
        (40000, "32768", None, "present"),
        ("700", "32768", "127432", "unknown"),
        (5, "0", "0", "unknown"),
    ],
)
def test_threads_against_the_less_of_what_the_machine_counts(node, threads, pid_max, most, verdict):
    node.seen["threads"] = threads
    node.seen["kernel"].update({PID_MAX: pid_max, "kernel.threads-max": most})
    assert node.verdict("KM411") == verdict


def test_process_ids_that_are_used_up_are_told_with_the_way_out(node):
    node.seen["threads"] = 32000
    node.seen["kernel"][PID_MAX] = "32768"
    found = node.finding("KM411")
    facts(found.summary, "32000 threads", "kernel.pid_max", "32768")
    assert (found.severity, found.risk, found.component) == (
        "critical",
        0,
        PID_MAX,
    )
    assert "sysctl -w kernel.pid_max=4194304" in found.remedy
    assert "/proc/sys/kernel/pid_max is 32768" in node.said("KM411")
    node.seen["kernel"].update({PID_MAX: "4194304", "kernel.threads-max": "30000"})
    assert "kernel.threads-max = 60000" in node.finding("KM411").remedy


def test_where_process_ids_cannot_be_higher_no_higher_number_is_offered(node):
    node.seen["threads"] = 4194000
    node.seen["kernel"].update({PID_MAX: "4194304", "kernel.threads-max": "8000000"})
    remedy = node.finding("KM411").remedy
    assert remedy.endswith(
        "podPidsLimit of the kubelet's configuration bounds a pod; kernel.pid_max cannot be higher"
    )
    assert "sysctl -w" not in remedy
