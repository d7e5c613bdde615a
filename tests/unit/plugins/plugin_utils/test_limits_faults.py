# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Too many open files: KM401 to KM410, what each is and is not, what is said of it, and what nobody can tell."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.kubemend.remediation.plugins.plugin_utils import judge, node_limits
from ansible_collections.kubemend.remediation.plugins.plugin_utils.node_limits import EVENTS, FILE_MAX, INSTANCES, NR_OPEN, PID_MAX, WATCHES
from hypothesis import given, settings
from hypothesis import strategies as st

CODES = tuple(f"KM4{number:02}" for number in range(1, 11))
POD = "777870b5-c64f-42f5-9296-688b9dc212ba"
SYSCTL, CONF, LINK = "/etc/sysctl.d", "/etc/sysctl.conf", "/etc/sysctl.d/99-sysctl.conf"
LIMITS_D = "/etc/security/limits.d/90-app.conf"


def record(path, text, **more):
    return {"path": path, "name": path.rpartition("/")[2], "kind": "file", "link": None, "size": len(text or ""), "text": text, "truncated": False,
            "binary": False, "error": None, **more}


def process(role="kubelet", pid=1, opened=200, nofile=(1000000, 1000000), **more):
    return {"pid": pid, "comm": role, "role": role, "uid": 0, "unit": f"{role}.service", "nofile": list(nofile), "open": opened, **more}


def unit(name="kubelet.service", **more):
    return {"name": name, "active_state": "active", "sub_state": "running", "result": "success", "exec_main_status": 0, "fragment_path": None,
            "drop_in_paths": [], "limit_nofile": [1024, 524288], "sets": [], **more}


def holder(pid, comm="app", instances=0, watches=0, **more):
    return {"pid": pid, "comm": comm, "uid": 0, "unit": None, "pod_uid": None, "container_id": None, "instances": instances, "watches": watches, **more}


def well():
    """A node of Debian 12 on which nothing is wrong."""
    return {"kernel": {FILE_MAX: "9223372036854775807", NR_OPEN: "1048576", INSTANCES: "128", WATCHES: "65536", EVENTS: "16384", PID_MAX: "4194304",
                       "kernel.threads-max": "127432"},
            "file_nr": [4000, 9223372036854775807], "threads": 700, "inotify": {"instance": None, "opened": 8, "watch": None, "uid": 0},
            "init": {"nofile": [1048576, 1048576], "nproc": [63716, 63716], "cap_sys_resource": True},
            "processes": [process(), process("runtime", 2, comm="containerd", unit="containerd.service", nofile=(524288, 524288))],
            "units": [unit(), unit("containerd.service")],
            "sysctl_files": [record("/usr/lib/sysctl.d/50-pid-max.conf", "kernel.pid_max = 4194304\n")],
            "limits_files": [record("/etc/security/limits.conf", "# nothing\n")],
            "pam": [{"path": "/etc/pam.d/sshd", "line": 3, "text": "session required pam_limits.so"}]}


class Node:
    """w1, whose limits a test changes before it is judged."""

    def __init__(self, world):
        self.world, self.document = world, world.documents["w1"]
        self.seen = well()
        self.put("limits", self.seen)
        self.walk = {"processes": 90, "denied": 0, "complete": True, "uids": [{"uid": 0, "instances": 40, "watches": 300, "holders": 9}], "inotify": [],
                     "nofile": []}
        self.put("descriptors", self.walk)

    def put(self, name, data, status="ok", **more):
        self.document["collectors"][name] = {"status": status, "data": data, **more}

    def without_walk(self, status="not_asked"):
        self.put("descriptors", None, status)
        return self

    def used_up(self, *holders, opened=0):
        """Another instance cannot be had."""
        self.seen["inotify"].update(instance="EMFILE", opened=opened, watch=None if opened else "untried")
        self.walk["inotify"] = list(holders)
        return self

    def sysctl(self, *files):
        self.seen["sysctl_files"] += [record(path, text) for path, text in files]
        return self

    def limits_d(self, text, path=LIMITS_D):
        self.seen["limits_files"].append(record(path, text))
        return self

    def result(self, **options):
        return judge.judge([self.document], frozenset(CODES), **{"deep": True, **options})

    def verdict(self, code, **options):
        found = {item.code: item.verdict for item in self.result(**options).verdicts}
        return found.get(code, "not judged")

    def note(self, code):
        return next(item.note for item in self.result().verdicts if item.code == code)

    def present(self):
        return [item.code for item in self.result().findings]

    def finding(self, code):
        (found,) = [item for item in self.result().findings if item.code == code]
        return found

    def said(self, code):
        return "\n".join(f"{proof.path}:{proof.line} {proof.text}" if proof.path else str(proof.text) for proof in self.finding(code).evidence)


class Alone:
    """A worker and nothing else, for Hypothesis, which takes no fixture."""

    def __init__(self):
        self.documents = {"w1": {"schema": "kubemend.evidence/1", "host": "w1", "node": "w1", "cluster_key": "c0ffee" + "0" * 58, "status": "ok", "reason": "",
                                 "groups": ["node"], "collected_at": "2027-01-15T08:00:00Z", "collectors": {}}}


