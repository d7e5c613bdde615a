# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the error means with which any program ends: a setting, a parser, an address, a name. Pure.

It is for messages whose cause no table has. The texts are those of pflag and Go's flag package, of
Kubernetes' strict decoder, of the parsers of YAML, JSON and TOML that programs in Go use, and of
Go's net and os/exec packages; they mean the same in each program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..evidence.document import one_line
from . import decode_error, path_error, pflag, usual_ports
from .known_message import Known, plain

ID, LONGEST = "plain-error", 160
_NAME = r"[\w./:@-]{1,120}"
_ADDRESS = r"(?P<address>\[?[\w.:%*-]{0,100}\]?:\d{1,5})"
# A file that a message names as the one that it reads: absolute, and none of a program's own code.
_FILE = re.compile(
    r"(?<![\w./:])(?P<path>/[\w./@+-]{1,200}\.(?:ya?ml|json|toml|conf(?:list|ig)?|cfg|ini|tmpl))\b"
)
_LINE = re.compile(r"\bline:? (?P<line>\d{1,6})\b|\((?P<row>\d{1,6}), \d{1,6}\): ")
_YAML = re.compile(
    r"(?<![\w./])yaml: (?!invalid map key)(?:line \d{1,6}: |unmarshal errors|control characters"
    r"|found |mapping values|did not find|could not find|block )"
    r"|error converting YAML to JSON"
)
_JSON = re.compile(
    r"invalid character '.{1,8}' (?:looking for|after|in |at )|unexpected end of JSON input"
    r"|json: cannot unmarshal",
    re.IGNORECASE,
)
_TOML = re.compile(
    r"(?<![\w./])toml: |[Nn]ear line \d{1,6} \(last key parsed"
    r"|failed to (?:load|unmarshal|decode) TOML"
    r"|\(\d{1,6}, \d{1,6}\): (?:unexpected|expected|parsing error|was expecting|keys cannot"
    r"|duplicated|no value|cannot have|The following key was defined twice)",
)
# What a runtime says of one container: its files are those of a workload.
_OF_CONTAINER = re.compile(
    r"OCI runtime (?:create|exec) failed|failed to create (?:containerd|shim) task|/kubelet/pods/"
)
# The value of an annotation is no file.
_ANNOTATION = re.compile(r"[Aa]nnotation\b")
_PARSERS = (("TOML", _TOML), ("YAML", _YAML), ("JSON", _JSON))
# Programs that own a socket, by a part of its path.
SOCKETS: Mapping[str, str] = {
    "cri-dockerd.sock": "cri-dockerd (cri-docker.service)",
    "crio.sock": "CRI-O (crio.service)",
    "containerd.sock": "containerd",
    "docker.sock": "docker (docker.service)",
    "dbus/system_bus_socket": "D-Bus (dbus.service)",
    "systemd/private": "systemd",
    "cilium.sock": "the agent of Cilium on that node",
    "openvswitch/db.sock": "the database of Open vSwitch (ovsdb-server)",
    "csi.sock": "the container of the driver in the same pod, or in the pod of the driver",
    "kubelet.sock": "the kubelet, in its own folder of device plugins",
    "podresources/kubelet.sock": "the kubelet",
    "multipathd": "multipathd (multipathd.service)",
    "iscsid": "iscsid (iscsid.service)",
    "rpcbind.sock": "rpcbind (rpcbind.service)",
}


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    clause: str
    advice: str
    is_of_settings: bool = False


def _rule(pattern: str, clause: str, advice: str, *, is_of_settings: bool = False) -> _Rule:
    return _Rule(re.compile(pattern), clause, advice, is_of_settings)


