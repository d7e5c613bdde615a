# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sub-commands, options and sentences of the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kubemend import cli, collection, playbooks


@pytest.fixture(name="commands")
def _commands(monkeypatch):
    """Record the playbooks that would run."""
    commands = []

    def run(command, env):
        commands.append((command[2].removeprefix("kubemend.remediation."), command[3:], env))
        return 2

    monkeypatch.setattr(playbooks, "run", run)
    return commands


@pytest.mark.parametrize(
    ("words", "playbook", "arguments"),
    [
        (["audit", "m1", "w1"], "audit", ["-i", "m1,w1,"]),
        (["audit", "m1", "-u", "root", "w1"], "audit", ["-i", "m1,w1,", "--user=root"]),
        (["diagnose", "api_down", "-i", "m1,"], "api_down", ["-i", "m1,"]),
        (["diagnose", "-i", "m1,", "api-down", "m1"], "api_down", ["-i", "m1,", "--limit", "m1"]),
        (
            ["remediate", "-i", "m1,", "-e", "kubemend_max_risk=2", "-C", "-D", "-f", "9", "-vv"],
            "remediate",
            ["-i", "m1,", "--forks=9", "--check", "--diff", "-e", "kubemend_max_risk=2", "-vv"],
        ),
        (
            ["audit", "m1", "-b", "-K", "-k"],
            "audit",
            ["-i", "m1,", "--become", "--ask-become-pass", "--ask-pass"],
        ),
        (
            ["audit", "m1", "--ssh-common-args=-oPort=22"],
            "audit",
            ["-i", "m1,", "--ssh-common-args=-oPort=22"],
        ),
        (["audit", "-i", "m1,", "-l", "m1"], "audit", ["-i", "m1,", "--limit", "m1"]),
        (["revert", "-i", "m1,"], "revert", ["-i", "m1,"]),
        (["revert", "last", "m1"], "revert", ["-i", "m1,", "-e", "kubemend_run_id=last"]),
        (["revert", "m1"], "revert", ["-i", "m1,"]),
        (["capture", "m1"], "capture_logs", ["-i", "m1,"]),
        (
            ["audit", "m1", "--format", "junit", "--format", "json"],
            "audit",
            ["-i", "m1,", "-e", "kubemend_report_formats=terminal,json,html,junit"],
        ),
    ],
)
def test_a_sub_command_is_a_playbook(commands, words, playbook, arguments):
    assert cli.main(words) == 2
    assert [entry[:2] for entry in commands] == [(playbook, arguments)]


def test_a_replay_needs_no_inventory(commands, tmp_path):
    assert cli.main(["replay", str(tmp_path), "-e", "kubemend_deep=true"]) == 2
    name, arguments, env = commands[0]
    assert name == "replay"
    assert json.loads(arguments[1]) == {"kubemend_evidence": [str(tmp_path)]}
    assert arguments[2:] == ["-e", "kubemend_deep=true"]
    assert env["ANSIBLE_INVENTORY_UNPARSED_WARNING"] == "false"


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (["-i", "m1,"], "-i m1,"),
        (["m1", "w1"], "-i m1,w1,"),
        (["m1", "-u", "root", "-k", "-f", "9", "-C"], "-i m1, -u root -k"),
        (["m1", "--key-file", "a b"], "-i m1, --private-key 'a b'"),
        (
            ["-i", "m1,w1,", "w1", "--ssh-common-args=-oPort=22"],
            "-i m1,w1, --ssh-common-args=-oPort=22",
        ),
    ],
)
def test_a_command_in_a_report_reaches_the_same_hosts(commands, words, hosts):
    cli.main(["audit", *words])
    assert commands[0][2]["KUBEMEND_COMMAND_HOSTS"] == hosts


def test_an_example_is_replayed_by_its_name(commands):
    assert cli.main(["replay", "two-leaders"]) == 2
    paths = json.loads(commands[0][1][1])["kubemend_evidence"]
    assert paths == [str(collection.folder() / "examples" / "two-leaders")]


def test_a_replay_takes_its_evidence_as_a_variable_too(commands):
    assert cli.main(["replay", "-e", "kubemend_evidence=x y"]) == 2
    assert commands[0][1] == ["-e", "kubemend_evidence=x y"]


