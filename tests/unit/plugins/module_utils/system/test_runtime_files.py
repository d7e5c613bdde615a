# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's files: which changed since its start, and what containerd itself says of them."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import runtime_files

BEFORE, AFTER = 0.0, 4_000_000_000.0  # starts: long before, and long after the files were written
SAYS = 'containerd: failed to load TOML: /etc/containerd/config.toml: (3, 8): password = "geheim"'


@pytest.fixture
def program(tmp_path):
    """Return a containerd that says why it refuses a file with the word broken, and is counted."""
    path = tmp_path / "containerd"
    path.write_text(
        "#!/bin/sh\n"
        f"echo once >> {tmp_path}/asked\n"
        'if grep -q broken "$2"; then\n'
        "  echo 'level=warning msg=\"Ignoring unknown key in TOML\"' >&2\n"
        f"  echo '{SAYS}' >&2\n  exit 1\nfi\n"
        "echo version = 2\n"
    )
    path.chmod(0o755)
    return path


def ask(tmp_path, program, text, started=BEFORE, was_replaced=False, **more):
    config = tmp_path / "config.toml"
    config.write_text(text)
    for name, content in more.items():
        (tmp_path / f"{name}.toml").write_text(content)
    return runtime_files.containerd(str(config), str(program), started, was_replaced)


def test_files_that_are_older_than_the_process_start_no_program(tmp_path, program):
    answer = ask(tmp_path, program, "broken", AFTER)
    assert (answer["asked"], answer["error"], answer["conflicts"]) == (False, "", [])
    assert [row["newer"] for row in answer["files"]] == [False]
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("started", "was_replaced"), [(BEFORE, False), (AFTER, True)])
def test_a_file_that_is_refused(tmp_path, program, started, was_replaced):
    answer = ask(tmp_path, program, "broken", started, was_replaced)
    assert answer["asked"] is True
    assert answer["error"].startswith("containerd: failed to load TOML")
    assert "geheim" not in answer["error"]


def test_a_file_that_is_taken(tmp_path, program):
    answer = ask(tmp_path, program, "version = 2")
    assert (answer["asked"], answer["error"]) == (True, "")
    assert [row["newer"] for row in answer["files"]] == [True]


def test_a_start_that_is_not_known(tmp_path, program):
    answer = ask(tmp_path, program, "version = 2", None)
    assert ([row["newer"] for row in answer["files"]], answer["asked"]) == ([None], False)


def test_a_program_that_gives_no_answer(tmp_path, program):
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    config = tmp_path / "config.toml"
    config.write_text("version = 2")
    answer = runtime_files.containerd(str(config), str(program), BEFORE, False, lambda most: 0.2)
    assert (answer["asked"], answer["error"]) == (False, None)


def test_a_program_that_this_user_may_not_start(tmp_path, program):
    program.chmod(0o644)
    answer = ask(tmp_path, program, "broken")
    assert (answer["asked"], answer["error"]) == (False, None)


def test_a_configuration_that_is_gone(tmp_path, program):
    answer = runtime_files.containerd(str(tmp_path / "none.toml"), str(program), BEFORE, True)
    assert (answer["asked"], answer["error"]) == (False, "")


def test_imports_are_files_too(tmp_path, program):
    answer = ask(tmp_path, program, 'imports = ["more*.toml"]\n', more1="version = 2", more2="")
    assert [row["path"].rpartition("/")[2] for row in answer["files"]] == [
        "config.toml",
        "more1.toml",
        "more2.toml",
    ]


MIRRORS = """
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
  endpoint = ["https://mirror.example"]
"""
PATH = """
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
"""
TLS = """
[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".tls]
  insecure_skip_verify = true
"""
AUTH = """
[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]
  password = "geheim"
"""


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (PATH + MIRRORS, ["config_path", "mirrors"]),
        (PATH + TLS, ["config_path", "configs.tls"]),
        (PATH + AUTH, []),
        (PATH, []),
        (MIRRORS, []),
        (PATH.replace("/etc/containerd/certs.d", "") + MIRRORS, []),
        ("[plugins.other]\nconfig_path = '/x'\n" + MIRRORS, []),
    ],
)
def test_settings_of_registries_that_exclude_each_other(tmp_path, program, text, keys):
    found = ask(tmp_path, program, text)["conflicts"]
    assert [row["key"] for row in found] == keys
    assert all(row["line"] > 1 for row in found)


def test_they_may_be_in_two_files(tmp_path, program):
    found = ask(tmp_path, program, 'imports = ["more.toml"]\n' + MIRRORS, more=PATH)["conflicts"]
    assert [row["path"].rpartition("/")[2] for row in found] == ["more.toml", "config.toml"]
