# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that its CPU manager's state keeps down is drained and reset, and then really pins.

What cannot be drained is not reset without consent.
"""

from __future__ import annotations

import json
import os

import pytest

from tests.lab.cluster import paths
from tests.lab.support import gpu, interrupt, jobs, pinning, playbook
from tests.lab.support.incident import by_name
from tests.lab.support.kubelet_verbosity import argv, momentary
from tests.lab.support.repairing import broken, codes

CONSENT = ("-e", "kubemend_max_risk=3")
FULL = os.environ.get("KUBEMEND_TEST_FULL") == "1"
# Ends the program of the reset at the moment in which its kubelet is stopped.
_KILL = """
import glob, json, os, signal, subprocess, time
end = time.monotonic() + 300
while time.monotonic() < end:
    for name in glob.glob("/var/lib/kubemend/journal/*/proof-*reset-state.json"):
        record = json.load(open(name))
        if record["state"] == "awaited" and subprocess.call(
            ["pgrep", "-x", "kubelet"], stdout=subprocess.DEVNULL
        ):
            os.kill(record["by"]["pid"], signal.SIGKILL)
            raise SystemExit(print("killed"))
    time.sleep(0.02)
"""


@pytest.fixture
def namespace(cluster):
    name = jobs.new_namespace()
    jobs.create_namespace(cluster, name)
    yield name
    jobs.remove(cluster, name)


def ready(cluster, namespace: str) -> list[str]:
    """UIDs of the Deployment's pods that run on w1 and do not end."""
    items = json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json").stdout)[
        "items"
    ]
    return [
        item["metadata"]["uid"]
        for item in items
        if not item["metadata"].get("deletionTimestamp")
        and item["spec"].get("nodeName") == "w1"
        and item["status"].get("phase") == "Running"
    ]


def serving(cluster) -> None:
    """w1 takes pods, and nothing of a reset is left on it but the journal."""
    node = json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)
    assert not node["spec"].get("unschedulable"), node
    assert "kubemend.io/cordon" not in (node["metadata"].get("annotations") or {}), node
    assert momentary(cluster, "w1") == []
    assert "--cpu-manager-policy=" not in " ".join(argv(cluster, "w1"))


def test_from_none_to_static_and_back(cluster, play, namespace):
    """The pod is there before the kubelet dies of its state.

    Its drain is a real one, and its place on the node another each time.
    """
    gpu.create(cluster, namespace, pinning.deployment(cluster, "pinned", "w1"))
    cluster.wait(lambda: ready(cluster, namespace), 60, "the pod on w1")
    with broken(cluster, "pinning-policy-changed", target="w1"):
        before = ready(cluster, namespace)
        done, report = play("-e", "kubemend_faults=KM301")
        assert done.returncode == 0, done.stdout[-3000:]
        assert [one["blocked_by"] for one in report["plan"]] == [
            "risk 3 needs -e kubemend_max_risk=3"
        ] * 4, done.stdout[-3000:]
        done, report = play("-e", "kubemend_faults=KM301", *CONSENT, name="remediate")
        assert (done.returncode, [step["state"] for step in report["steps"]]) == (
            0,
            ["done"] * 4,
        ), done.stdout[-4000:]
        assert "1 pod evicted" in report["steps"][1]["reason"], report
        assert not report["findings"], report
        serving(cluster)
        assert pinning.state(cluster, "w1")["policyName"] == "static"
        cluster.wait(lambda: ready(cluster, namespace), 60, "the pod again")
        assert ready(cluster, namespace) != before
        pinning.wait_pinned(cluster, "w1")
        # And back: the pod has a CPU of its own now.
        pinned = ready(cluster, namespace)
        pinning.stop(cluster, "w1")
        pinning.configure(cluster, "w1", {"cpuManagerPolicy": None, "systemReserved": None})
        pinning.fail(cluster, "w1", "differs from state checkpoint policy")
        done, report = play("-e", "kubemend_faults=KM301", *CONSENT, name="remediate")
        assert (done.returncode, [step["state"] for step in report["steps"]]) == (
            0,
            ["done"] * 4,
        ), done.stdout[-4000:]
        serving(cluster)
        assert pinning.state(cluster, "w1")["policyName"] == "none"
        assert ready(cluster, namespace) != pinned


