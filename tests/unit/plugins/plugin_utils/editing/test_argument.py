# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edit of one argument or scalar.

Every form with its exact bytes, every refusal with its sentence.
"""

from __future__ import annotations

import hashlib

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    argument as editing_argument,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    scalar as editing_scalar,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing.argument import (
    EditRefused,
    Source,
    set_argument,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    pod_manifest,
)
from tests.unit.support.edit_check import check_edit, mask_secrets
from tests.unit.support.facts import facts

pytestmark = pytest.mark.usefixtures("both_parsers")
HEAD = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: s\nspec:\n  containers:\n"
    "  - name: s\n    image: registry:5000/kube-scheduler:v1.20.2\n"
)
FLAG = "leader-elect"


def argument(
    before: str,
    value: str | None = "true",
    flag: str = FLAG,
    component: str = "kube-scheduler",
    **more,
) -> str:
    result = set_argument(before, component, flag, value, **more)
    text = check_edit(result, before)
    again = set_argument(text, component, flag, value, **more)
    assert not again.changed, "the second run changes nothing"
    assert again.text == text
    return text


SET = [
    # (before, after): the lists of a container
    (
        "    command:\n    - kube-scheduler\n    - --leader-elect=false\n    - --v=2\n",
        "    command:\n    - kube-scheduler\n    - --leader-elect=true\n    - --v=2\n",
    ),
    (
        "    command:\n    - kube-scheduler\n    - --leader-elect=false   # off\n    # own\n",
        "    command:\n    - kube-scheduler\n    - --leader-elect=true   # off\n    # own\n",
    ),
    (
        '    command:\n      - kube-scheduler\n      -   "--leader-elect=false" # a\tb\n',
        '    command:\n      - kube-scheduler\n      -   "--leader-elect=true" # a\tb\n',
    ),
    (
        "    command:\n    - kube-scheduler\n    - '--leader-elect=false'",
        "    command:\n    - kube-scheduler\n    - '--leader-elect=true'",
    ),
    (
        "    command:\n    - kube-scheduler\n    - --leader_elect=false\n",
        "    command:\n    - kube-scheduler\n    - --leader_elect=true\n",
    ),
    (
        '    command:\n    - kube-scheduler\n    - --leader-elect="false"\n',
        "    command:\n    - kube-scheduler\n    - --leader-elect=true\n",
    ),
    (
        '    command:\n    - kube-scheduler\n    - "--leader-elect=\\x66alse"\n',
        '    command:\n    - kube-scheduler\n    - "--leader-elect=true"\n',
    ),
    # a bare flag with a stray value: one argument in two items
    (
        (
            '    command:\n    - kube-scheduler\n    - --leader-elect\n    - "false" # stray\n    -'
            " --v=2\n"
        ),
        "    command:\n    - kube-scheduler\n    - --leader-elect=true\n    - --v=2\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect, 'false']\n",
        "    command: [kube-scheduler, --leader-elect=true]\n",
    ),
    (
        "    command: [kube-scheduler]\n    args:\n    - --leader-elect\n    - 'false'\n",
        "    command: [kube-scheduler]\n    args:\n    - --leader-elect=true\n",
    ),
    (
        "    command:\n    - kube-scheduler\n    - --leader-elect\n    args:\n    - 'false'\n",
        "    command:\n    - kube-scheduler\n    - --leader-elect=true\n    args: []\n",
    ),
    # the last of several is in effect
    (
        "    args: [--leader-elect=true, --leader-elect=false]\n",
        "    args: [--leader-elect=true, --leader-elect=true]\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect=true]\n    args: ['--leader_elect=0']\n",
        "    command: [kube-scheduler, --leader-elect=true]\n    args: ['--leader_elect=true']\n",
    ),
    # its environment names the value
    (
        (
            "    env: [{name: LE, value: 'false'}]\n    command: [kube-scheduler,"
            " --leader-elect=$(LE)]\n"
        ),
        (
            "    env: [{name: LE, value: 'false'}]\n    command: [kube-scheduler,"
            " --leader-elect=true]\n"
        ),
    ),
    # a wrapper's own flags stand before the component
    (
        (
            "    command: [/go-runner, --leader-elect=false, --, /usr/bin/kube-scheduler,"
            " --leader-elect=false]\n"
        ),
        (
            "    command: [/go-runner, --leader-elect=false, --, /usr/bin/kube-scheduler,"
            " --leader-elect=true]\n"
        ),
    ),
    (
        "    command: [/hyperkube, scheduler, --leader-elect=false]\n",
        "    command: [/hyperkube, scheduler, --leader-elect=true]\n",
    ),
    # not there: behind the last one, like it
    (
        "    command:\n    - kube-scheduler\n    - --v=2 # two\n    # own\n",
        (
            "    command:\n    - kube-scheduler\n    - --v=2 # two\n    - --leader-elect=true\n   "
            " # own\n"
        ),
    ),
    (
        "    command:\n        -   kube-scheduler\n        -   '--v=2'",
        (
            "    command:\n        -   kube-scheduler\n        -   '--v=2'\n        -  "
            " '--leader-elect=true'"
        ),
    ),
    ("    command: [kube-scheduler]\n", "    command: [kube-scheduler, --leader-elect=true]\n"),
    (
        '    command: ["kube-scheduler","--v=2" ]\n',
        '    command: ["kube-scheduler","--v=2","--leader-elect=true" ]\n',
    ),
    (
        "    command: [kube-scheduler, --v=2,]\n",
        "    command: [kube-scheduler, --v=2, --leader-elect=true,]\n",
    ),
    (
        "    command: [\n      kube-scheduler, # a, b\n      --v=2 # c\n    ]\n",
        (
            "    command: [\n      kube-scheduler, # a, b\n      --v=2, # c\n     "
            " --leader-elect=true\n    ]\n"
        ),
    ),
    (
        "    command: [\n      kube-scheduler,\n      --v=2, # c\n    ]\n",
        (
            "    command: [\n      kube-scheduler,\n      --v=2, # c\n      --leader-elect=true,\n "
            "   ]\n"
        ),
    ),
    (
        "    command: [\n      kube-scheduler,\n      --v=2]\n",
        "    command: [\n      kube-scheduler,\n      --v=2,\n      --leader-elect=true]\n",
    ),
    (
        "    command: [kube-scheduler]\n    args: []\n",
        "    command: [kube-scheduler, --leader-elect=true]\n    args: []\n",
    ),
    (
        "    command: [kube-scheduler]\n    args:\n",
        "    command: [kube-scheduler, --leader-elect=true]\n    args:\n",
    ),
    (
        "    command: [kube-scheduler]\n    args: [--v=2]\n",
        "    command: [kube-scheduler]\n    args: [--v=2, --leader-elect=true]\n",
    ),
    # anchors elsewhere
    (
        (
            "    command: [kube-scheduler, --leader-elect=false]\n    resources: &r {limits: {cpu:"
            " 1}}\n    x: *r\n"
        ),
        (
            "    command: [kube-scheduler, --leader-elect=true]\n    resources: &r {limits: {cpu:"
            " 1}}\n    x: *r\n"
        ),
    ),
    # other documents, other containers, other alphabets
    (
        (
            "    command: [kube-scheduler, --leader-elect=false] # é 😀\n---\nkind: Pod # {{ not"
            " ours }}\nx: --leader-elect=false\n"
        ),
        (
            "    command: [kube-scheduler, --leader-elect=true] # é 😀\n---\nkind: Pod # {{ not"
            " ours }}\nx: --leader-elect=false\n"
        ),
    ),
    (
        (
            "    env: [{name: é, value: 😀}]\n    command: [kube-scheduler, --leader-elect=false]\n"
            "  - name: b\n    args: [--leader-elect=false]\n"
        ),
        (
            "    env: [{name: é, value: 😀}]\n    command: [kube-scheduler, --leader-elect=true]\n "
            " - name: b\n    args: [--leader-elect=false]\n"
        ),
    ),
    # a multi-line plain scalar next to it
    (
        "    command:\n    - kube-scheduler\n    -\n      --leader-elect=false\n    - a\n      b\n",
        "    command:\n    - kube-scheduler\n    -\n      --leader-elect=true\n    - a\n      b\n",
    ),
]


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(("before", "after"), SET)
def test_set(before, after, eol, mark):
    assert argument((mark + HEAD + before).replace("\n", eol)) == (mark + HEAD + after).replace(
        "\n", eol
    )


REMOVE = [
    (
        (
            "    command:\n    - kube-scheduler\n    - --leader-elect=false # its own\n    #"
            " stays\n    - --v=2\n"
        ),
        "    command:\n    - kube-scheduler\n    # stays\n    - --v=2\n",
    ),
    (
        "    command:\n    - kube-scheduler\n    - --leader-elect=false",
        "    command:\n    - kube-scheduler\n",
    ),
    (
        (
            '    command:\n    - kube-scheduler\n    - --leader-elect\n    - "false"\n    - --v=2\n'
            "    - --leader_elect\n"
        ),
        "    command:\n    - kube-scheduler\n    - --v=2\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect=false, --v=2]\n",
        "    command: [kube-scheduler, --v=2]\n",
    ),
    (
        "    command: [kube-scheduler, --v=2, --leader-elect=false]\n",
        "    command: [kube-scheduler, --v=2]\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect, 'false', --leader-elect=true ]\n",
        "    command: [kube-scheduler ]\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect=false, --v=2, --leader-elect,]\n",
        "    command: [kube-scheduler, --v=2, ]\n",
    ),
    ("    args: [--leader-elect=false]\n", "    args: []\n"),
    (
        "    args: # why\n    - --leader-elect=false # x\n    # own\n",
        "    args: [] # why\n    # own\n",
    ),
    (
        (
            "    command: [\n      kube-scheduler,\n      --leader-elect=false, # x\n      --v=2\n "
            "   ]\n"
        ),
        "    command: [\n      kube-scheduler,\n      --v=2\n    ]\n",
    ),
    (
        "    command: [\n      kube-scheduler, # a, b\n      --leader-elect=false # x\n    ]\n",
        "    command: [\n      kube-scheduler # a, b\n    ]\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect=false, # stays\n      --v=2]\n",
        "    command: [kube-scheduler, # stays\n      --v=2]\n",
    ),
    (
        "    command: [kube-scheduler,\n      --leader-elect=false]\n",
        "    command: [kube-scheduler\n      ]\n",
    ),
    (
        "    command: [kube-scheduler, --leader-elect=false # c\n      , --v=2]\n",
        "    command: [kube-scheduler, # c\n       --v=2]\n",
    ),
]


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(("before", "after"), REMOVE)
def test_remove(before, after, eol):
    assert argument((HEAD + before).replace("\n", eol), None) == (HEAD + after).replace("\n", eol)


@pytest.mark.parametrize(
    ("before", "flag", "value", "after"),
    [
        ("[kube-scheduler, --v, '2', --x=1]", "v", "4", "[kube-scheduler, --v, '4', --x=1]"),
        ('[kube-scheduler, --v, "2"]', "v", "4", '[kube-scheduler, --v, "4"]'),
        (
            "[kube-scheduler, --kubeconfig, /etc/a]",
            "kubeconfig",
            "/etc/b",
            "[kube-scheduler, --kubeconfig, /etc/b]",
        ),
        ("[kube-scheduler, --name, abc]", "name", "yes", '[kube-scheduler, --name, "yes"]'),
        ("[kube-scheduler, --v=2]", "v", "4", "[kube-scheduler, --v=4]"),
        ("[kube-scheduler, --v]", "v", "4", "[kube-scheduler, --v=4]"),
        ("[kube-scheduler, --m=a]", "m", "a=1,b=2", '[kube-scheduler, "--m=a=1,b=2"]'),
        ("[kube-scheduler, '--m=a']", "m", "it's", "[kube-scheduler, '--m=it''s']"),
        ('[kube-scheduler, "--m=a"]', "m", 'a"b\\é', '[kube-scheduler, "--m=a\\"b\\\\é"]'),
        ("[kube-scheduler, --m=a]", "m", 'say "no" # x', "[kube-scheduler, '--m=say \"no\" # x']"),
        ("[kube-scheduler, --m=a]", "m", "", "[kube-scheduler, --m=]"),
        ('[kube-scheduler, --m=a, --n, "-1"]', "n", "2", '[kube-scheduler, --m=a, --n, "2"]'),
    ],
)
def test_values(before, flag, value, after):
    assert (
        argument(f"{HEAD}    command: {before}\n", value, flag) == f"{HEAD}    command: {after}\n"
    )


@pytest.mark.parametrize(
    "listed",
    [
        "[kube-scheduler, --leader-elect]",
        "[kube-scheduler, --leader-elect=T]",
        "[kube-scheduler, --leader_elect=1, --v=2]",
        "[kube-scheduler, --leader-elect=false, --leader-elect]",
    ],
)
def test_what_is_in_effect_already_needs_no_splice(listed):
    before = f"{HEAD}    command: {listed}\n"
    result = set_argument(before, "kube-scheduler", FLAG, "true")
    assert (result.splices, result.text, result.diff, result.line) == ((), before, "", 9)


def test_a_bare_flag_switched_off():
    assert (
        argument(HEAD + "    args: [--leader-elect]\n", "false")
        == HEAD + "    args: [--leader-elect=false]\n"
    )


JSON = (
    '{\n\t"kind": "Pod",\n\t"spec": {"containers": [{"name": "kube-scheduler", "command":'
    ' [\n\t\t"kube-scheduler",\n\t\t"--leader-elect=false"\n\t]}]}\n}'
)


def test_the_place_of_an_argument_behind_a_byte_order_mark(both_parsers):
    for text in (HEAD + OK, "# é😀\n" + HEAD + OK):
        place = pod_manifest.parse("\ufeff" + text).containers[0].arguments[1]
        assert text[place.start : place.end] == "--leader-elect=false"


def test_masked_text_parses_with_every_place_kept():
    source, _data = mask_secrets(HEAD + SECRET, "éhunter2")
    with pytest.raises(pod_manifest.ManifestError):
        pod_manifest.parse(source.text)
    read = pod_manifest.parseable(source.text, source.masked)
    assert len(read) == len(source.text)
    assert pod_manifest.parse(read).containers[0].argv[1] == "--leader-elect=false"


def test_json(both_parsers):
    before = JSON if both_parsers == "CSafeLoader" else JSON.replace("\t", "  ")
    assert argument(before) == before.replace("false", "true")
    assert argument(before, "2", "v") == before.replace(
        'false"\n',
        'false",\n\t\t"--v=2"\n'.replace("\t", "\t" if both_parsers == "CSafeLoader" else "  "),
    )
    assert '"kube-scheduler"\n' in argument(before, None)


@pytest.mark.parametrize("short", ["-v=2", "-v2", "-v"])
def test_a_shorthand_that_has_the_last_word_is_not_passed_over(short):
    before = HEAD + f"    command: [kube-scheduler, --v=1, {short}]\n"
    with pytest.raises(EditRefused, match="-v stands behind --v and has the last word"):
        set_argument(before, "kube-scheduler", "v", "4")
    earlier = HEAD + f"    command: [kube-scheduler, {short}, --v=1]\n"
    assert argument(earlier, "4", "v") == earlier.replace("--v=1", "--v=4")


def test_the_container_by_name_where_no_component_is_meant():
    before = HEAD + "    command: [kube-scheduler]\n  - name: vip\n    args: [--v=1]\n"
    assert argument(before, "2", "v", "vip") == before.replace("--v=1", "--v=2")


def test_what_the_report_shows():
    result = set_argument(
        Source(HEAD + "    args:\n    - --v=2\n    - --leader-elect=false # c\n", "/m/s.yaml"),
        "kube-scheduler",
        FLAG,
        "true",
    )
    assert (result.path, result.line) == ("/m/s.yaml", 11)
    assert "-    - --leader-elect=false # c" in result.diff.splitlines()
    assert "+    - --leader-elect=true # c" in result.diff.splitlines()
    assert result.diff.splitlines()[:2] == ["--- /m/s.yaml (before)", "+++ /m/s.yaml (after)"]
    added = set_argument(HEAD + "    args:\n    - --v=2", "kube-scheduler", FLAG, "true")
    assert added.line == 11
    assert added.diff.endswith("+    - --leader-elect=true\n\\ No newline at end of file\n")
    gone = set_argument(
        HEAD + "    args:\n    - --leader-elect=false\n    - --v=2\n", "kube-scheduler", FLAG, None
    )
    assert gone.line == 10
    assert [line for line in gone.diff.splitlines()[2:] if line.startswith(("-", "+"))] == [
        "-    - --leader-elect=false"
    ]


SECRET = (
    "    env:\n    - {name: TOKEN, value: éhunter2}\n    command:\n    - kube-scheduler\n    -"
    " --leader-elect=false\n"
)


def test_a_masked_secret_stays_what_it_is():
    source, data = mask_secrets(HEAD + SECRET, "éhunter2")
    result = set_argument(source, "kube-scheduler", FLAG, "true")
    assert editing_argument.apply(data, result.splices) == data.replace(
        b"--leader-elect=false", b"--leader-elect=true"
    )
    assert result.sha256 == hashlib.sha256(data).hexdigest()
    assert "value: *********}" in result.text
    assert "hunter2" not in result.text + result.diff


def test_the_diff_masks_what_evidence_should_have_masked():
    source, data = mask_secrets(HEAD + SECRET, "éhunter2")
    result = set_argument(
        Source(data.decode(), source.path, source.sha256, source.masked),
        "kube-scheduler",
        FLAG,
        "true",
    )
    assert "hunter2" not in result.diff
    assert "*********" in result.diff


@pytest.mark.parametrize(
    ("text", "secrets", "why"),
    [
        (SECRET.replace("=false", "=hunter3"), ["hunter3"], "a secret stands at the place"),
        (
            SECRET.replace("--leader-elect=false", "--leader-elect=false # hunter4"),
            ["se # hunter4"],
            "a secret stands at the place",
        ),
    ],
)
def test_a_splice_that_touches_a_secret_is_refused(text, secrets, why):
    source, _data = mask_secrets(HEAD + text, *secrets)
    with pytest.raises(EditRefused, match=why) as caught:
        set_argument(source, "kube-scheduler", FLAG, "true")
    assert caught.value.line == 13


def test_a_removed_line_that_holds_a_secret_is_refused():
    source, _data = mask_secrets(HEAD + SECRET.replace("=false", "=false # hunter5"), "hunter5")
    with pytest.raises(EditRefused, match="a secret stands at the place"):
        set_argument(source, "kube-scheduler", FLAG, None)


RECORD = {
    "path": "/m/s.yaml",
    "text": "a: 1\n",
    "size": 5,
    "sha256": "ab",
    "masked": [[3, 4]],
    "truncated": False,
    "binary": False,
    "error": None,
}


def test_a_record_of_the_evidence():
    assert Source.from_record(RECORD) == Source("a: 1\n", "/m/s.yaml", "ab", ((3, 4),))


@pytest.mark.parametrize(
    ("more", "stated"),
    [
        (
            {"truncated": True},
            ("/m/s.yaml", "beginning", "by hand"),
        ),
        (
            {"error": "denied"},
            ("/m/s.yaml", "denied", "evidence again"),
        ),
        (
            {"binary": True, "text": None},
            ("/m/s.yaml", "not UTF-8", "replace it"),
        ),
        (
            {"size": 6},
            ("/m/s.yaml", "5 of its 6 bytes", "evidence again"),
        ),
        (
            {"masked": [["x"]]},
            ("/m/s.yaml", "masked", "by hand"),
        ),
    ],
)
def test_records_that_cannot_be_edited(more, stated):
    with pytest.raises(EditRefused) as caught:
        Source.from_record({**RECORD, **more})
    facts(str(caught.value), *stated)


OK = "    command: [kube-scheduler, --leader-elect=false]\n"
REFUSED = [
    ("    command: &c [kube-scheduler, --leader-elect=false]\n", 9, "an anchor or alias"),
    (
        "    x: &c [kube-scheduler, --leader-elect=false]\n    command: *c\n",
        9,
        "an anchor or alias",
    ),
    (
        "    x: &c --leader-elect=false\n    command: [kube-scheduler, *c]\n",
        9,
        "an anchor or alias",
    ),
    ("    command: [kube-scheduler, &c --leader-elect=false]\n", 9, "an anchor or alias"),
    ("    <<: {args: [a]}\n" + OK, 9, "a merge key"),
    ("    command: !!seq [kube-scheduler, --leader-elect=false]\n", 9, "a YAML tag"),
    ("    command: [kube-scheduler, !!str --leader-elect=false]\n", 9, "a YAML tag"),
    (
        "    command:\n    - kube-scheduler\n    - |-\n      --leader-elect=false\n",
        11,
        "a block scalar",
    ),
    (
        "    command:\n    - kube-scheduler\n    - >-\n      --leader-elect=false\n",
        11,
        "a block scalar",
    ),
    ("    ? command\n    : [kube-scheduler, --leader-elect=false]\n", 9, "written with `?`"),
    (OK + OK, 10, "the key command occurs twice"),
    (OK + "    name: t\n", 10, "the key name occurs twice"),
    (OK + "spec: {}\n", 10, "the key spec occurs twice"),
    (
        "    command: [sh, -c, 'exec kube-scheduler --leader-elect=false']\n",
        9,
        "sh -c starts this container",
    ),
    ("    command: [/bin/bash, -ec, 'kube-scheduler $@', x]\n", 9, "bash -c starts this container"),
    (
        "    command: [kube-scheduler, '--v=2 --leader-elect=false']\n",
        9,
        "inside an item with more arguments",
    ),
    ("    command: [kube-scheduler, --, --leader-elect=false]\n", 9, "an item `--` ends the flags"),
    ("    command: kube-scheduler --leader-elect=false\n", 9, "command is no list"),
    ("    command: [kube-scheduler, {a: b}]\n", 9, "an item of command is a map"),
    ("    command: [{{ flags }}]\n", 9, "{{ makes it a template"),
    ("    {% if x %}\n" + OK, 9, "{% makes it a template"),
    ("    # {% if x %}\n" + OK, 9, "{% makes it a template"),
    ("    command: [kube-scheduler\n", 10, "it is no valid YAML"),
    (
        OK + "  - name: kube-scheduler\n    image: kube-scheduler:v1\n",
        10,
        "a second container runs kube-scheduler",
    ),
    ("    command: []\n", None, "neither command nor args"),
    ("", None, "neither command nor args"),
    (OK + "    x: a\rb\n", 10, "instead of a newline"),
    (OK + "    x: a\u2028b\n", 10, "instead of a newline"),
    (OK + "    x: \0\n", None, "no valid YAML"),
    (OK + "    x: \ud800\n", None, "not UTF-8"),
]


@pytest.mark.parametrize(("text", "line", "why"), REFUSED)
def test_what_is_refused(text, line, why):
    with pytest.raises(EditRefused) as caught:
        set_argument(Source(HEAD + text, "/m/s.yaml"), "kube-scheduler", FLAG, "true")
    assert why in caught.value.why
    assert caught.value.line == line
    assert str(caught.value).startswith("/m/s.yaml, line " if line else "/m/s.yaml: ")
    assert "\n" not in str(caught.value)
    assert caught.value.way_out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        ("- a\n", "no mapping"),
        ("kind: ConfigMap\n", "the kubelet drops this file"),
        ("kind: Pod\nspec:\n  containers:\n  - name: a\n", "no container runs kube-scheduler"),
        ("kind: Pod\nspec: {containers: {a: b}}\n", "the kubelet drops this file"),
        ("[" * 60000, "nested too deeply"),
    ],
)
def test_what_is_no_manifest(text, why):
    with pytest.raises(EditRefused, match=why):
        set_argument(text, "kube-scheduler", FLAG, "true")


@pytest.mark.parametrize(
    "listed",
    [
        "    args:\n    -\n      --leader-elect=false\n    - --v=2\n",
        "    args:\n    - # why\n      --leader-elect=false\n    - --v=2\n",
    ],
)
def test_an_item_that_is_not_on_its_dashs_line_is_not_removed(listed):
    with pytest.raises(EditRefused, match="behind its dash"):
        set_argument(HEAD + listed, "kube-scheduler", FLAG, None)


def test_values_that_are_refused():
    for value in ("a\nb", "\x7f", "\u2028", "\ud800"):
        with pytest.raises(EditRefused, match="control character"):
            set_argument(HEAD + OK, "kube-scheduler", "v", value)
    with pytest.raises(ValueError, match="is no flag"):
        set_argument(HEAD + OK, "kube-scheduler", "a b", "x")
    with pytest.raises(EditRefused, match="no value of its own"):
        set_argument(HEAD + "    args: [--v, --x=1]\n", "kube-scheduler", "v", "2")


def test_masks_without_a_digest_or_a_place():
    with pytest.raises(EditRefused, match="no digest"):
        set_argument(Source(HEAD + OK, masked=((0, 1),)), "kube-scheduler", FLAG, "true")
    with pytest.raises(EditRefused, match="which of its bytes"):
        set_argument(
            Source(HEAD + OK, sha256="ab", masked=((0, 99999),)),
            "kube-scheduler",
            FLAG,
            "true",
        )


def test_anchors_and_cycles_elsewhere_do_no_harm():
    before = "x: &x [*x, {y: &y [1, 2]}, *y]\n" + HEAD + OK
    assert argument(before) == before.replace("=false", "=true")
    levels = "".join(
        f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'x'}]\n" for n in range(30)
    )
    assert argument(levels + HEAD + OK) == levels + HEAD + OK.replace("=false", "=true")


# --- one scalar ---


def scalar(before: str, path: tuple[str, ...], value, **more) -> str:
    text = check_edit(editing_scalar.set_scalar(before, path, value, **more), before)
    assert not editing_scalar.set_scalar(text, path, value, **more).changed
    return text


ELECT = ("leaderElection", "leaderElect")


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "leaderElection:\n  leaderElect: false # c\nx: 1\n",
            "leaderElection:\n  leaderElect: true # c\nx: 1\n",
        ),
        ('leaderElection:\n  leaderElect: "false"\n', "leaderElection:\n  leaderElect: true\n"),
        (
            "leaderElection:\n  leaderElect:\n  x: 1\n",
            "leaderElection:\n  leaderElect: true\n  x: 1\n",
        ),
        (
            "leaderElection:\n  leaderElect: # c\n  x: 1\n",
            "leaderElection:\n  leaderElect: true # c\n  x: 1\n",
        ),
        (
            "leaderElection: {leaderElect: off, x: 1}\n",
            "leaderElection: {leaderElect: true, x: 1}\n",
        ),
        (
            "leaderElection:\n   leaseDuration: 15s # c\n# d\nx: 1\n",
            "leaderElection:\n   leaseDuration: 15s # c\n   leaderElect: true\n# d\nx: 1\n",
        ),
        (
            "leaderElection:\n  a:\n    b:\n    - c\n    - d: [e]\nx: 1",
            "leaderElection:\n  a:\n    b:\n    - c\n    - d: [e]\n  leaderElect: true\nx: 1",
        ),
        (
            "leaderElection:\n  a: |\n    t\n\nx: 1\n",
            "leaderElection:\n  a: |\n    t\n\n  leaderElect: true\nx: 1\n",
        ),
        ("leaderElection: {}\n", "leaderElection: {leaderElect: true}\n"),
        ("leaderElection: {a: 1}\n", "leaderElection: {a: 1, leaderElect: true}\n"),
        ("leaderElection: null # n\n", "leaderElection: {leaderElect: true} # n\n"),
        ("leaderElection: # n\nx: 1\n", "leaderElection: # n\n  leaderElect: true\nx: 1\n"),
        ("kind: A\nx: 1", "kind: A\nx: 1\nleaderElection:\n  leaderElect: true"),
        (
            "kind: A\nx:\n- 1 # c\n---\ny: 1\n",
            "kind: A\nx:\n- 1 # c\nleaderElection:\n  leaderElect: true\n---\ny: 1\n",
        ),
        ('{"kind": "A"}', '{"kind": "A", "leaderElection": {"leaderElect": true}}'),
        (
            '{\n  "kind": "A",\n  "leaderElection": {\n    "x": "1"\n  }\n}\n',
            (
                '{\n  "kind": "A",\n  "leaderElection": {\n    "x": "1",\n    "leaderElect": true\n'
                "  }\n}\n"
            ),
        ),
    ],
)
def test_scalar(before, after, eol):
    assert scalar(before.replace("\n", eol), ELECT, True) == after.replace("\n", eol)


@pytest.mark.parametrize(
    ("value", "before", "after"),
    [
        ("true", "a: x\n", 'a: "true"\n'),
        ("true", "a: true\n", 'a: "true"\n'),
        ("static", "a: none\n", "a: static\n"),
        ("static", "a: 'none'\n", "a: 'static'\n"),
        (110, "a: 1\n", "a: 110\n"),
        (False, "a: true\n", "a: false\n"),
        ("15s", "b: 1\n", 'b: 1\na: "15s"\n'),
        (0, "b: 1\n", "b: 1\na: 0\n"),
    ],
)
def test_scalar_kinds(value, before, after):
    assert scalar(before, ("a",), value) == after


@pytest.mark.parametrize("text", ["a: true\n", "a: yes\n", "a: On\n"])
def test_a_boolean_that_holds(text):
    assert scalar(text, ("a",), True) == text


# --- kubeadm's extraArgs ---