def test_each_option_of_a_host_is_one_of_ansible_playbook():
    from ansible.cli.playbook import PlaybookCLI

    parser = PlaybookCLI(["ansible-playbook", "x"])
    parser.init_parser()
    known = parser.parser._option_string_actions
    for names in (*cli.VALUES, *cli.FLAGS):
        assert len({id(known[name]) for name in names}) == 1, names


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["audti"], "audti is no sub-command; the nearest one is audit."),
        (
            ["audit", "--chekc", "m1"],
            "kubemend audit has no option --chekc; the nearest one is --check.",
        ),
        (
            ["diagnose", "cpu_pining", "m1"],
            "cpu_pining is no symptom; the nearest one is cpu_pinning.",
        ),
        (["explain", "KM1011"], "no fault has the code KM1011; the nearest one is KM1"),
        (["audit", "-i", "nowhere"], "there is no inventory nowhere."),
        (["audit", "--kubeconfig", "nowhere"], "kubeconfig nowhere cannot be read: No such file"),
        (["replay", "nowhere"], "there is no evidence nowhere, and no example of that name."),
        (["replay"], "a replay needs a run, a folder of evidence, a bundle, or two-leaders."),
        (
            ["audit", "m1", "--format", "junti"],
            "no report has the format junti; the nearest one is junit.",
        ),
        (
            ["audit", "m1", "--format", "junit", "-e", "kubemend_report_formats=json"],
            "--format and -e kubemend_report_formats exclude each other.",
        ),
        (["audit", "m1", "-u"], "kubemend audit: argument -u/--user: expected one argument."),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
    ],
)
def test_wrong_input_is_one_sentence_and_code_2(commands, capsys, words, sentence):
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kubemend: ")
    assert captured.err.count("\n") == 1
    assert sentence in captured.err
    assert commands == []


def test_without_a_word_the_sub_commands_are_shown(capsys):
    assert cli.main([]) == 2
    shown = capsys.readouterr().err
    for name in ("audit", "diagnose", "explain", "faults", "replay", "remediate", "revert"):
        assert f"\n    {name}" in shown


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["audit", "--help"]])
def test_help_and_version_end_well(capsys, words):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert "kubemend" in capsys.readouterr().out


def test_diagnose_without_a_symptom_lists_them(commands, capsys):
    assert cli.main(["diagnose"]) == 0
    assert "api_down" in capsys.readouterr().out
    assert commands == []


def test_nagios_prints_one_line(monkeypatch, capsys):
    seen = []

    def capture(command, env):
        seen.append(env["ANSIBLE_NOCOLOR"])
        return 2, '"msg": "There is no host to ask."'

    monkeypatch.setattr(playbooks, "capture", capture)
    assert cli.main(["audit", "m1", "--nagios"]) == 3
    assert capsys.readouterr().out == "KUBEMEND UNKNOWN - There is no host to ask.\n"
    assert seen == ["1"]


def test_nagios_is_told_of_wrong_input_as_unknown(capsys):
    assert cli.main(["audit", "-i", "/nowhere/hosts.yml", "--nagios"]) == 3
    text, errors = capsys.readouterr()
    assert text.startswith("KUBEMEND UNKNOWN - ")
    assert "/nowhere/hosts.yml" in text
    assert (text.count("\n"), errors) == (1, "")


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["explain", "KM101"], "# KM101 "),
        (["explain"], "KM101  critical"),
        (["faults", "KM4*"], "KM401  "),
        (["faults", "KM401", "--format", "json"], "[\n {\n"),
        (["history"], "No run in "),
    ],
)
def test_what_only_reads_is_printed(capsys, words, start):
    assert cli.main(words) == 0
    assert capsys.readouterr().out.startswith(start)


@pytest.mark.parametrize(
    ("command", "dest", "word"),
    [
        ("diagnose", "symptom", "api_down"),
        ("explain", "code", "KM101"),
        ("faults", "codes", "KM407"),
        ("audit", "format", "prometheus"),
        ("audit", "extra_vars", "kubemend_max_risk="),
        ("revert", "run", "last"),
    ],
)
def test_a_shell_is_offered_the_words_of_the_collection(monkeypatch, command, dest, word):
    commands = {}
    cli._parser(commands)
    action = next(item for item in commands[command]._actions if item.dest == dest)
    assert word in action.completer(prefix="")
    monkeypatch.setattr(collection, "ROOT", Path("/nonexistent"))
    assert "KM101" not in action.completer(prefix="")
