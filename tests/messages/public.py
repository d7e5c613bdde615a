# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Last log lines of public threads, and the class that the collection gives each.

public.tsv has one message in a line: its text, and in `form` what the logger writes around it.
`release` is empty where the thread does not name it, `class` where the line is only quoted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.messages import judge
from tests.messages.tables import HERE, lines

_PLAIN = ("Error", "error", "panic", "containerd")
_LOGRUS = ("fatal", "warning")
_PROGRAMS = {"cri-o": "crio"}


@dataclass(frozen=True)
class Message:
    """Message of a public thread.

    keys: the keys of a configuration that it names, divided by spaces
    """

    component: str
    release: str
    form: str
    text: str
    meaning: str
    keys: str
    link: str


def messages() -> Iterator[Message]:
    """Yield the messages of public.tsv."""
    for row in lines(HERE / "public.tsv"):
        yield Message(*row.values())


def answer(message: Message) -> tuple[str, str]:
    """Return the class that the collection gives a message, and the keys that it names."""
    line = written(message)
    if message.component in ("kubelet", "k3s"):
        return judge.of_kubelet(line, _status(message))
    if message.component in ("containerd", "cri-o"):
        return judge.of_runtime(_PROGRAMS.get(message.component, message.component), line), ""
    return judge.of_pod(message.component, line)


def written(message: Message) -> str:
    """Return the line as the logger of its component writes it."""
    name, _space, rest = message.form.partition(" ")
    if message.form == "F":
        return judge.HEADER.format("F", "server.go") + message.text
    if not message.form:
        return message.text
    if message.form in _PLAIN:
        return f"{message.form}: {message.text}"
    if name == "capnslog":
        return f"2021-04-13 09:02:16.175300 C | {rest}: {message.text}"
    if name == "zap":
        return _zap(rest, message.text)
    if name in _LOGRUS:
        return _logrus(name, rest, message.text)
    return judge.structured("run.go", message.form, message.text)


def _zap(form: str, text: str) -> str:
    level, _space, words = form.partition(" ")
    fields = {"level": level, "caller": "etcdmain/etcd.go:204", "msg": words or text}
    if words:
        fields["error"] = text
    return json.dumps(fields, separators=(",", ":"))


def _logrus(level: str, words: str, text: str) -> str:
    start = f'time="2021-11-15T04:53:50Z" level={level} msg='
    if words:
        return f"{start}{json.dumps(words)} error={json.dumps(text)}"
    return start + json.dumps(text)


def _status(message: Message) -> int:
    """Return the status with which a kubelet ends behind such a line."""
    return {"F": 255, "panic": 2}.get(message.form, 1)