@pytest.fixture
def node(world):
    return Node(world)


def test_a_node_that_is_well(node):
    assert node.present() == []
    assert {code: node.verdict(code) for code in CODES} == {**dict.fromkeys(CODES, "clear"), "KM408": "not_applicable"}


# KM401 and KM402


def test_one_process_holds_more_than_half(node):
    node.used_up(holder(7, "leaky", 66, 3, unit="leaky.service"), holder(8, "small", 9))
    found = node.finding("KM401")
    assert node.verdict("KM402") == "not_applicable" and node.note("KM402") == "one process holds most of them: KM401"
    assert found.summary == "fs.inotify.max_user_instances=128 is used up on w1 for root, most of them by leaky (leaky.service) with 66"
    assert (found.severity, found.component, found.risk) == ("critical", INSTANCES, 1)
    assert "leaky (leaky.service): 66 instances, 3 watches" in node.said("KM401") and [one.pid for one in found.evidence] == [None, 7, 8]
    assert found.remedy.startswith("find out why leaky (leaky.service) holds so many, and restart it when it leaks")
    assert "the plan writes fs.inotify.max_user_instances=8192" in found.remedy and "kubemend_inotify_instances=NUMBER" in found.remedy


def test_half_of_them_is_not_most_of_them(node):
    node.used_up(holder(7, "one", 64), holder(8, "two", 63))
    assert node.present() == ["KM402"] and node.verdict("KM401") == "clear"
    found = node.finding("KM402")
    assert found.summary == "fs.inotify.max_user_instances=128 is used up on w1 for root" and found.severity == "critical"
    assert node.said("KM402").startswith("another inotify instance could not be made by root (EMFILE)\none: 64 instances")
    assert found.remedy.startswith("raise it: the plan writes")


def test_the_pod_of_a_process_can_be_found(node):
    node.used_up(holder(7, "app", 100, pod_uid=POD, container_id="0123456789abcdef" * 4))
    assert "crictl inspect 0123456789ab names its pod" in node.finding("KM401").remedy
    assert f"app (pod {POD}, container 0123456789ab)" in node.finding("KM401").summary
    node.walk["inotify"][0]["container_id"] = "$(reboot)"
    assert "crictl" not in node.finding("KM401").remedy  # what an operator may copy


def test_a_few_that_are_left_are_not_enough_for_a_kubelet(node):
    node.used_up(opened=3)
    assert "=128 is nearly used up on w1 for root" in node.finding("KM402").summary
    assert "after 3 that were left: a kubelet that starts needs more" in node.said("KM402")


def test_without_a_walk_it_is_km402_and_that_nobody_looked_is_said(node):
    node.used_up().without_walk()
    assert node.present() == ["KM402"] and node.verdict("KM401") == "not judged"
    assert "who holds them was not looked at: the playbook too_many_open_files, or -e kubemend_deep=true, does" in node.said("KM402")
    assert node.verdict("KM402", deep=False) == "present"
    node.without_walk("timeout")
    assert node.verdict("KM401") == "unknown" and "could not be looked at (timeout)" in node.said("KM402")


@pytest.mark.parametrize("cut", [{"complete": False}, {"denied": 3}, {"denied": None}])
def test_a_walk_that_left_out_processes_clears_nobody(node, cut):
    node.walk.update(cut)
    assert (node.verdict("KM401"), node.verdict("KM402"), node.verdict("KM404")) == ("unknown", "clear", "unknown")
    node.used_up(holder(7, instances=30))
    assert (node.verdict("KM401"), node.verdict("KM402")) == ("unknown", "present") and "not all processes could be looked at" in node.said("KM402")


def test_another_user_at_its_limit_by_count(node):
    node.walk["uids"] += [{"uid": 1000, "instances": 128, "watches": 5, "holders": 2}, {"uid": 1001, "instances": 127, "watches": 0, "holders": 1}]
    node.walk["inotify"] = [holder(9, "ide", 60, uid=1000), holder(10, "roots", 100)]
    found = node.finding("KM402")
    assert found.severity == "warning" and found.summary == "fs.inotify.max_user_instances=128 is used up on w1 for uid 1000"
    assert "processes of uid 1000 hold 128 inotify instances; what a process inherited counts for each of them" in node.said("KM402")
    assert "roots" not in node.said("KM402") and "ide: 60 instances" in node.said("KM402")
    node.walk["inotify"][0]["instances"] = 100
    assert node.present() == ["KM401"] and node.finding("KM401").severity == "warning"


def test_several_users_are_one_finding_and_roots_comes_first(node):
    node.walk["uids"] = [{"uid": uid, "instances": 128, "watches": 0, "holders": 1} for uid in range(1000, 1008)]
    node.used_up()
    found = node.finding("KM402")
    assert found.summary.endswith("for root, uid 1000, uid 1001, uid 1002, uid 1003 and 4 more") and found.severity == "critical"


