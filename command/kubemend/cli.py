# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sub-commands of kubemend and their options."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import collection, hosts, nagios, pages, playbooks, runs
from .wrong_input import WrongInput, nearest, shown

WRONG_INPUT = 2
COMPLETES = "_ARGCOMPLETE"  # set by the shell's function, which the package argcomplete writes
FORMATS_VARIABLE, EVIDENCE_VARIABLE = "kubemend_report_formats", "kubemend_evidence"
# The options of ansible-playbook that take a value, and those that take none.
VALUES = {
    ("-u", "--user"): ("USER", "connect as this user"),
    ("-f", "--forks"): ("NUMBER", "hosts that are asked at once"),
    ("-T", "--timeout"): ("SECONDS", "wait so long for a connection"),
    ("-c", "--connection"): ("NAME", "the connection plugin of Ansible"),
    ("--private-key", "--key-file"): ("FILE", "the key of ssh"),
    ("--ssh-common-args",): ("TEXT", "arguments of ssh, scp and sftp"),
    ("--ssh-extra-args",): ("TEXT", "arguments of ssh"),
    ("--become-user",): ("USER", "become this user on the hosts"),
    ("--become-method",): ("NAME", "the become plugin of Ansible"),
    ("--become-password-file",): ("FILE", "the password of become"),
    ("--connection-password-file",): ("FILE", "the password of the connection"),
    ("--vault-id",): ("ID", "an identity of Ansible Vault"),
    ("--vault-password-file",): ("FILE", "the password of Ansible Vault"),
}
FLAGS = {
    ("-b", "--become"): "become root on the hosts, as audits do by themselves",
    ("-K", "--ask-become-pass"): "ask for the password of become",
    ("-k", "--ask-pass"): "ask for the password of the connection",
    ("-J", "--ask-vault-pass"): "ask for the password of Ansible Vault",
    ("-C", "--check"): "change nothing, and ask the hosts what would refuse each step",
    ("-D", "--diff"): "show the changes of each step",
}

ONCE = {("-f", "--forks"), ("-C", "--check"), ("-D", "--diff")}  # not of the connection


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Raise WrongInput; an unknown option has its nearest name."""
        before, _colon, words = message.partition("unrecognized arguments: ")
        if words and not before:
            option = words.split()[0].partition("=")[0]
            options = [name for name in self._option_string_actions if name.startswith("--")]
            raise WrongInput(f"{self.prog} has no option {shown(option)}; {_near(option, options)}")
        raise WrongInput(f"{self.prog}: {message}")


def _near(option: str, options: list[str]) -> str:
    near = nearest(option, options)
    return near if near.startswith("the nearest") else "--help lists them"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command, and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands: dict[str, argparse.ArgumentParser] = {}
    parser = _parser(commands)
    if COMPLETES in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
    try:
        return _main(parser, commands, words)
    except WrongInput as error:
        if "--nagios" in words:
            print(nagios.unknown(str(error)))
            return nagios.UNKNOWN
        print(f"kubemend: {error}.", file=sys.stderr)
        return WRONG_INPUT
    except BrokenPipeError:
        # The reader has seen enough; nothing is to be written at the end of the program either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _main(
    parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser], words: list[str]
) -> int:
    if not words:
        parser.print_help(sys.stderr)
        return WRONG_INPUT
    name = words[0]
    if name.startswith("-"):
        parser.parse_args(words)
        raise WrongInput(f"a sub-command is missing; there are {', '.join(commands)}")
    if name not in commands:
        raise WrongInput(f"{shown(name)} is no sub-command; {nearest(name, commands)}")
    # Names of hosts may stand between options, which a parser of sub-commands does not allow.
    options = commands[name].parse_intermixed_args(words[1:])
    work: Callable[[argparse.Namespace], int] = options.work
    return work(options)


def _parser(commands: dict[str, argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Return the whole parser, and fill the parsers of the sub-commands."""
    parser = Parser(
        prog="kubemend",
        description="Find out why a Kubernetes node or control plane misbehaves.",
        epilog="kubemend COMMAND --help shows the options of a sub-command.",
    )
    parser.add_argument("--version", action="version", version=f"kubemend {_version()}")
    group = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)

    def add(name: str, work: Callable[[argparse.Namespace], int], text: str) -> Parser:
        command: Parser = group.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}."
        )
        command.set_defaults(work=work)
        commands[name] = command
        return command

    _add_runs(add)
    _add_readers(add)
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("kubemend")
    except importlib.metadata.PackageNotFoundError:
        return "(a checkout)"


_Add = Callable[[str, Callable[[argparse.Namespace], int], str], Parser]


