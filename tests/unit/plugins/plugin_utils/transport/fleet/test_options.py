# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which options of ssh asyncssh honours: those of a list, and those that have their default."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.options import (
    NotHonoured,
    Options,
    Settings,
    arguments,
    parse,
    refusal,
)

DEFAULTS = parse(
    """host localhost
user root
hostname localhost
port 22
forwardagent no
gssapiauthentication no
requesttty auto
identityfile ~/.ssh/id_rsa
identityfile ~/.ssh/id_ed25519
pubkeyauthentication true
stricthostkeychecking ask
ciphers aes128-ctr,aes256-gcm@openssh.com
"""
)


def with_option(*lines: str) -> Options:
    return {**DEFAULTS, **parse("\n".join(lines))}


def test_each_value_of_an_option_is_kept() -> None:
    assert DEFAULTS["identityfile"] == ("~/.ssh/id_rsa", "~/.ssh/id_ed25519")
    assert parse("\nUser a b\n") == {"user": ("a b",)}


@pytest.mark.parametrize(
    "line",
    [
        "user ubuntu",
        "port 2222",
        "identityfile /home/me/.ssh/id",
        "identityagent none",
        "identityagent SSH_AUTH_SOCK",
        "sendenv LC_*",
        "controlmaster auto",
        "controlpath /tmp/%C",
        "stricthostkeychecking accept-new",
        "userknownhostsfile /dev/null",
        "preferredauthentications gssapi-with-mic,publickey",
        "compression yes",
        "serveraliveinterval 5",
        "connecttimeout 10",
    ],
)
def test_what_is_listed_is_honoured(line: str) -> None:
    assert refusal(with_option(line), DEFAULTS) == ""


@pytest.mark.parametrize(
    "line",
    [
        "proxyjump bastion",
        "proxycommand nc %h %p",
        "hostkeyalias other",
        "certificatefile /etc/x-cert.pub",
        "pkcs11provider /lib/x.so",
        "securitykeyprovider /lib/sk.so",
        "knownhostscommand /bin/keys %H",
        "checkhostip yes",
        "verifyhostkeydns true",
        "nohostauthenticationforlocalhost yes",
        "revokedhostkeys /etc/revoked",
        "hostbasedauthentication yes",
        "gssapidelegatecredentials yes",
        "gssapikeyexchange yes",
        "pubkeyauthentication false",
        "preferredauthentications password",
        "identityagent /run/agent",
        "identityfile /keys/%h",
        "identityfile ${HOME}/id",
        "userknownhostsfile /known/%h",
        "sendenv -LC_*",
        "setenv A=b",
        "forwardagent yes",
        "forwardx11 yes",
        "localforward 1 2:3",
        "remotecommand x",
        "requesttty force",
        "sessiontype subsystem",
        "stdinnull yes",
        "bindaddress 10.0.0.1",
        "bindinterface eth1",
        "ipqos cs1",
        "canonicalizehostname true",
        "connectionattempts 3",
        "rekeylimit 1024 0",
        "tcpkeepalive no",
        "permitlocalcommand yes",
        "tunnel true",
        "addkeystoagent true",
        "an option of a later release",
    ],
)
def test_what_is_not_listed_is_named(line: str) -> None:
    assert refusal(with_option(line), DEFAULTS) == line


def test_a_default_that_a_file_removes_is_named_too() -> None:
    changed = {name: values for name, values in DEFAULTS.items() if name != "requesttty"}
    assert refusal(changed, DEFAULTS) == "requesttty"


@pytest.mark.parametrize(("code", "refused"), [(0, True), (1, False)])
def test_kerberos_counts_where_there_is_a_ticket(
    code: int, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    klist = tmp_path / "klist"
    klist.write_text(f"#!/bin/sh\nexit {code}\n")
    klist.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + ":/bin")
    monkeypatch.delenv("KRB5CCNAME", raising=False)
    options = with_option("gssapiauthentication yes")
    assert bool(refusal(options, DEFAULTS)) == refused
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")
    assert refusal(options, DEFAULTS)


def test_the_program_has_to_be_ssh_and_no_script(tmp_path: Path) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for program in (str(script), str(tmp_path / "none")):
        with pytest.raises(NotHonoured):
            arguments([program, "m1", "true"])
    program = os.path.realpath("/bin/sh")
    words = arguments([program, "-o", "A=b", "m1", "true"])
    assert words == [program, "-G", "-o", "A=b", "m1"]


def test_algorithms_keep_the_order_of_the_option() -> None:
    settings = Settings(DEFAULTS)
    known = [b"aes256-gcm@openssh.com", b"other", b"aes128-ctr"]
    assert settings.supported("ciphers", known) == ["aes128-ctr", "aes256-gcm@openssh.com"]
    with pytest.raises(NotHonoured, match="ciphers"):
        settings.supported("ciphers", [b"other"])


def test_variables_are_those_of_the_patterns() -> None:
    settings = Settings(with_option("sendenv LANG LC_*", "sendenv A"))
    variables = {"LANG": "C", "LC_ALL": "C", "LANGUAGE": "x", "A": "1", "B": "2"}
    assert set(settings.environment(variables)) == {"LANG", "LC_ALL", "A"}


@pytest.mark.parametrize(
    ("checking", "file", "accepts"),
    [
        ("false", "/dev/null", True),
        ("accept-new", "none", True),
        ("ask", "/dev/null", False),
        ("true", "/dev/null", False),
        ("false", "/root/.ssh/known_hosts", False),
        ("false", "/dev/null /root/.ssh/known_hosts", False),
    ],
)
def test_any_key_is_accepted_only_where_ssh_keeps_none(
    checking: str, file: str, accepts: bool
) -> None:
    lines = (f"stricthostkeychecking {checking}", f"userknownhostsfile {file}")
    assert Settings(with_option(*lines)).accepts_any_key == accepts