@pytest.mark.parametrize("inotify", [
    {"instance": "untried", "watch": "untried", "uid": 0, "opened": 0}, {"instance": "ENFILE", "watch": "ENOMEM", "uid": 0}, {}, None, [], "EMFILE",
    {"uid": 0, "opened": 8}, {"instance": None, "watch": None, "uid": 1000}, {"instance": None, "watch": None},
    {"instance": None, "watch": None, "uid": "0"}, {"instance": [], "watch": {}, "uid": 0},
])
def test_where_root_could_not_try_nobody_can_tell(node, inotify):
    node.seen["inotify"] = inotify
    assert {node.verdict(code) for code in ("KM401", "KM402", "KM403")} == {"unknown"}


def test_what_root_could_have_is_not_used_up_whatever_was_counted(node):
    node.walk["uids"][0]["instances"] = 500  # inherited ones count for each process
    assert node.present() == []


def test_an_audit_without_root_tells_nothing_of_root(node):
    node.seen["inotify"]["uid"] = 1000
    assert {lack.status for item in node.result().verdicts if item.code == "KM402" for lack in item.missing} == {"denied"}
    node.used_up()
    assert node.finding("KM402").severity == "warning" and node.finding("KM402").summary.endswith("on w1 for uid 1000")
    node.walk["uids"] = [{"uid": 0, "instances": 128, "watches": 0, "holders": 1}]
    assert node.finding("KM402").severity == "critical" and node.finding("KM402").summary.endswith("on w1 for root, uid 1000")


@pytest.mark.parametrize("limit", [None, "-5", "many", 128])
def test_a_limit_that_is_not_known_is_not_reached_and_not_clear(node, limit):
    node.used_up()
    node.seen["kernel"][INSTANCES] = limit
    assert {node.verdict(code) for code in ("KM401", "KM402")} == {"unknown"}


def test_at_the_usual_limit_already_more_is_asked_for(node):
    node.used_up()
    node.seen["kernel"][INSTANCES] = "8192"
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 8192\n"))
    assert "it is 8192 already" in node.finding("KM402").remedy and "-e kubemend_inotify_instances=NUMBER" in node.finding("KM402").remedy


@pytest.mark.parametrize(("key", "line", "is_shown"), [
    (INSTANCES, "kubelet: inotify_init: too many open files", True), (INSTANCES, "write /x: no space left on device", False),
    (WATCHES, "kubelet: inotify_add_watch /x: No space left on device", True), (WATCHES, "write /x: no space left on device", False),
    (FILE_MAX, "open /x: too many open files in system", True), (FILE_MAX, "open /x: too many open files", False),
])
def test_lines_of_the_log_that_speak_of_it_and_no_others(node, key, line, is_shown):
    node.put("kubelet_log", {"lines": ["early: " + line, 7, None, "something else", line, line + " again"]})
    if key == INSTANCES:
        node.used_up()
    node.seen["inotify"].update({"watch": "ENOSPC"} if key == WATCHES else {})
    node.seen["file_nr"] = [100, 100] if key == FILE_MAX else [1, 100]
    (found,) = node.result().findings
    assert [proof.text for proof in found.evidence if proof.kind == "log"] == ([line, line + " again"] if is_shown else [])
    for wrong in (7, "too many open files", None, {"a": 1}):
        node.put("kubelet_log", {"lines": wrong})
        assert not [proof for proof in node.result().findings[0].evidence if proof.kind == "log"]


# KM403 and KM405


def test_watches(node):
    node.seen["inotify"]["watch"] = "ENOSPC"
    node.walk["inotify"] = [holder(7, "few", 3, 10), holder(8, "many", 1, 40000, unit="many.service")]
    found = node.finding("KM403")
    assert node.present() == ["KM403"] and found.component == WATCHES and found.severity == "critical"
    assert found.summary == "fs.inotify.max_user_watches=65536 is used up on w1 for root, most of them by many (many.service) with 40000"
    assert node.said("KM403").splitlines()[0] == "another inotify watch could not be made by root (ENOSPC)"
    assert [proof.pid for proof in found.evidence] == [None, 8, 7] and "fs.inotify.max_user_watches=524288" in found.remedy
    node.seen["inotify"]["watch"] = "untried"  # there was no instance to try it with
    assert node.verdict("KM403") == "unknown"


@pytest.mark.parametrize(("told", "verdict"), [
    ([94, 100], "clear"), ([95, 100], "present"), ([9223372036854775807, 9223372036854775807], "present"), (None, "unknown"), ([100, 0], "unknown"),
    ([-1, 100], "unknown"), (["100", "100"], "unknown"), ([100], "unknown"), ([True, True], "unknown"), ([10 ** 400, 10 ** 400], "unknown"), (7, "unknown"),
])
def test_file_handles(node, told, verdict):
    node.seen["file_nr"] = told
    assert node.verdict("KM405") == verdict


