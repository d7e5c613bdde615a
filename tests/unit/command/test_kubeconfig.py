# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubeconfigs: what is read, and what is refused by its name."""

from __future__ import annotations

import base64
import copy

import pytest
import yaml
from kubemend import kubeconfig
from kubemend.wrong_input import WrongInput


def encoded(text):
    return base64.b64encode(text.encode()).decode()


KUBECONFIG = {
    "current-context": "a",
    "contexts": [
        {"name": "a", "context": {"cluster": "c", "user": "u"}},
        {"name": "b", "context": {"cluster": "c", "user": "other"}},
    ],
    "clusters": [
        {
            "name": "c",
            "cluster": {
                "server": "https://h:6443/k8s/c",
                "certificate-authority-data": encoded("CA"),
            },
        }
    ],
    "users": [
        {"name": "u", "user": {"token": " T\n"}},
        {
            "name": "other",
            "user": {"client-certificate-data": encoded("CERT"), "client-key": "pki/key.pem"},
        },
    ],
}


@pytest.fixture(name="document")
def _document():
    return copy.deepcopy(KUBECONFIG)


def written(folder, document):
    path = folder / "config"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def test_the_current_context_counts(tmp_path, document):
    access = kubeconfig.read(written(tmp_path, document))
    assert (access.server.hostname, access.server.port, access.server.path) == (
        "h",
        6443,
        "/k8s/c",
    )
    assert (access.authority, access.token, access.verified) == ("CA", "T", True)


def test_paths_are_relative_to_the_kubeconfig(tmp_path, document):
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "key.pem").write_text("KEY", encoding="utf-8")
    access = kubeconfig.read(written(tmp_path, document), "b")
    assert (access.certificate, access.key, access.token) == ("CERT", "KEY", None)


def test_the_file_of_a_token_goes_before_the_token(tmp_path, document):
    (tmp_path / "token").write_text("FILE\n", encoding="utf-8")
    document["users"][0]["user"]["tokenFile"] = "token"
    assert kubeconfig.read(written(tmp_path, document)).token == "FILE"


@pytest.mark.parametrize("value", [True, "true", 1])
def test_only_true_turns_the_check_of_the_server_off(tmp_path, document, value):
    document["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = value
    assert kubeconfig.read(written(tmp_path, document)).verified is (value is not True)


@pytest.mark.parametrize(
    ("place", "field", "value"),
    [
        ("users", "exec", {"command": "aws"}),
        ("users", "auth-provider", {"name": "gcp"}),
        ("users", "as", "root"),
        ("users", "username", "me"),
        ("clusters", "proxy-url", "socks5://x"),
    ],
)
def test_what_would_be_another_request_is_refused_by_its_name(
    tmp_path, document, place, field, value
):
    document[place][0][place[:-1]][field] = value
    with pytest.raises(WrongInput, match=f"has {field}, which kubemend does not support"):
        kubeconfig.read(written(tmp_path, document))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.pop("current-context"), "no current-context"),
        (lambda d: d.update({"current-context": "x"}), "no context x"),
        (lambda d: d.update(users=None), "no user u"),
        (lambda d: d.update(clusters=[5]), "no cluster c"),
        (lambda d: d.pop("contexts"), "no contexts"),
        (lambda d: d["contexts"][0].update(context="x"), "no cluster None"),
        (lambda d: d["clusters"][0]["cluster"].update(server="h:6443"), "no address of an API"),
        (lambda d: d["clusters"][0]["cluster"].update(server="https://h:x"), "no address"),
        (lambda d: d["clusters"][0]["cluster"].update(server="https://[h"), "no address"),
        (lambda d: d["clusters"][0]["cluster"].update(server="http://h"), "without TLS"),
        (
            lambda d: d["clusters"][0]["cluster"].update({"certificate-authority-data": "%"}),
            "no base64",
        ),
        (
            lambda d: d["clusters"][0]["cluster"].update(
                {"certificate-authority-data": "", "certificate-authority": "nowhere"}
            ),
            "nowhere, which cannot be read: No such file",
        ),
        (
            lambda d: d["users"][0]["user"].update({"client-certificate-data": encoded("C")}),
            "its key alone",
        ),
        (lambda d: d["users"][0]["user"].update(token="a\nb"), "characters that no token has"),
    ],
)
def test_a_wrong_kubeconfig_is_one_sentence(tmp_path, document, change, sentence):
    change(document)
    with pytest.raises(WrongInput, match=sentence):
        kubeconfig.read(written(tmp_path, document))


@pytest.mark.parametrize(
    ("text", "sentence"), [("a: [", "is no YAML"), ("- x", "no contexts"), ("\0", "is no YAML")]
)
def test_a_file_that_is_no_kubeconfig(tmp_path, text, sentence):
    (tmp_path / "config").write_text(text, encoding="utf-8")
    with pytest.raises(WrongInput, match=sentence):
        kubeconfig.read(str(tmp_path / "config"))


def test_a_kubeconfig_that_cannot_be_read(tmp_path):
    with pytest.raises(WrongInput, match="cannot be read: Is a directory"):
        kubeconfig.read(str(tmp_path))
