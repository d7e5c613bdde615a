# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for ssh and a node behind it that lies.

The address names the lie, KUBEMEND_PWNED the file that no process may ever make.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any

PWNED = os.environ.get("KUBEMEND_PWNED", "/nowhere/pwned")
TEMPLATE = (
    f"{{{{ lookup('ansible.builtin.pipe', 'touch {PWNED}') }}}}{{% for x in range(9) %}}{{{{ x"
    " }}{% endfor %}"
)
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b[31m\r\x08\x9b1m\u202e\u200f\u2028"
PATHS = (
    "../../../../pwned",
    "/etc/cron.d/pwned",
    "..",
    ".",
    "a/b",
    "-rf",
    "~root",
    "x\0y",
    "\ud800",
    "C:\\x",
    f"$(touch {PWNED})",
    f"`touch {PWNED}`",
)
WORDS = (
    TEMPLATE,
    ESCAPES,
    *PATHS,
    "!unsafe x",
    f"!!python/object/apply:os.system ['touch {PWNED}']",
    "<script>alert(1)</script>",
    "' onload='x",
    "\0",
)
CHUNK = b"A" * 1048576


def spread(value: Any, word: str) -> Any:
    """Return the same shape with this word in place of every string."""
    if isinstance(value, dict):
        return {key: spread(item, word) for key, item in value.items()}
    if isinstance(value, list):
        return [spread(item, word) for item in value]
    return word if isinstance(value, str) else value


def keys(mark: str) -> Any:
    """Return keys that Ansible would take for its own, if it ever got them.

    Among them are keys that only the controller may set.
    """
    magic = {
        "ansible_facts": {
            "ansible_connection": "local",
            "ansible_python_interpreter": TEMPLATE,
            "discovered_interpreter_python": TEMPLATE,
        },
        "ansible_connection": "local",
        "ansible_host": "127.0.0.1",
        "_ansible_no_log": True,
        "_ansible_delegated_vars": {"ansible_host": TEMPLATE},
        "add_host": {
            "host_name": "pwned",
            "groups": ["all"],
            "host_vars": {"ansible_connection": "local"},
        },
        "add_group": "pwned",
        "ansible_stats": {"data": {"pwned": 1}, "per_host": True},
        "failed": False,
        "unreachable": False,
        "changed": True,
        "skipped": True,
        "results": [{"failed": True}],
        "msg": TEMPLATE,
        "exception": TEMPLATE,
        "warnings": [ESCAPES],
        "deprecations": [{"msg": TEMPLATE}],
        "diff": {"before": "", "after": ESCAPES},
        "invocation": {"module_args": TEMPLATE},
        "__ansible_type": "_TrustedAsTemplate",
        "__payload__": TEMPLATE,
        "__ansible_unsafe": TEMPLATE,
        "__ansible_vault": "x",
    }
    ours = {
        "host": "../../../../pwned",
        "node": "here",
        "kind": "cluster",
        "cluster_key": "k" * 64,
        "groups": ["control_plane"],
        "address": "here",
        "asked_at": "x",
        "received_at": [],
        "schema": "pwned/1",
        "tool_version": TEMPLATE,
        "status": "ok",
        "reason": TEMPLATE + ESCAPES,
    }
    records = {
        name: {"status": "ok", "data": dict(magic), "ansible_facts": magic["ansible_facts"]}
        for name in ("kubelet", "system", *magic)
    }
    return {**magic, **ours, "collectors": records}


def words(mark: str) -> Any:
    """Return files, processes and units with names that are no names."""
    files = [
        {
            "path": word,
            "name": word,
            "kind": word,
            "link": word,
            "text": word,
            "error": word,
            "masked": [[0, 1]],
            "sha256": word,
        }
        for word in WORDS
    ]
    processes = [
        {
            "component": "kube-scheduler",
            "pid": word,
            "argv": list(WORDS),
            "static": True,
            "unit": word,
            "exe": word,
        }
        for word in WORDS
    ]
    unit = {
        "name": TEMPLATE,
        "load_state": ESCAPES,
        "active_state": "failed",
        "unit_file_state": "disabled",
        "fragment_path": PATHS[0],
    }
    data = {
        "folder": TEMPLATE,
        "files": files,
        "processes": processes,
        "unit": unit,
        "argv": list(WORDS),
        "hostname": TEMPLATE,
        "addresses": list(WORDS),
        "kubeconfig": {
            "text": f"clusters: [{{cluster: {{certificate-authority-data: {TEMPLATE}}}}}]"
        },
        "text": TEMPLATE,
        "lines": list(WORDS),
        "ca": {"pem": "-----BEGIN CERTIFICATE-----" + "A" * 99999},
        "config": {"text": "&a [" + "*a," * 999 + "]"},
    }
    names = (
        "kubelet",
        "system",
        "manifests",
        "instances",
        "etcd",
        "installer",
        "devices",
        "limits",
        "runtime",
        "boot",
        "swap",
        "kubelet_log",
        "pinning",
    )
    return {
        "collected_at": TEMPLATE,
        "duration_ms": 1,
        "collectors": {name: {"status": "ok", "data": data} for name in (*names, *WORDS)},
    }


def flood(descriptor: int) -> None:
    while True:
        os.write(descriptor, CHUNK)


def one_gigabyte(mark: str) -> None:
    """Evidence as the collector writes it, but for its size."""
    sys.stdout.write(mark + ' {"collectors": {"system": {"status": "ok", "data": "')
    sys.stdout.flush()
    for _number in range(1024):
        os.write(1, CHUNK)
    sys.stdout.write('"}}}\n')


def said(mark: str, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    data = mark.encode("ascii") + b" " + data + b"\n"
    while data:
        data = data[os.write(1, data) :]


def fine(**more: Any) -> str:
    return json.dumps(
        {
            "collected_at": "2026-11-21T09:00:00Z",
            "duration_ms": 1,
            "collectors": {"system": {"status": "ok", "data": {}}},
            **more,
        }
    )


def hang(mark: str) -> None:
    time.sleep(10000)


def drip(mark: str) -> None:
    while True:
        os.write(1, b"x\n")
        time.sleep(0.5)


LIES = {
    "flood": lambda mark: flood(1),
    "flood-stderr": lambda mark: flood(2),
    "gigabyte": one_gigabyte,
    "hang": hang,
    "drip": drip,
    "bomb": lambda mark: said(
        mark, '{"collectors": {"system": {"status": "ok", "data": [' + '{"":0},' * 4500000 + "0]}}}"
    ),
    "deep": lambda mark: said(mark, '{"collectors": ' + '{"a":[' * 200000),
    "deep-enough": lambda mark: said(
        mark,
        fine(collectors={"system": {"status": "ok", "data": json.loads("[" * 600 + "]" * 600)}}),
    ),
    "keys": lambda mark: said(mark, json.dumps(keys(mark))),
    "words": lambda mark: said(mark, json.dumps(words(mark))),
    "types": lambda mark: said(
        mark,
        json.dumps(
            {
                "status": 7,
                "reason": [],
                "collected_at": {},
                "duration_ms": "x",
                "collectors": "all",
                "groups": 1,
            }
        ),
    ),
    "records": lambda mark: said(
        mark, fine(collectors={"system": 3, "kubelet": {"status": TEMPLATE}})
    ),
    "statuses": lambda mark: said(mark, fine(status="not_asked", reason=ESCAPES)),
    "infinite": lambda mark: said(
        mark,
        '{"collectors": {"system": {"status": "ok", "data": {"clock": 1e999, "x": %s}}}}'
        % ("9" * 4000),
    ),
    "numbers": lambda mark: said(
        mark,
        '{"duration_ms": NaN, "collectors": {"system": {"status": "ok", "data": [Infinity, -1e999,'
        " 1e999, %s]}}}" % ("9" * 4000),
    ),
    "deep-yaml": lambda mark: said(
        mark,
        fine(
            collectors={
                "kubelet": {"status": "ok", "data": {"kubeconfig": {"text": "x: " + "[" * 200000}}}
            }
        ),
    ),
    "digits": lambda mark: said(mark, '{"collectors": {}, "duration_ms": %s}' % ("9" * 100000)),
    "bytes": lambda mark: said(mark, b'{"collectors": {"\xff\xfe\x00": "\xc3\x28\x00\x1b[2J"}}'),
    "surrogates": lambda mark: said(
        mark,
        '{"duration_ms": 1, "collectors": {"\\ud800": {"status": "ok", "data": {"\\udfff":'
        ' "\\ud800"}}}, "reason": "\\ud800"}',
    ),
    "large": lambda mark: said(
        mark,
        fine(
            collectors={
                "system": {
                    "status": "ok",
                    "data": {
                        "processes": [
                            {
                                "pid": number,
                                "argv": [
                                    "kubelet",
                                    "--config=/var/lib/kubelet/config.yaml",
                                    "x" * 60,
                                ],
                            }
                            for number in range(100000)
                        ]
                    },
                }
            }
        ),
    ),
    "nothing": lambda mark: None,
    "text": lambda mark: said(mark, "Segmentation fault"),
    "list": lambda mark: said(mark, json.dumps([TEMPLATE] * 9)),
    "failed": lambda mark: said(mark, json.dumps({"failed": TEMPLATE + ESCAPES})),
    "python": lambda mark: said(mark, json.dumps({"python": TEMPLATE + ESCAPES})),
    "module": lambda mark: os.write(
        1, json.dumps({"changed": True, **keys(mark), "document": keys(mark)}).encode()
    ),
}


def main() -> None:
    if len(sys.argv) < 3:
        return
    name = next((argument for argument in sys.argv[1:] if argument in LIES), "nothing")
    mark = b"KUBEMEND-0"
    if not os.isatty(0):
        found = re.search(rb"KUBEMEND-[0-9a-f]{32}", sys.stdin.buffer.read())
        mark = found.group() if found else mark
    try:
        LIES[name](mark.decode("ascii"))
    except BrokenPipeError:
        os._exit(1)


if __name__ == "__main__":
    main()
