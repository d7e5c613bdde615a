# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Static pod manifests as the kubelet reads them, and the place of each argument."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    pod_manifest,
)

POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: s, namespace: kube-system}\nspec:\n  containers:\n"
    "  - name: s\n    image: registry:5000/kube-scheduler:v1.20.2\n"
)


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("    command:\n    - kube-scheduler\n    - --v=2\n", ["kube-scheduler", "--v=2"]),
        ("    command: [kube-scheduler, '--v=2']\n", ["kube-scheduler", "--v=2"]),
        (
            '    command: ["kube-scheduler"]\n    args:\n    - "--v=2" # why\n',
            ["kube-scheduler", "--v=2"],
        ),
        ("    command:\r\n    - kube-scheduler\r\n    - --v=2\r\n", ["kube-scheduler", "--v=2"]),
        (
            "    command: [sh, -c, 'exec kube-scheduler --v=2 2>&1']\n",
            ["sh", "-c", "exec", "kube-scheduler", "--v=2", "2>&1"],
        ),
        (
            "    command: [kube-scheduler, '--policy-configmap=a --v=2']\n",
            ["kube-scheduler", "--policy-configmap=a --v=2"],
        ),
        (
            "    env: [{name: L, value: '2'}]\n    command: [kube-scheduler, --v=$(L)]\n",
            ["kube-scheduler", "--v=2"],
        ),
    ],
)
def test_words_of_every_form(listed, words):
    container = pod_manifest.parse(POD + listed).containers[0]
    assert container.words[0] == words
    assert container.component == "kube-scheduler"
    assert container.version == (1, 20)


def test_the_place_of_an_argument_is_exact():
    text = (
        POD + '    command:\n    - kube-scheduler\n    - é\n    - "--leader-elect=false"   # off\n'
    )
    argument = pod_manifest.parse(text).containers[0].arguments[2]
    assert text[argument.start : argument.end] == '"--leader-elect=false"'
    assert text.splitlines()[argument.line - 1].strip().startswith('- "--leader-elect')


def test_only_the_first_document_counts():
    assert pod_manifest.parse(POD + "    command: [a]\n---\nkind: Other\n").containers[0].argv == [
        "a"
    ]


def test_json_is_yaml():
    found = pod_manifest.parse(
        '{"kind": "Pod", "metadata": {"name": "s"}, "spec": {"containers": [{"name":'
        ' "kube-scheduler","command": ["kube-scheduler", "--leader-elect=false"]}]}}'
    )
    assert found.containers[0].argv[1] == "--leader-elect=false"


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("", "empty", None),
        ("# only a comment\n", "empty", None),
        ("- a\n", "not a mapping", None),
        ("kind: ConfigMap\n", "not Pod", 1),
        ("kind: Pod\nspec: {containers: []}\n", "missing or empty", None),
        ("kind: Pod\nspec:\n  a: [\n", "", 4),
        ("kind: Pod\n\tspec: 1\n", "tab", 2),
        ("{{ template }}", "", None),
    ],
)
def test_what_the_kubelet_drops(text, problem, line):
    with pytest.raises(pod_manifest.ManifestError) as caught:
        pod_manifest.parse(text)
    assert problem in caught.value.problem
    if line:
        assert caught.value.line == line


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("    command:\n    - kube-apiserver\n    - --oidc-groups-prefix=oidc:\n", "a colon"),
        ("    args:\n    - --feature: true\n", "an item of args is a map"),
        ("    args:\n    - [a]\n", "a list"),
        ("    args:\n    - 5\n", "a number"),
        ("    args:\n    - true\n", "a truth value"),
        ("    env:\n    - {name: L, value: 2}\n", "the value of L in env"),
    ],
)
def test_a_word_that_is_no_text_for_yaml_is_refused_with_its_line(listed, problem):
    with pytest.raises(pod_manifest.ManifestError, match="needs quotes") as caught:
        pod_manifest.parse(POD + listed)
    assert problem in caught.value.problem
    assert caught.value.line == (POD + listed).count("\n")


@pytest.mark.parametrize("word", ["'5'", '"oidc:"', "1:20", "a:b", "~", "0x10", "2024-01-01"])
def test_a_word_that_the_kubelet_may_take_for_text_is_kept(word):
    assert pod_manifest.parse(POD + f"    command:\n    - a\n    - {word}\n").containers


def test_aliases_that_explode_are_refused():
    levels = "".join(
        f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'x, x, x, x, x, x, x, x, x'}]\n"
        for n in range(9)
    )
    with pytest.raises(pod_manifest.ManifestError, match="more than"):
        list(pod_manifest.scalars(levels))
