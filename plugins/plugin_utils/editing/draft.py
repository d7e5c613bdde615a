# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One YAML or JSON file while it is edited, verified to change nothing else."""

from __future__ import annotations

import base64
import difflib
import hashlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..parsers import pod_manifest
from ..safe_io import yaml_nodes

BY_HAND = "make this change by hand"
# What ends a line for YAML but not for an editor: line numbers and whole lines would mean different
# things.
_ODD_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_TEMPLATE = re.compile(r"\{\{|\{%")
_EXPLICIT_KEY = re.compile(r"(?:^|[\s\-,{\[])\?[ \t]*$")


class EditRefused(ValueError):
    """Refusal of an edit. Its text is one sentence: the place, the reason, the way out."""

    def __init__(self, path: str, line: int | None, reason: str, way_out: str) -> None:
        place = path
        if line is not None:
            place = f"{path}, line {line}"
        super().__init__(f"{place}: {reason}; {way_out}")
        self.path = path
        self.line = line
        self.why = reason
        self.way_out = way_out


class Splice(NamedTuple):
    """A change of the bytes start..end of the true file, with the former and the new ones."""

    start: int
    end: int
    old: bytes
    new: bytes


@dataclass(frozen=True)
class Edit:
    """Change of a file. Without splices the file is already as it should be.

    sha256: of the true former bytes. text: the file afterwards, masked where the evidence was.
    line: 1-based, the place of the change (or of what is in effect).
    """

    path: str
    sha256: str
    splices: tuple[Splice, ...]
    text: str
    diff: str
    line: int

    @property
    def changed(self) -> bool:
        """Return whether there is anything to write."""
        return bool(self.splices)

    def change(self) -> dict[str, Any]:
        """Return the change as a node makes it."""
        return change_of(self.path, self.sha256, self.splices)


@dataclass(frozen=True)
class Source:
    """File as evidence has it.

    masked: byte spans whose true bytes the evidence does not have
    """

    text: str
    path: str = "the file"
    sha256: str = ""
    masked: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Source:
        """Return the file of a File record of the evidence.

        Raises EditRefused when it does not hold the whole text.
        """
        path = str(record.get("path") or "the file")
        again = "collect this node's evidence again"
        if record.get("error"):
            raise EditRefused(path, None, f"it could not be read ({record['error']})", again)
        if record.get("truncated"):
            raise EditRefused(path, None, "the evidence holds only its beginning", BY_HAND)
        text = record.get("text")
        if record.get("binary") or not isinstance(text, str):
            raise EditRefused(path, None, "it is not UTF-8 text", "replace it by a file that is")
        size, length = record.get("size"), len(text.encode("utf-8", "replace"))
        if isinstance(size, int) and size != length:
            raise EditRefused(path, None, f"the evidence holds {length} of its {size} bytes", again)
        return cls(
            text,
            path,
            str(record.get("sha256") or ""),
            tuple(_spans(path, record.get("masked") or ())),
        )

    def hides(self, start: int, end: int) -> bool:
        """Return whether masked bytes stand there, or on both sides of an insertion."""
        return any(
            (start < last and first < end) or first < start == end < last
            for first, last in self.masked
        )


def _spans(path: str, raw: Sequence[Any]) -> list[tuple[int, int]]:
    try:
        return [(int(start), int(end)) for start, end in raw]
    except (TypeError, ValueError) as exc:
        raise EditRefused(
            path, None, "the evidence does not say which of its bytes are masked", BY_HAND
        ) from exc


