# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands on the pages of faults: programs, options, placeholders and machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import faults, page_commands, program_options
from tests.docs.shell_commands import commands

PAGES = page_commands.pages()
PROGRAMS = page_commands.read_programs()
OPTIONS = page_commands.read_options()
SYMPTOMS = {path.stem for path in (page_commands.ROOT / "playbooks").glob("*.yml")}


def checked(text: str) -> list[str]:
    """Return what is wrong with the commands on a page."""
    blocks = [one for block in page_commands.blocks(text) for one in commands(block)]
    others = [one for shell in page_commands.shell_texts(text) for one in commands(shell)]
    named = [one for one in others if one.program in PROGRAMS]
    return [
        problem
        for command in blocks + named
        for problem in page_commands.problems(command, PROGRAMS, OPTIONS)
    ]


@pytest.mark.parametrize("code", PAGES)
def test_each_program_and_each_option_exists(code: str) -> None:
    assert checked(PAGES[code]) == []


@pytest.mark.parametrize("code", PAGES)
def test_each_word_in_capitals_is_explained(code: str) -> None:
    used = page_commands.placeholders(PAGES[code])
    below = faults.section(PAGES[code], "Check by hand")
    assert [word for word in used if f"- `{word}`: " not in below] == []


@pytest.mark.parametrize("code", PAGES)
def test_words_before_each_block_name_its_machine(code: str) -> None:
    assert page_commands.without_machine(PAGES[code]) == []


@pytest.mark.parametrize("code", PAGES)
def test_each_playbook_exists(code: str) -> None:
    for shell in page_commands.shell_texts(PAGES[code]):
        for command in commands(shell):
            if command.program == "ansible-playbook":
                names = [word for word in command.words if word.startswith("kubemend.")]
                assert {name.rpartition(".")[2] for name in names} <= SYMPTOMS


def test_each_explained_word_is_on_a_page() -> None:
    used = {word for text in PAGES.values() for word in page_commands.placeholders(text)}
    assert set(page_commands.read_placeholders()) - used == set()


def test_each_program_of_the_table_is_on_a_page() -> None:
    texts = [shell for text in PAGES.values() for shell in page_commands.shell_texts(text)]
    used = {Path(one.program).name for text in texts for one in commands(text)} | {"."}
    assert set(PROGRAMS) - used == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kubectl get pods -A | grep 'a b'   # don't", [("kubectl", False), ("grep", True)]),
        ("REV=$($E endpoint status | head -1)\nmv a b", ["etcdctl", "head", "mv"]),
        ('E="crictl exec $(crictl ps -q) etcdctl --cert=a"', ["crictl", "crictl", "etcdctl"]),
        (
            'for f in $(find /etc); do echo "$(openssl x509 -in $f)"; done',
            ["find", "openssl", "echo"],
        ),
        ("timeout 3 bash -c '</dev/tcp/127.0.0.1/2379' && echo open", ["timeout", "bash", "echo"]),
        ("until curl -s a; do sleep 2; done", ["curl", "sleep"]),
        ("ssh NODE systemctl restart kubelet", ["ssh", "systemctl"]),
        ("flock a sh -c 'cd b'", ["cd", "flock", "sh"]),
        ("openssl s_client -connect a </dev/null 2>/dev/null", ["openssl"]),
    ],
)
def test_the_commands_of_a_text(text: str, expected: list[object]) -> None:
    found = [(one.program, one.is_inner) for one in commands(text)]
    if isinstance(expected[0], tuple):
        assert found == expected
    else:
        assert sorted(name for name, _inner in found) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("kubectl -n kube-system get pods -o wide", 0),
        ("kubectl -n kube-system get pods --wide", 1),
        ("kubectl gett pods", 1),
        ("kubectl --server=https://a", 0),
        ("kubectl rollout restart deployment NAME --grace", 1),
        ("etcdctl endpoint status --cluster -w table", 0),
        ("etcdctl endpoint status --clusters", 1),
        ("journalctl -b -1 -n 20", 0),
        ("journalctl -u kubelet --no-pagers", 1),
        ("systemctl restert kubelet", 1),
        ("crictl ps -a --name etcd --names", 1),
        ("kubelet-ctl reset", 1),
    ],
)
def test_what_is_wrong_with_a_command(text: str, count: int) -> None:
    (command,) = commands(text)
    assert len(page_commands.problems(command, PROGRAMS, OPTIONS)) == count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kubectl -n NAMESPACE logs POD -o custom-columns=NODE:.a", ["NAMESPACE", "POD"]),
        ("ssh OTHER-NODE cat /dev/DISK     # NOT THIS", ["OTHER-NODE", "DISK"]),
        ("REV=$REV curl http://ADDRESS1:2380", ["ADDRESS"]),
    ],
)
def test_words_in_capitals(text: str, expected: list[str]) -> None:
    page = f"## Fix by hand\n\n```\n{text}\n```\n"
    assert page_commands.placeholders(page) == expected


@pytest.mark.parametrize(
    ("before", "count"),
    [("", 1), ("On the node:", 0), ("Restart it on another control plane node:", 0)],
)
def test_a_block_without_a_machine(before: str, count: int) -> None:
    page = f"## Fix by hand\n\n{before}\n\n```\nsystemctl restart kubelet\n```\n"
    assert len(page_commands.without_machine(page)) == count


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("pflag", "    -A, --all-namespaces=false:\n\tIf --force", {"-A", "--all-namespaces"}),
        ("pflag", "    -n, --namespace='':\n", {"-n=", "--namespace="}),
        ("pflag", "      --cert-dir string   The path", {"--cert-dir="}),
        ("pflag", "  -h, --help              help for renew", {"-h", "--help"}),
        ("cli", "   --name value, -n value   filter\n", {"--name=", "-n="}),
        ("cli", "   --quiet, -q   only ids\n", {"--quiet", "-q"}),
        (
            "systemd",
            "  -u --unit=UNIT    Show\n     --no-pager\n",
            {"-u=", "--unit=", "--no-pager"},
        ),
    ],
)
def test_the_options_in_a_help_text(kind: str, text: str, expected: set[str]) -> None:
    assert program_options.options_of(kind, text) == expected
