# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's configuration.

The tests check which of command line, drop-ins and file wins, and where a value is set.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    config as kubelet_config,
)
from tests.unit.support import answers

MAIN = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy:"
    " none\nsystemReserved:\n  cpu: 500m\n  memory: 1Gi\n"
)
DROPIN = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy:"
    " static\nsystemReserved: {cpu: '2'}\n"
)


def record(path, text, **more):
    return {"path": path, "text": text, "masked": [], "error": None, **more}


def kubelet(*argv, dropins=(), text=MAIN, **more):
    return read(
        {
            "argv": ["kubelet", *argv],
            "config": record("/c.yaml", text),
            "config_dropins": [record(f"/d/{n}.conf", one) for n, one in enumerate(dropins)],
            **more,
        }
    )


def read(raw):
    return kubelet_config.read(answers.typed(kubelet_answer.Kubelet, raw))


def test_a_flag_wins_over_a_drop_in_and_that_over_the_file():
    policy = ("cpuManagerPolicy", "cpu-manager-policy")
    found = kubelet().setting(*policy)
    assert (found.value, found.path, found.line) == ("none", "/c.yaml", 3)
    found = kubelet(dropins=[DROPIN]).setting(*policy)
    assert (found.value, found.path, found.text) == (
        "static",
        "/d/0.conf",
        "cpuManagerPolicy: static",
    )
    found = kubelet("--cpu-manager-policy=none", dropins=[DROPIN]).setting(*policy)
    assert (found.value, found.path, found.text) == ("none", None, "--cpu-manager-policy=none")
    assert read({"argv": []}).setting(*policy) is None


@pytest.mark.parametrize(
    ("flags", "text", "told", "shown"),
    [
        (("--fail-swap-on", "--v=2"), "failSwapOn: false\n", True, "--fail-swap-on"),
        (("--v=2", "--fail-swap-on"), "", True, "--fail-swap-on"),
        (("--fail-swap-on=false",), "", False, "--fail-swap-on=false"),
        (("--fail-swap-on=no",), "", None, "--fail-swap-on=no"),
        ((), "failSwapOn: no\n", False, "failSwapOn: no"),
        ((), "failSwapOn: perhaps\n", None, "failSwapOn: perhaps"),
    ],
)
def test_a_bare_switch_is_on_and_does_not_take_the_next_word(flags, text, told, shown):
    found, setting = kubelet(*flags, text=text).switch("failSwapOn", "fail-swap-on")
    assert (found, setting.text) == (told, shown)


def test_maps_are_merged_by_files_and_replaced_by_a_flag():
    reserved = ("systemReserved", "system-reserved")
    assert {
        key: one.value for key, one in kubelet(dropins=[DROPIN]).mapping(*reserved).items()
    } == {"cpu": "2", "memory": "1Gi"}
    given = kubelet("--system-reserved=cpu=1,pid=100").mapping(*reserved)
    assert {key: one.value for key, one in given.items()} == {"cpu": "1", "pid": "100"}
    assert kubelet("--system-reserved=").mapping(*reserved) == {}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"config": record("/c.yaml", None, error="denied")}, "/c.yaml: denied"),
        ({"config": record("/c.yaml", "a: [")}, "/c.yaml: "),
        (
            {
                "config": record("/c.yaml", MAIN),
                "config_dropins": [record("/d.conf", None, binary=True)],
            },
            "/d.conf: it is no text",
        ),
    ],
)
def test_what_cannot_be_read_is_named(files, problem):
    assert read({"argv": ["/usr/bin/kubelet"], **files}).problem.startswith(problem)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ([], "its command line is not known"),
        (
            ["/usr/local/bin/k3s", "server"],
            "it is part of k3s, which logs the kubelet's command line",
        ),
        (["/snap/microk8s/7/kubelite", "--kubelet-args-file=/a"], "it is part of kubelite"),
        (["kubelet", "--dynamic-config-dir=/d"], "--dynamic-config-dir may"),
        (["kubelet", "--dynamic-config-dir="], ""),
        (["/hyperkube", "kubelet"], ""),
    ],
)
def test_a_command_line_that_does_not_tell_all(argv, problem):
    found = read({"argv": argv})
    assert found.problem.startswith(problem)
    assert bool(found.problem) is bool(problem)
    assert found.certain(None) is not bool(problem)