def test_who_has_so_many_files_open_can_be_seen(node):
    node.seen["file_nr"] = [990, 1000]
    found = node.finding("KM405")
    assert (found.summary, found.component) == ("fs.file-max=1000 is used up on w1", FILE_MAX) and "990 file handles of 1000 are in use" in node.said("KM405")
    assert "the plan writes fs.file-max=2097152" in found.remedy and "ls $p/fd" in found.remedy and "not looked at" not in node.said("KM405")


# KM404


@pytest.mark.parametrize(("opened", "nofile", "verdict"), [
    (94, (100, 4096), "clear"), (95, (100, 4096), "present"), (200, (100, 4096), "present"), (5000000, (-1, -1), "clear"), (0, (0, 0), "clear"),
    (-1, (-1, -1), "clear"), (None, (100, 100), "unknown"), (99, None, "unknown"), ("99", (100, 100), "unknown"), (99, ("100", "100"), "unknown"),
    (10 ** 400, (10 ** 400, -1), "unknown"),
])
def test_a_process_at_its_soft_limit(node, opened, nofile, verdict):
    node.seen["processes"][0] = {**process(), "open": opened, "nofile": nofile and list(nofile)}
    assert node.verdict("KM404") == verdict


def test_kubelet_and_runtime_are_critical_and_others_are_not(node):
    other = {"pid": 50, "comm": "java", "uid": 0, "unit": None, "pod_uid": POD, "container_id": "c" * 64, "open": 1024, "soft": 1024, "hard": -1}
    node.walk["nofile"] = [other, {**other, "pid": 51, "open": 1}]
    found = node.finding("KM404")
    assert found.severity == "warning" and found.summary == f"java (pod {POD}, container cccccccccccc) of w1 has 1024 of 1024 files open"
    assert "soft limit 1024, hard limit unlimited" in node.said("KM404")
    assert "ls -l /proc/50/fd" in found.remedy and "the limit that its runtime gives the container" in found.remedy
    node.seen["processes"][1].update(open=1000, nofile=[1024, 4096])
    found = node.finding("KM404")
    assert found.severity == "critical" and "a drop-in with LimitNOFILE= (systemctl edit containerd.service)" in found.remedy
    assert found.summary == "containerd (containerd.service) of w1 has 1000 of 1024 files open, and 1 other process likewise"
    for unit_ in (None, "a; reboot.service", "session-1.scope"):
        node.seen["processes"][1]["unit"] = unit_
        assert node.finding("KM404").remedy.endswith("the limit that whoever starts it gives it (of a login: limits.conf)")
    node.seen["processes"][0].update(open=1000, nofile=[1024, 4096])
    assert "maxOpenFiles" in node.finding("KM404").remedy and "2 other processes" in node.finding("KM404").summary


def test_a_process_that_both_collectors_saw_is_one(node):
    node.seen["processes"][0].update(open=99, nofile=[100, 100])
    node.walk["nofile"] = [{"pid": 1, "comm": "kubelet", "uid": 0, "open": 99, "soft": 100, "hard": 100}]
    assert len(node.finding("KM404").evidence) == 1


def test_without_an_answer_of_systemd_nothing_of_units_is_clear(node):
    node.seen.update(units=None, processes=[])
    node.limits_d("* hard nofile 1048576\n")
    assert {node.verdict(code) for code in ("KM404", "KM408", "KM409", "KM410")} == {"unknown"}


# KM406


@pytest.mark.parametrize(("text", "cap", "verdict"), [
    ("* hard nofile 1048576\n", True, "clear"), ("* hard nofile 1048577\n", True, "present"), ("* - nofile 1048577\n", True, "present"),
    ("* soft nofile 1048577\n", True, "clear"),  # is lowered to the hard one
    ("* hard nproc 99999999\n", True, "clear"), ("* hard nofile many\n", True, "clear"),
    ("* hard nofile 1048577\n* hard nofile 65536\n", True, "clear"),  # the last one counts
    ("root hard nofile 1048577\nroot -\n", True, "clear"),  # and the exempt have none
    ("* hard nofile 65537\n", False, "present"), ("* hard nofile 65536\n", False, "clear"), ("* hard nofile 65537\n", True, "clear"),
    ("* hard nofile unlimited\n", False, "present"), ("* hard nofile 65537\n", None, "unknown"),
])
def test_limits_that_lock_everybody_out(node, text, cap, verdict):
    node.limits_d(text)
    node.seen["init"] = {"nofile": [1024, 65536], "nproc": [1, 1], "cap_sys_resource": cap}
    assert node.verdict("KM406") == verdict


def test_whose_ceiling_it_is_and_where_the_lines_are(node):
    node.limits_d("# app\n* hard nofile 2000000\n@dba - nofile 3000000\nroot hard nofile 4096\n")
    found = node.finding("KM406")
    assert found.summary == "w1 refuses logins of everybody (*; on Debian and Ubuntu not root), @dba: nofile 2000000 is above 1048576 (fs.nr_open)"
    assert found.severity == "critical" and found.risk == 0
    assert node.said("KM406").splitlines() == [f"{LIMITS_D}:2 * hard nofile 2000000", f"{LIMITS_D}:3 @dba - nofile 3000000",
                                               "/etc/pam.d/sshd:3 session required pam_limits.so"]
    assert found.remedy == "keep the session that is open, set these to 1048576 or less there, and try a second login before the first one is closed"
    node.seen["init"].update(cap_sys_resource=False, nofile=[1024, 4096])
    assert "is above 4096 (the hard limit of PID 1, which has no CAP_SYS_RESOURCE)" in node.finding("KM406").summary
    node.seen["kernel"][NR_OPEN] = "2048"  # bounds everybody
    assert "is above 2048 (fs.nr_open)" in node.finding("KM406").summary