class Draft:
    """File while it is edited. root: the composed document.

    An edit records splices, and changes these nodes into what must be read afterwards: finish()
    applies the splices, composes again, and compares both trees node by node.
    """

    def __init__(self, source: Source | str) -> None:
        if isinstance(source, str):
            source = Source(source)
        self.source = source
        self._mark = ""
        if source.text.startswith("\ufeff"):
            self._mark = "\ufeff"
        self._data = self._bytes()
        # Places count from behind the byte order mark; asterisks of masks are letters here, so that
        # it parses.
        self.body = pod_manifest.parseable(source.text, source.masked)[len(self._mark) :]
        self.eol = "\n"
        if "\r\n" in self.body:
            self.eol = "\r\n"
        self._changes: list[tuple[int, int, str]] = []
        root = self._compose()
        self.refuse_marks(root)
        self.root: MappingNode = root
        self.after: Node | None = None

    def _bytes(self) -> bytes:
        try:
            data = self.source.text.encode("utf-8")
        except UnicodeEncodeError:
            self.refuse(None, "it is not UTF-8 text", "replace it by a file that is")
        masked = sorted(self.source.masked)
        if any(not 0 <= start <= end <= len(data) for start, end in masked):
            self.refuse(None, "the evidence does not say which of its bytes are masked", BY_HAND)
        if masked and not self.source.sha256:
            self.refuse(
                None, "the evidence masks secrets and has no digest of the true bytes", BY_HAND
            )
        if odd := _ODD_BREAK.search(self.source.text):
            self.refuse(
                self.source.text.count("\n", 0, odd.start()) + 1,
                f"a line ends with {odd.group()!r} instead of a newline",
                "convert the file's line ends",
            )
        return data

    def _compose(self) -> MappingNode:
        try:
            root = pod_manifest.compose(self.body)
        except pod_manifest.ManifestError as exc:
            self._refuse_template(_TEMPLATE.search(self.body))
            self.refuse(exc.line, f"it is no valid YAML ({exc.problem})", "correct it by hand")
        if root is None:
            self.refuse(None, "the file is empty", "correct it by hand")
        if not isinstance(root, MappingNode):
            self.refuse(None, "its document is no mapping", "correct it by hand")
        self._refuse_template(_TEMPLATE.search(self.body, 0, root.end_mark.index))
        return root

    def _refuse_template(self, match: re.Match[str] | None) -> None:
        if match is not None:
            self.refuse(
                self.body.count("\n", 0, match.start()) + 1,
                f"{match.group()} makes it a template",
                "change the template, or what it is rendered from",
            )

    def refuse(self, place: Node | int | None, reason: str, way_out: str = BY_HAND) -> NoReturn:
        """Raise EditRefused for a place: a node, a line or the whole file."""
        if isinstance(place, Node):
            place = place.start_mark.line + 1
        raise EditRefused(self.source.path, place, reason, way_out)

    def refuse_marks(self, node: Node) -> None:
        """Refuse anchors, aliases, tags and block scalars at the place of an edit.

        They may affect other places of the file.
        """
        # What an alias stands for is the anchored node itself, whose place is that of its anchor.
        first = self.body[node.start_mark.index : node.start_mark.index + 1]
        if first == "&":
            self.refuse(
                node,
                "an anchor or alias stands around the place to change",
                "write it out and run again",
            )
        if first == "!":
            self.refuse(
                node, "a YAML tag stands around the place to change", "remove the tag and run again"
            )
        if isinstance(node, ScalarNode) and node.style in ("|", ">"):
            self.refuse(
                node,
                "a block scalar (| or >) stands at the place to change",
                "write it on one line",
            )

    def entry(self, mapping: MappingNode, name: str) -> tuple[ScalarNode, Node] | None:
        """Return the key and value of name in a mapping on the way to the change.

        Refuses what makes it ambiguous.
        """
        self._refuse_ambiguous(mapping)
        for key, value in mapping.value:
            if isinstance(key, ScalarNode) and key.value == name:
                self._refuse_entry(key, value)
                return key, value
        return None

    def _refuse_ambiguous(self, mapping: MappingNode) -> None:
        names: set[str] = set()
        for key, _value in mapping.value:
            text = yaml_nodes.text_of(key)
            if text in names:
                self.refuse(key, f"the key {text} occurs twice", "remove one of them and run again")
            if text == "<<":
                self.refuse(
                    key,
                    "a merge key (<<) stands around the place to change",
                    "write it out and run again",
                )
            names.add(text)

    def _refuse_entry(self, key: ScalarNode, value: Node) -> None:
        self.refuse_marks(key)
        if not isinstance(value, ScalarNode):
            self.refuse_marks(value)
        start = key.start_mark.index
        if _EXPLICIT_KEY.search(self.body[self.line_start(start) : start]):
            self.refuse(
                key,
                f"the key {key.value} is written with `?`",
                f"write it as `{key.value}:` and run again",
            )

    def line_start(self, place: int) -> int:
        """Return the place where the line of a place begins."""
        return self.body.rfind("\n", 0, place) + 1

    def change(self, start: int, end: int, new: str = "") -> None:
        """Replace characters start..end of the body."""
        self._changes.append((start, end, new))

    def unchanged(self, node: Node) -> Edit:
        """Return an edit without splices: what is in effect stands at a node."""
        line = node.start_mark.line + 1
        return Edit(self.source.path, self._digest(), (), self.source.text, "", line)

    def finish(self) -> Edit:
        """Return the verified edit. Raises EditRefused."""
        changes = _merged(self._changes)
        if any(first[1] > second[0] for first, second in itertools.pairwise(changes)):
            self.refuse(None, "two parts of the change overlap")
        splices = [self._splice(*change) for change in changes]
        for splice in splices:
            self._refuse_masked(splice)
        body = self.body
        for start, end, new in reversed(changes):
            body = body[:start] + new + body[end:]
        try:
            self.after = pod_manifest.compose(body)
        except pod_manifest.ManifestError as exc:
            self.refuse(None, f"the change would not read back ({exc.problem})")
        if self.after is None or not _same(self.root, self.after):
            self.refuse(None, "the change would alter more of the file than it owns")
        return self._edit(splices)

    def _splice(self, start: int, end: int, new: str) -> Splice:
        first = len((self._mark + self.body[:start]).encode("utf-8"))
        last = first + len(self.body[start:end].encode("utf-8"))
        return Splice(first, last, self._data[first:last], new.encode("utf-8"))

    def refuse_masked(self, node: Node) -> None:
        """Refuse a secret, which can be neither compared nor replaced."""
        self._refuse_masked(self._splice(node.start_mark.index, node.end_mark.index, ""))

    def _refuse_masked(self, splice: Splice) -> None:
        if self.source.hides(splice.start, splice.end):
            self.refuse(
                self._data.count(b"\n", 0, splice.start) + 1,
                "a secret stands at the place to change, and the evidence does not hold it",
            )

    def _edit(self, splices: list[Splice]) -> Edit:
        before = self._shown()
        after, text = apply(before, splices), apply(self._data, splices)
        # The report shows the splice that writes the most, not the comma that makes room for it.
        main = max(splices, key=lambda splice: (len(splice.new.strip(b" ,\r\n")), len(splice.old)))
        moved = sum(
            len(splice.new) - len(splice.old) for splice in splices if splice.start < main.start
        )
        lead = len(main.new) - len(main.new.lstrip(b" ,\r\n"))
        return Edit(
            self.source.path,
            self._digest(),
            tuple(splices),
            text.decode("utf-8"),
            unified(self.source.path, before, after),
            after.count(b"\n", 0, main.start + moved + lead) + 1,
        )

    def _digest(self) -> str:
        return self.source.sha256 or hashlib.sha256(self._data).hexdigest()

    def _shown(self) -> bytes:
        """Return the bytes with every masked span masked, whatever the evidence shows there."""
        shown = bytearray(self._data)
        for start, end in self.source.masked:
            shown[start:end] = re.sub(rb"[^\r\n]", b"*", bytes(shown[start:end]))
        return bytes(shown)


