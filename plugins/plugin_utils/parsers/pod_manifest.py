# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Static pod manifests as the kubelet reads them, with the place of every argument."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..safe_io.yaml_nodes import first_document, get, items, text_of
from . import pflag

# PyYAML takes 1:20 for a number too, which the kubelet's reader does not.
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9]\d*)")


class ManifestError(ValueError):
    """Error of a text that is no pod. line: 1-based, None when no single line is at fault."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


@dataclass(frozen=True)
class Argument:
    """Item of `command` or `args`.

    line: its line, 1-based start, end: character offsets of the scalar in the text behind its byte
    order mark (most have none)
    """

    value: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Mount:
    """Folder or file of a container that a volume of the pod gives it.

    host_path, kind: of a hostPath volume, its path on the host and its type; None and empty for a
    volume of another sort
    """

    path: str
    host_path: str | None = None
    kind: str = ""


@dataclass(frozen=True)
class Container:
    """Container of a static pod, with its arguments in their places."""

    name: str
    image: str
    arguments: tuple[Argument, ...]
    env: dict[str, str] = field(default_factory=dict)
    # livenessProbe and startupProbe, as what each of them asks
    probes: dict[str, str] = field(default_factory=dict)
    memory_limit: str = ""
    mounts: tuple[Mount, ...] = ()
    env_lines: dict[str, int] = field(default_factory=dict)  # of the names in env

    @property
    def argv(self) -> list[str]:
        """Return command and args with `$(NAME)` replaced by the container's own environment."""
        return [_expand(argument.value, self.env) for argument in self.arguments]

    @property
    def component(self) -> str | None:
        """Return the control-plane component that the container runs, or None."""
        return pflag.component_of(self.words[0], self.name, self.image)

    @property
    def words(self) -> tuple[list[str], list[Argument]]:
        """Return every word and its argument; the words of a `sh -c` line share theirs.

        A flag is one word with all that its argument has: no program parses a second one in it.
        """
        words: list[str] = []
        places: list[Argument] = []
        for text, argument in zip(self.argv, self.arguments, strict=True):
            parts = [text]
            if not text.startswith("-") and re.search(r"\s--\w", text):
                parts = pflag.shell_words(text)
            words.extend(parts)
            places.extend([argument] * len(parts))
        return words, places

    @property
    def version(self) -> tuple[int, int] | None:
        """Return (major, minor) of the image's tag, or None."""
        return pflag.parse_version(self.tag)

    @property
    def tag(self) -> str | None:
        """Return the image's tag, with what a vendor adds to the version."""
        image = self.image.split("@", 1)[0].rsplit("/", 1)[-1]
        _name, colon, tag = image.rpartition(":")
        if not colon:
            return None
        return tag


@dataclass(frozen=True)
class Manifest:
    """Pod of a static pod manifest."""

    name: str
    namespace: str
    containers: tuple[Container, ...]


def _expand(text: str, env: dict[str, str]) -> str:
    return re.sub(
        r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", lambda m: env.get(m.group(1), m.group(0)), text
    )


def parse(text: str) -> Manifest:
    """Parse a static pod manifest; only the first YAML document counts, as for the kubelet.

    Raises ManifestError when the kubelet would drop it: broken YAML, not a mapping, no kind Pod, no
    containers, a word of a command that is no text.
    """
    return read(compose(text))


def read(root: Node | None) -> Manifest:
    """Return the pod of a document that is already composed."""
    if root is None:
        raise ManifestError("the file is empty")
    if not isinstance(root, MappingNode):
        raise ManifestError("not a mapping")
    kind = text_of(get(root, "kind"))
    if kind != "Pod":
        raise ManifestError(f"kind is {kind or 'missing'}, not Pod", root.start_mark.line + 1)
    metadata, spec = get(root, "metadata"), get(root, "spec")
    volumes = {text_of(get(node, "name")): node for node in items(get(spec, "volumes"))}
    containers = tuple(_container(node, volumes) for node in items(get(spec, "containers")))
    if not containers:
        raise ManifestError("spec.containers is missing or empty")
    return Manifest(
        text_of(get(metadata, "name")), text_of(get(metadata, "namespace")) or "default", containers
    )