_RULES = (
    _rule(
        rf"(?:unknown (?:shorthand )?flag|flag provided but not defined"
        rf"|unrecognized (?:option|flag)|unknown option):? \\*[\"'`]?(?P<name>-{{0,2}}{_NAME})",
        "This release of the program does not have the option {name}: it is misspelt, was removed,"
        " or is of a newer release",
        "take it out of where it is given (systemctl cat of its unit with its EnvironmentFile, or"
        " args of its pod's template; a snap and a chart have files of their own), or install the"
        " release that has it: --help of the program lists its options",
        is_of_settings=True,
    ),
    _rule(
        rf"(?:unknown field|unknown key|unknown configuration option|don't match any configuration"
        rf" option):? \\*[\"'`]?(?P<name>{_NAME})",
        "The program's configuration has {name} at a place where this release does not have it: it"
        " is misspelt, indented wrongly, was removed, or is of a newer release",
        "compare with the reference of that release, and correct or remove it in the file (of a pod"
        " in its ConfigMap, then delete the pod)",
        is_of_settings=True,
    ),
    _rule(
        rf"\blisten(?:ing)?(?: on)? (?:tcp|udp)?[46]? ?{_ADDRESS}: bind: address already in use",
        "Another program of the node, or an earlier copy of this one, already listens at {address}"
        " or at all addresses with that port{owner}",
        "ss -lntup on the node names it by that port: end the copy that was left, or give one of"
        " both another port in its configuration",
    ),
    _rule(
        r"\blisten unix (?P<address>@?[\w./-]{1,200}): bind: address already in use",
        "The socket {address} is left of an earlier start, or another copy of the program serves"
        " it",
        "ss -lxp on the node shows whether a process has it: end that process, or remove the file"
        " where none has",
    ),
    _rule(
        rf"\blisten (?:tcp|udp)[46]? {_ADDRESS}: bind: (?:cannot assign requested address)",
        "The address {address}, at which the program is to listen, is none of this machine now",
        "ip -br address on the node: correct the address in its configuration, or bring the"
        " interface up that has it, before the program starts",
    ),
    _rule(
        rf"\blisten (?:tcp|udp)[46]? {_ADDRESS}: bind: permission denied",
        "The program may not listen at {address}: ports below 1024 need CAP_NET_BIND_SERVICE, and"
        " SELinux may forbid a port",
        "give it a port above 1023, or the capability (securityContext of its pod,"
        " AmbientCapabilities= of its unit); ausearch -m avc -ts recent",
    ),
    _rule(
        r"\blisten (?:tcp|udp)[46]?: lookup (?P<name>[\w.-]{1,253})",
        "The program is to listen at the address of {name} (a setting, else the name of the"
        " machine), and that name has none: neither /etc/hosts nor DNS knows it",
        "getent hosts {name} on the node: add a line with the address of the node and this name to"
        " /etc/hosts, then start the program again",
    ),
    _rule(
        rf"exec: \\*[\"'`]?(?P<name>{_NAME})\\*[\"'`]?: executable file not found in \$PATH",
        "The program {name}, which this one runs, is not in a folder of its PATH",
        "command -v {name} on the node: install its package; where it is there, give the unit a"
        " PATH that has it (systemctl show UNIT -p Environment), and a pod an image that has it",
    ),
    _rule(
        r"\b(?P<tool>cp|mv|ln|mkdir|touch|install|chmod|chown|rm|tar|mount|nsenter|sh): (?:cannot"
        r" [a-z ]{1,40}|failed to execute )?['\u2018]?(?P<path>/[\w./@+-]{1,200})['\u2019]?:"
        r" (?P<errno>Permission denied|Operation not permitted|Read-only file system|No space left"
        r" on device|Input/output error|Not a directory|Is a directory|Text file busy)",
        "A step of the program ends at {path} ({tool}: {errno})",
        "see {path} on the node; in a pod it is below the hostPath that its DaemonSet mounts there:"
        " owner and mode (namei -l), how it is mounted (findmnt -T), free space (df -h, df -i), and"
        " what SELinux or AppArmor denies (ls -Z, ausearch -m avc -ts recent); a container that is"
        " not privileged may not write into a folder that is another user's",
    ),
    _rule(
        r"no default routes found in|no default routes? (?:found|configured)\b",
        "The machine has no default route, by which a program of Kubernetes finds its own address:"
        " it was started before the network was up, or the network has no gateway",
        "ip route show default on the node: where there is one now, start the program again and let"
        " its unit wait (After= and Wants= network-online.target); else add a route, or give the"
        " program its address (of a kubelet --node-ip, of k3s --node-ip and --flannel-iface)",
    ),
)
_DIAL = re.compile(
    r"dial unix (?P<path>@?[\w./-]{1,200}): (?:connect: )?(?P<errno>no such file or directory"
    r"|connection refused|permission denied)"
)
_DIALLED = {
    "no such file or directory": "is not there, so that {owner} does not run, or has its socket"
    " elsewhere",
    "connection refused": "is left, and no process serves it: {owner} ended",
    "permission denied": "of {owner} may not be used by the user of this program, or a security"
    " policy denies it",
}


