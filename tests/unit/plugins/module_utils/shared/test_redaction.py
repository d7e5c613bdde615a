# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is a secret in text, what is not, and that no byte moves."""

import json
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redaction
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    files,
)

# text with what has to vanish in {braces of this kind}: «»
SECRETS = {
    "yaml": "token: «abc.def»\nother: 1\n",
    "quoted": 'token: "«x y»"\nother: 1\n',
    "quote in a quoted one": "password: '«it''s»'\n",
    "comment stays": "password: «abc» # of the old one\n",
    "what is no word of a client": "credentials: «exec: executable x y not found»\n",
    "more than its word": "credentials: «exec: executable x not found here»\n",
    "crlf and umlaut": 'größe: ü\r\ntoken: "«ü»"\r\nx: 1\r\n',
    "block scalar": "password: |\n  «line1»\n  «line2»\nnext: 1\n",
    "folded over lines": "- token: «abc»\n    «def»\n  next: 1\n",
    "on the next line": "password:\n  «abc»\nnext: 1\n",
    "flow": "users: [{name: a, user: {token: «abc», x: y}}]\n",
    "json": '{"kind": "x", "token": "«abc»", "n": 1}',
    "json in json": '{"last": "{\\"password\\":\\"«abc»\\",\\"x\\":1}"}',
    "kubeconfig": (
        "- name: a\n  user:\n    client-certificate-data: QUJD\n    client-key-data: «QUJD»\n"
    ),
    "flag": "    - --token=«abc»\n    - --leader-elect=true\n",
    "flag in two items": "    - --token\n    - «abc»\n    - --v=2\n",
    "flags in a string": (
        'command: ["sh", "-c", "run --password «hunter2» --client-secret=«s» --v 4"]\n'
    ),
    "env": "env:\n- name: DB_PASSWORD\n  value: «hunter2»\n- name: plain\n  value: ok\n",
    "env, value first": "env:\n- value: «hunter2»\n  name: API_KEY\n- value: ok\n  name: plain\n",
    "env in json": '{"env":[{"name":"MY_TOKEN","value":"«x»"},{"name":"a","value":"b"}]}',
    "env in pretty json": (
        '{"env": [\n  {\n    "name": "AWS_ACCESS_KEY",\n    "value": "«x»"\n  },\n  {\n    "name":'
        ' "a",\n    "value": "b"\n  }\n]}'
    ),
    "env in flow": "- {name: MY_CREDENTIAL, value: «abc»}\n",
    "environment file": 'SECRET_OF_US="«abc def»"\nFOO=bar\n',
    "key block": "-----BEGIN RSA PRIVATE KEY-----\n«abc»\n«def»\n-----END RSA PRIVATE KEY-----\n",
    "key block in json": '"-----BEGIN PRIVATE KEY-----«\\nabc\\n»-----END PRIVATE KEY-----"',
    "url": "proxy: http://user:«pw»@proxy:3128/x\n",
    "url whose password ends the authority": (
        "datastore-endpoint: postgres://k3s:«pa#s@s»@10.0.0.5:5432/k3s\n"
        "x: mysql://k3s:«a/b?c»@tcp(10.0.0.5:3306)/k3s\n"
    ),
    "url that go does not read": (
        r"parse \"postgres://k3s:«pa#ss»@db:5432/k3s\": invalid port \":«pa»\" after host"
        "\n"
        'parse "postgres://k3s:«pa%ss/s»@db:5432/k3s": invalid URL escape "«%ss»"\n'
    ),
    "header": "Authorization: Bearer «abcdefghijklmnopqrs»\n",
    "web token": "x: «eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl»\n",
    "tag": "password: !!str «hunter2»\nother: 1\n",
    "anchor": "password: &a «hunter2»\nother: 1\n",
    "tag and anchor": "password: !!str &a «hunter2» # c\nother: 1\n",
    "anchor and tag, quoted": "password: &a !!str '«hunter2»'\nother: 1\n",
    "verbatim tag": "password: !<tag:yaml.org,2002:str> «hunter2»\nother: 1\n",
    "tag that says nothing": "password: ! «hunter2»\n",
    "tag above": "password: !!str\n  «hunter2»\n  «x»\nother: 1\n",
    "tag below": "password:\n  !!str «hunter2»\nother: 1\n",
    "anchor above quotes": 'password: &a\n  "«a: b»"\nother: 1\n',
    "no tag after all": "password: «!hunter2»\nother: 1\n",
    "no anchor after all": "password: «&hunter2»\nother: 1\n",
    "crlf and tag": "password: !!str «hunter2»\r\nother: 1\r\n",
    "crlf, below": "password: &a\r\n  «hunter2»\r\nother: 1\r\n",
    "tagged block": "password: !!binary |\n  «aHVu»\n  «dGVy»\nother: 1\n",
    "anchored folded block": "password: &a >2-\n    «a: b»\n\n  «# c»\nother: 1\n",
    "block with a comment": "password: |- # c\n  «- x»\nother: 1\n",
    "no block after all": "password: «>hunter2»\nother: 1\n",
    "env, tag": (
        "env:\n- name: DB_PASSWORD\n  value: !!str «hunter2»\n- name: plain\n  value: !!str ok\n"
    ),
    "env, anchor": "env:\n- name: DB_PASSWORD\n  value: &x «hunter2»\n",
    "env, tag and quotes": "env:\n- name: DB_PASSWORD\n  value: !!str '«hunter2»'\n",
    "env, tagged name": "env:\n- name: !!str DB_PASSWORD\n  value: «hunter2»\n",
    "env, name by alias": "x: &n KEY\nenv:\n- name: *n\n  value: «hunter2»\n",
    "env in flow, tagged": (
        "- {name: !!str DB_PASSWORD, value: !!str «hunter2»}\n- {value: &a «x», name: A_TOKEN}\n"
    ),
    "env, block": "env:\n- name: KEY\n  value: !!str |\n    «hunter2»\n- name: x\n  value: y\n",
    "env, anchored entry": "env:\n- &e\n  name: KEY\n  value: «hunter2»\n",
    "sequence in flow": "password: [«abc», '«d, e»', !!str «f», [«g»]] # c\nother: 1\n",
    "sequence in flow, over lines": 'password: [\n  «abc», # c, d\n  "«d]»"\n]\nother: 1\n',
    "sequence in flow with a mapping": "secret: [{name: a, token: «b»}, «c», d: e]\nother: [f]\n",
    "sequence in json": '{"secret": ["«a»", "«b»"], "x": ["y"]}',
    "sequence in json in json": '{"last": "{\\"token\\":[\\"«a»\\",\\"«b»\\"],\\"x\\":[\\"y\\"]}"}',
    "no sequence after all": "password: «[abc]def»\nother: 1\n",
    "sequence": (
        "password:\n- «abc»\n- !!str «def»\n  «ghi»\n- '«j»'\n# c\n- |\n  «k»\n-"
        " [«l»]\nother:\n- m\n"
    ),
    "sequence within a sequence": (
        "- password:\n  -  - «abc»\n     - &a «def»\n  - -\n      «g»\n  x: 1\n- y\n"
    ),
    "sequence with mappings": (
        'secret:\n  - name: a\n    token: «b»\n  - «c»\n  - "d": e\n  - ? f\n    : g\nother: 1\n'
    ),
    "below a comment": "password: # c\n  # d\n\n  «abc»\n  «def»\nother: 1\n",
    "quoted below": "password:\n  '«a: b»'\nother: 1\n",
    "quoted over lines": 'password: "«a»\n\n  «b: c»"\nother: 1\n',
    "sequence below": "password:\n  [«a»,\n   «b»]\nother: 1\n",
    "alias": "x: &pw «hunter2»\npassword: *pw\nother: &pwx y\n",
    "alias of an item": "x:\n- &pw «hunter2»\n  «more»\n- y\npassword: *pw\n",
    "alias of a tagged block": "- x: &pw !!str |\n    «hunter2»\n  y: z\n- password: *pw\n",
    "alias in flow": (
        "x: {a: &pw «hunter2», b: c}\ny: {password: *pw, d: e}\npasswd: [*q]\nz: &q «f»\n"
    ),
    "alias of an alias": "x: &a [*b, «c»]\ny: &b «d»\npassword: *a\n",
    "alias that begins with itself": "x: &a\n  - *a\n  - «b»\npassword: *a\n",
    "no alias after all": "password: «*hunter2»\n",
    "explicit key": "? password\n: «abc»\n  «def»\n? other\n: 1\n",
    "explicit key, quoted and tagged": (
        '- ? !!str "password"\n  : !!str |\n    «abc»\n  ? x\n  : y\n'
    ),
    "explicit key in flow": "{? password : «abc»}\n",
    "tagged key": "!!str password: «abc»\n&k token: «def»\nx: y\n",
    "flow over lines": "{token: «abc»,\n  server: https://x,\n  y: z, password: «a»\n}\n",
    "flow, one on each line": "- {\n  token: «abc»,\n  server: x,\n  password: «d»\n  }\n",
    "flow, empty values": "{token: , password: !!str , x: y, secret: }\n",
    "flow, tagged": "{token: !!str «abc», password: &a «b»}\n",
    "comma that is part of it": 'password: «a,b]c»\n- x: "[y] password: «a,b»"\n',
    "quoted key in a block": '"password": «a,b»\n"token": !!str «c»\n\'secret\': «d}e»\nx: y\n',
    "json, number": (
        '{\n"a": 1, "password": «123», "x": 2,\n  "token": «-1.5e3»,\n  "secret": «7»\n}'
    ),
    "json, next line": '{"password":\n"«a»",\n"token"\n: "«b»",\n"secret":\n"x": 1}',
    "json in json in json": (
        r'{"a": "{\"b\": \"{\\\"token\\\":\\\"«x»\\\",\\\"y\\\":\\\"z\\\"}\"}"}'
    ),
    "escaped quotes in json in json": r'{"a": "{\"token\":\"«x\\\"y»\",\"z\":\"u\"}"}',
    "escaped quotes in json": r'{"token": "«x\"y»", "z": "u"}',
    "toml": (
        'password = """\n«abc»\n"""\ntoken = ["«a»", \'«b»\']\nsecret = { x = 1, passwd = "«c»"'
        ' }\n"apikey" = \'«d»\'\nx = "y"\n'
    ),
    "environment file of many forms": (
        "DB_PASSWORD=«{SSHA}abc==»\nA_TOKEN=«*abc»\nB_TOKEN=«a"
        " #b»\nC_TOKEN=«a\\»\n«b»\nD=[x]\nexport E_TOKEN=[«f»\nX=y\n"
    ),
    "unit": 'Environment="A_PASSWORD=«a b»" "B=c" \'C_TOKEN=«d e»\'\n',
    "flag, quoted": "- \"--token=«a b»\"\n- '--password=«c»' # d\n- --secret=«e»\n  «f»\n- --v=2\n",
    "flag, quoted in flow": 'args: ["--password=«a b»", \'--token=«c»\', --secret=«d», "--v=2"]\n',
    "flag, quoted in json in json": (
        r'{"a": "{\"args\":[\"--password=«a b»\",\"--v=2\",\"--token\",\"«c d»\"]}"}'
    ),
    "flag in two items, tagged": (
        '- --token\n- !!str «a»\n- --password\n- "«b c»"\n- --secret\n# c\n- --v=2\n'
    ),
    "flag in two items of many forms": (
        "- --token\n- &a '«b c»'\n- --password\n- |\n  «d»\n- --secret\n- «e f»\n  «g»\n- x\n"
    ),
    "flag in two items in flow": (
        "[--token, !!str «a», '--password', '«b c»', --secret, !!str \"«d»\", y]\n"
    ),
    "flag whose value begins as a tag does": (
        "sh -c 'run --password «!a» --token «&b» --secret «x}y» --v 2'\n"
    ),
    "yaml in a string of json": (
        '{"text": "kind: x\\n- token: «abc\\n  password: |\\n    d, e\\n»", "z": [1], "msg": "of,'
        ' password: «ab cd»", "n": 2}'
    ),
    "comment that is none, beside an asterisk": 'x: "*"\npassword: «#abc»\ny: z\n',
    "flag in a string in json": (
        r'["sh", "-c", "run --password \"«a b»\" --token «c» --secret \"«d»\""]'
    ),
    "multi-line plain": "password: «a b»\n\n  «c»\n    «d»\nother: 1\n",
    "placeholder": "password: «{{ x }}»\n",
    "words of an error at the place of a key": "password: «failed to be short»\n",
    "words of an error in flow": "{a: b, token: «open /x»}\n",
    "words of an error in json": '{"token": "«unable to x»"}',
    "words of an error in a flag": "- --token=«failed to»\n",
    "no words of an error": "could not use token: «abc failed to»\n",
    "a value that an error refuses": 'keys[0].secret: «Invalid value: "hunter2": is short»\n',
    "a token within an error": (
        "failed to use token: unable to parse «abcdef.0123456789abcdef»: no kubeadm\n"
    ),
    "a key within an error": 'bad token: cannot read "«QUJDRDEyMzRhYmNkZWZnaA==»" of it\n',
    "a hash within an error": "bad token: unable to find «0123456789abcdef0123456789abcdef»\n",
    "a key beside an error": "a token: failed to get x, password: «hunter2»\n",
}
HARMLESS = {
    "flags that sound so": (
        "- --use-service-account-credentials=true\n-"
        " --service-account-private-key-file=/etc/sa.key\n- --enable-bootstrap-token-auth=true\n"
    ),
    "mount": "automountServiceAccountToken: false\n",
    "volume": "- secret:\n    secretName: y\n    optional: true\n  name: my-secret\n",
    "reference": "valueFrom:\n  secretKeyRef: {name: x, key: token}\n",
    "projected": "- serviceAccountToken:\n    expirationSeconds: 3607\n    path: token\n",
    "certificates": (
        "certificate-authority-data: QUJD\nclient-certificate-data: QUJD\n-----BEGIN"
        " CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
    ),
    "url": "server: https://10.0.0.1:6443 # admin@cluster\n",
    "urls with @ behind the authority": (
        "a: http://registry:5000/x@sha256:abc\nb: https://h/x:1@y\nc: http://[::1]:80/x@y\n"
        'd: parse "http://h:65536/a@b": invalid port ":65536" after host\n'
    ),
    "empty": 'token: ""\npassword: null\nsecret:\n',
    "cluster token of etcd": "- --initial-cluster-token=etcd-cluster-1\n",
    "last item": "    - --token\n    image: x\n",
    "tagged references": (
        "secret: !!map {secretName: x}\ntoken: &a\n  path: y\nsecret: # c\n  name: z\nsecret:\n  #"
        " c\n  name: u\n"
    ),
    "public words": "token: !!null null\npassword: &a ~\nsecret: !!str ''\napikey: [null, '']\n",
    "lists of references": (
        "secret:\n- name: a\n- {name: b}\n- - name: c\npassword: [{name: x}, a: b]\n"
    ),
    "anchor that is used": "x: *a\ntoken: &a\n",
    "volumes in flow": (
        "volumes: [{name: a, secret: {secretName: b,\n  optional: true}}, {secret: {\n  secretName:"
        " c}}]\n"
    ),
    "volumes in json": (
        '{"secret": {"secretName": "x"}, "projected": {"sources": [{"serviceAccountToken": {"path":'
        ' "token"}}]}, "secret": {}}'
    ),
    "quoted mapping": "secret:\n  \"secretName\": x\n  'optional': true\n",
    "explicit keys": "secret:\n  ? secretName\n  : x\n",
    "a credential program": (
        'err="Get \\"https://a\\": getting credentials: exec: executable aws-iam not found"\n'
        "x: getting credentials: exec: executable /opt/a_b failed with exit code 255\n"
    ),
    "errors of programs in Go": (
        'failed to fetch token: serviceaccounts "web" not found\n'
        'E1 storage/cacher.go:/secrets: failed to list *core.Secret: unable to transform key "/r"\n'
        'failed to read token file "/run/x/token": open /run/x/token: no such file\n'
        "WebIdentityErr: InvalidIdentityToken: No OpenIDConnect provider found\n"
        "failed to decode join token: illegal base64 data at input byte 0\n"
        "GET https://a.example.com/oauth2/token: 403 Forbidden\n"
    ),
    "keys that the API server hides": (
        'resources[0].providers[0].aescbc.keys[0].secret: Invalid value: "REDACTED": secrets must'
        ' be base64 encoded\nkeys[1].secret: Invalid value: \\"REDACTED\\": got 8\n'
    ),
    "volumes named as secrets": (
        'MountVolume.SetUp failed for volume "app-secret" : secret "app" not found\n'
        'err="failed for volume \\"x-token\\" : object \\"a\\"/\\"b\\" not registered"\n'
    ),
    "masked already": "password: *****\nA_TOKEN=***\n- --token=***\n- --secret\n- ***\n",
    "rules": "resources: [secrets, tokens]\n- tokenreviews\nverbs: [create]\n",
    "same column": "secret:\nother: 1\n- token:\n- x\n",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_secret(text):
    plain = text.replace("«", "").replace("»", "").encode()
    expected = b"".join(
        b"*" * len(part.encode()) if index % 2 else part.encode()
        for index, part in enumerate(text.replace("»", "«").split("«"))
    )
    masked, spans = redaction.data(plain)
    assert _same(masked, expected, plain)
    assert len(masked) == len(plain)
    assert all(set(masked[start:end]) == {ord("*")} for start, end in spans)
    assert files.suspicious(plain), "the quick look must not overlook what mask finds"


def _same(masked, expected, plain):
    assert masked.decode() == expected.decode(), plain.decode()
    return True


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_no_secret(text):
    assert redaction.data(text.encode()) == (text.encode(), [])


def test_argv():
    assert redaction.argv(["a", "--token", "abc", "--password=x y", "--v", "2"]) == [
        "a",
        "--token",
        "***",
        "--password=***",
        "--v",
        "2",
    ]


@pytest.mark.parametrize(
    "junk",
    [
        b"\xff\xfe: token=",
        b"token:",
        b"'token",
        b"{" * 5000 + b"name: TOKEN",
        b"password: '" + b"\n" * 50,
        b"--",
        b"eyJ",
        b"://:@",
    ],
)
def test_junk_does_not_break_it(junk):
    masked, _dummy = redaction.data(junk)
    assert len(masked) == len(junk)


@pytest.mark.parametrize(
    "name", ["DB_PASS", "MYSQL_PWD", "AUTH", "KEY", "GITHUB_PAT", "HTTPS_PROXY"]
)
@pytest.mark.parametrize(
    "text",
    [
        "    env:\n    - name: {0}\n      value: planted-0815\n",
        "    env:\n    - value: planted-0815\n      name: {0}\n",
        '{{"env": [{{"name": "{0}", "value": "planted-0815"}}]}}',
    ],
)
def test_values_of_environment_variables_stay_whatever_their_name(name, text):
    assert b"planted" not in redaction.data(text.format(name).encode())[0]


@pytest.mark.parametrize("key", ["env", '"env"', "'env'", "env "])
def test_values_of_environment_variables_are_looked_for_whatever_the_key_is_written_as(key):
    assert (
        b"planted"
        not in files.masked(b"%s:\n- name: DB_PWD\n  value: planted-0815\n" % key.encode())[0]
    )


@pytest.mark.parametrize(
    "text",
    [
        "password:\n"
        + "".join(" " * depth + "-\n" for depth in range(900))
        + " " * 900
        + "- hunter2",
        "password:\n  " + "- " * 5000 + "hunter2",
        "password: " + "[" * 5000 + "hunter2",
        "secret: [" * 2000 + "hunter2",
        "password: [#" * 2000 + "hunter2",
    ],
    ids=range(5),
)
def test_hostile_depth_costs_no_time_and_hides_nothing(text):
    begin = time.monotonic()
    masked, _dummy = redaction.data(text.encode())
    assert b"hunter2" not in masked
    assert time.monotonic() - begin < 30


UNITS = (
    "-",
    "a--",
    "eyJ",
    "name: A\n",
    "{name: TOKEN,",
    "{name: TOKEN,value: {",
    "token=",
    "token=\\\n",
    "token: &a\n-\n",
    "token:token:\n  ",
    "--token !",
    "--token\\",
    "name: [",
    "? ",
    "password: {",
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("other", ["", "\n", *UNITS[-2:]])
def test_time_does_not_grow_with_the_square_of_the_length(unit, other):
    """Without a limit on its work, the search takes minutes to hours for most of these."""
    text = unit * (65536 // len(unit)) + other * (65536 // (len(other) or 1))
    begin = time.process_time()
    redaction.data(text.encode())
    assert time.process_time() - begin < 15


def test_every_line_is_masked_where_the_search_takes_too_much_work():
    text = "plain: hunter1\n" + "token=\\\n" * 9000 + "plain: hunter2\n"
    masked, spans = redaction.data(text.encode())
    assert not set(masked) - set(b"*\n")
    assert len(masked) == len(text)
    assert len(spans) == len(text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "MY_TOKEN_{}=«hunter2»\n",
        "MY_TOKEN_{}: «hunter2»\n",
        "- name: MY_TOKEN_{}\n  value: «hunter2»\n",
        '{{"name": "MY_TOKEN_{}", "value": "«hunter2»"}}',
        "run --MY_TOKEN_{} «hunter2»\n",
    ],
)
def test_a_long_name_is_looked_at_as_a_whole(text):
    given = text.format("A" * 300)
    masked, _spans = redaction.data(given.replace("«", "").replace("»", "").encode())
    assert masked.decode() == given.replace("«hunter2»", "*******")


@pytest.mark.parametrize("entries", [500, 2000])
def test_a_large_harmless_text_loses_only_its_secrets(entries):
    """JSON in one line, as the API server writes the last applied configuration."""
    env = [{"name": f"PART_{number}", "value": "hunter2"} for number in range(entries)]
    text = json.dumps({"kind": "Pod", "spec": {"containers": [{"env": env, "image": "plain"}]}})
    masked, _spans = redaction.data(text.encode())
    assert masked.decode() == text.replace("hunter2", "*******")


def test_arguments_of_kubeadm_are_no_environment():
    text = b'extraArgs:\n- name: leader-elect\n  value: "false"\n'
    assert redaction.data(text) == (text, [])
