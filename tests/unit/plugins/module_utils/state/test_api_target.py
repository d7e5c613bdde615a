# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of API objects that entries are about: their path, their bytes, and no answer."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.state import api_target
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from tests.unit.support.fake_api import UID, Api, made

REAL = "configmap:kube-system/kubeadm-config#ClusterConfiguration"
PATH = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
INTENT = {"real": REAL, "path": "kubeadm-config", "via": {"cluster_uid": UID}}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Api]":
    monkeypatch.setattr(api_target, "_away", {})
    with made(monkeypatch, Api()) as api:
        api.put(PATH, {"metadata": {}, "data": {"ClusterConfiguration": "text \xe9"}})
        yield api


def test_the_parts_of_a_text() -> None:
    assert api_target.parts(REAL) == ("kube-system", "kubeadm-config", "ClusterConfiguration")
    assert api_target.url_of(REAL) == PATH
    assert api_target.url_of("workload:/apis/apps/v1/x") == "/apis/apps/v1/x"


@pytest.mark.parametrize(
    "real",
    [
        *("configmap:a/b", "configmap:a/b/c#d", REAL + "\n", "configmap:A/b#c"),
        *("configmap:../b#c", "configmap:a/..#c", "configmap:./b#c", "configmap:a/.#c"),
        "configmap:a/b#..",
    ],
)
def test_what_names_no_text_is_refused(real: str) -> None:
    with pytest.raises(ChangeError, match="names no text of a ConfigMap"):
        api_target.url_of(real)


def test_the_digest_is_of_the_text_as_it_is(fake: Api) -> None:
    assert api_target.present(INTENT) == hashlib.sha256("text \xe9".encode()).hexdigest()


@pytest.mark.parametrize("data", [None, {}, {"ClusterConfiguration": 7}, []])
def test_a_text_that_is_gone_is_none(fake: Api, data: Any) -> None:
    fake.put(PATH, {"metadata": {}, "data": data})
    assert api_target.present(INTENT) is None
    del fake.objects[PATH]
    assert api_target.present(INTENT) is None


def test_another_cluster_is_not_asked(fake: Api) -> None:
    with (
        pytest.raises(ApiError, match="leads to another cluster"),
        api_target.reached({"cluster_uid": "another"}),
    ):
        pass


def test_an_api_that_is_away_is_asked_once(fake: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_target, "AWAY_SECONDS", 60)
    fake.up = False
    with pytest.raises(ChangeError, match="the API does not answer"):
        api_target.present(INTENT)
    fake.up = True
    with pytest.raises(ChangeError, match="the API does not answer"):
        api_target.present(INTENT)
