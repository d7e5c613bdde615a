# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret leaves in a bundle.

The tests plant one into every string of every recorded document, in every form.
"""

from __future__ import annotations

import base64
import copy
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.bundle import redact

FOLDER = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
CASES = sorted(path.name for path in FOLDER.iterdir())
SECRET = "Zx9QmplantedT7w2"
KEY = (
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}{'A' * 48}\n{SECRET}\n-----END RSA PRIVATE KEY-----"
)
ENCODED = base64.b64encode(KEY.encode()).decode()
HEAD = base64.b64encode(b'{"alg":"RS256","kid":"x"}').decode().rstrip("=")
FORMS = {
    "bearer": f"Authorization: Bearer {SECRET}{SECRET}",
    "bearer in a log": (
        f'round_trippers.go:466] curl -H "Authorization: Bearer {SECRET}" https://10.0.0.1:6443/api'
    ),
    "basic": f"authorization: Basic {SECRET}==",
    "private key": f"\n{KEY}\n",
    "private key on one line": KEY.replace("\n", "\\n"),
    "private key in base64": f"client-key-data: {ENCODED}",
    "private key in base64, bare": ENCODED,
    "kubeconfig": f"\nusers:\n- name: admin\n  user:\n    token: {SECRET}\n",
    "kubeconfig in JSON": json.dumps(
        {"users": [{"name": "a", "user": {"token": SECRET, "password": SECRET}}]}
    ),
    "URL with a password": f"https://bob:{SECRET}@registry.corp.example.com/v2/",
    "URL with a token": f"https://{SECRET}@git.corp.example.com/a.git",
    "proxy": f"HTTPS_PROXY=http://bob:{SECRET}@proxy:3128",
    "environment of a container": f"\n    env:\n    - name: DB_PASSWORD\n      value: {SECRET}\n",
    "environment of a container in JSON": json.dumps(
        {"env": [{"name": "WHATEVER", "value": SECRET}]}
    ),
    "environment of a unit": f'\n[Service]\nEnvironment="DB_PASSWORD={SECRET}"\n',
    "environment of a unit, an innocent name": f"\n[Service]\nEnvironment=ANYTHING={SECRET}\n",
    "flag": f"/usr/bin/kubelet --token={SECRET} --v=2",
    "flag in two words": (
        f"kubeadm join 10.0.0.1:6443 --token {SECRET} --discovery-token-unsafe-skip-ca-verification"
    ),
    "bootstrap token": "kubeadm join with zx9qmp.lantedt7w2zx9qmp or so",
    "service account": f"{HEAD}.{HEAD}.{SECRET}{SECRET}",
    "cloud key": f"aws_access_key_id = AKIA{'Z' * 16}\naws_secret_access_key = {SECRET}",
    "cloud key, bare": "AKIAZX9QMPLANTEDT7W2",
    "cloud config": f"\n[Global]\npassword = {SECRET}\nsecret-key={SECRET}\n",
    "account key": (
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}{SECRET}=="
        ";EndpointSuffix=b"
    ),
    "signed URL": f"https://a.blob/x?sv=2020&sig={SECRET}%3D",
    "GitHub": f"ghp_{SECRET}{SECRET}",
    "docker": json.dumps({"auths": {"registry": {"auth": f"{SECRET}{SECRET}"}}}),
    "password in a log": f"login failed password={SECRET} for bob",
    "user of curl": f"curl -u admin:{SECRET} https://x",
    "user of curl, the long flag": f"curl --user admin:{SECRET}",
    "user of curl, one word": f"curl -sk -uadmin:{SECRET} --proxy-user=bob:{SECRET}",
    "user of curl, in quotes": f"curl -u 'admin:two {SECRET}' https://x",
    "user of curl in a log": f'"curl -u \\"admin:{SECRET}\\" https://x"',
    "password with a slash in a URL": f"mysql://u:pa/{SECRET}@h:3306/db",
    "password that begins as a port does": f"amqp://bob:8080/{SECRET}@h",
    "password that begins as a port does, without a user": f"redis://:6379#{SECRET}@h/0",
    "password with a question mark in a URL": f"redis://:pa?{SECRET}@h",
    "passphrase of several words": f'passphrase "two {SECRET} words"',
    "password of several words in a log": f"wrong password 'two {SECRET}' for bob",
    "short bearer": "Bearer   lantedt7w2",
    "short bearer of letters": "bearer\tzx9qmplanted",
    "database": f"postgres://app:{SECRET}@db:5432/app?sslmode=disable",
}
MARKS = (SECRET.lower(), "lantedt7w2", ENCODED[40:80].lower(), "zx9qmplanted")


def held(value):
    return json.dumps(value, ensure_ascii=False).lower()


def planted(value, number):
    """Return a copy in which every string has a secret after it, each the next form."""
    texts = list(FORMS.values())
    if isinstance(value, str):
        number[0] += 1
        return f"{value} {texts[number[0] % len(texts)]}"
    if isinstance(value, dict):
        return {name: planted(item, number) for name, item in value.items()}
    if isinstance(value, list):
        return [planted(item, number) for item in value]
    return value


@pytest.mark.parametrize("case", CASES)
def test_no_planted_secret_is_left_in_any_field(case):
    for path in sorted((FOLDER / case / "evidence").glob("*.json")):
        document = planted(json.loads(path.read_text(encoding="utf-8")), [CASES.index(case)])
        assert SECRET.lower() in held(document)
        told = held(redact.document(document))
        for mark in MARKS:
            assert mark not in told, told[max(0, told.find(mark) - 300) : told.find(mark) + 60]


@pytest.mark.parametrize("case", CASES)
def test_recorded_evidence_has_no_secret_and_stays_as_it_is(case):
    for path in (FOLDER / case / "evidence").glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        before = copy.deepcopy(document)
        assert redact.document(document) == before
        assert document == before


@pytest.mark.parametrize("name", FORMS)
def test_each_form_alone(name):
    told = redact.text(FORMS[name])
    assert not any(mark in told.lower() for mark in MARKS)
    assert len(told) == len(FORMS[name])


@pytest.mark.parametrize(
    "value",
    [
        {"token": SECRET},
        {"env": {"ANYTHING": SECRET}},
        {"environment": {"x": [SECRET]}},
        {"name": "API", "value": SECRET},
        {"argv": ["--token", SECRET]},
        {"argv": ["curl", "-u", f"admin:{SECRET}"]},
        {"argv": ["curl", "--user", f"admin:two {SECRET}"]},
        {"argv": ["kubelet", f"--token={SECRET}"]},
        {"split": [["MY_SECRET", SECRET]]},
        {"annotations": {f"https://a:{SECRET}@b/": "x"}},
        {"labels": {"a": f"Bearer {SECRET}"}},
        {"clientSecret": SECRET},
        {"deep": [[{"password": {"value": [SECRET]}}]]},
    ],
)
def test_by_where_it_stands(value):
    assert SECRET.lower() not in held(redact.document(value))


@pytest.mark.parametrize(
    "text",
    [
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--service-account-key-file=/etc/kubernetes/pki/sa.pub",
        "secretName: tls",
        "token: ",
        "https://10.0.0.1:6443 as /etc/kubernetes/admin.conf",
        "[+]serviceaccount-token-controller ok",
        "mode: Webhook",
        "--use-service-account-credentials=true",
        "enable-bootstrap-token-auth=true",
        "Environment=KUBELET_EXTRA_ARGS=--node-ip=10.0.0.1",
        "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----",
        "docker run -u 1000:1000 --user 0:0",
        "journalctl -u kubelet -n 5",
        "etcdctl -u https://10.0.0.1:2379",
        'secret "kube-system/tls" not found',
        "docker-pullable://registry:5000/a/b@sha256:0123",
        "http://10.0.0.1:8080/x?mail=a@b",
        'Bearer realm="x"',
        "a bearer token, bearer tokens and bearer auth",
        "http://localhost:10248/healthz?for=a@b",
        "docker-pullable://m1.corp:5000/a@sha512:0123",
        "https://m1:6443/api/v1/pods",
        "wrong password, enter the passphrase",
        "failed to get token: unauthorized"[:19],
        "authorization:\n  mode: Webhook",
    ],
)
def test_what_is_none_stays(text):
    assert redact.text(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("curl -u admin:hunter2 https://x", "curl -u admin:******* https://x"),
        ("curl --user admin:hunter2", "curl --user admin:*******"),
        ("mysql://u:pa/ss@h", "mysql://u:*****@h"),
        ("https://user:8080x@h", "https://user:*****@h"),
        ("https://user:80/x@h", "https://*********@h"),
        ('passphrase "two words here"', 'passphrase "**************"'),
        ("Bearer   abcdefgh", "Bearer   ********"),
    ],
)
def test_what_is_left_of_it(text, told):
    assert redact.text(text) == told == redact.text(told)


@pytest.mark.parametrize(
    "part",
    [
        "://a:",
        "://a:/",
        "://a:8/",
        "://1.1.1.1:8/",
        "://a:b/",
        "-u ",
        '-u "a:',
        "-u 'a:",
        "-u a:*",
        "--user a",
        "bearer a",
        "bearer ",
        "password 'a",
        'passphrase "',
        "\\",
        "a",
        "*",
        " ",
    ],
)
@pytest.mark.parametrize("head", ["", "@ -u a:", "://u:p/", 'passphrase "', "bearer "])
def test_no_text_takes_long(head, part):
    begin = time.process_time()
    redact._form_spans((head + part * (200000 // len(part)) + " @ bearer -u pass").encode())
    assert time.process_time() - begin < 5


def test_files_of_a_units_environment_keep_flags_only():
    text = (
        f'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\nKUBELET_EXTRA_ARGS=\nINNOCENT={SECRET}\nexport'
        f' OTHER="{SECRET}"\nLEVEL=4\n# a comment\n'
    )
    told = redact.document(
        {
            "environment_files": [
                {"path": "/etc/default/kubelet", "text": text, "masked": [], "size": len(text)}
            ]
        }
    )["environment_files"][0]
    assert SECRET not in told["text"]
    assert len(told["text"]) == len(text)
    assert (
        'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1"\nKUBELET_EXTRA_ARGS=\nINNOCENT=' in told["text"]
    )
    assert "LEVEL=4\n# a comment\n" in told["text"]
    for start, end in told["masked"]:
        assert set(told["text"][start:end]) == {"*"}


def test_a_files_masked_places_are_told_in_bytes():
    text = f"# ä\ntoken: {SECRET}\nä: 1\n"
    told = redact.document({"text": text, "masked": [], "size": len(text.encode())})
    ((start, end),) = told["masked"]
    assert told["text"].encode()[start:end] == b"*" * len(SECRET)
    assert len(told["text"].encode()) == told["size"]


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=60)
    | st.sampled_from(sorted(FORMS.values())),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=12)
            | st.sampled_from(["text", "masked", "token", "env", "value", "name"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=8), TREES, max_size=3))
def test_any_document_keeps_its_shape_and_no_secret_and_twice_is_once(document):
    told = redact.document(document)
    assert not any(mark in held(told) for mark in MARKS)
    assert redact.document(told) == told
    assert json.loads(json.dumps(told)) == told


@given(st.text(max_size=80), st.sampled_from(sorted(FORMS)), st.sampled_from(["\n", " ", "\n\n"]))
def test_whatever_stands_before_it(before, name, between):
    told = redact.text(before + between + FORMS[name])
    assert not any(mark in told.lower() for mark in MARKS)
    assert len(told.encode("utf-8", "surrogatepass")) == len(
        (before + between + FORMS[name]).encode("utf-8", "surrogatepass")
    )


@given(
    st.from_regex(r"[a-z][a-z0-9._-]{0,12}", fullmatch=True).filter(
        lambda name: name != "localhost"
    ),
    st.from_regex(r"[0-9]{1,6}", fullmatch=True),
    st.text("/?#:abz09.,;=&%+-", max_size=60),
    st.sampled_from(["https", "http", "amqp", "redis"]),
    st.text("/?#:x8", max_size=20),
)
def test_a_password_in_a_url_that_begins_as_a_port_does(user, digits, middle, scheme, end):
    told = redact.text(f"see {scheme}://{user}:{digits}{middle}{SECRET}{end}@h.example.com/x y")
    assert SECRET not in told
    assert told.startswith(f"see {scheme}://")
    assert told.endswith("@h.example.com/x y")
    assert redact.text(told) == told


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("K3S_URL=https://192.0.2.9:6443", True),
        ("RKE2_URL='https://[2001:db8::9]:9345'", True),
        ("K3S_URL=https://admin:hunter2@192.0.2.9:6443", False),
        ("K3S_TOKEN=https://192.0.2.9", False),
        ("OTHER_URL=https://192.0.2.9", False),
    ],
)
def test_the_server_of_an_agent_stays_in_its_environment(line, is_kept):
    record = {"path": "/etc/k3s.env", "text": f"{line}\n", "masked": []}
    clean = redact.document({"environment_files": [record]})["environment_files"][0]
    assert (clean["text"] == record["text"]) is is_kept
