# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files make a kubelet start with another level, from the unit as evidence has it."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import systemd
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    kubelet_verbosity,
    restart_steps,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    outcome as capture_outcome,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture import (
    plan as capture_plan,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)

RUN = "20261121T090000Z-1a2b3c"
ENV = "/etc/kubernetes/kubelet.env"
KUBESPRAY = (
    'KUBE_LOGTOSTDERR="--logtostderr=true"\nKUBE_LOG_LEVEL="--v=2"\nKUBELET_ADDRESS="--node-ip=1'
    '0.0.0.1"\n\nKUBELET_ARGS="--config=/etc/kubernetes/kubelet-config.yaml'
    ' \\\n--x=y "\nKUBELET_CLOUDPROVIDER=""\n'
)


def record(path, text, **more):
    data = text.encode()
    return {
        "path": path,
        "size": len(data),
        "mtime": 1.0,
        "sha256": hashlib.sha256(data).hexdigest(),
        "text": text,
        "masked": [],
        "truncated": False,
        "binary": False,
        "error": None,
        **more,
    }


def with_unit(world, names, text=None, host="w1", behind=(), **more):
    """Give a host the evidence of a node with this unit.

    names: the variables of ExecStart, whose values come from the file
    text: the text of that file
    """
    values = systemd.environment_file(text or "")
    kubelet = world.data(host, "kubelet")
    kubelet["unit"] = {
        "name": "kubelet.service",
        "active_state": "active",
        "need_daemon_reload": False,
        "start_words": ["/usr/bin/kubelet", *(f"${name}" for name in names), *behind],
        "split_variables": [[name, values.get(name, "")] for name in names],
        "environment_files": [record(ENV, text)] if text else [],
        **more,
    }
    kubelet["process"] = {
        "pid": 7,
        "started_at": 2.0,
        "argv": ["kubelet"],
        "exe": "/usr/bin/kubelet",
        "exe_deleted": False,
    }


def made(world, allow=("capture_restart",)):
    documents = [*world.documents.values(), world.api]
    targets = [
        one
        for one in capture_plan.plan(RUN, documents, ("kubelet",), 4, 60).targets
        if one.on == "w1"
    ]
    return restart_steps.add(
        [(one, "it has no endpoint") for one in targets], documents, allow, RUN
    )


def files(step):
    return step["change"]["files"]


def test_kubesprays_variable_is_edited_where_it_is_set(world):
    with_unit(
        world,
        [
            "KUBE_LOGTOSTDERR",
            "KUBE_LOG_LEVEL",
            "KUBELET_ADDRESS",
            "KUBELET_ARGS",
            "KUBELET_CLOUDPROVIDER",
        ],
        KUBESPRAY,
    )
    (target,), refused = made(world)
    (one,) = files(target.step)
    ((begin, end, old, new),) = one["splices"]
    after = KUBESPRAY.encode()[:begin] + base64.b64decode(new) + KUBESPRAY.encode()[end:]
    assert refused == ()
    assert (target.host, target.on, target.former) == ("w1", "w1", 0)
    assert base64.b64decode(old) == b"2"
    assert after == KUBESPRAY.replace('"--v=2"', '"--v=4"').encode()
    assert (one["kind"], one["path"], target.step["change"]["reload"], target.step["target"]) == (
        "splice",
        ENV,
        False,
        ENV,
    )
    assert '-KUBE_LOG_LEVEL="--v=2"\n+KUBE_LOG_LEVEL="--v=4"\n' in target.step["diff"]
    assert target.step["expect"] == {
        "component": "kubelet",
        "restart": "unit",
        "level": 4,
        "pid": 7,
        "started_at": 2.0,
    }