def test_what_is_unread_may_overrule_a_file_and_no_flag():
    name = ("cpuManagerPolicy", "cpu-manager-policy")
    found = kubelet(config_dropins=[record("/d.conf", None, error="denied")])
    assert found.setting(*name).value == "none"
    assert not found.certain(found.setting(*name))
    found = kubelet(
        "--cpu-manager-policy=static",
        config_dropins=[record("/d.conf", None, error="denied")],
    )
    assert found.certain(found.setting(*name))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("500m", Fraction(1, 2)),
        ("2", 2),
        ("1.5", Fraction(3, 2)),
        ("1e3", 1000),
        ("1e3m", None),
        ("0", 0),
        ("100000u", Fraction(1, 10)),
        ("", None),
        ("two", None),
        ("m", None),
        ("1/0", None),
    ],
)
def test_quantities_of_cpus(text, cpus):
    assert kubelet_config.cpus(text) == cpus


def test_a_list_is_replaced_as_a_whole_and_a_plain_null_unsets():
    two = "enforceNodeAllocatable: [pods, kube-reserved]\ncpuManagerPolicy: static\n"
    told = [one.value for _path, one in kubelet(text=two).rows("enforceNodeAllocatable")]
    assert told == ["pods", "kube-reserved"]
    for later, left in (("[pods]", ["pods"]), ("[]", []), ("null", []), ("~", [])):
        found = kubelet(text=two, dropins=[f"enforceNodeAllocatable: {later}\n"])
        assert [one.value for _path, one in found.rows("enforceNodeAllocatable")] == left
        assert found.tops["enforceNodeAllocatable"].path == "/d/0.conf"
        assert found.tops["cpuManagerPolicy"].line == 2
    policy = ("cpuManagerPolicy", "cpu-manager-policy")
    assert kubelet(text=two, dropins=["cpuManagerPolicy: null\n"]).setting(*policy) is None
    assert kubelet(text="cpuManagerPolicy: 'null'\n").setting(*policy).value == "null"


def test_each_use_of_a_flag_that_is_a_map_adds_to_it():
    given = kubelet("--system-reserved=cpu=1", "--system-reserved", "memory=1Gi").mapping(
        "systemReserved", "system-reserved"
    )
    assert {key: (one.value, one.text) for key, one in given.items()} == {
        "cpu": ("1", "--system-reserved=cpu=1"),
        "memory": ("1Gi", "--system-reserved=memory=1Gi"),
    }


@pytest.mark.parametrize(
    ("argv", "root"),
    [
        ((), ""),
        (("/usr/bin/kubelet",), ""),
        (("/usr/bin/kubelet", "--root-dir=/var/lib/kubelet/"), ""),
        (("/usr/bin/kubelet", "--root-dir", "/data/kubelet/"), "/data/kubelet"),
        (("/snap/microk8s/1/kubelite",), kubelet_config.MICROK8S_ROOT),
        (("/usr/local/bin/k3s", "agent"), ""),
    ],
)
def test_the_other_folder_of_a_kubelet(argv, root):
    assert kubelet_config.other_root(argv) == root


@pytest.mark.parametrize("own_files", [[], ["/etc/kubelet.yaml"]])
def test_a_file_that_is_newer_than_the_process_is_a_pending_change(own_files):
    evidence = {
        "process": {"pid": 1, "started_at": 100.0, "exe": "/usr/bin/kubelet"},
        "config": record("/etc/kubelet.yaml", MAIN, mtime=200.0),
        "config_dropins": [record("/etc/older.conf", DROPIN, mtime=50.0)],
    }
    answer = answers.typed(kubelet_answer.Kubelet, evidence)
    assert bool(kubelet_config.pending_changes(answer, own_files)) is not bool(own_files)
