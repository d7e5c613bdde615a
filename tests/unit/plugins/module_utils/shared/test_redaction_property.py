# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated YAML in widely varied style.

Every scalar under a secret key is masked, whatever it is written as, every other one stays, and it
parses.
"""

import random
import re

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redaction
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    pod_manifest,
)


class Writer:
    """What is under a secret key is called secret<n>, everything else public<n>."""

    def __init__(self, rnd):
        self.rnd, self.pick, self.count, self.anchors = rnd, rnd.choice, 0, []
        self.zero = rnd.random() < 0.3  # sequences may begin in the column of their key

    def word(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def properties(self):
        tag = self.pick(("", "", "", "!!str ", "! ", "!<tag:yaml.org,2002:str> "))
        anchor = self.pick(("", "", "", "&{} ".format(self.word("a"))))
        return self.pick((tag + anchor, anchor + tag))

    def whole(self):
        """Return a document, before it what its aliases stand for."""
        text, head = self.document(), ""
        for name, kind in self.anchors:
            form = self.pick(
                (
                    "x%s: &%s %s\n",
                    "x%s: {z: &%s %s, k: 1}\n",
                    "x%s: [&%s '%s']\n",
                    "x%s:\n- &%s !!str %s\n",
                )
            )
            head += form % (name, name, self.word(kind))
        return head + text

    def document(self):
        return "".join(
            self.entry(0, self.pick((False, False, True)))
            for dummy in range(self.rnd.randint(1, 4))
        ) + "end: {}\n".format(self.word("public"))

    def entry(self, indent, secret, depth=0):
        """Return one entry of a block mapping."""
        key = (
            self.pick(("password", "api-token", '"token"', "'secret'"))
            if secret
            else self.pick(("name", "x", '"y z"', "'image'"))
        )
        key += str(self.count) if not secret and key[0] not in "\"'" else ""
        kind = "secret" if secret else "public"
        pad = " " * indent
        if self.pick((0,) * 9 + (1,)):
            return f"{pad}? {key}\n{pad}:{self.value(indent, kind, depth)}"
        return f"{pad}{key}:{self.value(indent, kind, depth)}"

    def value(self, indent, kind, depth):  # noqa: C901, PLR0912 - a grammar, a branch each
        """Return what stands behind the colon or the dash of this column, with its newline."""
        pad = " " * (indent + self.rnd.randint(1, 3))
        pad2 = " " * (indent + 2)
        end = self.pick(("\n", "\n", " # c, d: e]\n"))
        forms = [
            "inline",
            "inline",
            "below",
            "block",
            "plain lines",
            "double lines",
            "flow sequence",
            "flow sequence lines",
            "flow mapping",
            "alias",
        ]
        if depth < 3:
            forms += ["mapping", "sequence", "sequence"]
        form = self.pick(forms)
        props = self.properties()
        if form == "inline":
            return f" {props}{self.scalar(kind)}{end}"
        if form == "below":
            return "{}{}{}{}{}{}".format(
                self.pick(("", " # c")),
                "\n",
                self.pick(("", pad + "# c: d\n", "\n")),
                pad,
                props + self.scalar(kind),
                end,
            )
        if form == "block":
            head = props + self.pick("|>") + self.pick(("", "-", "+"))
            first = pad2 + self.word(kind) + self.pick(("", ": x", " # no comment"))
            return f" {head}{end}{first}\n\n{pad2}{self.word(kind)}\n"
        if form == "plain lines":
            return " {}{}\n{}{}\n{}{}{}".format(
                props,
                self.word(kind),
                pad,
                self.word(kind),
                pad + " ",
                self.word(kind),
                end,
            )
        if form == "double lines":
            quote = self.pick("'\"")
            return (
                f" {props}{quote}{self.word(kind)}\n\n{pad}{self.word(kind)}:"
                f" {self.word(kind)}{quote}{end}"
            )
        props = self.pick(("", "", "&{} ".format(self.word("a"))))
        if form == "flow sequence":
            return f" {props}{self.flow(kind, False, 0)}{end}"
        if form == "flow sequence lines":
            comment, more = (
                self.pick(("", " # c]")),
                self.pick(("", ", " + self.scalar(kind, True))),
            )
            return (
                f" {props}[{self.scalar(kind, True)},{comment}\n"
                f"{pad}{self.scalar(kind, True)}\n{pad}{more}]{end}"
            )
        if form == "flow mapping":
            return f" {props}{self.flow(kind, True, 0)}{end}"
        if form == "alias":
            name = self.word("b")
            self.anchors.append((name, kind))
            return f" *{name}{end}"
        props = (" " + props.strip()) if props else ""
        if form == "mapping":
            inner = indent + self.rnd.randint(1, 3)
            return f"{props}{end}" + "".join(
                self.entry(inner, self.pick((False, False, True)), depth + 1)
                for dummy in range(self.rnd.randint(1, 3))
            )
        column = indent + self.rnd.randint(0 if self.zero else 1, 2)
        return f"{props}{end}" + self.sequence(column, kind, depth + 1)

    def sequence(self, column, kind, depth):
        found = ""
        for _dummy in range(self.rnd.randint(1, 3)):
            if self.pick((0, 0, 0, 1)):
                found += (
                    " " * column
                    + "- "
                    + self.entry(column + 2, self.pick((False, True)), depth + 1).lstrip()
                    + self.entry(column + 2, False, depth + 1)
                )
            elif self.pick((0, 0, 0, 1)):
                found += " " * column + "- " + self.sequence(column + 2, kind, depth + 1).lstrip()
            else:
                found += " " * column + "-" + self.value(column, kind, depth)
            found += self.pick(("", "", " " * column + "# c: d\n", "\n"))
        return found

    def scalar(self, kind, flow=False):
        word = self.word(kind)
        return self.pick(
            (
                word,
                word,
                f"'{word}, it''s: {self.word(kind)}]'",
                f'"{word} \\" {{{self.word(kind)}: "',
                word if flow else f"{word},]}} {self.word(kind)}",
                f"{self.properties()}{word}",
                f"http://{word}" if kind == "public" else word + f"#{self.word(kind)}",
            )
        )

    def flow(self, kind, mapping, depth):
        parts = []
        for _dummy in range(self.rnd.randint(1, 3)):
            if mapping:
                secret = self.pick((False, False, True))
                key = self.pick(("password", '"token"')) if secret else "k"
                inner = "secret" if secret else "public"
                value = (
                    self.scalar(inner, True)
                    if depth > 2 or self.pick((0, 1))
                    else self.flow(inner, self.pick((True, False)), depth + 1)
                )
                parts.append(f"{key}: {value}")
            else:
                parts.append(
                    self.scalar(kind, True)
                    if depth > 2 or self.pick((0, 0, 1))
                    else self.flow(kind, self.pick((True, False)), depth + 1)
                )
        text = ", ".join(parts)
        return ("{%s}" if mapping else "[%s]") % text


def shape(text):
    """Return the nodes of a document without its scalars' texts."""

    def of(node):
        if isinstance(node, yaml.MappingNode):
            return [(of(key), of(value)) for key, value in node.value]
        return (
            [of(item) for item in node.value] if isinstance(node, yaml.SequenceNode) else "scalar"
        )

    return of(yaml.compose(text, yaml.SafeLoader))


