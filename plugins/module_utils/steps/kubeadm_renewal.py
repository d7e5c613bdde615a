# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has the node's own kubeadm renew certificates in a copy of /etc/kubernetes that only it sees.

The copy is in memory, in a mount namespace of a process of its own, and is gone with that process.
So the bytes are known and compared before any file of the node changes. kubeadm gets a
configuration, and so asks neither the API server, which may be down, nor a server of releases.
"""

import base64
import json
import os
import re
import select
import signal
import time

from ..shared.kubeadm_certificates import CERTIFICATES, FIRST_MINOR, KUBERNETES, PLAIN_MINOR
from ..system import command, files

PROGRAM = "kubeadm"
VERSION_SECONDS, RENEWAL_SECONDS = 10, 100
MAX_ANSWER = 4 * 1024 * 1024
VERSION = re.compile(r"\Av?(1\.(\d+)\.\d+)")
CONFIG = KUBERNETES + "/kubemend-{0}.yaml"
NEW_NAMESPACE, RECURSIVE, PRIVATE = 0x00020000, 0x4000, 0x40000
NO_SUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8
# by the first minor version of kubeadm that reads it
CONFIG_VERSIONS = ((31, "v1beta4"), (22, "v1beta3"), (0, "v1beta2"))
HINT = "To see the stack trace"
TEMPLATE = """apiVersion: kubeadm.k8s.io/{0}
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 192.0.2.1
nodeRegistration:
  name: node
  criSocket: unix:///run/containerd/containerd.sock
---
apiVersion: kubeadm.k8s.io/{0}
kind: ClusterConfiguration
kubernetesVersion: v{1}
certificatesDir: {2}
"""
# A kubeadm before v1beta4 makes keys of RSA-2048, or of this curve with the gate.
GATE_VERSION, GATE_CURVE = "v1beta3", "ECDSA-P256"
GATE = "featureGates:\n  PublicKeysECDSA: true\n"
ALGORITHM_VERSION, ALGORITHM = "v1beta4", "encryptionAlgorithm: {0}\n"


class RenewalError(Exception):
    """Why no certificate was renewed, in one clause."""


class Kubeadm:
    """The kubeadm of this node: its version as text, and its minor number."""

    def __init__(self, text, minor):
        self.text = text
        self.minor = minor

    @property
    def words(self):
        """Return the words of the command before the name."""
        below_alpha = ["alpha"] if self.minor < PLAIN_MINOR else []
        return [PROGRAM, *below_alpha, "certs", "renew"]

    def configuration(self, folder, algorithm=""):
        """Return the configuration under which this kubeadm renews.

        algorithm: of the new key, as kubeadm writes it: RSA-4096. Empty: kubeadm's own.
        """
        version = next(name for first, name in CONFIG_VERSIONS if self.minor >= first)
        text = TEMPLATE.format(version, self.text, folder)
        if version == GATE_VERSION and algorithm == GATE_CURVE:
            text += GATE
        if version == ALGORITHM_VERSION and algorithm:
            text += ALGORITHM.format(algorithm)
        return text


def find():
    """Return the Kubeadm of this node; raise RenewalError without one that renews by name."""
    try:
        text = command.run([PROGRAM, "version", "-o", "short"], VERSION_SECONDS)
    except (command.CommandError, OSError) as error:
        raise RenewalError(
            f"kubeadm of this node does not run ({files.one_line(error)})"
        ) from error
    match = VERSION.match(text.strip())
    if match is None:
        raise RenewalError(f"kubeadm of this node does not report its version ({text[:60]!r})")
    minor = int(match.group(2))
    if minor < FIRST_MINOR:
        raise RenewalError(
            f"kubeadm {match.group(1)} of this node renews no certificate by its name, which"
            f" 1.{FIRST_MINOR} is the first to do"
        )
    return Kubeadm(match.group(1), minor)


def running():
    """Return the pids of every kubeadm that runs on this node."""
    pids = [name for name in files.names("/proc") if name.isdigit()]
    return [pid for pid in pids if (files.text(f"/proc/{pid}/comm") or "").strip() == PROGRAM]


def renew(kubeadm, algorithms, folder, copies):
    """Return {path: new bytes} of these certificates; raise RenewalError where one is not renewed.

    algorithms: {name of a certificate: algorithm of its new key}.
    copies: {path: bytes} of the files of /etc/kubernetes that kubeadm sees.
    """
    copies = dict(copies)
    for name, algorithm in algorithms.items():
        configuration = kubeadm.configuration(folder, algorithm)
        copies[CONFIG.format(name)] = configuration.encode("utf-8")
    paths = [path for name in algorithms for path in CERTIFICATES[name].paths(folder)]
    commands = [[*kubeadm.words, name, "--config", CONFIG.format(name)] for name in algorithms]
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _work(write, commands, copies, paths)
    os.close(write)
    try:
        return _files(_answer(read, RENEWAL_SECONDS))
    finally:
        os.close(read)
        _end(pid)


def _files(data):
    """Return {path: bytes} of the process's answer; raise RenewalError with the error in it."""
    try:
        answer = json.loads(data.decode("ascii"))
    except ValueError as error:
        raise RenewalError("kubeadm's process ended without an answer") from error
    if "error" in answer:
        raise RenewalError(answer["error"])
    return {path: base64.b64decode(text) for path, text in answer["files"].items()}


