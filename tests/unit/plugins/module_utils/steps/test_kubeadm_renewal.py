# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm in a copy that only it sees: what it gets, what it leaves, and how it fails."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    kubeadm_certificates,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import kubeadm_renewal
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.kubeadm_renewal import (
    Kubeadm,
    RenewalError,
)

NEEDS_MOUNTS = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode,
    reason="needs root that may mount",
)
NEW = Kubeadm("1.36.3", 36)
EC = "ECDSA-P256"
BOTH = {"apiserver": EC, "admin.conf": "RSA-4096"}
# Writes its words into each file of that name, as kubeadm does; `fail` in a file lets it fail.
PROGRAM = """#!/bin/sh
if [ "$1" = version ]; then cat "{0}/version"; exit; fi
for word; do case $word in --config) break;; esac; name=$word; done
if grep -q fail "{0}/etc/fail" 2>/dev/null; then
  echo "W1127 a warning" >&2; echo "no key" >&2
  echo "To see the stack trace of this error execute with --v=5 or higher" >&2; exit 1
fi
pki="{0}/etc/pki/$name"
case $name in *.conf) files="{0}/etc/$name";; *) files="$pki.crt $pki.key";; esac
for file in $files; do cat "$file" > "$file.was"; echo "$* $(cat $file.was)" > "$file"; done
echo "certificate renewed"
ls -A {0}/etc {0}/etc/pki > {0}/seen
cat {0}/etc/kubemend-*.yaml > {0}/config
"""


@pytest.fixture
def node(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "etc" / "pki").mkdir(parents=True)
    (tmp_path / "etc" / "theirs").write_text("theirs")
    program = tmp_path / "bin" / "kubeadm"
    program.write_text(PROGRAM.format(tmp_path))
    program.chmod(0o755)
    (tmp_path / "version").write_text("v1.36.3\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(kubeadm_renewal, "KUBERNETES", str(tmp_path / "etc"))
    monkeypatch.setattr(kubeadm_renewal, "CONFIG", str(tmp_path / "etc" / "kubemend-{0}.yaml"))
    monkeypatch.setattr(kubeadm_certificates, "KUBERNETES", str(tmp_path / "etc"))
    return tmp_path


def copies(node, *names):
    paths = [
        path
        for name in names
        for path in kubeadm_certificates.CERTIFICATES[name].paths(str(node / "etc" / "pki"))
    ]
    return {path: Path(path).name.encode() for path in paths}


@NEEDS_MOUNTS
def test_only_the_copy_changes(node):
    given = copies(node, "apiserver", "admin.conf")
    fresh = kubeadm_renewal.renew(NEW, BOTH, str(node / "etc/pki"), given)
    assert set(fresh) == set(given)
    for path, data in fresh.items():
        name = "admin.conf" if path.endswith(".conf") else "apiserver"
        config = node / "etc" / f"kubemend-{name}.yaml"
        words = f"certs renew {name} --config {config} {given[path].decode()}\n"
        assert data.decode() == words
    left = sorted(path.name for path in (node / "etc").rglob("*"))
    assert left == ["pki", "theirs"]
    assert "theirs" not in (node / "seen").read_text()


@NEEDS_MOUNTS
@pytest.mark.parametrize(
    ("kubeadm", "algorithm", "words", "lines"),
    [
        (Kubeadm("1.18.4", 18), EC, "alpha certs renew", ["v1beta2", "v1.18.4"]),
        (Kubeadm("1.24.1", 24), EC, "certs renew", ["v1beta3", "PublicKeysECDSA: true"]),
        (Kubeadm("1.24.1", 24), "RSA-4096", "certs renew", ["v1beta3"]),
        (NEW, EC, "certs renew", ["v1beta4", "encryptionAlgorithm: ECDSA-P256"]),
        (NEW, "RSA-4096", "certs renew", ["v1beta4", "encryptionAlgorithm: RSA-4096"]),
        (NEW, "", "certs renew", ["v1beta4", "certificatesDir: "]),
    ],
)
def test_each_release_gets_its_own_words(node, kubeadm, algorithm, words, lines):
    given, folder = copies(node, "admin.conf"), str(node / "etc/pki")
    (data,) = kubeadm_renewal.renew(kubeadm, {"admin.conf": algorithm}, folder, given).values()
    assert data.decode().startswith(words + " admin.conf ")
    config = (node / "config").read_text()
    assert all(line in config for line in lines), config
    assert f"certificatesDir: {folder}\n" in config
    assert ("ECDSA" in config) is (algorithm == EC and kubeadm.minor > 18)


@NEEDS_MOUNTS
def test_the_last_sentence_of_kubeadm_is_told(node):
    given = {**copies(node, "admin.conf"), str(node / "etc" / "fail"): b"fail"}
    with pytest.raises(RenewalError, match=r"kubeadm certs renew admin\.conf: no key"):
        kubeadm_renewal.renew(NEW, {"admin.conf": EC}, str(node / "etc/pki"), given)


@NEEDS_MOUNTS
def test_a_kubeadm_that_hangs_is_ended(node, monkeypatch):
    monkeypatch.setattr(kubeadm_renewal, "RENEWAL_SECONDS", 3)
    (node / "bin" / "kubeadm").write_text(f"#!/bin/sh\necho $$ > {node}/pid\nexec sleep 600\n")
    with pytest.raises(RenewalError, match="did not end within"):
        kubeadm_renewal.renew(
            NEW, {"admin.conf": EC}, str(node / "etc/pki"), copies(node, "admin.conf")
        )
    pid = (node / "pid").read_text().strip()
    state, end = Path(f"/proc/{pid}/stat"), time.monotonic() + 20
    while state.exists() and time.monotonic() < end:  # it ends when it gets a processor
        time.sleep(0.05)
    assert not state.exists()


def test_a_process_without_an_answer(node, monkeypatch):
    monkeypatch.setattr(kubeadm_renewal, "_renewed", lambda *told: os._exit(1))
    with pytest.raises(RenewalError, match="without an answer"):
        kubeadm_renewal.renew(
            NEW, {"admin.conf": EC}, str(node / "etc/pki"), copies(node, "admin.conf")
        )


def test_what_is_not_permitted_is_told(node, monkeypatch):
    def refused(_folder):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kubeadm_renewal, "_hide", refused)
    with pytest.raises(RenewalError, match="not permitted"):
        kubeadm_renewal.renew(
            NEW, {"admin.conf": EC}, str(node / "etc/pki"), copies(node, "admin.conf")
        )