def test_bytes_count_and_not_characters(world):
    text = "# Größe\nKUBE_LOG_LEVEL=--v 2\n"
    with_unit(world, ["KUBE_LOG_LEVEL"], text)
    (target,), _refused = made(world)
    begin, end, _old, _new = files(target.step)[0]["splices"][0]
    assert text.encode()[begin:end] == b"2"
    assert text.encode()[begin - 4 : begin] == b"--v "


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["KUBELET_ARGS"], KUBESPRAY),
        (["KUBE_LOG_LEVEL", "LATER"], 'KUBE_LOG_LEVEL="--v=2"\nLATER=--v=0\n'),
        (["KUBE_LOG_LEVEL"], "KUBE_LOG_LEVEL=\n"),
        (["KUBE_LOG_LEVEL"], 'KUBE_LOG_LEVEL="--v=2"\nKUBE_LOG_LEVEL="--alsologtostderr"\n'),
        (["KUBE_LOG_LEVEL"], None),
    ],
)
def test_where_that_variable_does_not_decide_a_drop_in_does(world, names, text):
    with_unit(world, names, text)
    (target,), _refused = made(world)
    assert [one["kind"] for one in files(target.step)] == ["create", "create"]
    assert target.step["change"]["reload"] is True
    assert target.step["change"]["path"] == "/run/systemd/system/kubelet.service.d/zz-kubemend.conf"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("", "--v=4"),
        ("--node-ip=10.0.0.1", "--node-ip=10.0.0.1 --v=4"),
        ("--a='b c' --d=\"e\"", "--a='b c' --d=\"e\" --v=4"),
        ("--p=$x\\n`", "--p=$x\\n` --v=4"),
    ],
)
def test_a_drop_in_gives_the_last_variable_its_value_and_the_level(world, value, written):
    with_unit(world, ["KUBELET_KUBEADM_ARGS", "KUBELET_EXTRA_ARGS"])
    world.data("w1", "kubelet")["unit"]["split_variables"][-1][1] = value
    (target,), _refused = made(world)
    environment, dropin = (base64.b64decode(one["data"]).decode() for one in files(target.step))
    assert "EnvironmentFile=-/run/kubemend/kubelet.env\n" in dropin
    assert dropin.count("\n[Service]\n") == 1
    assert RUN in dropin
    line = environment.splitlines()[1]
    assert line.startswith('KUBELET_EXTRA_ARGS="')
    assert line.endswith('"')
    assert (
        line[len('KUBELET_EXTRA_ARGS="') : -1]
        .replace("\\\\", "\0")
        .replace("\\", "")
        .replace("\0", "\\")
        == written
    )
    assert [one["mode"] for one in files(target.step)] == [
        "0600",
        "0644",
    ]
    assert "+KUBELET_EXTRA_ARGS=" in target.step["diff"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (
            lambda world: world.data("w1", "kubelet")["unit"].update(name="my-kubelet.service"),
            "does not run as kubelet.service",
        ),
        (
            lambda world: world.data("w1", "kubelet")["unit"].update(split_variables=[]),
            "has no variable for more arguments",
        ),
        (
            lambda world: world.data("w1", "kubelet")["unit"].pop("split_variables"),
            "has no variable for more arguments",
        ),
        (
            lambda world: world.data("w1", "kubelet")["unit"].update(split_variables=[["A", None]]),
            "its variable A holds a secret",
        ),
        (
            lambda world: world.data("w1", "kubelet")["unit"].update(need_daemon_reload=True),
            "pending_changes",
        ),
        (
            lambda world: world.data("w1", "kubelet")["process"].update(exe_deleted=True),
            "its program /usr/bin/kubelet was replaced",
        ),
        (
            lambda world: world.data("w1", "kubelet").update(healthz={"status": 500}),
            "is not healthy",
        ),
        (
            lambda world: world.data("w1", "kubelet")["unit"].update(
                environment_files=[record(ENV, "x", mtime=99.0)]
            ),
            "is newer than the process",
        ),
        (
            lambda world: world.documents["w1"]["collectors"].update(
                devices={"status": "ok", "data": {"running": ["uid-1"]}}
            ),
            "pods with devices run on w1 (uid-1)",
        ),
        (
            lambda world: world.documents["w1"]["collectors"].update(
                devices={"status": "ok", "data": {"running": ["uid-1"], "names": ["default/job-1"]}}
            ),
            "pods with devices run on w1 (default/job-1)",
        ),
        (
            lambda world: world.documents["w1"]["collectors"].update(
                devices={"status": "ok", "data": {"checkpoint": {"error": "it is empty"}}}
            ),
            "cannot be read: whether pods with devices run there is not known",
        ),
    ],
)
def test_what_forbids_it_is_said_before(world, change, word):
    with_unit(world, ["KUBELET_EXTRA_ARGS"])
    change(world)
    found, (why,) = made(world)
    assert found == ()
    assert word in why
    assert why.startswith("kubelet of w1 stays at level 0: it has no endpoint; ")


def test_a_level_behind_the_variables_counts(world):
    with_unit(world, ["KUBE_LOG_LEVEL"], KUBESPRAY, behind=["--v=1"])
    found, (why,) = made(world)
    assert found == ()
    assert "its ExecStart sets the level behind the variable KUBE_LOG_LEVEL" in why


@pytest.mark.parametrize(
    "unit_",
    [
        ["x"],
        "x",
        {"name": "kubelet.service", "split_variables": "xy"},
        {"name": "kubelet.service", "split_variables": [1]},
    ],
)
def test_evidence_of_another_shape_is_refused_for_its_host_alone(world, unit_):
    with_unit(world, ["KUBELET_EXTRA_ARGS"])
    world.data("w1", "kubelet")["unit"] = unit_
    documents = [*world.documents.values(), world.api]
    plan = capture_plan.plan(RUN, documents, ("kubelet",), 4, 60)
    assert {target.on for target in plan.targets} == set(world.documents) - {"w1"}
    (note,) = [note for note in plan.notes if note.startswith("kubelet of w1 ")]
    assert "unit" in note
    assert made(world) == ((), ())