def compose(text: str) -> Node | None:
    """Return the first document as PyYAML's nodes, which know their places; None without one.

    Raises ManifestError.
    """
    try:
        return first_document(text)
    except yaml.YAMLError as exc:
        problem = getattr(exc, "problem", None) or str(exc).split("\n", 1)[0]
        raise ManifestError(problem, _line_of(exc)) from exc
    except RecursionError as exc:
        raise ManifestError("nested too deeply") from exc
    except UnicodeEncodeError as exc:
        raise ManifestError("not UTF-8") from exc


def parseable(text: str, masked: Iterable[Sequence[int]]) -> str:
    """Return the text with other letters for the asterisks of its masked byte spans.

    A plain `token: ****` is no YAML. Every place stays what it was.
    """
    spans = list(masked)
    if not spans:
        return text
    data = bytearray(text.encode("utf-8"))
    for start, end in spans:
        data[start:end] = data[start:end].replace(b"*", b"x")
    return data.decode("utf-8")


def _container(node: Node, volumes: Mapping[str, Node]) -> Container:
    arguments = tuple(
        Argument(
            _text(item, f"an item of {key}"),
            item.start_mark.line + 1,
            item.start_mark.index,
            item.end_mark.index,
        )
        for key in ("command", "args")
        for item in items(get(node, key))
    )
    env, env_lines = {}, {}
    for entry in items(get(node, "env")):
        name = text_of(get(entry, "name"))
        env[name] = _text(get(entry, "value"), f"the value of {name} in env")
        env_lines[name] = entry.start_mark.line + 1
    return Container(
        text_of(get(node, "name")),
        text_of(get(node, "image")),
        arguments,
        env,
        _probes(node),
        text_of(get(node, "resources", "limits", "memory")),
        tuple(_mount(mount, volumes) for mount in items(get(node, "volumeMounts"))),
        env_lines,
    )


def _text(node: Node | None, place: str) -> str:
    """Return the text of a node. Raises ManifestError where YAML reads something else there.

    The kubelet decodes JSON into strings, and drops a manifest with anything else but null.
    """
    wrong = None
    if isinstance(node, MappingNode):
        wrong = "a map: a colon at its end, or before a space, needs quotes"
    elif isinstance(node, SequenceNode):
        wrong = "a list: a text that begins with a bracket needs quotes"
    elif node is not None and _is_other(node):
        wrong = "a number or a truth value: it needs quotes"
    if node is not None and wrong is not None:
        raise ManifestError(f"{place} is {wrong}", node.start_mark.line + 1)
    return text_of(node)


def _is_other(node: Node) -> bool:
    """Tell whether a scalar is a number or a truth value for every reader of YAML."""
    tag = node.tag.rpartition(":")[2]
    return (tag == "int" and _DECIMAL.fullmatch(node.value) is not None) or tag == "bool"


def _mount(node: Node, volumes: Mapping[str, Node]) -> Mount:
    path = text_of(get(node, "mountPath"))
    folder = get(volumes.get(text_of(get(node, "name"))), "hostPath")
    if folder is None:
        return Mount(path)
    host_path = text_of(get(folder, "path"))
    below = text_of(get(node, "subPath"))
    if below:
        host_path = f"{host_path.rstrip('/')}/{below}"
    return Mount(path, host_path, text_of(get(folder, "type")))


def _probes(node: Node) -> dict[str, str]:
    """Return what the probes ask at which a kubelet restarts a container."""
    ports = {
        text_of(get(port, "name")): text_of(get(port, "containerPort"))
        for port in items(get(node, "ports"))
    }
    probes = {}
    for name in ("livenessProbe", "startupProbe"):
        action = get(node, name, "httpGet")
        if action is None:
            continue
        port = text_of(get(action, "port"))
        host = text_of(get(action, "host")) or "POD_IP"
        scheme = (text_of(get(action, "scheme")) or "http").lower()
        probes[name] = f"{scheme}://{host}:{ports.get(port, port)}{text_of(get(action, 'path'))}"
    return probes


def _line_of(error: yaml.YAMLError) -> int | None:
    mark: yaml.Mark | None = getattr(error, "problem_mark", None)
    if mark is None:
        return None
    return mark.line + 1


def scalars(text: str, limit: int = 20000) -> Iterator[tuple[tuple[str | int, ...], str, int]]:
    """Yield every scalar of the first YAML document as (path of keys and indices, value, line).

    Raises ManifestError when the text does not parse, or holds more than limit nodes once its
    aliases are followed.
    """
    stack: list[tuple[tuple[str | int, ...], Node]] = []
    root = compose(text)
    if root is not None:
        stack.append(((), root))
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
