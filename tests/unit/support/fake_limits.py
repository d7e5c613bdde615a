# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose limits bound open files, for the tests.

What its collectors answer when all is well, and the changes that make it faulty.
"""

from __future__ import annotations

import copy

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import (
    EVENTS,
    FILE_MAX,
    INSTANCES,
    NR_OPEN,
    PID_MAX,
    WATCHES,
)

CODES = tuple(f"KM4{number:02}" for number in range(1, 12))
POD = "777870b5-c64f-42f5-9296-688b9dc212ba"
SYSCTL, CONF, LINK = "/etc/sysctl.d", "/etc/sysctl.conf", "/etc/sysctl.d/99-sysctl.conf"
LIMITS_D = "/etc/security/limits.d/90-app.conf"


def record(path, text, **more):
    return {
        "path": path,
        "name": path.rpartition("/")[2],
        "kind": "file",
        "link": None,
        "size": len(text or ""),
        "text": text,
        "truncated": False,
        "binary": False,
        "error": None,
        **more,
    }


def process(role="kubelet", pid=1, opened=200, nofile=(1000000, 1000000), **more):
    return {
        "pid": pid,
        "comm": role,
        "role": role,
        "uid": 0,
        "unit": f"{role}.service",
        "nofile": list(nofile),
        "open": opened,
        **more,
    }


def unit(name="kubelet.service", **more):
    return {
        "name": name,
        "active_state": "active",
        "sub_state": "running",
        "result": "success",
        "exec_main_status": 0,
        "fragment_path": f"/usr/lib/systemd/system/{name}",
        "drop_in_paths": [],
        "limit_nofile": [1024, 524288],
        "sets": [],
        **more,
    }


def holder(pid, comm="app", instances=0, watches=0, **more):
    return {
        "pid": pid,
        "comm": comm,
        "uid": 0,
        "unit": None,
        "pod_uid": None,
        "container_id": None,
        "instances": instances,
        "watches": watches,
        **more,
    }


def well():
    """Return a node of Debian 12 on which nothing is wrong."""
    return {
        "kernel": {
            FILE_MAX: "9223372036854775807",
            NR_OPEN: "1048576",
            INSTANCES: "128",
            WATCHES: "65536",
            EVENTS: "16384",
            PID_MAX: "4194304",
            "kernel.threads-max": "127432",
        },
        "file_nr": [4000, 9223372036854775807],
        "threads": 700,
        "inotify": {"instance": None, "opened": 8, "watch": None, "uid": 0},
        "init": {"nofile": [1048576, 1048576], "nproc": [63716, 63716], "cap_sys_resource": True},
        "processes": [
            process(),
            process(
                "runtime", 2, comm="containerd", unit="containerd.service", nofile=(524288, 524288)
            ),
        ],
        "units": [unit(), unit("containerd.service")],
        "sysctl_files": [record("/usr/lib/sysctl.d/50-pid-max.conf", "kernel.pid_max = 4194304\n")],
        "limits_files": [record("/etc/security/limits.conf", "# nothing\n")],
        "pam": [{"path": "/etc/pam.d/sshd", "line": 3, "text": "session required pam_limits.so"}],
    }


class Node:
    """w1, whose limits a test changes before it is judged."""

    def __init__(self, world):
        self.world, self.document = world, world.documents["w1"]
        self.seen = well()
        self.put("limits", self.seen)
        self.walk = {
            "processes": 90,
            "denied": 0,
            "complete": True,
            "uids": [{"uid": 0, "instances": 40, "watches": 300, "holders": 9}],
            "inotify": [],
            "nofile": [],
        }
        self.put("descriptors", self.walk)

    def put(self, name, data, status="ok", **more):
        self.document["collectors"][name] = {"status": status, "data": data, **more}

    def without_walk(self, status="not_asked"):
        self.put("descriptors", None, status)
        return self

    def used_up(self, *holders, opened=0):
        """Another instance cannot be had."""
        self.seen["inotify"].update(
            instance="EMFILE", opened=opened, watch=None if opened else "untried"
        )
        self.walk["inotify"] = list(holders)
        return self

    def sysctl(self, *files):
        self.seen["sysctl_files"] += [record(path, text) for path, text in files]
        return self

    def limits_d(self, text, path=LIMITS_D):
        self.seen["limits_files"].append(record(path, text))
        return self

    def result(self, **options):
        # A copy, as each audit has evidence of its own: what was read of a document is kept as long
        # as the document is the same.
        return fault_engine.evaluate(
            [copy.deepcopy(self.document)], frozenset(CODES), **{"deep": True, **options}
        )

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
        return "\n".join(
            f"{proof.path}:{proof.line} {proof.text}" if proof.path else str(proof.text)
            for proof in self.finding(code).evidence
        )


class Alone:
    """A worker and nothing else, for Hypothesis, which takes no fixture."""

    def __init__(self):
        self.documents = {
            "w1": {
                "schema": "kubemend.evidence/1",
                "host": "w1",
                "node": "w1",
                "cluster_key": "c0ffee" + "0" * 58,
                "status": "ok",
                "reason": "",
                "groups": ["node"],
                "collected_at": "2027-01-15T08:00:00Z",
                "collectors": {},
            }
        }


def full_of_faults(node):
    """Give the node every fault but KM402, so that every sentence is made."""
    node.used_up(holder(7, "leaky", 100, 65536, pod_uid=POD, container_id="c" * 64))
    node.walk["uids"].append({"uid": 1000, "instances": 4, "watches": 65536, "holders": 1})
    node.walk["nofile"] = [{"pid": 1000, "comm": "java", "uid": 0, "open": 9, "soft": 9, "hard": 9}]
    node.limits_d("* hard nofile 2000000\n")
    node.sysctl(
        (f"{SYSCTL}/10-a.conf", f"{INSTANCES} = 512\n"),
        (f"{SYSCTL}/20-b.conf", f"{INSTANCES} = 300\n"),
    )
    node.seen.update(file_nr=[9, 9], threads=127432)
    node.seen["units"][0].update(
        active_state="failed",
        exec_main_status=205,
        sets=[{"path": "/a", "line": 1, "text": "LimitNOFILE=3"}],
    )
    node.seen["units"][1]["limit_nofile"] = [-1, -1]
    node.put("kubelet_log", {"lines": ["too many open files"]})
    return node