def test_what_the_operator_lifts_is_lifted(world):
    with_unit(world, ["KUBELET_EXTRA_ARGS"], need_daemon_reload=True)
    world.documents["w1"]["collectors"]["devices"] = {
        "status": "ok",
        "data": {"running": ["uid-1"]},
    }
    (target,), _refused = made(world, ("capture_restart", "kubelet_restart", "pending_changes"))
    assert target.step["guard"]["allow"] == [
        "capture_restart",
        "kubelet_restart",
        "pending_changes",
    ]


def test_a_masked_place_is_not_edited(world):
    with_unit(world, ["KUBE_LOG_LEVEL"], KUBESPRAY)
    begin = KUBESPRAY.index("--v=2")
    world.data("w1", "kubelet")["unit"]["environment_files"][0]["masked"] = [[begin, begin + 5]]
    found, (why,) = made(world)
    assert found == ()
    assert f"{ENV}: a secret stands at the place to change" in why


def test_the_collectors_variables_are_those_of_a_real_unit():
    block = {
        "ExecStart": ["{ path=/k ; argv[]=/k $A ${B} $C x$$y ; ignore_errors=no }"],
        "EnvironmentFiles": ["/e (ignore_errors=yes)"],
    }
    assert systemd.split_variables(block) == ["A", "C"]
    assert systemd.environment_paths(block) == ["/e"]
    assert kubelet_verbosity.VARIABLE == "KUBE_LOG_LEVEL"


PLAY = f"""
- hosts: localhost
  gather_facts: false
  tasks:
    - kubemend.remediation.log_level: {{state: planned, report_dir: "{{{{ item.folder }}}}",
        run_id: {RUN}, components: [kubelet]}}
      loop: "{{{{ runs }}}}"
    - kubemend.remediation.log_level: {{state: shown, report_dir: "{{{{ item.folder }}}}",
        run_id: {RUN}, allow: "{{{{ item.allow }}}}"}}
      loop: "{{{{ runs }}}}"
      ignore_errors: true
      register: shown
    - kubemend.remediation.log_level: {{state: reported, report_dir: "{{{{ runs[1].folder }}}}",
        run_id: {RUN}}}
      ignore_errors: true
      register: reported
    - ansible.builtin.copy: {{content: "{{{{ (shown.results + [reported]) | to_json }}}}",
        dest: "{{{{ runs[0].folder }}}}/results.json"}}
"""


def test_a_capture_that_devices_forbid_is_refused_and_not_bad_input(world, operator):
    """It is refused by the evidence before it begins, or by the node at the last moment.

    The result and the report say the same of it.
    """
    with_unit(world, ["KUBELET_EXTRA_ARGS"])
    world.documents["w1"]["collectors"]["devices"] = {
        "status": "ok",
        "data": {"running": ["uid-1"], "names": ["default/job-1"]},
    }
    real, devices = "level:kubelet/w1", "pods with devices run on w1 (default/job-1)"
    runs = [
        {"folder": str(operator.folder / name), "allow": ["capture_restart", *more]}
        for name, more in (("before", ()), ("later", ("kubelet_restart",)))
    ]
    for one in runs:
        for name, document in (("w1", world.documents["w1"]), ("a.cluster", world.api)):
            operator.write(f"{one['folder']}/evidence/{name}.json", json.dumps(document))
        capture_outcome.note(
            one["folder"],
            "m1",
            capture_outcome.PROBED,
            "ok",
            "",
            {"targets": [{"real": real, "state": "absent", "reason": "it is off"}]},
        )
        capture_outcome.note(
            one["folder"],
            "w1",
            capture_outcome.RAISED,
            "ok",
            "",
            {"targets": [{"real": real, "state": "refused", "reason": devices}]},
        )
        capture_outcome.note(
            one["folder"], "w1", capture_outcome.RESTORED, "ok", "", {"targets": []}
        )
        run_cluster_lock.note(one["folder"], run_cluster_lock.Held("m1", None, "ok", True, RUN))
    done = operator.run(
        str(operator.write("play.yml", PLAY)), "-e", json.dumps({"runs": runs}), inventory=None
    )
    assert done.rc == 0, done.output
    before, goes, later = json.loads((operator.folder / "before" / "results.json").read_text())
    # what forbids it is nothing but the devices
    assert goes["hosts"] == ["w1"]
    assert "exit_reason" not in goes
    assert f"kubelet of w1 stays at level 0: it is off; {devices}" in before["msg"]
    assert f"the level of kubelet of w1 was not raised: {devices}" in later["msg"]
    for found, name in ((before, "before"), (later, "later")):
        written = json.loads((operator.folder / name / "report.json").read_text())
        assert found["failed"]
        assert found["exit_reason"] == "refused"
        assert (
            written["mode"],
            written["exit_code"],
            written["exit_reason"],
            written["capture"]["lines"],
        ) == ("capture", 2, "refused", 0)
        assert devices in (operator.folder / name / "report.txt").read_text()
