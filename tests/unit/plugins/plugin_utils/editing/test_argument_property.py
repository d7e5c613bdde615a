# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated manifests in widely varied style.

The edit changes the argument that it owns, or refuses; never half.

KUBEMEND_EXAMPLES=<number> looks further, with seeds of its own; by default the same examples run
everywhere.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import os
import random
import re
from dataclasses import dataclass, field

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import (
    argument as editing_argument,
)

ASKED = os.environ.get("KUBEMEND_EXAMPLES")
PROFILE = {
    "deadline": None,
    "database": None,
    "derandomize": not ASKED,
    "suppress_health_check": list(HealthCheck),
}
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
OWN_LINE = re.compile(rb"(?m)^[ \t]*#[^\r\n]*")
SECRET = "hunter2-é"
OTHERS = (
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/s.conf",
    "--name=é ü",
    "--x=a: b",
    "--y=# no",
    "--vmodule=a=1,b=2",
    "--leader-elect-lease-duration=15s",
    '--q=it\'s "so"',
    "--feature-gates=A=true",
    "-h",
    "--leader-electx=false",
    "--url=https://a:1/b?c=[d]",
    "--tab=a\tb",
    "--",
    "",
)
# The kubelet drops a manifest with one of these without quotes.
NO_TEXT = re.compile(r"[-+]?\d+|true|false")
COMMENTS = ("", "", "", " # why", "\t# tab\there", " # - --leader-elect=false", " # é, [x] {y}: 'z")
USES = {
    "leader-elect": (
        "--leader-elect=false",
        "--leader-elect=true",
        "--leader-elect",
        "--leader_elect=false",
        "--leader-elect=0",
        '--leader-elect="false"',
        "--leader-elect=",
    ),
    "v": ("--v=2", "--v=4", "--v=", "--v=warn"),
}
VALUES = {"leader-elect": ("true", "false", None), "v": ("4", "a, b", None)}
HAZARDS = (
    "anchor on list",
    "alias of list",
    "alias of item",
    "template",
    "broken",
    "duplicate key",
    "two of them",
    "tag",
    "block scalar",
    "shell",
    "secret here",
    "explicit key",
    "none runs it",
)


@dataclass
class Case:
    """A manifest with what is asked of it.

    lists: the items of command and args
    """

    text: str
    lists: dict[str, list[str]]
    flag: str
    value: str | None
    hazard: str | None
    tail: str = ""
    secrets: list[str] = field(default_factory=list)
    split: bool = False


