# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of containers that hold more than the kubelet should let them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import container_logs
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    config as kubelet_config,
)
from tests.unit.support import answers

FILE = "/var/lib/kubelet/config.yaml"
MIB = 1024**2


def rotation(text="kind: KubeletConfiguration\n", argv=("kubelet",), **record):
    file = {"path": FILE, "text": text, "error": None, "masked": [], **record}
    raw = {"argv": list(argv), "config": file, "config_dropins": []}
    config = kubelet_config.read(answers.typed(kubelet_answer.Kubelet, raw))
    return container_logs.rotation(config)


@pytest.mark.parametrize(
    ("text", "argv", "most", "place"),
    [
        ("kind: KubeletConfiguration\n", (), 10 * MIB, "the kubelet's default"),
        ('containerLogMaxSize: ""\n', (), 10 * MIB, "the kubelet's default"),
        ("containerLogMaxSize: 50Mi\n", (), 50 * MIB, f"{FILE}:1"),
        (
            "containerLogMaxSize: 50Mi\n",
            ("--container-log-max-size=1Mi",),
            MIB,
            "--container-log-max-size=1Mi",
        ),
        ("containerLogMaxSize: -1\n", (), -1, f"{FILE}:1"),
    ],
)
def test_the_size_is_that_of_the_flag_or_the_file_or_the_default(text, argv, most, place):
    rule = rotation(text, ("kubelet", *argv))
    assert rule.most == most
    assert place in rule.wording


@pytest.mark.parametrize(
    ("text", "argv", "record"),
    [
        ("containerLogMaxSize: large\n", ("kubelet",), {}),
        (None, ("kubelet",), {"error": "denied"}),
        ("kind: KubeletConfiguration\n", (), {}),
        ("kind: KubeletConfiguration\n", ("/usr/local/bin/k3s", "agent"), {}),
    ],
    ids=("no quantity", "not readable", "no command line", "within k3s"),
)
def test_what_is_not_certain_is_not_judged(text, argv, record):
    assert rotation(text, argv, **record) is None


@pytest.mark.parametrize(
    ("path", "size", "files", "exceeded"),
    [
        ("/var/log/pods", 101 * MIB, 10, True),
        ("/var/log/pods", 100 * MIB, 10, False),
        ("/var/log/pods/default_a_0/app", 900 * MIB, 6, True),
        ("/var/log/pods-of-others", 900 * MIB, 6, False),
        ("/var/log", 900 * MIB, 6, False),
    ],
)
def test_only_logs_of_containers_that_hold_more_than_so_many_files_may(path, size, files, exceeded):
    assert rotation().is_exceeded(path, size, files) is exceeded


def test_the_advice_names_the_size_of_this_kubelet():
    assert f"-size +{50 * MIB}c" in rotation("containerLogMaxSize: 50Mi\n").advice


def test_a_kubelet_that_rotates_none_is_told_so():
    rule = rotation("containerLogMaxSize: -1\n")
    assert rule.is_exceeded("/var/log/pods", MIB, 10)
    assert "rotates no logs" in rule.clause("")
    assert "containerLogMaxSize" in rule.advice