def test_what_a_distribution_ships_is_nobodys_wish(node):
    """Debian's 50-pid-max.conf on a kernel that has less, as in a container."""
    node.seen["kernel"][PID_MAX] = "32768"
    assert node.verdict("KM407") == "clear"
    assert node.sysctl((f"{SYSCTL}/60-ours.conf", "kernel.pid_max = 4194304\n")).verdict("KM407") == "present"


def test_a_file_that_bounds_what_systemd_left_unbounded_is_a_wish(node):
    assert node.sysctl((f"{SYSCTL}/60-ours.conf", "fs.file-max = 2097152\n")).verdict("KM407") == "clear"
    node.seen["kernel"][FILE_MAX] = "4194304"
    assert node.verdict("KM407") == "present"


def test_no_limit_at_all_depends_on_the_version(node):
    node.limits_d("* hard nofile unlimited\n")
    found = node.finding("KM406")
    assert found.severity == "warning" and found.summary.endswith("is above 1048576 (fs.nr_open), where its pam_limits is older than 1.5.2")


@pytest.mark.parametrize(("distribution", "value", "severity"), [
    ("debian", "2000000", "warning"), ("ubuntu", "2000000", "warning"), ("debian", "unlimited", "info"), ("rhel", "2000000", "critical"),
    (None, "2000000", "critical"),
    (["debian"], "2000000", "critical")])
def test_where_pam_limits_passes_over_what_the_kernel_refuses(node, distribution, value, severity):
    node.document["collectors"]["system"]["data"]["os_release"] = {"id": distribution}
    found = node.limits_d(f"* hard nofile {value}\n").finding("KM406")
    assert found.severity == severity and ("refuses logins" in found.summary) is (severity == "critical")
    assert ("passed over" in found.summary) is (severity != "critical") and "1048576" in found.remedy


@pytest.mark.parametrize(("change", "verdict"), [
    ({"pam": []}, "not_applicable"), ({"pam": [{"path": "/etc/pam.d/x", "line": 1, "text": "session optional pam_limits.so"}]}, "not_applicable"),
    ({"pam": None}, "unknown"), ({"init": None}, "unknown"), ({"init": {"nofile": [1, 1], "cap_sys_resource": None}}, "unknown"),
    ({"init": {"nofile": None, "cap_sys_resource": False}}, "unknown"), ({"kernel": {}}, "unknown"), ({"limits_files": None}, "unknown"),
    ({"limits_files": [record(LIMITS_D, None, error="denied")]}, "unknown"),
    ({"limits_files": [record("/etc/security/limits.d", None, kind="directory", error="denied")]}, "unknown"),
    ({"limits_files": [record(LIMITS_D, "* hard nofile 5\n", truncated=True)]}, "unknown"),
    ({"limits_files": [record(LIMITS_D, None, error="denied")], "pam": []}, "not_applicable"), ({"init": None, "pam": []}, "not_applicable"),
])
def test_what_nobody_can_tell_of_logins(node, change, verdict):
    node.seen.update(change)
    assert node.verdict("KM406") == verdict


def test_a_file_that_was_not_read_is_named_and_hides_no_other(node):
    node.seen["limits_files"].append(record("/etc/security/limits.d/10.conf", None, error="denied"))
    assert node.note("KM406") == "/etc/security/limits.d/10.conf could not be read"
    assert node.limits_d("* hard nofile 2000000\n").verdict("KM406") == "present"


# KM407


def test_overridden_by_a_later_file(node):
    node.seen["kernel"][INSTANCES] = "512"
    node.sysctl((f"{SYSCTL}/99-kubernetes.conf", f"\n{INSTANCES} = 8192\n"), (CONF, f"{INSTANCES}=512\n"))
    node.seen["sysctl_files"].append(record(LINK, f"{INSTANCES}=512\n", kind="symlink", link="../sysctl.conf"))
    found = node.finding("KM407")
    assert found.summary == (f"{INSTANCES} of w1: {SYSCTL}/99-kubernetes.conf:2 says 8192, and {LINK}:1 ({CONF}), which is read later, says 512; "
                             "the kernel has 512 now")
    assert node.said("KM407").splitlines() == [f"{SYSCTL}/99-kubernetes.conf:2 {INSTANCES} = 8192", f"{LINK}:1 {INSTANCES} = 512"]
    assert found.remedy == (f"write {INSTANCES} = 8192 where nothing overrides it: the plan does, in /etc/sysctl.d/99-zz-kubemend.conf, and tells the "
                            f"kernel (by hand, until the next boot: sysctl -w {INSTANCES}=8192)")
    assert (found.severity, found.component) == ("warning", INSTANCES)


