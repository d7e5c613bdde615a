# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtime of this node, queried by the available tool, with a time limit."""

import json
import os
import re
import stat

from . import command, files
from .runtime_endpoint import endpoint

SECONDS = 10
PAUSE_IMAGE = re.compile(r"(^|/)pause(-[a-z0-9]+)?:[^/@]+\Z")  # of a container that only waits
USUAL = (
    "/var/run/dockershim.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
)
FOLDERS = [*command.PATH.split(":"), "/opt/bin", "/var/lib/rancher/rke2/bin"]


class RuntimeDown(Exception):
    """A runtime that does not answer; the message is one clause."""


class Runtime:
    """The runtime's socket, and the tool that queries it: crictl, ctr, docker or none."""

    def __init__(self, socket, tool=None, path=None):
        self.socket = socket
        self.tool = tool
        self.path = path

    def demand(self):
        """Require an answer within the time limit; raise RuntimeDown without one."""
        if self.socket is None:
            raise RuntimeDown("no socket of a container runtime was found")
        if self.tool is None:
            _connect(self.socket)
            return
        words = {
            "crictl": ["version"],
            "ctr": ["version"],
            "docker": ["version", "--format", "{{.Server.Version}}"],
        }
        try:
            output = self._run(words[self.tool])
        except command.CommandError as error:
            raise RuntimeDown(f"{error} ({self.socket})") from error
        if self.tool == "ctr" and "Server" not in output:
            raise RuntimeDown(f"containerd does not answer at {self.socket}")

    def has_image(self, image):
        """Return whether the runtime has this image, so that a container starts without a pull.

        The result is None when no tool is installed that can show it.
        """
        if self.tool is None:
            return None
        words = {
            "crictl": ["inspecti", image],
            "ctr": ["-n", "k8s.io", "images", "ls", "-q", "name==" + normalised(image)],
            "docker": ["images", "-q", "--no-trunc", image],
        }
        try:
            return bool(self._run(words[self.tool]).strip())
        except command.Silent:
            return False
        except command.CommandError as error:
            raise RuntimeDown(str(error)) from error

    def images(self):
        """Return the names of the runtime's images; raise RuntimeDown where it does not answer."""
        words = {
            "crictl": ["images", "-o", "json"],
            "ctr": ["-n", "k8s.io", "images", "ls", "-q"],
            "docker": ["images", "--format", "{{.Repository}}:{{.Tag}}"],
        }
        if self.tool is None:
            raise RuntimeDown("neither crictl nor another tool that asks it is there")
        try:
            output = self._run(words[self.tool])
            if self.tool == "crictl":
                names = [
                    name
                    for image in json.loads(output)["images"]
                    for name in image.get("repoTags") or []
                ]
            else:
                names = output.split()
        except command.CommandError as error:
            raise RuntimeDown(str(error)) from error
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RuntimeDown(f"what {self.tool} says of its images cannot be read") from None
        return [str(name) for name in names]

    def _run(self, words):
        options = {
            "crictl": [
                "--runtime-endpoint",
                "unix://" + self.socket,
                "--image-endpoint",
                "unix://" + self.socket,
                "--timeout",
                f"{SECONDS}s",
            ],
            "ctr": ["--address", self.socket],
            "docker": [],
        }
        return command.run([self.path] + options[self.tool] + words, SECONDS)


def find(kubelet):
    """Return the runtime that this kubelet (evidence of its collector) uses."""
    socket = endpoint(kubelet) or next((path for path in USUAL if _is_socket(path)), None)
    tools = ["crictl"]
    if socket and "docker" in socket:
        tools = ["crictl", "docker"]
    elif socket and "containerd" in socket:
        tools = ["crictl", "ctr"]
    for tool in tools:
        path = _program(tool)
        if socket and path:
            return Runtime(socket, tool, path)
    return Runtime(socket)


def _is_socket(path):
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _program(name):
    for folder in os.environ.get("PATH", "").split(":") + FOLDERS:
        path = os.path.join(folder, name)
        if folder.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _connect(path):
    import socket

    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        plain.settimeout(SECONDS)
        plain.connect(path)
    except OSError as error:
        raise RuntimeDown(
            f"{path} does not answer ({files.one_line(error.strerror or error)})"
        ) from error
    finally:
        plain.close()


def normalised(image):
    """Return the full name under which containerd's CRI keeps an image."""
    first, slash, _dummy = image.partition("/")
    if not slash:
        image = "docker.io/library/" + image
    elif not ("." in first or ":" in first or first == "localhost"):
        image = "docker.io/" + image
    name, at, digest = image.partition("@")
    folder, slash, last = name.rpartition("/")
    if at:
        return folder + slash + last.partition(":")[0] + at + digest
    if ":" in last:
        return name
    return name + ":latest"