def _answer(read, seconds):
    end, parts, size = time.monotonic() + seconds, [], 0
    poll = select.poll()
    poll.register(read, select.POLLIN | select.POLLHUP)
    while size < MAX_ANSWER:
        if not poll.poll(max(0, int((end - time.monotonic()) * 1000))):
            raise RenewalError(f"kubeadm did not end within {seconds} s")
        part = os.read(read, 65536)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _end(pid):
    """End the process, which has answered or is late, and what it started."""
    for number in (-pid, pid):
        try:
            os.kill(number, signal.SIGKILL)
        except OSError:
            continue
    os.waitpid(pid, 0)


def _work(write, commands, copies, paths):
    """Renew in the child, and never return."""
    try:
        os.setsid()
        try:
            answer = _renewed(commands, copies, paths)
        except (OSError, RenewalError, ValueError) as error:
            answer = {"error": files.one_line(error, 400)}
        data = json.dumps(answer).encode("ascii")
        while data:
            data = data[os.write(write, data) :]
    finally:
        os._exit(0)


def _renewed(commands, copies, paths):
    device = os.stat(KUBERNETES).st_dev
    _hide(KUBERNETES)
    if os.stat(KUBERNETES).st_dev == device:
        raise RenewalError(f"{KUBERNETES} is not hidden, and the node's own would change")
    os.umask(0o077)
    for path, data in copies.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    for words in commands:
        _run(words)
    encoded = {}
    for path in paths:
        with open(path, "rb") as file:
            encoded[path] = base64.b64encode(file.read(MAX_ANSWER)).decode("ascii")
    return {"files": encoded}


def _run(words):
    """Run kubeadm; raise RenewalError with its last sentence where it does not end well."""
    pid, out, complaint = command.start(words)
    os.set_blocking(complaint, True)
    complaints = b""
    for descriptor in (out, complaint):  # kubeadm says little, so neither of them fills
        with os.fdopen(descriptor, "rb") as stream:
            complaints = stream.read(65536)
    if os.waitpid(pid, 0)[1]:
        lines = [line.strip() for line in complaints.decode("utf-8", "replace").splitlines()]
        sentences = [line for line in lines if line and not line.startswith(HINT)]
        sentence = sentences[-1] if sentences else "it ended without a message"
        raise RenewalError(f"{' '.join(words[:-2])}: {files.one_line(sentence, 300)}")


def _hide(folder):
    """Lay an empty folder in memory over this one, for this process alone."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    _require(library.unshare(NEW_NAMESPACE), ctypes, "mount namespace of its own")
    _require(
        library.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None), ctypes, "private mounts"
    )
    flags = NO_SUID | NO_DEVICES | NO_PROGRAMS
    place = os.fsencode(os.path.realpath(folder))
    _require(
        library.mount(b"tmpfs", place, b"tmpfs", flags, b"mode=0700,size=8m"),
        ctypes,
        "copy in memory",
    )


def _require(code, ctypes, thing):
    if code:
        raise RenewalError(f"kubeadm can get no {thing}: {os.strerror(ctypes.get_errno())}")
