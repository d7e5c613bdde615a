# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where k3s and RKE2 are told what a last log line names."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    supervisor,
)

FILE = "/etc/rancher/k3s/config.yaml"
UNIT_FILE = "/etc/systemd/system/k3s.service"


def of_k3s(world: Any, *settings: tuple[int, str, str | None], words: tuple[str, ...] = ()) -> Any:
    kubelet = world.data("m1", "kubelet")
    kubelet["unit"] |= {
        "name": "k3s.service",
        "fragment_path": UNIT_FILE,
        "start_words": ["/usr/local/bin/k3s", "server", *words],
    }
    rows = [{"line": line, "key": key, "value": value} for line, key, value in settings]
    kubelet["distribution"] = {
        "program": "k3s",
        "files": [{"path": FILE, "error": None, "settings": rows}],
    }
    found = supervisor.read(world.documents["m1"])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("message", "keys", "texts"),
    [
        (
            r"apiserver exited: invalid argument \"A=false\" for \"--feature-gates\" flag: locked",
            (),
            [f"kube-apiserver-arg in {FILE}:5"],
        ),
        # another value than the one that is refused, as far as it can be seen
        (
            r"apiserver exited: invalid argument \"C=x\" for \"--feature-gates\" flag: no",
            (),
            [f"kube-apiserver-arg in {FILE}:4", f"kube-apiserver-arg in {FILE}:5"],
        ),
        ("scheduler exited: unknown flag: --feature-gates", (), []),
        ("no-deploy flag is deprecated.", ("no-deploy",), [f"no-deploy in {FILE}:7"]),
        ("flag provided but not defined: -no-deploy", (), [f"no-deploy in {FILE}:7"]),
        ("starting: 401 Unauthorized", ("token", "token-file"), [f"token in {FILE}:8"]),
        ("invalid cluster-cidr x", ("cluster-cidr",), []),
        (
            "--flannel-backend must be vxlan",
            (),
            [f"flannel-backend in {UNIT_FILE}"],
        ),
        (
            "etcd exited: unknown flag: --quota",
            (),
            [f"etcd-arg in {UNIT_FILE}"],
        ),
    ],
)
def test_what_a_line_names_has_its_place(world, message, keys, texts):
    owner = of_k3s(
        world,
        (4, "kube-apiserver-arg", "feature-gates=B=true"),
        (5, "kube-apiserver-arg", "--feature-gates=A=false"),
        (6, "kubelet-arg", "feature-gates=A=false"),
        (7, "no-deploy", "traefik"),
        (8, "token", None),
        words=("--flannel-backend", "none", "--etcd-arg=quota=1", "--disable"),
    )
    assert [place.text for place in supervisor.named(owner, message, keys)] == texts


def test_a_kubelet_of_its_own_unit_has_no_such_owner(world):
    assert supervisor.read(world.documents["m1"]) is None


def test_without_its_files_the_unit_is_left(world):
    of_k3s(world, words=("--no-deploy", "traefik"))
    world.data("m1", "kubelet")["distribution"] = None
    owner = supervisor.read(world.documents["m1"])
    assert [place.text for place in owner.key("no-deploy")] == [f"no-deploy in {UNIT_FILE}"]
    assert owner.file == FILE


def test_places_are_evidence_with_their_lines(world):
    owner = of_k3s(world, (7, "kubelet-arg", "max-pods=x"))
    (proof,) = supervisor.proofs(owner.flag("kubelet-arg", "max-pods"), "m1")
    assert (proof.path, proof.line, proof.text) == (FILE, 7, "kubelet-arg: max-pods=x")


@pytest.mark.parametrize(
    ("settings", "words", "text", "server"),
    [
        ((), (), "K3S_TOKEN=****\n", ""),
        ((), (), "K3S_TOKEN=****\nK3S_URL='https://192.0.2.9:6443'\n", "192.0.2.9:6443"),
        (((1, "server", "https://api.example:6443"),), (), "", "api.example:6443"),
        ((), ("--server", "https://192.0.2.8:6443/"), "", "192.0.2.8:6443"),
    ],
)
def test_the_server_that_it_is_told_to_join(world, settings, words, text, server):
    record = {"path": "/etc/systemd/system/k3s.service.env", "text": text}
    world.data("m1", "kubelet")["unit"]["environment_files"] = [record]
    assert of_k3s(world, *settings, words=words).server == server