def test_a_vendors_file_is_there_to_be_overridden(node):
    node.seen["kernel"][PID_MAX] = "65536"
    assert node.sysctl((f"{SYSCTL}/60-a.conf", f"{PID_MAX} = 65536\n")).present() == []
    assert node.sysctl((f"{SYSCTL}/50-b.conf", f"{PID_MAX} = 70000\n")).finding("KM407").component == PID_MAX


def test_a_vendors_file_that_overrides_somebodys(node):
    node.seen["kernel"][WATCHES] = "1000"
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{WATCHES} = 524288\n"), ("/usr/lib/sysctl.d/90-b.conf", f"{WATCHES} = 1000\n"))
    assert "/usr/lib/sysctl.d/90-b.conf:1, which is read later, says 1000" in node.finding("KM407").summary


def test_an_exact_name_beats_a_pattern_that_is_read_later(node):
    node.seen["kernel"].update({INSTANCES: "256", WATCHES: "9000", EVENTS: "9000"})
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 256\n"), (f"{SYSCTL}/20-b.conf", "fs.inotify.* = 9000\n"))
    (found,) = node.result().findings
    assert found.summary == (f"{INSTANCES} of w1: {SYSCTL}/20-b.conf:1 says 9000, and {SYSCTL}/10-a.conf:1, which names it without a pattern, says 256; "
                             "the kernel has 256 now")


def test_more_runs_than_the_files_say(node):
    node.seen["kernel"][INSTANCES] = "8192"
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 512\n"))
    assert node.finding("KM407").summary == f"{INSTANCES} of w1: the kernel has 8192, and {SYSCTL}/10-a.conf:1 brings it back to 512 at the next boot"
    assert "sysctl -w" not in node.finding("KM407").remedy and f"write {INSTANCES} = 8192" in node.finding("KM407").remedy


def test_the_files_say_more_than_runs(node):
    node.sysctl((f"{SYSCTL}/10-a.conf", f"# for kind\n{INSTANCES} = 512\n"))
    found = node.finding("KM407")
    assert found.summary == (f"{INSTANCES} of w1: {SYSCTL}/10-a.conf:2 says 512, and the kernel has 128: it was never loaded, or something lowered it since")
    assert f"sysctl -w {INSTANCES}=512" in found.remedy


def test_more_than_the_kernels_default_and_no_file(node):
    node.seen["kernel"][INSTANCES] = "129"
    assert node.finding("KM407").summary == (f"{INSTANCES} of w1: the kernel has 129, and no file of sysctl.d says so: a reboot brings back 128, unless "
                                             "something else raises it again (tuned, a DaemonSet, a script)")
    assert node.said("KM407") == "/proc/sys/fs/inotify/max_user_instances is 129"
    node.seen["kernel"].update({INSTANCES: "128", WATCHES: "1048576"})  # whose default is a matter of memory
    assert node.present() == []


def test_sysctl_conf_without_a_link_is_nothing_at_boot(node):
    node.seen["kernel"].update({INSTANCES: "8192", WATCHES: "65536"})
    node.sysctl((CONF, f"{INSTANCES} = 8192\n{WATCHES} = 1\n"))
    (found,) = node.result().findings
    assert found.summary == (f"{INSTANCES} of w1: {CONF}:1 says 8192, which nothing reads at boot (sysctl --system and sysctl -p do); the kernel has 8192 now")


@pytest.mark.parametrize("value", ["-1", "8192k", "", "99999999999", "0x", "1e9", "9" * 5000])
def test_a_value_that_the_kernel_refuses_is_none(node, value):
    assert node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = {value}\n")).present() == []


@pytest.mark.parametrize("change", [
    {"sysctl_files": None}, {"sysctl_files": [record(f"{SYSCTL}/10-a.conf", None, error="denied")]},
    {"sysctl_files": [record(SYSCTL, None, kind="directory", error="denied")]}, {"kernel": None}, {"kernel": {}}, {"kernel": {INSTANCES: 8192}},
])
def test_settings_that_nobody_could_read_are_not_clear(node, change):
    node.seen["kernel"][INSTANCES] = "8192"
    node.seen.update(change)
    assert node.verdict("KM407") == "unknown"


def test_the_file_that_could_not_be_read_is_named(node):
    node.seen["sysctl_files"].append(record(f"{SYSCTL}/10-a.conf", None, error="denied"))
    assert node.note("KM407") == f"{SYSCTL}/10-a.conf could not be read"
    node.seen["sysctl_files"].pop()
    assert node.verdict("KM407") == "clear"
    node.put("limits", node.seen, truncated=True)
    assert node.verdict("KM407") == "unknown" and node.note("KM407") == "what is behind the first hundred files could not be read"


# KM408


