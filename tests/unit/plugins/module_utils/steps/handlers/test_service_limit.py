# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""More open files for a service.

A drop-in in a folder of the test, a process that really runs, and a systemd that is made up.
"""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given, strategies

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import limits
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    login_limit,
    service_limit,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    files,
    procfs,
)
from tests.unit.support.facts import facts

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
APP, GROUP = "app.service", "/system.slice/app.service"
OURS = service_limit.HEADER + b"[Service]\nLimitNOFILE=%d\n"
SLEEPS = (
    "import resource, sys, time; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 60)); print(1,"
    " flush=True); time.sleep(600)"
)


class Node:
    """A process of app.service, whose group and PID 1 are files of the test.

    Its limits are the kernel's.
    """

    def __init__(self, path, monkeypatch, pid):
        self.folder, self.proc, self.pid, self.root = (
            path / (APP + ".d"),
            path / "proc",
            pid,
            str(path / "kubemend"),
        )
        self.path = self.folder / limits.OURS
        self.block = {
            "Id": [APP],
            "LoadState": ["loaded"],
            "ActiveState": ["active"],
            "ControlGroup": [GROUP],
            "DropInPaths": [""],
        }
        self.group(f"0::{GROUP}\n")
        self.init, self.kernel = (
            {
                "nofile": [1024, 1000],
                "nproc": [1, 1],
                "cap_sys_resource": True,
            },
            {"fs.nr_open": "1048576"},
        )
        monkeypatch.setattr(login_limit.limits, "init", lambda: self.init)
        monkeypatch.setattr(login_limit.limits, "kernel", lambda: self.kernel)
        monkeypatch.setattr(
            service_limit.systemd, "show", lambda names, properties: {APP: self.block}
        )
        monkeypatch.setattr(service_limit.SetServiceLimit, "proc", str(self.proc))

    def group(self, own, first="0::/init.scope\n"):
        for pid, text in ((self.pid, own), (1, first)):
            folder = self.proc / str(pid)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup").write_text(text)
        for name in ("stat", "limits"):
            if not (self.proc / str(self.pid) / name).is_symlink():
                (self.proc / str(self.pid) / name).symlink_to(f"/proc/{self.pid:d}/{name}")

    def has(self):
        return procfs.rlimit(files.text(f"/proc/{self.pid:d}/limits", 8192, ""), "Max open files")

    def step(self, line="50", soft=50, hard=60, **more):
        one = dict(
            {"pid": self.pid, "ticks": procfs.ticks(self.pid), "soft": soft, "hard": hard}, **more
        )
        return {
            "id": "01-raise",
            "host": "w1",
            "remedy": "unit_limit",
            "code": ["KM404"],
            "target": str(self.path),
            "guard": {"allow": []},
            "change": {
                "kind": "unit_limit",
                "path": str(self.path),
                "unit": APP,
                "line": line,
                "processes": [one],
            },
        }

    def do(self, step=None, run_id=RUN, **more):
        return step_executor.work(
            dict(
                {
                    "run_id": run_id,
                    "root": self.root,
                    "lock": None,
                    "check": False,
                    "step": step or self.step(),
                },
                **more,
            )
        )

    def forget(self):
        """Recover as if the program had been killed before it wrote how the step ended."""
        path = Path(self.root) / "journal" / RUN / "proof-01-raise.json"
        path.write_text(json.dumps(dict(json.loads(path.read_text()), state="awaited", by={})))
        return step_executor.work(
            {
                "run_id": NEXT,
                "root": self.root,
                "lock": None,
                "step": {"id": "recover", "host": "w1", "remedy": "recover", "expect": {}},
            }
        )


@pytest.fixture
def node(tmp_path, monkeypatch):
    with subprocess.Popen([sys.executable, "-c", SLEEPS], stdout=subprocess.PIPE) as begun:
        begun.stdout.readline()
        yield Node(tmp_path, monkeypatch, begun.pid)
        begun.kill()


def test_written_and_the_process_told(node):
    answer = node.do()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert node.path.read_bytes() == OURS % 50
    assert node.path.stat().st_mode & 0o777 == 0o644
    assert node.has() == [50, 60]
    assert answer["seen"] == {
        "line": "50",
        "running": [
            {"pid": node.pid, "ticks": procfs.ticks(node.pid), "former": [20, 60], "now": [50, 60]}
        ],
    }


def test_what_a_told_process_starts_has_its_limit_without_any_restart(tmp_path, monkeypatch):
    """The test proves that no restart is needed.

    A service's first process gets the limit while it runs, and then makes a worker.
    """
    begins = (
        "import os, resource, sys; resource.setrlimit(7, (20, 60)); print(1, flush=True);"
        " sys.stdin.readline(); "
    )
    worker = "os.fork() or os.execvp('sh', ['sh', '-c', 'ulimit -Sn; ulimit -Hn']); os.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", begins + worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as begun:
        begun.stdout.readline()
        node = Node(tmp_path, monkeypatch, begun.pid)
        ticks = procfs.ticks(begun.pid)
        assert node.has() == [20, 60]
        assert node.do()["state"] == "done"
        assert begun.communicate(b"\n")[0].split() == [b"50", b"60"]
        assert ticks
        assert begun.returncode == 0


def test_nothing_is_lowered(node):
    assert node.do(node.step(soft=10, hard=10))["state"] == "done"
    assert node.has() == [20, 60]


def test_a_unit_that_gives_as_much_needs_no_file(node):
    assert node.do(node.step(line=None))["state"] == "done"
    assert node.has() == [50, 60]
    assert not node.folder.exists()


@pytest.mark.parametrize("line", [None, "50"])
def test_what_the_kernel_refuses_counts_from_the_next_start(node, monkeypatch, line):
    def refuse(pid, what, pair=None):
        raise PermissionError(1, "Operation not permitted")

    import resource

    monkeypatch.setattr(resource, "prlimit", refuse)
    answer = node.do(node.step(line=line))
    assert answer["state"] == ("done" if line else "refused")
    assert "keeps its limit until its unit is started again" in answer["reason"]
    assert node.has() == [20, 60]
    assert node.path.exists() == (line is not None)


def test_a_python_without_prlimit(node, monkeypatch):
    monkeypatch.setitem(
        sys.modules, "resource", types.SimpleNamespace(RLIMIT_NOFILE=7, RLIM_INFINITY=-1)
    )
    assert node.do()["state"] == "done"
    assert node.has() == [20, 60]
    assert node.path.exists()


def test_a_limit_that_the_kernel_does_not_keep_is_not_believed(node, monkeypatch):
    import resource

    monkeypatch.setattr(resource, "prlimit", lambda *dummy: (20, 60))
    answer = node.do(node.step(line=None))
    assert answer["state"] == "refused"
    assert "it has [20, 60]" in answer["reason"]


def test_a_process_that_nobody_may_tell(node):
    answer = node.do(node.step(soft=None, hard=None))
    assert answer["state"] == "done"
    assert "needs CAP_SYS_RESOURCE" in answer["reason"]
    assert node.has() == [20, 60]


def test_a_process_that_may_use_select_is_not_told(node):
    answer = node.do(node.step(soft=None, hard=None, select=True))
    assert answer["state"] == "done"
    assert "it may use select()" in answer["reason"]
    assert node.has() == [20, 60]
    assert node.path.exists()


@pytest.mark.parametrize(
    ("own", "first", "block"),
    [
        ("0::/system.slice/docker-{}.scope{}\n".format("ab" * 32, GROUP), "0::/init.scope\n", {}),
        (f"0::{GROUP}2\n", "0::/init.scope\n", {}),
        (f"0::{GROUP}\n", "0::/outer/init.scope\n", {}),
        ("", "0::/init.scope\n", {}),
        (f"0::{GROUP}\n", "", {}),
        (f"0::{GROUP}\n", "0::/init.scope\n", {"ControlGroup": [""]}),
        (f"0::{GROUP}\n", "0::/init.scope\n", {"ControlGroup": ["/"]}),
    ],
)
def test_a_process_that_is_none_of_the_unit_is_left_alone(node, own, first, block):
    node.group(own, first)
    node.block.update(block)
    answer = node.do()
    assert answer["state"] == "refused"
    assert "the evidence is old" in answer["reason"]
    assert node.has() == [20, 60]
    assert not node.folder.exists()


@pytest.mark.parametrize(
    ("own", "first"),
    [
        (f"0::{GROUP}/sub\n", "0::/init.scope\n"),
        (f"0::/outer{GROUP}\n", "0::/outer/init.scope\n"),
        (f"0::{GROUP}\n", "0::/\n"),
        (
            f"5:pids:/other\n1:name=systemd:{GROUP}\n0::/x\n",
            "5:pids:/\n1:name=systemd:/init.scope\n0::/\n",
        ),
    ],
)
def test_groups_as_systemd_counts_them(node, own, first):
    node.group(own, first)
    assert node.do()["state"] == "done"


def test_a_later_process_of_its_number_is_not_told(node):
    answer = node.do(node.step(ticks=5))
    assert answer["state"] == "refused"
    assert node.has() == [20, 60]
    assert not node.folder.exists()
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize(
    ("line", "init", "kernel", "said"),
    [
        ("2000000", {}, {}, "LimitNOFILE=2000000 is above 1048576 (fs.nr_open)"),
        (
            "5000:infinity",
            {"cap_sys_resource": False},
            {},
            "is above 1000 (the hard limit of PID 1",
        ),
        ("50", {"cap_sys_resource": None}, {}, "it is unknown how"),
        ("50", {}, {"fs.nr_open": ""}, "it is unknown how"),
        ("5\nExecStart=/x", {}, {}, "it is unknown how"),
    ],
)
def test_refused_at_the_last_moment(node, line, init, kernel, said):
    node.init.update(init)
    node.kernel.update(kernel)
    answer = node.do(node.step(line=line))
    assert answer["state"] == "refused"
    assert said in answer["reason"]
    assert not node.folder.exists()
    assert node.has() == [20, 60]


def test_a_dropin_that_is_read_later_is_named(node, tmp_path):
    other = tmp_path / "zz.conf"
    other.write_text("[Service]\nLimitNOFILE=9\n")
    node.block["DropInPaths"] = [str(other)]
    answer = node.do()
    assert answer["state"] == "refused"
    assert f"{other}:2 is read after our file and says LimitNOFILE=9" in answer["reason"]
    assert not node.folder.exists()
    other.write_text("[Service]\nRestart=always\n")
    assert node.do(run_id=NEXT)["state"] == "done"


@pytest.mark.parametrize("state", ["not-found", "masked", "error"])
def test_no_such_unit(node, state):
    node.block["LoadState"] = [state]
    assert node.do()["state"] == "refused"
    assert not node.folder.exists()


def test_a_systemd_that_does_not_answer(node, monkeypatch):
    def silent(names, properties):
        raise command.CommandError("it took 5 s")

    monkeypatch.setattr(service_limit.systemd, "show", silent)
    assert "does not say what app.service is" in node.do()["reason"]
    assert not node.folder.exists()


@pytest.mark.parametrize(
    ("unit", "path"),
    [
        ("b.service", None),
        ("a b.service", None),
        (None, None),
        (APP, "/etc/passwd"),
        (APP, "/x/b.service.d/" + limits.OURS),
    ],
)
def test_nothing_else_is_written(node, unit, path):
    step = node.step()
    step["change"].update(unit=unit, path=path or str(node.path))
    assert "is no unit whose limit is written here" in node.do(step)["reason"]
    assert not node.folder.exists()


def test_what_else_our_file_holds_stays(node):
    node.folder.mkdir()
    node.path.write_text("[Unit]\nA=b\n[Service]\nLimitNOFILE=5\nLimitNPROC=7")
    assert node.do()["state"] == "done"
    assert node.path.read_text() == "[Unit]\nA=b\n[Service]\nLimitNPROC=7\nLimitNOFILE=50\n"


def test_a_file_that_is_none_is_left(node):
    node.path.mkdir(parents=True)
    assert node.do()["state"] == "refused"
    assert step_record.unproven(node.root) == []
    assert node.has() == [20, 60]


@pytest.mark.parametrize(
    ("written", "told"), [(True, "have it"), (False, "nothing of it was written")]
)
def test_killed_before_its_end_was_written(node, written, told):
    node.do()
    if not written:
        node.path.unlink()
    answer = node.forget()
    assert answer["state"] == "done"
    assert told in answer["reason"]
    assert step_record.unproven(node.root) == []


def test_under_the_lock_of_its_run_once_and_never_in_check_mode(node):
    assert node.do(check=True)["state"] == "skipped"
    assert not Path(node.root).exists()
    assert not node.folder.exists()
    assert node.has() == [20, 60]
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    assert node.do(lock={"controller": None, "seconds": 60})["state"] == "refused"
    assert not node.folder.exists()
    node_lock.release(NEXT, root=node.root)
    node.do()
    node.path.unlink()
    assert node.do()["state"] == "done"
    assert not node.path.exists()


def back(node, by, *allow):
    done = revert_run.reverted(
        {"run_id": by, "reverts": RUN, "root": node.root, "lock": None, "allow": list(allow)}
    )
    assert done["error"] is None
    return [(one["result"], one["reason"]) for one in done["paths"]]


def test_a_revert_takes_the_file_and_leaves_the_running_limit_until_it_may_lower_it(node):
    node.do()
    file, running = back(node, NEXT)
    assert file == ("restored", None)
    assert not node.path.exists()
    assert node.has() == [50, 60]
    result, reason = running
    assert result == "kept"
    facts(
        reason,
        "[50, 60]",
        "[20, 60]",
        f"-e kubemend_run_id={RUN} -e kubemend_allow=revert_runtime",
    )
    assert back(node, "20261121T110000Z-aaaaaa", "revert_runtime")[1:] == [("restored", None)]
    assert node.has() == [20, 60]
    assert len(back(node, "20261121T120000Z-aaaaaa", "revert_runtime")) == 1


def test_what_was_interrupted_and_resumed_is_lowered_too(node):
    node.do()
    path = Path(node.root) / "journal" / RUN / "proof-01-raise.json"
    path.write_text(
        json.dumps(
            {key: value for key, value in json.loads(path.read_text()).items() if key != "seen"}
        )
    )
    assert node.forget()["state"] == "done"
    assert node.has() == [50, 60]
    assert back(node, NEXT)[1][0] == "kept"
    assert node.has() == [50, 60]
    assert back(node, "20261121T110000Z-aaaaaa", "revert_runtime")[1:] == [("restored", None)]
    assert node.has() == [20, 60]


def test_a_process_that_ended_has_nothing_to_lower(node):
    node.do()
    os.kill(node.pid, 9)
    os.waitpid(node.pid, 0)
    assert len(back(node, NEXT, "revert_runtime")) == 1


@given(
    strategies.lists(
        strategies.one_of(
            strategies.binary(max_size=20),
            strategies.sampled_from(
                [b"[Service]", b" LimitNOFILE = 7", b"LimitNOFILE=9", b"[Unit]", b"# c"]
            ),
        ),
        max_size=8,
    ).map(b"\n".join)
)
def test_whatever_the_file_holds_our_limit_is_its_last_and_in_its_section(present):
    made = service_limit.merged(present, "50")
    assert service_limit.merged(made, "50") == made
    assert made.endswith(b"LimitNOFILE=50\n")
    assert [row for row in made.splitlines() if row.strip().startswith(b"[")][
        -1
    ].strip() == b"[Service]"


def test_groups_that_are_strange():
    assert service_limit.within(2**22 + 1, GROUP) is False
    with pytest.raises(preconditions.PreconditionFailed):
        service_limit._require_settable("", None, "", "w1")


def test_a_process_that_cannot_be_looked_at_is_not_said_to_have_ended(node, monkeypatch):
    step = node.step()
    monkeypatch.setattr(service_limit, "nofile", lambda *dummy: None)
    answer = node.do(step)
    assert answer["state"] == "done"
    assert (
        "keeps its limit until its unit is started again (what it has cannot be read)"
        in answer["reason"]
    )
    assert node.path.read_bytes() == OURS % 50
    assert node.has() == [20, 60]


def test_a_later_process_that_got_its_number_meanwhile_keeps_its_limit(node):
    """Between the guards and the telling, where the number may have gone to anybody."""
    one = dict(node.step()["change"]["processes"][0], ticks=procfs.ticks(node.pid) - 1)
    seen, refused = service_limit.run([one], str(node.proc))
    assert seen == []
    assert refused == [f"process {node.pid:d} has ended"]
    assert node.has() == [20, 60]


def test_a_file_that_was_written_and_not_committed_is_no_step_that_was_not_done(node, monkeypatch):
    def broken(*dummy):
        raise ChangeError("it holds its new bytes, but that cannot be committed", changed=True)

    monkeypatch.setattr(service_limit.managed_file, "write", broken)
    answer = node.do()
    assert answer["state"] == "failed"
    assert "cannot be committed" in answer["reason"]
    assert node.has() == [20, 60]
    assert step_record.read(RUN, "01-raise", node.root)["state"] == "failed"


def test_a_systemd_that_knows_nothing_of_the_unit(node, monkeypatch):
    monkeypatch.setattr(service_limit.systemd, "show", lambda names, properties: {})
    answer = node.do()
    assert answer["state"] == "refused"
    assert "has no unit app.service that could be started" in answer["reason"]
    assert not node.folder.exists()