@pytest.mark.parametrize("is_there", [True, False])
def test_nothing_is_written_into_a_folder_that_is_not_hidden(node, monkeypatch, is_there):
    monkeypatch.setattr(kubeadm_renewal, "_hide", lambda _folder: None)
    given = copies(node, "apiserver", "admin.conf")
    if not is_there:
        (node / "etc").rename(node / "elsewhere")
    with pytest.raises(RenewalError, match="is not hidden" if is_there else "No such file"):
        kubeadm_renewal.renew(NEW, BOTH, str(node / "etc/pki"), given)
    assert not list(node.rglob("apiserver.crt"))
    assert (node / "etc").exists() is is_there


@pytest.mark.parametrize(
    ("said", "minor"), [("v1.36.3\n", 36), ("v1.20.0-rc.1", 20), ("v1.15.12+vendor", 15)]
)
def test_the_version_is_read(node, said, minor):
    (node / "version").write_text(said)
    assert kubeadm_renewal.find().minor == minor


@pytest.mark.parametrize(
    ("said", "words"),
    [("v1.14.9", "by its name"), ("what", "does not report"), ("", "does not run")],
)
def test_a_kubeadm_that_cannot_renew(node, said, words):
    (node / "version").write_text(said)
    with pytest.raises(RenewalError, match=words):
        kubeadm_renewal.find()


def test_other_kubeadms_are_seen(node, monkeypatch):
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            monkeypatch.setattr(kubeadm_renewal, "PROGRAM", "sleep")
            # a program has its name a moment after it has begun
            comm, end = Path(f"/proc/{other.pid}/comm"), time.monotonic() + 10
            while comm.read_text() != "sleep\n" and time.monotonic() < end:
                time.sleep(0.01)
            assert str(other.pid) in kubeadm_renewal.running()
            monkeypatch.setattr(kubeadm_renewal, "PROGRAM", "no-such-program")
            assert kubeadm_renewal.running() == []
        finally:
            other.kill()
