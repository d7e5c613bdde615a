# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a cluster's API: which kubeconfig and which server answered."""

import os
import re

from ...kubeapi import kubeconfig
from ...kubeapi import proxy as kubeapi_proxy
from ...kubeapi.client import ApiError, Deadline, one_line
from ...kubeapi.proxy import ApiProxy
from ...shared.cluster_key import cluster_key
from ...system import files, served_certificates

HANDSHAKE_SECONDS = 1.5
# A request waits in an API server's queue for a quarter of its time limit of 60 s at most.
PATIENCE_SECONDS = 15
SERVER = re.compile(r"https://(?:\[([0-9A-Fa-f:]+)\]|([0-9.]+)):([0-9]{1,5})/?\Z")
TIMED_OUT = "timed out"
SILENT = "no connection or no handshake in time: its machine is off or not reached, or it hangs"
MAX_CONFIG = 4194304


class Skipped(Exception):
    """The error of a kubeconfig for whose cluster another host has answered."""


class Session:
    """The proxies of one run, and the API that answered.

    patience: the seconds for a request; a server that gives no answer by then is asked no more.
    """

    def __init__(self, directory, kubectl, deadline, patience=PATIENCE_SECONDS):
        self.directory, self.kubectl, self.deadline = directory, kubectl, deadline
        self.patience = patience
        self.config = self.url = self.ca = self.version = self.api = None
        self.failures = []
        self.dead = set()
        self.proxies = []

    def open(self, server=None, config=None, tls_server_name=None):
        """Open a proxy to this server, by default the kubeconfig's own; close() ends it."""
        proxy = ApiProxy(
            self.directory,
            str(len(self.proxies)),
            self.kubectl,
            config or self.config,
            self.deadline,
            server,
            tls_server_name,
        )
        proxy.patience = self.patience
        self.proxies.append(proxy)
        return proxy

    def close(self):
        """End every proxy."""
        for proxy in self.proxies:
            proxy.close()

    def connect(self, configs, skip):
        """Connect by the first kubeconfig whose API answers.

        A kubeconfig is tried at its own server, often a load balancer, then at this node's
        own API server.
        """
        if not any(self._connects(config, skip) for config in configs):
            message = "; ".join(self.failures) or "no kubeconfig found"
            raise ApiError("error", one_line(message, 1000))

    def _connects(self, config, skip):
        """Return whether the API of this kubeconfig answers; raise Skipped for a known cluster."""
        api = self.open(config=config)
        probe = Deadline(kubeapi_proxy.PROBE_SECONDS, self.deadline)
        try:
            url, ca = kubeconfig.view(self.kubectl, config, probe)
        except ApiError as error:
            self.failures.append(f"{config}: {error}")
            api.close()
            return False
        self.ca = self.ca or ca
        key = cluster_key(ca)
        if key in skip:
            self.ca = ca
            raise Skipped(key)
        local = kubeconfig.local_server()
        for server in self._silent(config, url, local):
            self.dead.add(server)
            self.failures.append(f"{config} ({server}): {SILENT}")
        if url in self.dead:
            api.close()
        elif self._answers(api, config, url, ca):
            return True
        if local and local not in self.dead:
            return self._answers(self.open(local, config), config, local, ca)
        return False

    def _silent(self, config, url, local):
        """Return the servers of a kubeconfig that are not worth waiting for."""
        servers = [server for server in (url, local) if server and server not in self.dead]
        silent = silent_places(servers)
        if is_direct(config):
            return silent
        # kubectl may go another way to the first, where no other server answers
        if url in silent and local in servers and local not in silent:
            return [url]
        return []

    def _answers(self, api, config, url, ca):
        """Return whether this API answers, and keep it; a refusal (403) is an answer too."""
        try:
            self.version = api.get(
                "/version", seconds=min(kubeapi_proxy.PROBE_SECONDS, self.patience)
            )
        except ApiError as error:
            if error.code != 403:
                self.failures.append(f"{config} ({url}): {error}")
                api.close()
                if error.code is None:  # another kubeconfig will not reach it either
                    self.dead.add(url)
                return False
            self.version = {}
        self.api, self.config, self.url, self.ca = api, config, url, ca
        return True


def silent_places(servers):
    """Return those of these servers that say nothing in a handshake, however long one waits.

    A stopped API server takes connections and says nothing: kubectl would wait for it until the
    time limit. Where another one answers, less patience is enough. A name is not looked up here.
    """
    places = {server: place_of(server) for server in servers}
    silent = [server for server in dict.fromkeys(servers) if places[server]]
    for _count in range(2):
        answers = served_certificates.read([places[server] for server in silent], HANDSHAKE_SECONDS)
        awake = [answer for answer in answers if answer["error"] != TIMED_OUT]
        silent = [row for row, answer in zip(silent, answers) if answer["error"] == TIMED_OUT]
        if not silent or any(answer["error"] is None for answer in awake):
            break
    return silent


def is_direct(config, environment=None):
    """Return whether kubectl asks servers of this kubeconfig at their own address."""
    names = [name.lower() for name in (os.environ if environment is None else environment)]
    if "https_proxy" in names or "all_proxy" in names:
        return False
    try:
        return b"proxy-url" not in files.read(config, MAX_CONFIG)
    except OSError:
        return False


def place_of(server):
    """Return (address, port) of a server that is named by its address, else None."""
    match = SERVER.match(server or "")
    if match is None or int(match.group(3)) > 65535:
        return None
    return match.group(1) or match.group(2), int(match.group(3))
