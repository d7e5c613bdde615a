# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector system_pods: which containers it takes, which log, and what leaves the node."""

import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_end,
    system_pods,
)

UID, STATIC = "5b0c9c1e-52a5-4d0b-9b7e-6f1e0d3a2c44", "0123456789abcdef0123456789abcdef"
PROXY = "kube-system_kube-proxy-abcde_" + UID


@pytest.fixture
def collect(tmp_path, monkeypatch):
    """Return the rows that the collector makes of the logs below a folder."""
    monkeypatch.setattr(component_end, "PODS", str(tmp_path))
    return lambda: system_pods.collect(base.Context({}, [], {}))


def log(root, number, *lines, pod=PROXY, container="kube-proxy", age=0):
    folder = root / pod / container
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"{number}.log")
    text = "".join(f"2026-11-24T07:00:0{index}Z stderr F {line}\n" for index, line in lines)
    path.write_text(text, encoding="utf-8")
    for place in (path, folder):
        os.utime(str(place), (time.time() - age, time.time() - age))
    return str(path)


def test_the_log_of_the_start_before_the_newest_one(collect, tmp_path):
    path = log(tmp_path, 6, (1, "begins"), (2, "the last word, token=abcdefghijklmnopqrstuvwxyz"))
    log(tmp_path, 7, (5, "the newest"))
    answer = collect()
    (row,) = answer["pods"]
    assert (row["namespace"], row["pod"]) == ("kube-system", "kube-proxy-abcde")
    assert (row["container"], row["restart"], row["path"]) == ("kube-proxy", 7, path)
    assert (row["last"] - row["first"], row["begun"] - row["first"]) == (1.0, 4.0)
    assert row["lines"][-1].startswith("the last word")
    assert "abcdefghijklmnopqrstuvwxyz" not in str(answer)
    assert (row["error"], answer["more"]) == (None, 0)


def test_a_newest_log_that_is_alone(collect, tmp_path):
    path = log(tmp_path, 9, (1, "the only one"))
    (row,) = collect()["pods"]
    assert (row["path"], row["lines"], row["restart"]) == (path, ["the only one"], 9)


@pytest.mark.parametrize(
    ("pod", "container", "number", "age"),
    [
        ("default_app-1_" + UID, "app", 9, 0),  # a workload's
        (PROXY, "kube-proxy", 2, 0),  # started once or twice
        (PROXY, "kube-proxy", 9, 7200),  # of long ago
        ("kube-system_etcd-m1_" + STATIC, "etcd", 9, 0),  # one of component_end
        ("nothing", "kube-proxy", 9, 0),
    ],
)
def test_what_is_left_out(collect, tmp_path, pod, container, number, age):
    log(tmp_path, number, (1, "x"), pod=pod, container=container, age=age)
    answer = collect()
    assert (answer["pods"], answer["more"]) == ([], 0)


def test_no_more_than_a_few_and_the_newest_first(collect, tmp_path):
    for index in range(system_pods.MAX_LOGS + 3):
        log(tmp_path, 4, (1, "x"), pod=f"kube-system_pod-{index}_{UID}", age=60 * index)
    answer = collect()
    assert [row["pod"] for row in answer["pods"]] == [
        f"pod-{index}" for index in range(system_pods.MAX_LOGS)
    ]
    assert answer["more"] == 3
    first = system_pods.MAX_LOGS
    assert answer["more_pods"] == [f"kube-system/pod-{index}" for index in range(first, first + 3)]


def test_pods_that_run_well_are_not_left_out(collect, tmp_path):
    for index in range(system_pods.MAX_LOGS + 3):
        path = log(tmp_path, 4, (1, "x"), pod=f"kube-system_pod-{index}_{UID}", age=7200)
        os.utime(path, None)  # it writes
    ends = log(tmp_path, 4, (1, "x"), pod="kube-system_quiet_" + UID, age=30)
    answer = collect()
    assert ([row["path"] for row in answer["pods"]], answer["more"]) == ([ends], 0)


@pytest.mark.parametrize(("age", "former", "more"), [(800, 1, 3), (1000, 1, 0), (1000, 0, 3)])
def test_those_that_are_left_out_and_started_lately(collect, tmp_path, age, former, more):
    for index in range(system_pods.MAX_LOGS + 3):
        for number in (3, 4)[1 - former :]:
            log(tmp_path, number, (1, "x"), pod=f"kube-system_pod-{index}_{UID}", age=age)
    assert collect()["more"] == more


def test_pods_of_users_take_no_place(collect, tmp_path, monkeypatch):
    monkeypatch.setattr(system_pods, "MAX_FOLDERS", 1)
    for index in range(5):
        log(tmp_path, 4, (1, "x"), pod=f"a_app-{index}_{UID}")
    log(tmp_path, 4, (1, "x"))
    assert len(collect()["pods"]) == 1


@pytest.mark.parametrize(("sidecar", "count"), [("driver-registrar", 2), ("sidecar", 0)])
def test_a_pod_that_its_containers_tell_to_be_a_driver_s(collect, tmp_path, sidecar, count):
    pod = "storage_csi-rbdplugin-abcde_" + UID
    for container in ("csi-rbdplugin", sidecar):
        log(tmp_path, 5, (1, "modprobe failed"), pod=pod, container=container)
    rows = collect()["pods"]
    assert len(rows) == count
    assert {row["namespace"] for row in rows} <= {"storage"}