def find(text: str, settings: str = "") -> Known | None:
    """Return what the error of a text means by general rules, or None.

    settings: where the program has its settings, for an error that names no file
    """
    text = plain(text)
    return _of_rule(text, settings) or _of_parser(text, settings) or _of_socket(text)


def of_program(text: str, settings: str = "", argv: Sequence[str] = ()) -> Known | None:
    """Return what the last line of a program means by general rules, or None.

    Files and types of values count too, which in other messages may be those of a workload.

    settings: where it has its settings; argv: its command line, which may name the file
    """
    text = plain(text)
    row = _of_rule(text, settings) or _of_path(text, argv) or _of_type(text, settings)
    return row or _of_parser(text, settings) or _of_socket(text)


def _of_rule(text: str, settings: str) -> Known | None:
    for rule in _RULES:
        match = rule.pattern.search(text)
        if match is not None:
            owner = usual_ports.clause(match.groupdict().get("address") or "")
            values = {**match.groupdict(), "owner": f". {owner}" if owner else ""}
            row = _known(rule.clause, rule.advice, values)
            return _with_place(row, settings if rule.is_of_settings else "")
    return None


def _of_path(text: str, argv: Sequence[str]) -> Known | None:
    """Return what an error of the kernel about a file means, and which flag names the file."""
    error = path_error.find(text)
    if error is None or _OF_CONTAINER.search(text):
        return None
    flag = pflag.naming(argv, error.path)
    source = f" (--{one_line(flag, 80)} names it)" if flag else ""
    return Known(ID, _sentence(f"{error.clause}{source}"), error.advice)


def _of_type(text: str, settings: str) -> Known | None:
    """Return which field has a value of another type."""
    error = decode_error.find(text)
    if error is None:
        return None
    return _with_place(Known(ID, _sentence(error.clause), error.advice), settings)


def _sentence(clause: str) -> str:
    return clause[:1].upper() + clause[1:]


def _known(clause: str, advice: str, values: Mapping[str, str | None]) -> Known:
    shown = {name: one_line(value or "", LONGEST) for name, value in values.items()}
    return Known(ID, clause.format_map(shown), advice.format_map(shown))


def _with_place(row: Known, settings: str) -> Known:
    if not settings:
        return row
    return replace(row, cause=f"{row.cause}. Its settings: {settings}")


def _of_parser(text: str, settings: str) -> Known | None:
    """Return which file is not what its parser reads, and where."""
    name = next((name for name, pattern in _PARSERS if pattern.search(text)), "")
    if not name or _ANNOTATION.search(text):
        return None
    files = [match.group("path") for match in _FILE.finditer(text)]
    path, line = (files[-1] if files else ""), _LINE.search(text)
    place = f" in line {next(filter(None, line.groups()))}" if line is not None else ""
    subject = path or "A file of the program's configuration"
    look = f" (sed -n l {path})" if path else ""
    row = Known(
        ID,
        f"{subject} is no valid {name}{place}, or has a value of another kind there than the"
        " program takes",
        f"look at that place and the line before it{look}: a tab, a quote or a bracket that is not"
        " closed, an indentation, a name that is there twice, an empty file; correct it at its"
        " source (a template, a ConfigMap), or the next start writes it again",
    )
    return _with_place(row, "" if path else settings)


def _of_socket(text: str) -> Known | None:
    """Return whose socket does not answer, where its owner is known."""
    matches = list(_DIAL.finditer(text))
    if not matches:
        return None
    path, errno = matches[-1].group("path", "errno")
    owners = [name for part, name in SOCKETS.items() if part in path]
    if not owners:
        return None
    reason = _DIALLED[errno].format(owner=owners[0])
    return Known(
        ID,
        f"The socket {path} {reason}",
        f"see whether it runs, and its own last log lines, first; ls -l {path} on the node, and"
        " whether the other side's configuration names the same path",
    )
