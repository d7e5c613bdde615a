# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Static pod manifests as the kubelet reads them, with the place of every argument."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..safe_io.yaml_nodes import first_document, get, items, text_of
from . import pflag as flags


class ManifestError(ValueError):
    """The text is no pod. line: 1-based, None when no single line is at fault."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True)
class Argument:
    """One item of `command` or `args`. start, end.

    Character offsets of the scalar in the text behind its byte order mark (most have none); line is
    1-based.
    """

    value: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Container:
    name: str
    image: str
    arguments: tuple[Argument, ...]
    env: dict[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> list[str]:
        """Command and args as the container runs them.

        `$(NAME)` replaced by the container's own environment.
        """
        return [_expand(argument.value, self.env) for argument in self.arguments]

    @property
    def component(self) -> str | None:
        return flags.component_of(self.words[0], self.name, self.image)

    @property
    def words(self) -> tuple[list[str], list[Argument]]:
        """Every word with the argument it stands in; the words of a `sh -c` line share theirs."""
        words: list[str] = []
        places: list[Argument] = []
        for text, argument in zip(self.argv, self.arguments):
            parts = flags.shell_words(text) if re.search(r"\s--\w", text) else [text]
            words.extend(parts)
            places.extend([argument] * len(parts))
        return words, places

    @property
    def version(self) -> tuple[int, int] | None:
        return flags.parse_version(self.tag)

    @property
    def tag(self) -> str | None:
        """The image's tag, with what a vendor adds to the version."""
        image = self.image.split("@", 1)[0].rsplit("/", 1)[-1]
        return image.rsplit(":", 1)[-1] if ":" in image else None


@dataclass(frozen=True)
class Manifest:
    name: str
    namespace: str
    containers: tuple[Container, ...]


def _expand(text: str, env: dict[str, str]) -> str:
    return re.sub(
        r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", lambda m: env.get(m.group(1), m.group(0)), text
    )


def parse(text: str) -> Manifest:
    """The pod of a static pod manifest; only the first YAML document counts, as for the kubelet.

    Raises ManifestError when the kubelet would drop it: broken YAML, not a mapping, no kind Pod, no
    containers.
    """
    return read(compose(text))


def read(root: Node | None) -> Manifest:
    """parse() for a document that is already composed."""
    if not isinstance(root, MappingNode):
        raise ManifestError("the file is empty" if root is None else "not a mapping")
    if text_of(get(root, "kind")) != "Pod":
        raise ManifestError(
            f"kind is {text_of(get(root, 'kind')) or 'missing'}, not Pod", root.start_mark.line + 1
        )
    metadata, spec = get(root, "metadata"), get(root, "spec")
    containers = tuple(_container(node) for node in items(get(spec, "containers")))
    if not containers:
        raise ManifestError("spec.containers is missing or empty")
    return Manifest(
        text_of(get(metadata, "name")), text_of(get(metadata, "namespace")) or "default", containers
    )


def compose(text: str) -> Node | None:
    """The first document as PyYAML's nodes, which know their places; None when there is none.

    Raises ManifestError.
    """
    try:
        return first_document(text)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        raise ManifestError(
            getattr(exc, "problem", None) or str(exc).split("\n", 1)[0],
            mark.line + 1 if mark else None,
        ) from exc
    except RecursionError as exc:
        raise ManifestError("nested too deeply") from exc
    except UnicodeEncodeError as exc:
        raise ManifestError("not UTF-8") from exc


def parseable(text: str, masked: Iterable[Sequence[int]]) -> str:
    """The text with other letters for the asterisks of its masked byte spans: a plain `token.

    ****` is no YAML.

    Every place stays what it was.
    """
    spans = list(masked)
    if not spans:
        return text
    data = bytearray(text.encode("utf-8"))
    for start, end in spans:
        data[start:end] = data[start:end].replace(b"*", b"x")
    return data.decode("utf-8")


def _container(node: Node) -> Container:
    arguments = tuple(
        Argument(
            text_of(item), item.start_mark.line + 1, item.start_mark.index, item.end_mark.index
        )
        for key in ("command", "args")
        for item in items(get(node, key))
    )
    env = {
        text_of(get(entry, "name")): text_of(get(entry, "value"))
        for entry in items(get(node, "env"))
    }
    return Container(text_of(get(node, "name")), text_of(get(node, "image")), arguments, env)


def scalars(text: str, limit: int = 20000) -> Iterator[tuple[tuple[str | int, ...], str, int]]:
    """Every scalar of the first YAML document as (path of keys and indices, value, 1-based line).

    Raises ManifestError when the text does not parse, or holds more than limit nodes once its
    aliases are followed.
    """
    root = compose(text)
    stack: list[tuple[tuple[str | int, ...], Node]] = [((), root)] if root is not None else []
    visited = 0
    while stack:
        path, node = stack.pop()
        visited += 1
        if visited > limit or len(path) > 50:
            raise ManifestError(f"more than {limit} nodes, or nested deeper than 50")
        if isinstance(node, ScalarNode):
            yield path, node.value, node.start_mark.line + 1
        elif isinstance(node, SequenceNode):
            stack.extend(
                ((*path, index), item) for index, item in reversed(list(enumerate(node.value)))
            )
        elif isinstance(node, MappingNode):
            stack.extend(((*path, text_of(key)), item) for key, item in reversed(node.value))