def _add_runs(add: _Add) -> None:
    """Add the sub-commands that run a playbook."""
    audit = add("audit", _audit, "read all hosts and check all faults")
    diagnose = add("diagnose", _diagnose, "check the causes of a symptom; without one list them")
    _positional(diagnose, "symptom", "SYMPTOM", _symptoms, nargs="?")
    remediate = add("remediate", _remediate, "audit, then repair up to kubemend_max_risk")
    revert = add("revert", _revert, "list what can be undone, or undo a run")
    _positional(revert, "run", "RUN", _runs, nargs="?")
    capture = add("capture", _capture, "raise log levels for a time, and capture what is logged")
    for command in (audit, diagnose, remediate, revert, capture):
        command.add_argument("hosts", metavar="HOST", nargs="*", help="a host, or a part of -i")
        _add_hosts(command)
    replay = add("replay", _replay, "judge recorded evidence, without a cluster")
    replay.add_argument(
        "path",
        metavar="PATH",
        nargs="*",
        help="a run, evidence, or a bundle; two-leaders is an example",
    )
    for command in (audit, diagnose, remediate, revert, capture, replay):
        _add_settings(command)
    for command in (audit, diagnose, replay):
        command.add_argument(
            "--nagios", action="store_true", help="print one line, and exit as a plugin of Nagios"
        )


def _add_readers(add: _Add) -> None:
    """Add the sub-commands that read what there is."""
    explain = add("explain", _explain, "show the page of a fault; without a code list all")
    _positional(explain, "code", "CODE", _codes, nargs="?")
    faults = add("faults", _faults, "list the faults")
    _positional(faults, "codes", "CODE", _codes, nargs="*", text="a code, or a pattern (KM4*)")
    faults.add_argument("--format", metavar="NAME", choices=("text", "json"), help="text or json")
    report = add("report", _report, "show a report of an earlier run")
    _positional(report, "run", "RUN", _runs, nargs="?", text="an id, last, or a folder")
    _complete(
        report.add_argument("--format", metavar="NAME", help="the format; terminal without it"),
        _formats,
    )
    add("history", _history, "show which findings came, stayed and went over earlier runs")
    completion = add("completion", _completion, "print what makes a shell complete this command")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _positional(
    command: Parser,
    name: str,
    metavar: str,
    words: Callable[[], Iterable[str]],
    nargs: str,
    text: str | None = None,
) -> None:
    _complete(command.add_argument(name, metavar=metavar, nargs=nargs, help=text), words)


def _complete(action: argparse.Action, words: Callable[[], Iterable[str]]) -> None:
    """Let shells complete an argument with these words."""

    def completer(**_context: Any) -> list[str]:
        try:
            return list(words())
        except (WrongInput, OSError):
            return []

    action.completer = completer  # type: ignore[attr-defined]


def _symptoms() -> Iterable[str]:
    return collection.symptoms()


def _codes() -> Iterable[str]:
    return collection.faults()


def _runs() -> Iterable[str]:
    return [runs.LAST, *runs.names()]


def _formats() -> Iterable[str]:
    return collection.formats()


def _variables() -> Iterable[str]:
    return [f"{name}=" for name in collection.variables()]


def _add_hosts(command: Parser) -> None:
    """Add the options that name hosts and reach them."""
    command.add_argument(
        "-i",
        "--inventory",
        metavar="INVENTORY",
        action="append",
        default=[],
        help="an inventory of Ansible, or names with commas",
    )
    command.add_argument(
        "--kubeconfig", metavar="FILE", help="read the Nodes from the API, ssh to their addresses"
    )
    command.add_argument("--context", metavar="NAME", help="a context of the kubeconfig")
    command.add_argument("-l", "--limit", metavar="HOSTS", help="only these hosts of the inventory")
    for names, (metavar, text) in VALUES.items():
        command.add_argument(*names, metavar=metavar, action="append", dest=names[-1], help=text)
    for names, text in FLAGS.items():
        command.add_argument(*names, action="store_true", dest=names[-1], help=text)


def _add_settings(command: Parser) -> None:
    _complete(
        command.add_argument(
            "-e",
            "--extra-vars",
            metavar="NAME=VALUE",
            action="append",
            default=[],
            help="a variable of kubemend or of the inventory",
        ),
        _variables,
    )
    _complete(
        command.add_argument(
            "--format",
            metavar="NAME",
            action="append",
            default=[],
            help="write this format too; terminal, json and html are written anyway",
        ),
        _formats,
    )
    command.add_argument("-v", "--verbose", action="count", default=0, help="show every list")


def _audit(options: argparse.Namespace) -> int:
    return _play("audit", options, options.hosts)


def _diagnose(options: argparse.Namespace) -> int:
    names = collection.symptoms()
    if options.symptom is None:
        print(pages.symptoms())
        return 0
    name = options.symptom.replace("-", "_")
    if name not in names:
        raise WrongInput(f"{shown(options.symptom)} is no symptom; {nearest(name, names)}")
    return _play(name, options, options.hosts)


def _remediate(options: argparse.Namespace) -> int:
    return _play("remediate", options, options.hosts)


def _capture(options: argparse.Namespace) -> int:
    return _play("capture_logs", options, options.hosts)


