# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is a secret in text, what is not, and that no byte moves."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collect import files, mask

# text with what has to vanish in {braces of this kind}: «»
SECRETS = {
    "yaml": "token: «abc.def»\nother: 1\n",
    "quoted": 'token: "«x y»"\nother: 1\n',
    "quote in a quoted one": "password: '«it''s»'\n",
    "comment stays": "password: «abc» # of the old one\n",
    "crlf and umlaut": 'größe: ü\r\ntoken: "«ü»"\r\nx: 1\r\n',
    "block scalar": "password: |\n  «line1»\n  «line2»\nnext: 1\n",
    "folded over lines": "- token: «abc»\n    «def»\n  next: 1\n",
    "on the next line": "password:\n  «abc»\nnext: 1\n",
    "flow": "users: [{name: a, user: {token: «abc», x: y}}]\n",
    "json": '{"kind": "x", "token": "«abc»", "n": 1}',
    "json in json": '{"last": "{\\"password\\":\\"«abc»\\",\\"x\\":1}"}',
    "kubeconfig": "- name: a\n  user:\n    client-certificate-data: QUJD\n    client-key-data: «QUJD»\n",
    "flag": "    - --token=«abc»\n    - --leader-elect=true\n",
    "flag in two items": "    - --token\n    - «abc»\n    - --v=2\n",
    "flags in a string": 'command: ["sh", "-c", "run --password «hunter2» --client-secret=«s» --v 4"]\n',
    "env": "env:\n- name: DB_PASSWORD\n  value: «hunter2»\n- name: plain\n  value: ok\n",
    "env, value first": "env:\n- value: «hunter2»\n  name: API_KEY\n- value: ok\n  name: plain\n",
    "env in json": '{"env":[{"name":"MY_TOKEN","value":"«x»"},{"name":"a","value":"b"}]}',
    "env in pretty json": '{"env": [\n  {\n    "name": "AWS_ACCESS_KEY",\n    "value": "«x»"\n  },\n  {\n    "name": "a",\n    "value": "b"\n  }\n]}',
    "env in flow": "- {name: MY_CREDENTIAL, value: «abc»}\n",
    "environment file": 'SECRET_OF_US="«abc def»"\nFOO=bar\n',
    "key block": "-----BEGIN RSA PRIVATE KEY-----\n«abc»\n«def»\n-----END RSA PRIVATE KEY-----\n",
    "key block in json": '"-----BEGIN PRIVATE KEY-----«\\nabc\\n»-----END PRIVATE KEY-----"',
    "url": "proxy: http://user:«pw»@proxy:3128/x\n",
    "header": "Authorization: Bearer «abcdefghijklmnopqrs»\n",
    "web token": "x: «eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl»\n",
}
HARMLESS = {
    "flags that sound so": "- --use-service-account-credentials=true\n- --service-account-private-key-file=/etc/sa.key\n- --enable-bootstrap-token-auth=true\n",
    "mount": "automountServiceAccountToken: false\n",
    "volume": "- secret:\n    secretName: y\n    optional: true\n  name: my-secret\n",
    "reference": "valueFrom:\n  secretKeyRef: {name: x, key: token}\n",
    "projected": "- serviceAccountToken:\n    expirationSeconds: 3607\n    path: token\n",
    "certificates": "certificate-authority-data: QUJD\nclient-certificate-data: QUJD\n-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n",
    "url": "server: https://10.0.0.1:6443 # admin@cluster\n",
    "empty": "token: \"\"\npassword: null\nsecret:\n",
    "cluster token of etcd": "- --initial-cluster-token=etcd-cluster-1\n",
    "last item": "    - --token\n    image: x\n",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_secret(text):
    plain = text.replace("«", "").replace("»", "").encode()
    expected = b"".join(
        b"*" * len(part.encode()) if index % 2 else part.encode() for index, part in enumerate(text.replace("»", "«").split("«")))
    masked, spans = mask.data(plain)
    assert _same(masked, expected, plain)
    assert len(masked) == len(plain)
    assert all(set(masked[start:end]) == {ord("*")} for start, end in spans)
    assert files.suspicious(plain), "the quick look must not overlook what mask finds"


def _same(masked, expected, plain):
    assert masked.decode() == expected.decode(), plain.decode()
    return True


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_no_secret(text):
    assert mask.data(text.encode()) == (text.encode(), [])


def test_argv():
    assert mask.argv(["a", "--token", "abc", "--password=x y", "--v", "2"]) == ["a", "--token", "***", "--password=***", "--v", "2"]


@pytest.mark.parametrize("junk", [
    b"\xff\xfe: token=", b"token:", b"'token", b"{" * 5000 + b"name: TOKEN", b"password: '" + b"\n" * 50, b"--", b"eyJ", b"://:@"])
def test_junk_does_not_break_it(junk):
    masked, dummy = mask.data(junk)
    assert len(masked) == len(junk)


@pytest.mark.parametrize("name", ["DB_PASS", "MYSQL_PWD", "AUTH", "KEY", "GITHUB_PAT", "HTTPS_PROXY"])
@pytest.mark.parametrize("text", ["    env:\n    - name: {0}\n      value: planted-0815\n", "    env:\n    - value: planted-0815\n      name: {0}\n",
                                  '{{"env": [{{"name": "{0}", "value": "planted-0815"}}]}}'])
def test_values_of_environment_variables_stay_whatever_their_name(name, text):
    assert b"planted" not in mask.data(text.format(name).encode())[0]


def test_arguments_of_kubeadm_are_no_environment():
    text = b"extraArgs:\n- name: leader-elect\n  value: \"false\"\n"
    assert mask.data(text) == (text, [])
