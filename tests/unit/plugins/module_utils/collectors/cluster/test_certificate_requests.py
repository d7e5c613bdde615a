# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests of kubelets for a certificate the evidence has, and what of them."""

import base64
import json

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    certificate_requests,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.fake_client import ItemClient

LONG = "a" * 50  # a common name has 64 characters at most, and a kubelet of more does not start


def pem(common_name):
    """Return a request as the API has it."""
    names = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, common_name),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    request = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


def item(name="csr-1", created="2027-01-15T08:00:00Z", certificate=None, conditions=(), node="w1"):
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {
            "request": pem(f"system:node:{node}"),
            "username": "system:bootstrap:abcdef",
            "groups": ["system:bootstrappers"],
            "signerName": certificate_requests.CLIENT,
        },
        "status": {
            "certificate": certificate,
            "conditions": [{"type": kind, "status": "True"} for kind in conditions],
        },
    }


@pytest.mark.parametrize("name", ["w1", "node-1.example.com", LONG])
def test_the_node_that_a_request_is_for(name):
    assert certificate_requests.node_of(pem(f"system:node:{name}")) == name


def test_a_long_form_of_the_length():
    name = b"system:node:" + b"n" * 200
    der = b"\x30\x0c\x81" + bytes([len(name)]) + name + b"0more"
    text = b"-----BEGIN-----\n" + base64.b64encode(der) + b"\n-----END-----\n"
    assert certificate_requests.node_of(base64.b64encode(text)) == "n" * 200


@pytest.mark.parametrize(
    "request_text",
    [
        None,
        "",
        "no base64 at all",
        7,
        pem("admin"),
        pem("system:node:"),
        pem("system:node:a b"),
        base64.b64encode(base64.b64encode(b"system:node:w1")).decode(),
        base64.b64encode(base64.b64encode(b"\x30\x0c\xffsystem:node:w1")).decode(),
    ],
)
def test_a_request_of_no_node(request_text):
    assert certificate_requests.node_of(request_text) is None


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ((), "waiting"),
        (("Approved",), "approved"),
        (("Denied",), "denied"),
        (("Approved", "Failed"), "failed"),
    ],
)
def test_the_state_of_a_request(conditions, state):
    assert certificate_requests.request_of(item(conditions=conditions)) == {
        "name": "csr-1",
        "node": "w1",
        "user": "system:bootstrap:abcdef",
        "created": "2027-01-15T08:00:00Z",
        "state": state,
    }


def test_what_was_issued_is_left_out_and_of_each_node_the_newest_is_kept():
    api = ItemClient(
        item("issued", certificate="LS0t", conditions=("Approved",)),
        item("older", "2027-01-15T07:00:00Z"),
        item("newer", "2027-01-15T07:30:00Z"),
        item("other", "2027-01-15T07:40:00Z", node="w2"),
        {},
    )
    rows = certificate_requests.unissued(api)
    assert [row["name"] for row in rows] == ["other", "newer"]
    assert api.asked == [
        (
            certificate_requests.PATHS[0],
            {"fieldSelector": "spec.signerName=" + certificate_requests.CLIENT},
        )
    ]
    assert "BEGIN" not in json.dumps(rows)


@pytest.mark.parametrize(
    ("limit", "number", "known"),
    [("MAX_READ", 3, True), ("MAX_READ", 4, False), ("MAX_KEPT", 3, True), ("MAX_KEPT", 4, False)],
)
def test_of_too_many_none_is_told(monkeypatch, limit, number, known):
    monkeypatch.setattr(certificate_requests, limit, 3)
    rows = certificate_requests.unissued(
        ItemClient(*(item(node=f"w{count}") for count in range(number)))
    )
    assert (rows is not None) is known


def test_an_older_release_and_missing_rights():
    class Older(ItemClient):
        def items(self, path, query=None, accept=None, restarts=3):
            if path.endswith("/v1/certificatesigningrequests"):
                raise ApiError("absent", "no such thing", 404)
            yield from super().items(path, query)

    assert certificate_requests.unissued(Older(item()))[0]["node"] == "w1"
    assert certificate_requests.unissued(ItemClient(ApiError("denied", "no", 403))) is None
    assert certificate_requests.unissued(ItemClient(ApiError("absent", "no", 404))) is None


@pytest.mark.parametrize(
    "hostile",
    [
        {"metadata": [1]},
        {"spec": "x"},
        {"status": [1]},
        {"status": {"conditions": [{"type": ["Denied"]}]}},
    ],
)
def test_requests_of_an_unexpected_shape_are_not_known(hostile):
    assert certificate_requests.unissued(ItemClient(item(), {**item(), **hostile})) is None
