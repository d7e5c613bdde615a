# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet whose log level only a restart raises, and what it runs with."""

from __future__ import annotations

import contextlib

import yaml

from tests.lab.cluster import paths

MOMENTARY = "/run/systemd/system/kubelet.service.d /run/kubemend"


def argv(cluster, node: str) -> list[str]:
    """Empty where none runs."""
    return (
        cluster.exec(node, "pid=$(pgrep -x kubelet) && tr '\\0' '\\n' < /proc/$pid/cmdline; true")
        .stdout.decode()
        .splitlines()
    )


def v_flags(cluster, node: str) -> list[str]:
    return [word for word in argv(cluster, node) if word.startswith("--v=")]


def momentary(cluster, node: str) -> list[str]:
    """Return the files of kubemend under /run, and its empty folders."""
    return (
        cluster.exec(node, f"find {MOMENTARY} -type f -o -type d -empty 2>/dev/null; true")
        .stdout.decode()
        .splitlines()
    )


def restart(cluster, node: str) -> None:
    cluster.exec(node, "systemctl restart kubelet")
    cluster.wait(
        lambda: (
            cluster.exec(node, "curl -sf http://127.0.0.1:10248/healthz", check=False).stdout
            == b"ok"
        ),
        180,
        "the kubelet to be healthy",
    )
    cluster.wait_healthy()


@contextlib.contextmanager
def deaf(cluster, node: str, config: str = "/var/lib/kubelet/config.yaml"):
    """Turn the kubelet's handlers for debugging off, as hardening guides do.

    From 1.21 on only the handlers that set log levels are off: that release can tell them apart.
    """
    name = (
        "enableDebugFlagsHandler"
        if paths.version_tuple(cluster.k8s) >= (1, 21)
        else "enableDebuggingHandlers"
    )
    former = cluster.read(node, config)
    settings = {**yaml.safe_load(former), name: False}
    cluster.write(node, config, yaml.safe_dump(settings))
    restart(cluster, node)
    try:
        yield
    finally:
        cluster.write(node, config, former)
        restart(cluster, node)