def test_no_more_pods_than_a_node_has_are_looked_at(collect, tmp_path, monkeypatch):
    monkeypatch.setattr(system_pods, "MAX_LISTED", 0)
    log(tmp_path, 4, (1, "x"))
    assert collect()["pods"] == []


def test_pods_that_their_names_tell_are_looked_at_before_those_of_users(
    collect, tmp_path, monkeypatch
):
    monkeypatch.setattr(system_pods, "MAX_LISTED", 1)
    for index in range(50):
        log(tmp_path, 4, (1, "x"), pod=f"a_app-{index}_{UID}")
    log(tmp_path, 4, (1, "x"))
    assert len(collect()["pods"]) == 1


def test_a_log_that_cannot_be_read(collect, tmp_path):
    path = log(tmp_path, 6, (1, "x"))
    Path(path).unlink()
    Path(path).mkdir()
    log(tmp_path, 7, (1, "y"))
    (row,) = collect()["pods"]
    assert (row["lines"], row["path"]) == ([], path)
    assert row["error"]


def test_a_folder_that_is_not_there_and_one_of_another_user(collect, tmp_path, monkeypatch):
    monkeypatch.setattr(system_pods.os, "access", lambda *dummy: False)
    with pytest.raises(base.Denied):
        collect()
    monkeypatch.setattr(component_end, "PODS", str(tmp_path / "none"))
    with pytest.raises(base.Absent):
        collect()


def said(root, ago, text, pod=PROXY, container="kube-proxy"):
    """Write a line, said so many seconds ago, at the end of a log that begins a day ago."""
    path = root / pod / container / "0.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    stamps = [86400] if not path.exists() else []
    lines = [(age, "begins") for age in stamps] + [(ago, text)]
    with path.open("a", encoding="utf-8") as stream:
        for age, line in lines:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age))
            stream.write(f"{moment} stderr F {line}\n")
    return str(path)


def test_an_error_that_a_container_repeats(collect, tmp_path):
    for ago in (300, 240, 180, 120, 60):
        path = said(tmp_path, ago, "E1124 07:00:00.0 1 a.go:1] no token=abcdefghijklmnopqrstuvwxyz")
    said(tmp_path, 60, "E1124 07:00:00.0 1 a.go:1] once", container="other")
    answer = collect()
    (row,) = answer["running"]
    assert (row["pod"], row["container"], row["path"]) == ("kube-proxy-abcde", "kube-proxy", path)
    assert [entry["count"] for entry in row["entries"]] == [5]
    assert (answer["pods"], answer["unread"], row["told"]) == ([], 0, [])
    assert "abcdefghijklmnopqrstuvwxyz" not in str(answer)


def test_a_device_plugin_of_any_namespace(collect, tmp_path):
    plugin = "gpu-operator_nvidia-device-plugin-daemonset-abcde_" + UID
    path = said(tmp_path, 80000, "Failed to initialize NVML", pod=plugin, container="ctr")
    os.utime(path, (time.time() - 80000,) * 2)
    said(tmp_path, 80000, "Failed to initialize NVML", pod="default_app_" + UID)
    (row,) = collect()["running"]
    assert (row["namespace"], row["told"]) == ("gpu-operator", ["Failed to initialize NVML"])
    assert row["entries"] == []


def test_no_more_logs_than_a_few_are_read(collect, tmp_path, monkeypatch):
    monkeypatch.setattr(system_pods, "MAX_RUNNING", 2)
    for number in range(5):
        said(tmp_path, 10, "x", pod=f"kube-system_pod-{number}_{UID}")
        path = tmp_path / f"kube-system_pod-{number}_{UID}" / "kube-proxy" / "0.log"
        os.utime(str(path), (time.time() - number,) * 2)
    answer = collect()
    assert (answer["read"], answer["unread"]) == (2, 3)
    assert answer["unread_pods"] == [f"kube-system/pod-{number}" for number in (2, 3, 4)]


def test_logs_of_add_ons_come_last_and_are_no_gap(collect, tmp_path, monkeypatch):
    monkeypatch.setattr(system_pods, "MAX_RUNNING", 2)
    monkeypatch.setattr(system_pods, "MAX_LOGS", 1)
    line = "E1124 07:00:00.0 1 a.go:1] no answer"
    for pod, age in (("metallb-system_speaker-abcde", 0), ("kube-system_x-abcde", 40)):
        for ago in (300, 240, 180, 120, 60):
            path = said(tmp_path, ago, line, pod=f"{pod}_{UID}")
        os.utime(path, (time.time() - age,) * 2)
    answer = collect()
    assert [row["namespace"] for row in answer["running"]] == ["kube-system", "metallb-system"]
    monkeypatch.setattr(system_pods, "MAX_RUNNING", 1)
    answer = collect()
    assert [row["namespace"] for row in answer["running"]] == ["kube-system"]
    assert (answer["unread"], answer["unread_pods"]) == (0, [])
    log(tmp_path, 9, (1, "ends"), pod=f"metallb-system_controller-abcde_{UID}")
    log(tmp_path, 9, (1, "ends"), pod=f"kube-system_y-abcde_{UID}", age=60)
    answer = collect()
    assert [row["namespace"] for row in answer["pods"]] == ["kube-system"]
    assert (answer["more"], answer["more_pods"]) == (0, [])