def test_what_cannot_be_drained_is_reset_only_if_that_is_allowed(cluster, play):
    with broken(cluster, "pinning-corrupt-state", target="w1"):
        done, report = play("-e", "kubemend_faults=KM302", *CONSENT, name="remediate")
        (step,) = report["plan"]
        assert done.returncode == 2, done.stdout[-3000:]
        assert not report["steps"], done.stdout[-3000:]
        assert "kubemend_allow=reset_without_drain" in step["blocked_by"], done.stdout[-3000:]
        assert (
            json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)["spec"].get(
                "unschedulable"
            )
            is None
        )
        done, report = play(
            "-e",
            "kubemend_faults=KM302",
            "-e",
            "kubemend_allow=reset_without_drain",
            *CONSENT,
            name="remediate",
        )
        assert (done.returncode, [one["state"] for one in report["steps"]], report["findings"]) == (
            0,
            ["done"],
            [],
        ), done.stdout[-4000:]
        serving(cluster)
        assert pinning.state(cluster, "w1")["policyName"] == "static"


def test_somebodys_cordon_keeps_a_kubelet_that_is_down_from_being_started(cluster, play):
    """Another operator may be at work on a cordoned node.

    The drain is refused, and no step begins.
    """
    with broken(cluster, "pinning-policy-changed", target="w1"):
        cluster.kubectl("cordon", "w1")
        try:
            done, report = play("-e", "kubemend_faults=KM301", *CONSENT, name="remediate")
        finally:
            cluster.kubectl("uncordon", "w1")
        assert (done.returncode, report["steps"]) == (2, []), done.stdout[-3000:]
        assert len(report["plan"]) == 4, done.stdout[-3000:]
        assert all(
            "another client cordoned w1" in step["blocked_by"]
            and "kubemend_allow=fenced" in step["blocked_by"]
            for step in report["plan"]
        ), report["plan"]
        assert momentary(cluster, "w1") == []


@pytest.mark.skipif(
    not FULL,
    reason="a minute each: one that is lent its policy, and one that cannot be, are tried always",
)
@pytest.mark.parametrize(
    ("incident", "code", "allow", "steps"),
    [
        ("pinning-reserved-changed", "KM304", "drain_bare_pods", 4),
        ("pinning-empty-state", "KM303", "reset_without_drain", 1),
        ("pinning-former-version", "KM303", "reset_without_drain", 1),
        ("pinning-cpus-changed", "KM305", "reset_without_drain", 1),
        ("pinning-overlap", "KM306", "reset_without_drain", 1),
        ("pinning-memory-corrupt", "KM310", "reset_without_drain", 1),
        ("pinning-memory-machine", "KM310", "reset_without_drain", 1),
    ],
)
def test_whatever_keeps_it_down_is_told_and_reset(cluster, play, incident, code, allow, steps):
    if not by_name(incident).applies(paths.version_tuple(cluster.k8s)):
        pytest.skip(f"{cluster.k8s} has no memory manager")
    with broken(cluster, incident, target="w1"):
        done, report = play(
            "-e",
            f"kubemend_faults={code}",
            "-e",
            f"kubemend_allow={allow}",
            *CONSENT,
            name="remediate",
        )
        assert (
            done.returncode,
            [step["state"] for step in report["steps"]],
            report["findings"],
        ) == (0, ["done"] * steps, []), done.stdout[-4000:]
        serving(cluster)
        cluster.wait_healthy()


@pytest.mark.skipif(not FULL, reason="a minute: a killed drain is tried always")
def test_killed_while_its_kubelet_is_stopped(cluster, play, tmp_path):
    with broken(cluster, "pinning-policy-changed", target="w1"):
        with interrupt.Controller(
            cluster, tmp_path / "run", "-e", "kubemend_faults=KM301", *CONSENT
        ) as controller:
            assert (
                cluster.exec("w1", ["python3", "-I", "-c", _KILL], timeout=330).stdout
                == b"killed\n"
            )
            code, report = controller.wait(600)
        assert (code, report["exit_reason"], [step["state"] for step in report["steps"]][2]) == (
            2,
            "failed",
            "failed",
        ), controller.output[-3000:]
        _done, report = play(name="audit")
        assert {("KM902", "w1"), ("KM903", "w1")} <= codes(report)
        assert not argv(cluster, "w1")
        # What was interrupted is ended, by which the kubelet runs again, and then the reset is done
        # as planned.
        done, report = play("-e", "kubemend_faults=KM301,KM902,KM903", *CONSENT)
        assert done.returncode == 0, done.stdout[-3000:]
        assert codes(report) == set(), done.stdout[-3000:]
        serving(cluster)
        assert argv(cluster, "w1")
        assert pinning.state(cluster, "w1")["policyName"] == "static"
        assert interrupt.left_over(cluster) == []


@pytest.fixture
def as_before(cluster):
    """w1's own configuration comes back, and a kubelet with a new state under it."""
    before = cluster.read("w1", pinning.CONFIG)
    yield before.decode()
    pinning.stop(cluster, "w1")
    cluster.write("w1", pinning.CONFIG, before)
    cluster.exec("w1", ["rm", "-f", pinning.STATE, pinning.MEMORY_STATE])
    pinning.start(cluster, "w1")


