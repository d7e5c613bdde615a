# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubectl and a kubeconfig of this node, and the cluster of that kubeconfig."""

import base64
import json
import os
import re
import subprocess

from .client import ApiError, one_line

KUBECONFIGS = (
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/super-admin.conf",
    "/etc/rancher/rke2/rke2.yaml",
    "/etc/rancher/k3s/k3s.yaml",
    "/var/snap/microk8s/current/credentials/client.config",
    "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs"
    "/localhost.kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/kubelet/kubeconfig",
)
FOLDERS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/opt/bin",
    "/var/lib/rancher/rke2/bin",
    "/snap/microk8s/current",
    "/snap/bin",
    "/opt/kubernetes/bin",
)
API_SERVER_MANIFESTS = (
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/etc/kubernetes/manifests/kube-apiserver.manifest",
    "/var/lib/rancher/rke2/agent/pod-manifests/kube-apiserver.yaml",
)


def find_kubectl(requested_path=None):
    """Return kubectl's path, or None.

    The PATH of a session without a login shell lacks the folders where installers put it.
    """
    if requested_path:
        return requested_path if os.access(requested_path, os.X_OK) else None
    for folder in os.environ.get("PATH", "").split(":") + list(FOLDERS):
        path = os.path.join(folder, "kubectl")
        if folder.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def view(kubectl, kubeconfig, deadline):
    """Return (server, CA certificates as PEM or None) of the kubeconfig's current context.

    kubectl reads the kubeconfig.
    """
    try:
        # No AnsibleModule (and its run_command) where this runs as a program on standard input.
        answer = subprocess.run(  # pylint: disable=ansible-bad-function
            [
                kubectl,
                "--kubeconfig=" + kubeconfig,
                "config",
                "view",
                "--raw",
                "--minify",
                "-o",
                "json",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
            timeout=deadline.remaining(),
        )
    except subprocess.TimeoutExpired:
        raise ApiError("timeout", "kubectl config view did not end") from None
    except OSError as error:
        raise ApiError("error", f"{kubectl}: {error.strerror}") from error
    if answer.returncode:
        raise ApiError("error", one_line(answer.stderr.decode("utf-8", "replace")))
    try:
        facts = json.loads(answer.stdout.decode("utf-8", "replace"))["clusters"][0]["cluster"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ApiError("error", "it names no cluster") from error
    return facts.get("server"), _authority(facts, kubeconfig)


def _authority(facts, kubeconfig):
    path = facts.get("certificate-authority")
    if facts.get("certificate-authority-data"):
        try:
            text = base64.b64decode(facts["certificate-authority-data"]).decode("utf-8", "replace")
        except (ValueError, TypeError):
            return None
    elif path:
        try:
            with open(os.path.join(os.path.dirname(kubeconfig), path), "rb") as handle:
                text = handle.read(1024 * 1024).decode("utf-8", "replace")
        except OSError:
            return None
    else:
        return None
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.S)
    return "\n".join(blocks) + "\n" if blocks else None


def local_server(manifests=API_SERVER_MANIFESTS):
    """Return the URL of this node's own API server, from its manifest; None when there is none."""
    for path in manifests:
        try:
            with open(path, "rb") as handle:
                text = handle.read(1024 * 1024).decode("utf-8", "replace")
        except OSError:
            continue
        address = re.search(r"--advertise-address=([0-9A-Fa-f.:]+)", text)
        port = re.search(r"--secure-port=(\d+)", text)
        if address:
            return url_of(address.group(1), port.group(1) if port else "6443")
    return None


def url_of(address, port):
    """Return the https URL of an address, with brackets around IPv6."""
    return "https://{}:{}".format(f"[{address}]" if ":" in address else address, port)