def cut_off(text, words):
    return [word for word in words if re.search(word + r"(?!\d)", text)]


@given(st.integers(0, 2**32))
def test_whatever_a_secret_is_written_as(seed):
    text = Writer(random.Random(seed)).whole()
    try:
        before = shape(text)
    except yaml.YAMLError:
        assume(False)
    masked, spans = redaction.data(text.encode())
    shown = masked.decode()
    assert len(masked) == len(text.encode())
    assert redaction.data(masked)[0] == masked
    assert cut_off(shown, re.findall(r"secret\d+", text)) == [], (
        f"a secret left the node:\n{text}\n{shown}"
    )
    public = re.findall(r"public\d+", text)
    assert cut_off(shown, public) == public, f"more than secrets was masked:\n{text}\n{shown}"
    assert shape(pod_manifest.parseable(shown, spans)) == before, (
        f"it is another document now:\n{text}\n{shown}"
    )


FRAGMENTS = (
    "password",
    "token",
    ": ",
    ":",
    "=",
    "- ",
    "\n",
    "\n  ",
    "\r\n",
    '"',
    "'",
    '\\"',
    "{",
    "}",
    "[",
    "]",
    ",",
    "abc",
    "name",
    "value",
    "A_KEY",
    "&a ",
    "*a",
    "!!str ",
    "!<",
    "|",
    "#",
    " ",
    "--token ",
    "--password=",
    "? ",
    '"""',
    "\\",
    "é",
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=20).map("".join))
def test_any_text_keeps_its_length_and_its_letters(text):
    data = text.encode()
    masked, spans = redaction.data(data)
    shown = bytearray(data)
    for start, end in spans:
        shown[start:end] = b"*" * (end - start)
    assert masked == bytes(shown)
    assert isinstance(masked.decode(), str)