@pytest.fixture
def role(cluster, tmp_path):
    """Run the role for w1 with these settings; return what ran, and its report."""

    def run(*arguments, **settings):
        path, folder = tmp_path / "play.yml", tmp_path / "report"
        tasks = [
            {
                "role": "kubemend.remediation.cpu_manager_reset",
                "vars": {f"kubemend_{name}": value for name, value in settings.items()},
            }
        ]
        path.write_text(
            json.dumps([{"hosts": "w1", "gather_facts": False, "roles": tasks}]), encoding="utf-8"
        )
        done = playbook.run(str(path), cluster.inventory, *arguments, report=str(folder))
        return done, json.loads((folder / "report.json").read_text(encoding="utf-8"))

    return run


def test_the_role_gives_a_node_another_policy(cluster, as_before, namespace, role):
    cluster.write("w1", pinning.CONFIG, as_before + "# the last line is ours\n")
    pinning.stop(cluster, "w1")
    pinning.start(cluster, "w1")
    gpu.create(cluster, namespace, pinning.deployment(cluster, "pinned", "w1"))
    cluster.wait(lambda: ready(cluster, namespace), 60, "the pod on w1")
    folder_before = cluster.exec("w1", "ls /etc/kubernetes/manifests 2>&1", check=False).stdout
    done, report = role("--check", "--diff", cpu_manager_policy="static", reserved_cpus="0")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "+cpuManagerPolicy: static" in done.stdout, done.stdout[-4000:]
    assert len(report["plan"]) == 3, done.stdout[-4000:]
    assert "01-m1-drain-w1: 1 pod would be evicted from w1" in " ".join(done.stdout.split()), (
        done.stdout[-4000:]
    )
    assert pinning.state(cluster, "w1")["policyName"] == "none"
    # What the drain would refuse is known in check mode, and nothing was touched for it.
    gpu.create(cluster, namespace, pinning.pod(cluster, "alone", "w1"))
    cluster.wait(lambda: len(ready(cluster, namespace)) == 2, 60, "another pod on w1")
    done, report = role("--check", cpu_manager_policy="static", reserved_cpus="0")
    assert (
        done.returncode,
        report["exit_reason"],
        [step["state"] for step in report["steps"]],
    ) == (2, "refused", ["refused"]), done.stdout[-4000:]
    assert f"no controller owns them: {namespace}/alone" in report["steps"][0]["reason"], report[
        "steps"
    ]
    assert (
        json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)["spec"].get(
            "unschedulable"
        )
        is None
    )
    cluster.kubectl("-n", namespace, "delete", "pod", "alone", "--grace-period=1")
    done, report = role(cpu_manager_policy="static", reserved_cpus="0", prove_pinning=True)
    assert (done.returncode, [step["state"] for step in report["steps"]]) == (
        0,
        ["done"] * 4,
    ), done.stdout[-4000:]
    assert "a test pod had CPUs 1 alone" in [step["reason"] for step in report["steps"]]
    assert (
        cluster.exec("w1", "ls /etc/kubernetes/manifests 2>&1", check=False).stdout == folder_before
    )
    serving(cluster)
    pinning.wait_pinned(cluster, "w1")
    text = cluster.read("w1", pinning.CONFIG).decode()
    assert "# the last line is ours\n" in text
    assert "cpuManagerPolicy: static" in text
    done, report = role(cpu_manager_policy="static", reserved_cpus="0")
    assert done.returncode == 0, done.stdout[-4000:]
    assert not report["plan"], done.stdout[-4000:]
    assert cluster.read("w1", pinning.CONFIG).decode() == text, done.stdout[-4000:]
    done, report = role(reserved_cpus="0-63")
    assert done.returncode == 2
    assert "does not have them online" in done.stdout
    assert pinning.state(cluster, "w1")["policyName"] == "static"
    done, report = role(cpu_manager_policy="none", reserved_cpus="none")
    assert (done.returncode, [step["state"] for step in report["steps"]]) == (
        0,
        ["done"] * 3,
    ), done.stdout[-4000:]
    serving(cluster)
    assert pinning.state(cluster, "w1")["policyName"] == "none"
    assert 'reservedSystemCPUs: ""' in cluster.read("w1", pinning.CONFIG).decode()