@pytest.mark.parametrize(("text", "hard", "verdict"), [
    ("* hard nofile 65536\n", 4096, "present"), ("root - nofile 65536\n", 4096, "present"), ("* hard nofile unlimited\n", 4096, "present"),
    ("* hard nofile 4096\n", 4096, "clear"), ("* hard nofile 65536\n", -1, "clear"), ("* soft nofile 65536\n", 4096, "not_applicable"),
    ("bob hard nofile 65536\n", 4096, "not_applicable"), ("* hard nofile 65536\n* hard nofile 1024\n", 4096, "clear"), ("", 4096, "not_applicable"),
])
def test_limits_conf_is_for_logins(node, text, hard, verdict):
    node.limits_d(text)
    node.seen["processes"][1]["nofile"] = [1024, hard]
    assert node.verdict("KM408") == verdict


def test_a_kubelet_sets_its_own(node):
    node.limits_d("* hard nofile 1048576\n")
    node.seen["processes"][1]["nofile"] = [-1, -1]
    assert node.verdict("KM408") == "clear"
    node.seen["processes"][0]["nofile"] = [4096, 4096]
    found = node.finding("KM408")
    assert found.severity == "info" and found.summary == f"{LIMITS_D} of w1 says 1048576, and kubelet (kubelet.service) has 4096: it is for logins only"
    assert node.said("KM408").splitlines() == [f"{LIMITS_D}:1 * hard nofile 1048576", "kubelet (kubelet.service): hard limit 4096"]
    assert "maxOpenFiles" in found.remedy and "drop-in with LimitNOFILE=" in found.remedy


def test_limits_conf_that_could_not_be_read(node):
    node.seen["limits_files"] = [record("/etc/security/limits.conf", None, error="denied")]
    assert node.verdict("KM408") == "unknown"


# KM409 and KM410


def test_a_unit_that_cannot_start(node):
    dropin = "/etc/systemd/system/kubelet.service.d/90-limits.conf"
    node.seen["units"][0].update(active_state="activating", result="exit-code", exec_main_status=205,
                                 sets=[{"path": dropin, "line": 2, "text": "LimitNOFILE=9999999"}, {"path": dropin, "line": 3, "text": "Nice=1"}])
    found = node.finding("KM409")
    assert found.summary == "kubelet.service of w1 cannot start: a limit of the unit is above what it can have (205/LIMITS)" and found.severity == "critical"
    assert node.said("KM409").splitlines() == ["activating, exit-code, status=205/LIMITS", f"{dropin}:2 LimitNOFILE=9999999"]
    assert found.remedy == ("set LimitNOFILE= to 1048576 (fs.nr_open) or less in the file that is named, then systemctl daemon-reload and systemctl restart "
                            "kubelet.service")
    node.seen["units"][0]["sets"] = None
    assert "in the file where systemctl cat kubelet.service shows it" in node.finding("KM409").remedy
    node.seen["init"] = None
    assert "what PID 1 itself has (/proc/1/limits)" in node.finding("KM409").remedy
    node.seen["units"][1].update(active_state="failed", exec_main_status=205)
    assert node.finding("KM409").summary.startswith("kubelet.service and containerd.service of w1 cannot start")
    for one in node.seen["units"]:
        one["active_state"] = "active"
    assert node.verdict("KM409") == "clear"


def test_a_runtime_without_a_limit(node):
    own = "/usr/lib/systemd/system/containerd.service"
    node.seen["units"][1].update(limit_nofile=[1024, -1], sets=[{"path": own, "line": 9, "text": "LimitNOFILE=infinity"}])
    found = node.finding("KM410")
    assert found.summary == "containerd.service of w1 runs with LimitNOFILE=infinity, and so do its containers" and found.severity == "info"
    assert node.said("KM410") == f"{own}:9 LimitNOFILE=infinity" and found.remedy.startswith("nothing has to be done")
    assert node.verdict("KM410", deep=False) == "not judged"
    node.seen["units"].append(unit("docker.service", limit_nofile=[-1, -1]))
    assert node.finding("KM410").summary.startswith("containerd.service and docker.service")
    assert [proof.object for proof in node.finding("KM410").evidence] == [None, "docker.service"]


@pytest.mark.parametrize(("units", "verdict"), [
    ([], "not_applicable"), ([unit(limit_nofile=[-1, -1])], "not_applicable"),
    ([unit("crio.service", active_state="failed", limit_nofile=[-1, -1])], "not_applicable"),
    ([unit("crio.service", limit_nofile=None)], "unknown"), ([unit("crio.service", limit_nofile=[True, -1])], "unknown"), ({}, "unknown"),
])
def test_runtimes_that_are_none_and_those_nobody_knows_of(node, units, verdict):
    node.seen["units"] = units
    assert node.verdict("KM410") == verdict


# Who did not answer


@pytest.mark.parametrize("status", ["error", "denied", "timeout"])
def test_a_collector_that_failed_clears_nothing(node, status):
    node.put("limits", None, status)
    assert {code: node.verdict(code) for code in CODES} == dict.fromkeys(CODES, "unknown")
    assert all({(lack.collector, lack.status) for lack in item.missing} == {("limits", status)} for item in node.result().verdicts)


