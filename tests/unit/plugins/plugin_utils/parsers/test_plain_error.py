# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import plain_error

SETTINGS = "/etc/example.conf"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            'time="2022-10-10T11:53:11Z" level=fatal msg="Error: unknown flag: --cache-dirr"',
            ["--c"],
        ),
        ("flag provided but not defined: -snapshot", ["option -snapshot"]),
        (
            'E0101 10:00:00.000000 1 run.go:74] "command failed" err="failed complete: strict'
            ' decoding error: unknown field \\"iptables.masqueradeBits\\""',
            ["has iptables.masqueradeBits at"],
        ),
        (
            "unable to configure the daemon with file /etc/x/daemon.json: the following directives"
            " don't match any configuration option: data-root",
            ["data-root"],
        ),
        (
            "containerd: Near line 7 (last key parsed 'oom_score'): expected value but found"
            ' "cri" instead',
            ["TOML in line 7"],
        ),
        ("failed complete: yaml: line 12: mapping values are not allowed", ["YAML in line 12"]),
    ],
)
def test_an_error_of_settings_names_them_and_their_place(text: str, parts: list[str]) -> None:
    found = plain_error.find(text, SETTINGS)
    assert found is not None
    assert [part for part in (*parts, SETTINGS) if part not in found.cause] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "failed to load TOML: /etc/containerd/config.toml: (2, 3): unexpected token",
            ["/etc/containerd/config.toml is no valid TOML in line 2"],
        ),
        (
            "with file /etc/docker/daemon.json: invalid character '}' looking for beginning of"
            " object key string",
            ["/etc/docker/daemon.json is no valid JSON"],
        ),
        (
            "get listener for metrics: listen tcp 127.0.0.1:1338: bind: address already in use",
            ["127.0.0.1:1338"],
        ),
        ("listen tcp :9100: bind: address already in use", [" :9100", "node-exporter"]),
        ("listen tcp [::]:10256: bind: address already in use", ["[::]:10256", "kube-proxy"]),
        (
            "listen unix @/shim/moby/70/shim.sock: bind: address already in use: unknown",
            ["@/shim/moby/70/shim.sock"],
        ),
        (
            "listen tcp 10.0.0.9:443: bind: cannot assign requested address",
            ["10.0.0.9:443", "none of this machine"],
        ),
        ("listen tcp :80: bind: permission denied", [" :80", "CAP_NET_BIND_SERVICE"]),
        (
            'level=fatal msg="Failed to run CRI service" error="stream server error: listen tcp:'
            ' lookup node-7 on 192.0.2.8:53: no such host"',
            ["node-7", "/etc/hosts"],
        ),
        (
            "cp: cannot create regular file '/host/opt/cni/bin/x': Permission denied",
            ["/host/opt/cni/bin/x", "Permission denied"],
        ),
        ("mount: /var/lib/x: Operation not permitted", ["/var/lib/x", "mount"]),
        ('exec: "modprobe": executable file not found in $PATH', ["modprobe", "PATH"]),
        ('no default routes found in "/proc/net/route"', ["default route"]),
        (
            "dial unix /var/run/docker.sock: connect: no such file or directory",
            ["/var/run/docker.sock", "docker.service"],
        ),
        (
            "dial unix /run/containerd/containerd.sock: connect: connection refused",
            ["/run/containerd/containerd.sock", "ended"],
        ),
    ],
)
def test_an_error_that_names_its_object_does_not_need_the_settings(
    text: str, parts: list[str]
) -> None:
    found = plain_error.find(text, SETTINGS)
    assert found is not None
    assert [part for part in parts if part not in found.cause] == []
    assert SETTINGS not in found.cause


@pytest.mark.parametrize(
    "text",
    [
        "",
        "containerd: open /etc/containerd/config.toml: permission denied",
        "reading /etc/x.yaml: no such file or directory",
        "dial unix /run/spire/agent.sock: connect: no such file or directory",
        "dial tcp 10.0.0.4:9000: connect: connection refused",
        "the server could not find the requested resource",
        "context deadline exceeded",
    ],
)
def test_other_errors_are_not_explained(text: str) -> None:
    assert plain_error.find(text, SETTINGS) is None


def test_a_value_for_a_shell_has_no_letter_of_one() -> None:
    found = plain_error.find('exec: "mod$(reboot)": executable file not found in $PATH')
    assert found is None
    found = plain_error.find("listen tcp: lookup a;reboot on 8.8.8.8:53: no such host")
    assert found is not None
    assert "reboot" not in found.advice
