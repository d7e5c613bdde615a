# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of one kubelet changed in the file that has the last word, or refused with the place."""

from __future__ import annotations

import base64
import hashlib

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    kubelet_config as editing_kubelet_config,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing.draft import EditRefused
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    kubelet as kubelet_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    config as kubelet_config,
)
from tests.unit.support import answers

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


def record(path, text):
    return {
        "path": path,
        "text": text,
        "size": len(text.encode()),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "masked": [],
        "error": None,
    }


def kubelet(text, *argv, dropin=None):
    return {
        "argv": ["kubelet", "--config=/c.yaml", *argv],
        "config": record("/c.yaml", text),
        "config_dropins": [record("/d.conf", dropin)] if dropin else [],
    }


def edited(evidence, wanted):
    return editing_kubelet_config.edited(answers.typed(kubelet_answer.Kubelet, evidence), wanted)


def applied(text, change):
    data, moved = text.encode(), 0
    assert change["sha256"] == hashlib.sha256(data).hexdigest()
    for start, end, *encoded in change["splices"]:
        old, new = map(base64.b64decode, encoded)
        assert data[start + moved : end + moved] == old
        data = data[: start + moved] + new + data[end + moved :]
        moved += len(new) - len(old)
    return data.decode()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (HEAD, HEAD + 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n'),
        (
            HEAD + "cpuManagerPolicy: none  # why\nreservedSystemCPUs: '1'\n",
            HEAD + "cpuManagerPolicy: static  # why\nreservedSystemCPUs: '0'\n",
        ),
        (HEAD + "# first\ncpuManagerPolicy: none\n# last\n", None),
        (HEAD.rstrip("\n"), None),
        ("{cpuManagerPolicy: none, kind: KubeletConfiguration}\n", None),
        ("{}\n", None),
        (HEAD + "ä: 1\nreservedSystemCPUs: '1'\n# ö\ncpuManagerPolicy: none\n", None),
        (
            HEAD + 'reservedSystemCPUs: "0"\n',
            HEAD + 'reservedSystemCPUs: "0"\ncpuManagerPolicy: static\n',
        ),
    ],
)
def test_in_the_file(text, after):
    found = edited(kubelet(text), STATIC)
    (change,) = found.changes
    made = applied(text, change)
    assert made == found.kubelet.config.text
    assert after is None or made == after
    config = kubelet_config.read(
        answers.typed(kubelet_answer.Kubelet, {**kubelet(text), "config": record("/c.yaml", made)})
    )
    assert {
        key: config.setting(key, flag).value for key, flag in editing_kubelet_config.FLAGS.items()
    } == STATIC
    assert all(line in made for line in text.splitlines() if line.startswith("#"))
    assert found.diff.startswith("--- /c.yaml")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (HEAD, HEAD),
        (HEAD + "reservedSystemCPUs: ''\n", HEAD + "reservedSystemCPUs: ''\n"),
        (
            HEAD + "reservedSystemCPUs: '0-1'  # ours\nport: 1\n",
            HEAD + "reservedSystemCPUs: ''  # ours\nport: 1\n",
        ),
    ],
)
def test_a_list_that_is_taken_away(text, after):
    found = edited(kubelet(text), {"reservedSystemCPUs": ""})
    assert [applied(text, change) for change in found.changes] == ([after] if text != after else [])
    assert found.told == ("reservedSystemCPUs: none (was 0-1)" if text != after else "")


def test_what_is_so_already_changes_nothing():
    found = edited(kubelet(HEAD + "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"), STATIC)
    assert (found.changes, found.diff) == ((), "")
    assert (
        edited(kubelet(HEAD, "--cpu-manager-policy=static", "--reserved-cpus=0"), STATIC).changes
        == ()
    )


def test_a_drop_in_that_has_the_last_word_is_the_place():
    found = edited(
        kubelet(HEAD + "reservedSystemCPUs: '0'\n", dropin=HEAD + "cpuManagerPolicy: none\n"),
        STATIC,
    )
    assert [one["path"] for one in found.changes] == ["/d.conf"]
    assert "cpuManagerPolicy: static" in found.kubelet.config_dropins[0].text


def test_a_secret_in_the_way_is_not_overwritten():
    evidence = kubelet(HEAD + "cpuManagerPolicy: none\ntoken: xxxx\nreservedSystemCPUs: '1'\n")
    begin = evidence["config"]["text"].index("xxxx")
    evidence["config"]["masked"] = [[begin, begin + 4]]
    with pytest.raises(EditRefused, match="a secret stands"):
        edited(evidence, STATIC)
    assert edited(evidence, {"cpuManagerPolicy": "static"}).changes


@pytest.mark.parametrize("behind", ["", "other: hunter2\nport: 1\n"])
def test_a_masked_scalar_is_no_broken_yaml(behind):
    true = HEAD + "token: hunter2\ncpuManagerPolicy: none\nreservedSystemCPUs: '1'\n" + behind
    masked = true.replace("hunter2", "*******")
    evidence = kubelet(true)
    evidence["config"].update(
        text=masked,
        masked=[[at, at + 7] for at in range(len(masked)) if masked.startswith("*******", at)],
    )
    found = edited(evidence, STATIC)
    after = true.replace("none", "static").replace("'1'", "'0'")
    assert applied(true, found.changes[0]) == after
    assert (
        kubelet_config.read(found.kubelet).setting("cpuManagerPolicy", "cpu-manager-policy").value
        == "static"
    )
    assert " token: *******\n" in found.diff
    assert "xxxx" not in found.diff


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (
            kubelet(HEAD, "--cpu-manager-policy=none"),
            ["--cpu-manager-policy", "where the unit is made"],
        ),
        ({"argv": ["kubelet"], "config": None}, ["names no --config file"]),
        (kubelet("a: [\n"), ["/c.yaml"]),
        (kubelet("- a\n"), ["/c.yaml"]),
        (kubelet(HEAD + "cpuManagerPolicy: [none]\n"), ["/c.yaml"]),
    ],
)
def test_what_cannot_be_changed_is_refused_with_its_place(evidence, words):
    with pytest.raises(EditRefused) as refused:
        edited(evidence, STATIC)
    assert all(word in str(refused.value) for word in words), refused.value


@pytest.mark.parametrize(
    ("evidence", "path"),
    [
        (kubelet(HEAD), "/c.yaml"),
        ({"argv": [], "config": None, "config_dropins": [record("/d.conf", HEAD)]}, "/d.conf"),
        (
            kubelet(HEAD, dropin=HEAD + "cpuManagerPolicy: none\n"),
            "/d.conf",
        ),
        ({"argv": [], "config": None, "config_dropins": []}, "the kubelet's configuration"),
    ],
)
def test_a_change_that_would_not_count_names_a_file(evidence, path):
    known = answers.typed(kubelet_answer.Kubelet, evidence)
    with pytest.raises(EditRefused) as refused:
        editing_kubelet_config._verify(known, {"cpuManagerPolicy": "static"})
    assert str(refused.value).startswith(path)