@pytest.mark.skipif(not FULL, reason="two minutes: a drain that is refused is tried always")
def test_devices_of_pods_that_stay_refuse_it_before_anybody_leaves(cluster, namespace, role):
    gpu.plug(cluster, "w1")
    try:
        spec = {
            **gpu.pod(cluster, "x", 1, nodeSelector={"kubernetes.io/hostname": "w1"})["spec"],
            "restartPolicy": "Always",
        }
        labels = {"app": "exporter"}
        exporter = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "exporter"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        gpu.create(
            cluster, namespace, exporter, pinning.deployment(cluster, "leaves", "w1", "100m")
        )
        gpu.wait_running(cluster, namespace, "exporter")
        gpu.wait_running(cluster, namespace, "leaves")
        before = ready(cluster, namespace)
        for arguments in (("--check",), ()):
            done, report = role(*arguments, cpu_manager_policy="static", reserved_cpus="0")
            assert (done.returncode, report["exit_reason"]) == (2, "refused"), done.stdout[-4000:]
            said = " ".join(
                [
                    *(str(step["blocked_by"]) for step in report["plan"]),
                    *(str(step["reason"]) for step in report["steps"]),
                ]
            )
            assert f"may lose their devices then: {namespace}/exporter-" in said, said
            assert "kubelet_restart" in said, said
            assert ready(cluster, namespace) == before
            assert pinning.state(cluster, "w1")["policyName"] == "none"
            assert (
                json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)["spec"].get(
                    "unschedulable"
                )
                is None
            )
    finally:
        jobs.remove(cluster, namespace)
        gpu.unplug(cluster, "w1")
        cluster.wait_healthy()


@pytest.fixture
def unfit(cluster):
    """Yield a kubelet of w1 that ends with the policy static, whatever its files say.

    What no evidence shows before.
    """
    name = "lab-unfit"
    cluster.exec(
        "w1",
        [
            "systemd-run",
            f"--unit={name}",
            "/bin/sh",
            "-c",
            (
                f"while sleep 0.2; do if grep -q '^cpuManagerPolicy: static' {pinning.CONFIG}; then"
                " pkill -KILL -x kubelet; fi; done"
            ),
        ],
    )
    yield
    cluster.exec("w1", ["systemctl", "stop", name])


def test_a_policy_under_which_no_kubelet_comes_up_is_taken_back(
    cluster, as_before, unfit, namespace, role
):
    """The former configuration, a state that fits it, and a node that takes pods again."""
    gpu.create(cluster, namespace, pinning.deployment(cluster, "leaves", "w1"))
    cluster.wait(lambda: ready(cluster, namespace), 60, "the pod on w1")
    before = ready(cluster, namespace)
    done, report = role(cpu_manager_policy="static", reserved_cpus="0")
    drained, reset, _uncordoned = report["steps"]
    assert (done.returncode, report["exit_reason"]) == (2, "failed"), done.stdout[-4000:]
    assert [step["state"] for step in report["steps"]] == ["done", "rolled_back", "done"], report[
        "steps"
    ]
    assert "1 pod evicted" in drained["reason"], report["steps"]
    assert "it runs with its former configuration and a new state" in reset["reason"], report[
        "steps"
    ]
    assert cluster.read("w1", pinning.CONFIG).decode() == as_before
    assert pinning.state(cluster, "w1")["policyName"] == "none"
    serving(cluster)
    cluster.wait(lambda: ready(cluster, namespace), 60, "the pod again")
    assert ready(cluster, namespace) != before
    assert interrupt.left_over(cluster) == []
    cluster.wait_healthy()


def test_a_reset_that_nothing_calls_for_is_done_only_if_that_is_allowed(cluster, namespace, role):
    gpu.create(cluster, namespace, pinning.deployment(cluster, "stays", "w1"))
    cluster.wait(lambda: ready(cluster, namespace), 60, "the pod on w1")
    before, kubelet = ready(cluster, namespace), cluster.exec("w1", "pgrep -x kubelet").stdout
    done, report = role()
    assert (done.returncode, report["plan"], report["steps"]) == (0, [], []), done.stdout[-4000:]
    assert any(
        "No state is reset on w1: " in note and "-e kubemend_allow=force_reset" in note
        for note in report["notices"]
    ), report["notices"]
    assert ready(cluster, namespace) == before
    assert cluster.exec("w1", "pgrep -x kubelet").stdout == kubelet
    written = pinning.age(cluster, "w1")
    done, report = role(allow=["force_reset"])
    assert (done.returncode, [step["state"] for step in report["steps"]]) == (
        0,
        ["done"] * 3,
    ), done.stdout[-4000:]
    assert "1 pod evicted" in report["steps"][0]["reason"], report["steps"]
    assert pinning.age(cluster, "w1") < written, report["steps"]
    serving(cluster)
    assert cluster.exec("w1", "pgrep -x kubelet").stdout != kubelet
    cluster.wait(lambda: ready(cluster, namespace), 60, "the pod again")
    assert ready(cluster, namespace) != before
