# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node full of distinct secrets, and the scanner that looks for them in a test run's files.

python3 -m tests.unit.support.planted_secrets FOLDER... ends with 1 and says where, if one of them
lies in a file there.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import sys
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

PLACES = (
    "flag-token",
    "flag-word",
    "flag-url",
    "scheduler-flag",
    "manifest-env",
    "manifest-flag",
    "manifest-url",
    "manifest-annotation-token",
    "manifest-tag",
    "manifest-list",
    "manifest-alias",
    "kubeconfig-token",
    "kubeconfig-password",
    "kubeconfig-key",
    "kubelet-environment",
    "kubelet-file",
    "fstab",
    "containerd",
    "docker",
    "key-file",
    "kubelet-key",
    "static-env",
    "bearer",
    "bootstrap",
)


def secret(place: str) -> str:
    """Return a secret that is never written down, and is the same in every run."""
    return "Pl4nted" + hashlib.sha256(place.encode("ascii")).hexdigest()[:24]


SECRETS = tuple(secret(place) for place in PLACES)
KEY = "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n"
KUBELET = (
    "--config=/var/lib/kubelet/config.yaml",
    "--kubeconfig=/etc/kubernetes/kubelet.conf",
    "--node-labels=public=yes",
    f"--token={secret('flag-token')}",
    "--registry-password",
    secret("flag-word"),
    f"--url=https://user:{secret('flag-url')}@planted.example.org/x",
)
SCHEDULER = ("--leader-elect=true", f"--auth-token={secret('scheduler-flag')}")
MANIFEST = f"""apiVersion: v1
kind: Pod
metadata:
  name: kube-scheduler
  namespace: kube-system
  annotations:
    example.org/api-token: {secret("manifest-annotation-token")}
    example.org/x: &planted {secret("manifest-alias")}
    example.org/credentials: [public, {secret("manifest-list")}]
spec:
  containers:
  - name: kube-scheduler
    image: planted.example.org/kube-scheduler:v1.30.1
    command:
    - kube-scheduler
    - --leader-elect=true
    - --token={secret("manifest-flag")}
    - --endpoint=https://admin:{secret("manifest-url")}@planted.example.org:6443
    env:
    - name: DB_PASSWORD
      value: "{secret("manifest-env")}"
    - {{name: API_TOKEN, value: {secret("static-env")}}}
    - name: DB_PIN
      value: !!str {secret("manifest-tag")}
    - name: DB_USER
      value: *planted
    livenessProbe:
      httpGet:
        httpHeaders:
        - {{name: Authorization, value: "Bearer {secret("bearer")}"}}
"""
KUBECONFIG = f"""apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://planted.example.org:6443
  name: c
users:
- name: u
  user:
    token: {secret("kubeconfig-token")}
    username: admin
    password: {secret("kubeconfig-password")}
    client-key-data: {base64.b64encode(KEY.format(secret("kubeconfig-key")).encode()).decode()}
"""
FILES = {
    "etc/kubernetes/manifests/kube-scheduler.yaml": MANIFEST,
    "etc/kubernetes/kubelet.conf": KUBECONFIG,
    "etc/kubernetes/admin.conf": KUBECONFIG,
    "etc/kubernetes/bootstrap-kubelet.conf": KUBECONFIG.replace(
        secret("kubeconfig-token"), secret("bootstrap")
    ),
    "etc/kubernetes/pki/ca.key": KEY.format(secret("key-file")),
    "etc/kubernetes/pki/apiserver.crt": KEY.format(secret("key-file")),
    "etc/default/kubelet": (
        f"KUBELET_EXTRA_ARGS=--registry-token={secret('kubelet-environment')}\n"
        f"API_SECRET={secret('kubelet-file')}\n"
    ),
    "etc/fstab": f"//planted.example.org/x /mnt cifs username=u,password={secret('fstab')} 0 0\n",
    "etc/containerd/config.toml": (
        '[plugins.cri.registry.configs.x.auth]\nusername = "u"\npassword ='
        f' "{secret("containerd")}"\n'
    ),
    "etc/docker/daemon.json": (
        f'{{"http-proxy": "http://u:{secret("docker")}@planted.example.org:3128"}}\n'
    ),
    "etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "etc/hostname": "planted\n",
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "var/kubelet/config.yaml": (
        "kind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\n"
    ),
    "var/kubelet/pki/kubelet-client-current.pem": KEY.format(secret("kubelet-key")),
}


def write(root: Path) -> None:
    for path, text in zip(paths(root), FILES.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        path.chmod(0o600)


def paths(root: Path) -> list[Path]:
    return [root / name for name in FILES]


def forms(one: str) -> set[bytes]:
    """Return the secret, backwards too, and at each of the three positions of base64."""
    data = one.encode("ascii")
    return {
        data,
        data[::-1],
        data.hex().encode("ascii"),
        *(base64.b64encode(b"\0" * shift + data)[4:-4] for shift in range(3)),
    }


def unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what a file holds, and what an archive in it holds."""
    data = path.read_bytes()
    yield str(path), data
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                held = archive.extractfile(member) if member.isfile() else None
                if held:
                    yield f"{path}: {member.name}", held.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error, gzip.BadGzipFile):
        pass


def found_in(*folders: Path) -> list[str]:
    """Return which of the secrets is in which file."""
    wanted = {form: place for place in PLACES for form in forms(secret(place))}
    found = []
    for folder in folders:
        for path in sorted(
            path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
        ):
            for name, data in unpacked(path):
                found += [f"{name}: {place}" for form, place in wanted.items() if form in data]
    return found


if __name__ == "__main__":
    told = found_in(*map(Path, sys.argv[1:]))
    print("\n".join(told) or "no planted secret")
    sys.exit(bool(told))
