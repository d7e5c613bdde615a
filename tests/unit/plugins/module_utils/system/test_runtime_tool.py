# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime's own tool on a node."""

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    runtime_tool,
)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("me/app:1", "docker.io/me/app:1"),
        ("localhost:5000/a", "localhost:5000/a:latest"),
        ("registry.k8s.io/kube-scheduler:v1.36.3", "registry.k8s.io/kube-scheduler:v1.36.3"),
        ("k8s.gcr.io/a:v1@sha256:ab", "k8s.gcr.io/a@sha256:ab"),
    ],
)
def test_an_image_s_full_name(image: str, name: str) -> None:
    assert runtime_tool.normalised(image) == name


@pytest.mark.parametrize(
    ("kubelet", "tools", "socket", "tool"),
    [
        (
            {"argv": ["kubelet", "--container-runtime-endpoint=unix:///run/x/containerd.sock"]},
            ["crictl", "ctr"],
            "/run/x/containerd.sock",
            "crictl",
        ),
        (
            {"argv": ["kubelet", "--container-runtime-endpoint", "/run/containerd/c.sock"]},
            ["ctr", "docker"],
            "/run/containerd/c.sock",
            "ctr",
        ),
        (
            {
                "argv": [],
                "config": {"text": "containerRuntimeEndpoint: unix:///run/crio/crio.sock\n"},
            },
            ["ctr"],
            "/run/crio/crio.sock",
            None,
        ),
        (
            {"argv": [], "config": None, "config_dropins": []},
            ["ctr", "docker"],
            "/var/run/dockershim.sock",
            "docker",
        ),
    ],
)
def test_the_runtime_of_a_kubelet(
    monkeypatch: pytest.MonkeyPatch,
    kubelet: dict[str, object],
    tools: list[str],
    socket: str,
    tool: Any,
) -> None:
    monkeypatch.setattr(
        runtime_tool, "_program", lambda name: "/bin/" + name if name in tools else None
    )
    monkeypatch.setattr(runtime_tool, "_is_socket", lambda path: True)
    found = runtime_tool.find(kubelet)
    assert (found.socket, found.tool) == (socket, tool)
    if tool is None:
        assert found.has_image("x") is None


def test_no_runtime_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_tool, "_is_socket", lambda path: False)
    with pytest.raises(runtime_tool.RuntimeDown):
        runtime_tool.find({"argv": []}).demand()
    with pytest.raises(runtime_tool.RuntimeDown):
        runtime_tool.Runtime("/nonexistent.sock").demand()