def _revert(options: argparse.Namespace) -> int:
    names, variables = list(options.hosts), []
    if options.run is not None and runs.is_run(options.run):
        variables = ["-e", f"kubemend_run_id={options.run}"]
    elif options.run is not None:
        names.insert(0, options.run)
    return _play("revert", options, names, variables)


def _replay(options: argparse.Namespace) -> int:
    import json

    arguments = _settings(options)
    if options.path:
        paths = [_evidence(path) for path in options.path]
        arguments = ["-e", json.dumps({EVIDENCE_VARIABLE: paths}), *arguments]
    elif not _gives(options, EVIDENCE_VARIABLE):
        raise WrongInput("a replay needs a run, a folder of evidence, a bundle, or two-leaders")
    env = playbooks.environment()
    # No inventory is meant: what Ansible would say about that helps nobody.
    env.setdefault("ANSIBLE_LOCALHOST_WARNING", "false")
    env.setdefault("ANSIBLE_INVENTORY_UNPARSED_WARNING", "false")
    return _run("replay", options, arguments, env)


def _gives(options: argparse.Namespace, variable: str) -> bool:
    """Tell whether -e sets a variable."""
    return any(text.lstrip().startswith(f"{variable}=") for text in options.extra_vars)


def _evidence(path: str) -> str:
    """Return a path of evidence; the name of an example is that of the collection's folder."""
    if os.path.exists(os.path.expanduser(path)):  # noqa: PTH110, PTH111  (unknown users)
        return path
    examples = {file.parent.name: file.parent for file in _examples()}
    if path in examples:
        return str(examples[path])
    raise WrongInput(f"there is no evidence {shown(path)}, and no example of that name")


def _examples() -> Iterable[Path]:
    return (collection.folder() / "examples").glob("*/evidence")


def _play(
    name: str, options: argparse.Namespace, names: list[str], variables: Sequence[str] = ()
) -> int:
    """Run a playbook for the hosts that the user named."""
    with hosts.of(options, names) as members:
        arguments = [*members.arguments, *_passed(options), *variables, *_settings(options)]
        words = shlex.join([*members.words, *_repeated(options)])
        return _run(name, options, arguments, playbooks.environment(words))


def _run(name: str, options: argparse.Namespace, arguments: list[str], env: dict[str, str]) -> int:
    command = playbooks.command(name, arguments)
    if not getattr(options, "nagios", False):
        sys.stdout.flush()
        return playbooks.run(command, env)
    code, line = nagios.line(*playbooks.capture(command, {**env, "ANSIBLE_NOCOLOR": "1"}))
    print(line)
    return code


def _passed(options: argparse.Namespace) -> list[str]:
    """Return the options of ansible-playbook as they were given."""
    values = vars(options)
    words = [
        # With a sign, because a value such as -oPort=22 would be an option by itself.
        f"{names[-1]}={value}"
        for names in VALUES
        for value in values[names[-1]] or ()
    ]
    return words + [names[-1] for names in FLAGS if values[names[-1]]]


def _repeated(options: argparse.Namespace) -> list[str]:
    """Return the options of the connection as a command in the report repeats them."""
    values, words = vars(options), []
    for names in VALUES:
        for value in () if names in ONCE else values[names[-1]] or ():
            words += [f"{names[0]}={value}"] if value.startswith("-") else [names[0], value]
    return words + [names[0] for names in FLAGS if names not in ONCE and values[names[-1]]]


def _settings(options: argparse.Namespace) -> list[str]:
    """Return the variables and the verbosity as arguments of ansible-playbook."""
    words = [word for text in options.extra_vars for word in ("-e", text)]
    if options.format:
        if _gives(options, FORMATS_VARIABLE):
            raise WrongInput(f"--format and -e {FORMATS_VARIABLE} exclude each other")
        words += ["-e", f"{FORMATS_VARIABLE}={','.join(_all_formats(options.format))}"]
    if options.verbose:
        words.append("-" + "v" * options.verbose)
    return words


def _all_formats(names: Iterable[str]) -> list[str]:
    known = collection.formats()
    for name in names:
        if name not in known:
            raise WrongInput(f"no report has the format {shown(name)}; {nearest(name, known)}")
    default = collection.module("plugin_utils.run.variables").DEFAULT_FORMATS
    return list(dict.fromkeys([*default, *names]))


def _explain(options: argparse.Namespace) -> int:
    return _show(pages.explain(options.code))


def _faults(options: argparse.Namespace) -> int:
    return _show(pages.faults(options.codes, options.format == "json"))


def _report(options: argparse.Namespace) -> int:
    return _show(runs.report(options.run, options.format))


def _history(_options: argparse.Namespace) -> int:
    return _show(runs.history())


def _completion(options: argparse.Namespace) -> int:
    import argcomplete

    return _show(argcomplete.shellcode(["kubemend"], shell=options.shell))


def _show(text: str) -> int:
    print(text)
    sys.stdout.flush()
    return 0
