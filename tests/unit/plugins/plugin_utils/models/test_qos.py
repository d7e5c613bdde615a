# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps pods from being Guaranteed, and the patch that cures it.

The tests have a table of shapes, and names that must not be trusted.
"""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pinnable,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import qos
from tests.unit.support.facts import facts


def one(name="app", kind="app", cpu=(None, None), memory=(None, None), **more):
    """(request, limit) of CPU and memory."""
    return {
        "name": name,
        "kind": kind,
        "cpu_request": cpu[0],
        "cpu_limit": cpu[1],
        "memory_request": memory[0],
        "memory_limit": memory[1],
        **more,
    }


APP = one(cpu=("2", "2"), memory=(None, "1Gi"))
INIT = one("i", "init")


def item(*containers, kind="Deployment", name="d", **more):
    row = {
        "kind": kind,
        "api_version": "apps/v1",
        "namespace": "n",
        "name": name,
        "owner": None,
        "manager": None,
        "expected": False,
        "pod_level": None,
        "containers": list(containers),
        **more,
    }
    return decode(pinnable.PinnableItem, row).answer


def pod(*containers, owner=("Deployment", "d"), name="p", **more):
    return item(
        *containers,
        kind="Pod",
        name=name,
        owner=dict(zip(("kind", "name"), owner, strict=False)) if owner else None,
        node="w1",
        **more,
    )


def advice(*items):
    (subject,) = qos.subjects(pinnable.Pinnable(items))
    return qos.advise(subject)


def patched(found):
    """Tell what the patch gives: {container: {resource: value}}, requests and limits alike."""
    spec, values = found.patch["spec"]["template"]["spec"], {}
    for where in ("containers", "initContainers"):
        for container in spec.get(where, ()):
            assert container["resources"]["requests"] == container["resources"]["limits"]
            values[container["name"]] = container["resources"]["limits"]
    return values


@pytest.mark.parametrize(
    ("container", "stated"),
    [
        (one("i", "init"), ("init container i", "no limits.cpu", "no limits.memory")),
        (one("s", "sidecar", ("1", "1")), ("sidecar s", "no limits.memory")),
        (
            one("b", cpu=("500m", "1"), memory=(None, "1Gi")),
            ("container b", "requests.cpu 500m", "limits.cpu 1"),
        ),
        (one("b", cpu=("1", "1000m"), memory=("1Gi", "1024Mi")), ()),
        (one("b", cpu=("1", "0"), memory=(None, "1")), ("container b", "limits.cpu is 0")),
        (
            one("b", cpu=("0", "1"), memory=(None, "1")),
            ("container b", "requests.cpu 0", "limits.cpu 1"),
        ),
        (one("m", injected=True), ("container m", "injected", "no limits.cpu", "no limits.memory")),
    ],
)
def test_the_container_and_the_field_at_fault_are_named(container, stated):
    text = qos.describe_lacks(qos.lacks(item(APP, container)))
    assert bool(text) == bool(stated)
    facts(text, *stated)


@pytest.mark.parametrize(
    ("containers", "values"),
    [
        # it costs nothing: they are maxed
        ([APP, one("i", "init")], {"i": {"cpu": "2", "memory": "1Gi"}}),
        # what is right stays
        ([APP, one("i", "init", (None, "100m"))], {"i": {"memory": "1Gi"}}),
        (
            [APP, one("i", "init", ("100m", None), ("1Mi", "2Mi"))],
            {"i": {"cpu": "2", "memory": "1Gi"}},
        ),
        # more than the app: its own
        ([APP, one("i", "init", ("4", None), (None, "1Mi"))], {"i": {"cpu": "4"}}),
        ([APP, one("s", "sidecar", ("100m", None), ("64Mi", "64Mi"))], {"s": {"cpu": "100m"}}),
        (
            [APP, one("s", "sidecar", ("100m", "200m"), ("64Mi", "128Mi"))],
            {"s": {"cpu": "200m", "memory": "128Mi"}},
        ),
        ([APP, one("b", cpu=("100m", "1"), memory=(None, "1Mi"))], {"b": {"cpu": "1"}}),
        ([one(cpu=("2", "2"), memory=("1Gi", "2Gi"))], {"app": {"memory": "2Gi"}}),
        (
            [one(cpu=("2", "2"), memory=("1Gi", None)), one("i", "init")],
            {"app": {"memory": "1Gi"}, "i": {"cpu": "2", "memory": "1Gi"}},
        ),
        # the first one's memory is unknown
        ([one("first", cpu=(None, "1")), APP, one("i", "init")], None),
        ([one(cpu=("2", "2")), one("i", "init")], None),
        ([APP, one("s", "sidecar", ("100m", None))], None),
        ([APP, one("b")], None),
    ],
)
def test_the_values_of_a_patch(containers, values):
    found = advice(item(*containers))
    if values is None:
        assert found.patch is None
        assert found.command is None
        assert "choose " in found.text
    else:
        assert patched(found) == values
        assert found.command


@pytest.mark.parametrize(
    ("containers", "words"),
    [
        (
            [one(cpu=("2", "2")), one("i", "init")],
            (
                "choose memory for container app, as request and limit; choose memory for init"
                " container i, as request and limit"
            ),
        ),
        (
            [APP, one("s", "sidecar")],
            "choose CPUs for sidecar s, as request and limit; choose memory for sidecar s",
        ),
        (
            [APP, one("i", "init", ("4", None), (None, "1Mi"))],
            "init container i asks for more cpu than container app: the pod needs 4 to start",
        ),
        (
            [APP, one("b", cpu=("100m", "1"), memory=(None, "1"))],
            "container b requests 1 cpu instead of 100m, and with a whole number CPUs of its own",
        ),
        (
            [APP, one("s", "sidecar", ("100m", None), (None, "1"))],
            "sidecar s gets a limit of 100m cpu, what it requests now",
        ),
        (
            [APP, INIT],
            (
                "patch Deployment n/d, which rolls its pods out again: give as requests and limits"
                " init container i cpu 2 and memory 1Gi"
            ),
        ),
    ],
)
def test_what_a_patch_costs_or_lacks_is_said(containers, words):
    assert words in advice(item(*containers)).text


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (
            [item(APP, INIT, manager={"tool": "Helm", "name": "shop"})],
            (
                "Helm shop owns Deployment n/d and would undo a patch, so change it there: give as"
                " requests"
            ),
        ),
        (
            [item(APP, INIT, manager={"tool": "operator", "name": None})],
            "operator owns Deployment n/d",
        ),
        (
            [item(APP, one("s", "sidecar"), manager={"tool": "Helm", "name": "shop"})],
            "so change it there: choose CPUs for sidecar s",
        ),
        (
            [pod(APP, INIT, owner=None)],
            (
                "a bare pod cannot be changed, so create it again: give as requests and limits init"
                " container i cpu 2"
            ),
        ),
        (
            [pod(APP, INIT, owner=("Job", "j"))],
            "a Job cannot be changed, so create it again: give as",
        ),
        (
            [pod(APP, INIT, owner=("Node", "w1"))],
            "a static pod, so change its manifest on its node: give as",
        ),
        (
            [pod(APP, INIT, owner=("Rollout", "r"))],
            "change Rollout n/r where it is defined: give as",
        ),
        (
            [pod(APP, INIT)],
            "the template of Deployment n/d is not at fault, so look for a LimitRange or webhook",
        ),
        (
            [pod(APP, one("mesh", injected=True))],
            (
                "container mesh is in the pods and not in the template: give it requests that equal"
                " its limits where"
            ),
        ),
        (
            [
                pod(
                    APP,
                    pod_level={
                        "cpu_request": None,
                        "cpu_limit": "1",
                        "memory_request": None,
                        "memory_limit": None,
                    },
                )
            ],
            "give spec.resources of the pod CPU and memory",
        ),
        (
            [item(one(cpu=("500m", None)), expected=True)],
            "give the container that is to be pinned a whole number of CPUs",
        ),
    ],
)
def test_why_there_is_no_patch(items, words):
    found = advice(*items)
    assert found.patch is None
    assert found.command is None
    assert words in found.text


def test_an_injected_container_is_named_beside_the_patch_of_the_template():
    found = advice(item(APP, INIT), pod(APP, INIT, one("mesh", "sidecar", injected=True)))
    assert patched(found) == {"i": {"cpu": "2", "memory": "1Gi"}}
    assert "sidecar mesh is in the pods and not in the template" in found.text


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("StatefulSet", ["spec", "template"]),
        ("CronJob", ["spec", "jobTemplate", "spec", "template"]),
    ],
)
def test_where_the_template_lies(kind, path):
    found = advice(item(APP, INIT, kind=kind))
    body = found.patch
    for key in path:
        assert list(body) == [key]
        body = body[key]
    assert body["spec"]["initContainers"][0]["name"] == "i"
    assert ("for the Jobs that it makes from then on" in found.text) is (kind == "CronJob")
    assert shlex.split(found.command)[:7] == [
        "kubectl",
        "-n",
        "n",
        "patch",
        kind.lower(),
        "d",
        "--type=strategic",
    ]


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40), st.text(max_size=20))
def test_whatever_a_container_is_called_the_command_is_one_shell_word_each(name, other, tail):
    found = advice(
        item(APP, one(name, "init"), one(other + tail, "sidecar", ("1m", None), (None, "1")))
    )
    words = shlex.split(found.command)
    assert words[:8] == ["kubectl", "-n", "n", "patch", "deployment", "d", "--type=strategic", "-p"]
    assert len(words) == 9
    assert json.loads(words[8]) == found.patch
    assert "\n" not in found.command
    assert found.command.isascii()


@pytest.mark.parametrize("name", ["-p", "$(reboot)", "a b", "a\nb", "A", "", "a" * 254, "../x"])
def test_an_owner_of_no_name_that_kubernetes_allows_gets_no_command(name):
    for more in ({"name": name}, {"namespace": name}):
        assert advice(item(APP, INIT, **more)).command is None


def test_expectation_beyond_whole_cpus():
    fraction = item(
        one(cpu=("1500m", "1500m"), memory=(None, "1Gi")),
        one("idle", memory=(None, "1Mi")),
        expected=True,
    )
    facts(
        qos.describe_lacks(qos.lacks(fraction)),
        "container idle",
        "no limits.cpu",
        "container app",
        "limits.cpu 1500m",
        "whole",
    )
    assert qos.target(fraction) is None


def test_owners_are_put_together():
    found = qos.subjects(
        pinnable.Pinnable(
            (
                item(APP, INIT),
                pod(APP, INIT),
                pod(APP, INIT, name="q"),
                pod(APP, INIT, owner=None, name="bare"),
                pod(APP, INIT, owner=("Node", "w1"), name="static"),
            )
        )
    )
    assert [(one_.title, one_.template is not None, len(one_.pods)) for one_ in found] == [
        ("Deployment n/d", True, 2),
        ("Pod n/bare", False, 1),
        ("Pod n/static", False, 1),
    ]