@pytest.mark.parametrize("data", [None, [], "x", 7, {}])
def test_an_answer_that_is_none_clears_nothing(node, data):
    node.put("limits", data)
    assert {code: node.verdict(code) for code in CODES} == dict.fromkeys(CODES, "unknown")
    node.put("limits", well())
    node.put("descriptors", data)
    assert (node.verdict("KM401"), node.verdict("KM404"), node.verdict("KM402")) == ("unknown", "unknown", "clear")


def test_a_host_that_did_not_answer_is_unknown(world):
    world.silence("w1")
    found = {item.code: (item.verdict, [lack.status for lack in item.missing]) for item in world.judge(deep=True).verdicts
             if item.host == "w1" and item.code in CODES}
    assert found == dict.fromkeys(CODES, ("unknown", ["unreachable"]))


def test_a_host_that_was_left_out_is_not_judged(world):
    for name in world.documents:
        world.silence(name, "not_asked")
    result = world.judge(deep=True)
    assert not [item for item in result.verdicts if item.code in CODES] and {
        item.reason for item in result.not_judged if item.code in CODES} == {"limit"} and {item.code for item in result.not_judged} >= set(CODES)


def test_older_evidence_has_none_of_it(world):
    for document in world.documents.values():
        for name in ("limits", "descriptors"):
            del document["collectors"][name]
    result = world.judge(deep=True)
    assert not [item for item in result.verdicts if item.code in CODES]
    assert {(item.code, item.reason) for item in result.not_judged if item.code in CODES} == {(code, "tier") for code in CODES}


def test_a_plain_audit_judges_what_it_can(world):
    node = Node(world).without_walk()
    assert {code: node.verdict(code, deep=False) for code in ("KM401", "KM402", "KM404", "KM410")} == {
        "KM401": "not judged", "KM402": "clear", "KM404": "clear", "KM410": "not judged"}


# What nobody foresaw

WRONG = [None, True, -1, 10 ** 400, 1.5, "x" * 5000, [], ["x", [None, {}]], {"name": 3}, [{"pid": 1, "path": []}]]
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4), max_leaves=9)


def places(value, path=()):
    """Every place that holds something, as a path of keys."""
    found = [path]
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found += places(value[key], (*path, key))
    return found


def spoiled(whole, path, wrong):
    if not path:
        return wrong
    found = whole
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = copy.deepcopy(wrong)
    return whole


def full_of_faults(node):
    """Every fault but KM402, so that every sentence is made."""
    node.used_up(holder(7, "leaky", 100, 65536, pod_uid=POD, container_id="c" * 64))
    node.walk["uids"].append({"uid": 1000, "instances": 4, "watches": 65536, "holders": 1})
    node.walk["nofile"] = [{"pid": 1000, "comm": "java", "uid": 0, "open": 9, "soft": 9, "hard": 9}]
    node.limits_d("* hard nofile 2000000\n")
    node.sysctl((f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 512\n"), (f"{SYSCTL}/20-b.conf", f"{INSTANCES} = 300\n"))
    node.seen["file_nr"] = [9, 9]
    node.seen["units"][0].update(active_state="failed", exec_main_status=205, sets=[{"path": "/a", "line": 1, "text": "LimitNOFILE=3"}])
    node.seen["units"][1]["limit_nofile"] = [-1, -1]
    node.put("kubelet_log", {"lines": ["too many open files"]})
    return node


def is_judged(node):
    """A shape that nobody foresaw would cost the host all its verdicts; here none may."""
    result = node.result()
    (row,) = result.hosts
    assert row.status == "ok", row.reason
    assert {item.code for item in result.verdicts} | {item.code for item in result.not_judged} == set(CODES)
    assert all(isinstance(text, str) and len(text) < 2000 for item in result.findings for text in (item.summary, item.remedy))


def test_every_sentence_is_made(node):
    assert set(full_of_faults(node).present()) == set(CODES) - {"KM402"}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
def test_one_wrong_value_costs_no_verdict(node, wrong):
    full_of_faults(node)
    seen, walk = node.seen, node.walk
    for path in places(seen):
        node.put("limits", spoiled(copy.deepcopy(seen), path, wrong))
        is_judged(node)
    node.put("limits", seen)
    for path in places(walk):
        node.put("descriptors", spoiled(copy.deepcopy(walk), path, wrong))
        is_judged(node)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_arbitrary_data_costs_no_verdict(data):
    node = full_of_faults(Node(Alone()))
    if data.draw(st.booleans()):
        node.put("limits", data.draw(JSON))
        node.put("descriptors", data.draw(JSON))
    for name, whole in (("limits", node.seen), ("descriptors", node.walk)):
        if node.document["collectors"][name]["data"] is whole:
            node.put(name, spoiled(whole, data.draw(st.sampled_from(places(whole))), data.draw(JSON)))
    is_judged(node)


@pytest.mark.parametrize(("value", "number"), [(7, 7), (0, 0), (-1, -1), (-2, None), (True, None), ("7", None), (7.0, None), (1 << 64, None), (None, None)])
def test_a_number_of_a_node(value, number):
    assert node_limits.number(value) == number
