# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines as pflag reads them (kubernetes-facts: forms tried against the real library)."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import pflag


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--leader-elect"], True),
        (["--leader-elect=1"], True),
        (["--leader-elect=T"], True),
        (["--leader-elect=TRUE"], True),
        (["--leader-elect=f"], False),
        (["--leader-elect=False"], False),
        (["--leader_elect=false"], False),
        (["--leader-elect=false", "--leader-elect=true"], True),  # the last wins
        (["--leader-elect=no"], None),
        (["--leader-elect="], None),
        (["--leader-elect=fAlse"], None),
        (['--leader-elect="false"'], None),
        # a stray argument: the component refuses to start
        (["--leader-elect", "false"], None),
        (["--leader-elect", "--v=2"], True),
    ],
)
def test_bool_flag(argv, value):
    found = pflag.bool_flag(["kube-scheduler", *argv], "leader-elect")
    assert found is not None
    assert found.value is value
    assert bool(found.problem) is (value is None)


@pytest.mark.parametrize(
    "argv", [[], ["-leader-elect=false"], ["--leader-elect-lease-duration=15s"], ["--"]]
)
def test_bool_flag_that_is_not_there(argv):
    assert pflag.bool_flag(argv, "leader-elect") is None


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--config=/a"], "/a"),
        (["--config", "/b"], "/b"),
        (["--config=/a", "--config=/c"], "/c"),
        (["--config"], None),
    ],
)
def test_string_flag(argv, value):
    assert pflag.string_flag(argv, "config") == value


@pytest.mark.parametrize(
    ("word", "is_joined"),
    [
        ("--policy-configmap=a --policy-configmap-namespace=b", True),
        ("--a=b -v 2", True),
        ("--port 8080", True),
        ("--v=2", False),
        ("--audit-policy-file=/srv/my policy.yaml", False),
        ("--tls-cipher-suites=A, B", False),
        ("exec kube-scheduler --v=2 --port=0", False),
    ],
)
def test_joined(word, is_joined):
    assert pflag.joined(["kube-scheduler", word]) == ([word] if is_joined else [])


@pytest.mark.parametrize(
    ("argv", "fallbacks", "component"),
    [
        (["kube-scheduler", "--v=2"], (), "kube-scheduler"),
        (["/usr/local/bin/kube-controller-manager"], (), "kube-controller-manager"),
        (["/hyperkube", "controller-manager"], (), "kube-controller-manager"),
        (["hyperkube", "kube-apiserver"], (), "kube-apiserver"),
        (["/go-runner", "--log-file=x", "/usr/local/bin/kube-scheduler"], (), "kube-scheduler"),
        (
            ["--v=2"],
            ("sidecar", "registry:5000/k8s/kube-scheduler-amd64:v1.18.4"),
            "kube-scheduler",
        ),
        (["nginx"], ("web", "nginx:1"), None),
    ],
)
def test_component_of(argv, fallbacks, component):
    assert pflag.component_of(argv, *fallbacks) == component


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.18.4", (1, 18)),
        ("v1.18.4-tke.5", (1, 18)),
        ("1.36.3", (1, 36)),
        ("latest", None),
        (None, None),
    ],
)
def test_parse_version(text, version):
    assert pflag.parse_version(text) == version


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        (["x", "--client-ca-file=/a"], "client-ca-file"),
        (["x", "--client_ca_file", "/a"], "client-ca-file"),
        (["x", "--tls-sni-cert-key=/b,/a"], "tls-sni-cert-key"),
        (["x", "--client-ca-file=/ab", "/a", "--v"], ""),
        ([], ""),
    ],
)
def test_the_flag_that_names_a_file(argv, flag):
    assert pflag.naming(argv, "/a") == flag