class Writer:
    """Writes one pod, drawing its style from a random source that Hypothesis drives."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.pick = rnd.choice
        self.split = False

    def maybe(self, part: float) -> bool:
        return self.rnd.random() < part

    def arguments(self, flag: str, hazard: str | None) -> dict[str, list[str]]:
        others = [
            word
            for word in self.rnd.sample(OTHERS, self.rnd.randrange(5))
            if word not in ("--", "")
        ]
        for _use in range(self.pick((0, 1, 1, 1, 2))):
            use = [self.pick(USES[flag])]
            if self.maybe(0.3):
                use = [
                    "--" + flag,
                    self.pick(("false", "true") if flag == "leader-elect" else ("2", "4", "/x")),
                ]
            elif flag == "v" and self.maybe(0.1):
                use = ["--v", "-1"]
            place = self.rnd.randrange(len(others) + 1)
            if place and others[place - 1] == "--" + flag:
                place -= 1
            others[place:place] = use
        cut = self.pick((0, len(others), self.rnd.randrange(len(others) + 1)))
        lists = {"command": ["kube-scheduler", *others[:cut]], "args": others[cut:]}
        if hazard == "shell":
            lists["command"] = ["/bin/sh", "-c", "exec kube-scheduler " + " ".join(others[:cut])]
        return lists

    def scalar(self, text: str, flow: bool, style: str | None = None) -> str:
        style = style or self.pick(("plain", "plain", "single", "double"))
        safe = (
            re.fullmatch(r"[-\w./=@]+" if flow else r"[-\w./=,:@\"\[\]?]*[-\w./=]", text, re.ASCII)
            and text[:1] not in "\"'[?,:"
            and not NO_TEXT.fullmatch(text)
        )
        if style == "plain" and safe and text not in ("-", ""):
            return text
        return (
            "'" + text.replace("'", "''") + "'"
            if style == "single" and "\t" not in text
            else json.dumps(text, ensure_ascii=self.maybe(0.5))
        )

    def block(self, key: str, words: list[str], pad: str, hazard: str | None) -> list[str]:
        mark = {"anchor on list": " &l", "tag": " !!seq"}.get(hazard or "", "")
        lines = [f"{pad}{key}:{mark}{self.pick(COMMENTS)}"]
        inner = pad + " " * self.pick((0, 2, 4))
        for number, word in enumerate(words):
            while self.maybe(0.15):
                lines.append(self.pick((inner + "# own, line", "# \ttop", "")))
            text, gap = self.scalar(word, False), " " * self.pick((1, 1, 3))
            if hazard == "block scalar" and number == 0:
                lines += [f"{inner}- |-", f"{inner}  {word}"]
            elif self.split and self.maybe(0.3):
                lines += [
                    f"{inner}-{self.pick(COMMENTS)}",
                    f"{inner}   {text}{self.pick(COMMENTS)}",
                ]
            else:
                lines.append(f"{inner}-{gap}{text}{self.pick(COMMENTS)}")
        return lines

    def flow(self, key: str, words: list[str], pad: str, hazard: str | None) -> list[str]:
        mark = {"anchor on list": "&l ", "tag": "!!seq "}.get(hazard or "", "")
        parts = [self.scalar(word, True) for word in words]
        if self.maybe(0.5):
            comma, last = (
                self.pick((", ", ",", " , ")),
                self.pick(("", "", " ", ",") if words else ("", " ")),
            )
            return [
                f"{pad}{key}:"
                f" {mark}[{self.pick(('', ' '))}{comma.join(parts)}{last}]{self.pick(COMMENTS)}"
            ]
        lines, inner = (
            [f"{pad}{key}: {mark}[{self.pick(COMMENTS)}"],
            pad + " " * self.pick((1, 2, 6)),
        )
        for number, part in enumerate(parts):
            while self.maybe(0.1):
                lines.append(inner + "# own, line")
            comma = "," if number + 1 < len(parts) or self.maybe(0.3) else ""
            lines.append(f"{inner}{part}{comma}{self.pick(COMMENTS)}")
            if comma and self.maybe(0.2) and number + 1 < len(parts):
                lines[-1] = f"{inner}{part}{comma}"
        if self.maybe(0.3) and not re.search(r"[ \t]#", lines[-1]):
            lines[-1] += "]"
        else:
            lines.append(f"{pad} ]")
        return lines

    def listed(self, key: str, words: list[str], pad: str, hazard: str | None) -> list[str]:
        flow = not words or (hazard != "block scalar" and self.maybe(0.4))
        return (self.flow if flow else self.block)(key, words, pad, hazard)

    def container(self, lists: dict[str, list[str]], pad: str, hazard: str | None) -> list[str]:
        entries = [
            [f"{pad}name: {self.pick(('s', 'kube-scheduler', 'é'))}{self.pick(COMMENTS)}"],
            [f"{pad}image: r:5000/x/kube-scheduler:v1.20.2"],
            [f"{pad}env: [{{name: TOKEN, value: {SECRET}}}, {{name: 'A', value: \"false\"}}]"],
            [f"{pad}resources: &r {{requests: {{cpu: 100m}}}}", f"{pad}other: *r"],
            [f"{pad}note: |", f"{pad}  - --leader-elect=false", f"{pad}  # no comment"],
        ]
        entries = entries[:2] + self.rnd.sample(entries[2:], self.rnd.randrange(4))
        for key, words in lists.items():
            if words or key == "command" or self.maybe(0.2):
                entries.append(self.listed(key, words, pad, hazard if key == "command" else None))
        self.rnd.shuffle(entries)
        entries += {
            "duplicate key": [[f"{pad}image: x"]],
            "template": [[f"{pad}# {{{{ x }}}}"]],
            "broken": [[f"{pad}x: [1"]],
            "explicit key": [[f"{pad}? x", f"{pad}: 1"]],
        }.get(hazard or "", [])
        lines = [line for entry in entries for line in entry]
        first = next(index for index, line in enumerate(lines) if line.startswith(pad))
        return [*lines[:first], pad[:-2] + "- " + lines[first][len(pad) :], *lines[first + 1 :]]

    def pod(self, lists: dict[str, list[str]], hazard: str | None) -> list[str]:
        step = " " * self.pick((2, 4))
        pad = step + " " * self.pick((2, 4))
        own = self.container(lists, pad, hazard)
        other = [
            f"{pad[:-2]}- name: side",
            f"{pad}args: [--leader-elect=false, '--v=2']",
            f"{pad}image: side",
        ]
        if hazard == "two of them":
            other[-1] = f"{pad}image: kube-scheduler:v1"
        parts = [own, other] if hazard == "two of them" or self.maybe(0.4) else [own]
        self.rnd.shuffle(parts)
        spec = [
            "spec:" + self.pick(COMMENTS),
            f"{step}containers:",
            *(line for part in parts for line in part),
        ]
        if self.maybe(0.3):
            spec += [f"{step}hostNetwork: true", "# at the end"]
        meta = [
            "metadata:",
            f"{step}name: s",
            f"{step}labels: &m {{tier: control-plane, 'é': \"ü\"}}",
            f"{step}annotations: *m",
        ]
        parts = [["apiVersion: v1"], ["kind: Pod"], meta[: self.pick((2, 4))], spec]
        self.rnd.shuffle(parts)
        return self.pick(([], ["---"], ["# head", "---"], ["%YAML 1.1", "---"])) + [
            line for part in parts for line in part
        ]


def yaml_case(rnd: random.Random, flag: str, value: str | None, hazard: str | None) -> Case:
    writer = Writer(rnd)
    writer.split = writer.maybe(0.1)
    lists = writer.arguments(flag, hazard)
    lines = writer.pod(lists, hazard)
    secrets = [SECRET] if any(SECRET in line for line in lines) else []
    text = "\n".join(lines)
    if hazard == "alias of list":
        text = re.sub(
            r"(?m)^( *(?:- )?)command:", r"\1zzz: &z [a]\n\1command: *z # ", text, count=1
        ).replace("- command: *z", "  command: *z")
    if hazard == "alias of item":
        text = text.replace("kind: Pod", "x: &z kube-scheduler\nkind: Pod", 1)
    tail = writer.pick(
        (
            "",
            "",
            (
                "\n---\nkind: Pod\nspec: {containers: [{command: [kube-scheduler,"
                " --leader-elect=false]}]}"
            ),
            "\n---\n{{ broken: [",
            "\n...\n",
        )
    )
    end = "" if writer.maybe(0.3) else "\n"
    eol = writer.pick(("\n", "\n", "\r\n"))
    mark = writer.pick(("", "", "", "\ufeff")) if not text.startswith("%") else ""
    return Case(
        (mark + text + tail + end).replace("\n", eol),
        lists,
        flag,
        value,
        hazard,
        (tail + end).replace("\n", eol) if tail else "",
        secrets,
        writer.split,
    )


def json_case(rnd: random.Random, flag: str, value: str | None) -> Case:
    writer = Writer(rnd)
    lists = writer.arguments(flag, None)
    own = {
        "name": "é",
        "image": "kube-scheduler:v1",
        "env": [{"name": "TOKEN", "value": SECRET}],
        **lists,
    }
    parts = [own, {"name": "side", "image": "side", "args": ["--leader-elect=false"]}][
        : writer.pick((1, 2))
    ]
    rnd.shuffle(parts)
    style = writer.pick(
        ({}, {"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {"indent": "\t"})
    )
    text = json.dumps(
        {"kind": "Pod", "spec": {"containers": parts}, "apiVersion": "v1"},
        ensure_ascii=False,
        **style,
    )
    return Case(text + writer.pick(("", "\n")), lists, flag, value, None, "", [SECRET])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    # One drawn number seeds the style: drawing each choice apart takes ten times as long and finds
    # no more.
    rnd = random.Random(draw(st.integers(0, 2**48)))
    flag = draw(st.sampled_from(sorted(USES)))
    value = draw(st.sampled_from(VALUES[flag]))
    if draw(st.integers(0, 5)) == 0:
        return json_case(rnd, flag, value)
    hazard = draw(st.sampled_from(HAZARDS)) if draw(st.integers(0, 3)) == 0 else None
    return yaml_case(rnd, flag, value, hazard)


def evidence(case: Case) -> tuple[editing_argument.Source, bytes]:
    """Return the file as the evidence shows it, and its true bytes."""
    data, spans = case.text.encode(), []
    for secret in case.secrets:
        spans += [
            [found.start(), found.end()] for found in re.finditer(re.escape(secret.encode()), data)
        ]
    if case.hazard == "secret here":
        spans += [
            list(found.span(1)) for found in re.finditer(rb"--(?:leader[-_]elect|v)=(\w+)", data)
        ]
    shown = bytearray(data)
    for start, end in spans:
        shown[start:end] = b"*" * (end - start)
    record = {
        "path": "/m/s.yaml",
        "text": shown.decode(),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "masked": spans,
    }
    return editing_argument.Source.from_record(record), data


def expected(case: Case) -> tuple[dict[str, list[object]], bool]:
    """Return what the lists must hold, by a model that knows words only, and whether it differs.

    An int is an old item's index.
    """
    words = [
        (key, index, word)
        for key in ("command", "args")
        for index, word in enumerate(case.lists[key])
    ]
    boolean = case.value in ("true", "false")
    uses = []
    for at, (_key, _index, word) in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") != "--" + case.flag or (uses and uses[-1][1] == at):
            continue
        behind = words[at + 1][2] if at + 1 < len(words) else None
        stray = (
            not equals
            and behind is not None
            and (
                behind in ("true", "false")
                if boolean
                else case.value is not None or behind[0] != "-"
            )
        )
        uses.append((at, at + 1 if stray else None, name, value if equals else None))
    result: dict[str, list[object]] = {key: list(range(len(case.lists[key]))) for key in case.lists}
    gone = set()
    if case.value is None:
        gone = {at for use in uses for at in use[:2] if at is not None}
    elif not uses:
        result["args" if case.lists["args"] else "command"].append(f"--{case.flag}={case.value}")
        return result, True
    else:
        at, stray, name, value = uses[-1]
        held = words[stray][2] if stray is not None else value
        if (
            boolean and stray is None and {None: "true", "0": "false"}.get(held, held) == case.value
        ) or (not boolean and held == case.value):
            return result, False
        if stray is not None and not boolean:
            result[words[stray][0]][words[stray][1]] = case.value
        else:
            result[words[at][0]][words[at][1]] = f"{name}={case.value}"
            gone = {stray} - {None}
    for at in gone:
        result[words[at][0]][words[at][1]] = None
    return {
        key: [item for item in items if item is not None] for key, items in result.items()
    }, bool(gone) or case.value is not None


def first(data: bytes) -> dict:
    text = data.decode().removeprefix("\ufeff")
    return next(yaml.load_all(text, LOADER))


def own(document: dict) -> dict:
    return next(item for item in document["spec"]["containers"] if item["name"] != "side")


def untouched(case: Case, data: bytes, after: bytes) -> None:
    """Require that every line but those of the argument stays, byte for byte and in order.

    A comma on the line before may change too.
    """
    name = re.compile(rb"--" + case.flag.encode().replace(b"-", b"[-_]") + rb"(?![-\w])")

    def plain(line: bytes) -> bytes:
        return line.replace(b",", b"").replace(b" []", b"").strip(b"\r\n")

    owned = [line for line in data.split(b"\n") if name.search(line)]
    kept = [plain(line) for line in data.split(b"\n") if not name.search(line)]
    left = [line for line in after.split(b"\n") if not name.search(line)]
    # Aligned as a whole: line by line, a bracket on a line of its own would be taken for another
    # one further down.
    blocks = difflib.SequenceMatcher(
        None, kept, [plain(line) for line in left], autojunk=False
    ).get_matching_blocks()
    matched, same = (
        sum(block.size for block in blocks),
        {block.b + step for block in blocks for step in range(block.size)},
    )
    lost = set(range(len(kept))) - {
        block.a + step for block in blocks for step in range(block.size)
    }
    changed = [line for place, line in enumerate(left) if place not in same]
    for line in changed:
        # What is left of a flow list's line without its argument, or a value on its own line:
        # nothing else that was not there.
        rest = (
            plain(line).replace(plain((case.value or "").encode()), b"").replace(b'"', b"")
            if case.value
            else plain(line)
        )
        assert any(within(rest, old) for old in [*owned, *(kept[place] for place in lost)]), (
            f"{case.text}\n=>\n{after.decode()}"
        )
    # A value on a line of its own, or the one line on which a flow list stands.
    bare = sum(word == f"--{case.flag}" for words in case.lists.values() for word in words)
    shown = f"{case.text}\n=>\n{after.decode()}"
    assert len(changed) <= 2, shown
    assert len(kept) - matched <= max(1, bare), shown


def within(short: bytes, long: bytes) -> bool:
    rest = iter(long)
    return all(byte in rest for byte in short)


def check_refusal(case, refusal):
    assert case.hazard or case.split or follows_a_flag(case), (
        f"refused for no reason: {refusal}\n{case.text}"
    )
    assert "\n" not in str(refusal)
    assert refusal.why
    assert refusal.way_out


def check(case: Case) -> str:
    source, data = evidence(case)
    component = "kube-proxy" if case.hazard == "none runs it" else "kube-scheduler"
    try:
        result = editing_argument.set_argument(source, component, case.flag, case.value)
    except editing_argument.EditRefused as refused:
        check_refusal(case, refused)
        return "refused"
    assert case.hazard in (None, *harmless(case)), f"{case.hazard} was not refused:\n{case.text}"
    proven(case, result, data)
    again = editing_argument.set_argument(
        editing_argument.Source(result.text, source.path, "ab" * 32, moved(source, result)),
        component,
        case.flag,
        case.value,
    )
    assert not again.changed
    assert again.text == result.text
    return "changed" if result.changed else "same"


def follows_a_flag(case: Case) -> bool:
    """Return whether `--v` has another flag behind it, so that its value is not known."""
    words = case.lists["command"] + case.lists["args"]
    return case.flag == "v" and any(
        one == "--v" and other.startswith("--") for one, other in itertools.pairwise(words)
    )


def harmless(case: Case) -> tuple[str, ...]:
    """Hazards that do not always come to lie where the edit is."""
    return (
        ("explicit key", "alias of item", "secret here")
        + (() if "- |-" in case.text else ("block scalar",))
        + (() if "*z" in case.text else ("alias of list",))
    )


def moved(
    source: editing_argument.Source, result: editing_argument.Edit
) -> tuple[tuple[int, int], ...]:
    def shift(place: int) -> int:
        return place + sum(
            len(splice.new) - len(splice.old) for splice in result.splices if splice.end <= place
        )

    return tuple((shift(start), shift(end)) for start, end in source.masked)


def proven(case: Case, result: editing_argument.Edit, data: bytes) -> None:
    for splice in result.splices:
        assert data[splice.start : splice.end] == splice.old
    after = editing_argument.apply(data, result.splices)
    lists, differs = expected(case)
    assert result.changed == differs == (after != data), case.text
    before, now = first(data), first(after)
    held = own(before)
    for key, items in lists.items():
        if key in held:
            held[key] = [held[key][item] if isinstance(item, int) else item for item in items]
    assert now == before, f"{case.text}\n=>\n{after.decode()}"
    assert after.endswith(case.tail.encode())
    untouched(case, data, after)
    assert OWN_LINE.findall(after) == OWN_LINE.findall(data), "comments on lines of their own stay"
    for secret in case.secrets:
        assert after.count(secret.encode()) == data.count(secret.encode())
        assert secret not in result.text + result.diff


COUNTS: dict[str, int] = {}


@settings(max_examples=int(ASKED or 4000), **PROFILE)
@given(cases())
def test_only_the_argument_it_owns_or_a_refusal(case: Case) -> None:
    outcome = check(case)
    COUNTS[outcome] = COUNTS.get(outcome, 0) + 1


def test_the_generator_reaches_every_outcome() -> None:
    """The test above would also pass with an edit that always refuses.

    It would also pass with a generator that only makes refusals.
    """
    if sum(COUNTS.values()) >= 5000:
        assert COUNTS["changed"] > sum(COUNTS.values()) // 2, COUNTS
        assert COUNTS["refused"] > 500, COUNTS
        assert COUNTS["same"] > 200, COUNTS