def change_of(
    path: str, sha256: str, splices: Iterable[Splice], kind: str = "splice"
) -> dict[str, Any]:
    """Return splices in the form in which a node makes them."""
    encoded = [
        [splice.start, splice.end, _base64(splice.old), _base64(splice.new)] for splice in splices
    ]
    return {"kind": kind, "path": path, "sha256": sha256, "splices": encoded}


def apply(data: bytes, splices: Sequence[Splice]) -> bytes:
    """Return data with the splices applied; places are those before any of them."""
    for splice in reversed(splices):
        data = data[: splice.start] + splice.new + data[splice.end :]
    return data


def _merged(changes: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return the changes in order; removals that overlap become one."""
    merged: list[tuple[int, int, str]] = []
    for change in sorted(changes):
        if merged and _are_one_removal(merged[-1], change):
            start, end, _new = merged[-1]
            merged[-1] = (start, max(end, change[1]), "")
        else:
            merged.append(change)
    return merged


def _are_one_removal(former: tuple[int, int, str], change: tuple[int, int, str]) -> bool:
    return not former[2] and not change[2] and change[0] <= former[1]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    if isinstance(node, SequenceNode):
        return list(node.value)
    return []


def _same(root: Node, other: Node) -> bool:
    """Return whether two documents have the same values, tags and order.

    Aliases may make it a graph with cycles, so each pair is compared once.
    """
    seen_pairs: set[tuple[int, int]] = set()
    stack = [(root, other)]
    while stack:
        first, second = stack.pop()
        if (id(first), id(second)) in seen_pairs:
            continue
        seen_pairs.add((id(first), id(second)))
        if not _is_alike(first, second):
            return False
        stack.extend(zip(_children(first), _children(second), strict=True))
    return True


def _is_alike(first: Node, second: Node) -> bool:
    """Return whether two nodes are alike, their children left aside."""
    if type(first) is not type(second) or first.tag != second.tag:
        return False
    if isinstance(first, ScalarNode):
        return bool(first.value == second.value)
    return len(_children(first)) == len(_children(second))


def unified(path: str, before: bytes, after: bytes) -> str:
    """Return a unified diff that patch(1) reads, also without a newline at the end of a file."""
    old, new = (
        re.findall(r"[^\n]*\n|[^\n]+", data.decode("utf-8", "replace")) for data in (before, after)
    )
    lines = difflib.unified_diff(old, new, f"{path} (before)", f"{path} (after)")
    return "".join(map(_ended, lines))


def _ended(line: str) -> str:
    if line.endswith("\n"):
        return line
    return f"{line}\n\\ No newline at end of file\n"
