# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a cluster's API: which kubeconfig and which server answered."""

import re

from ...kubeapi import kubeconfig
from ...kubeapi import proxy as kubeapi_proxy
from ...kubeapi.client import ApiError, Deadline, one_line
from ...kubeapi.proxy import ApiProxy
from ...shared.cluster_key import cluster_key
from ...system import served_certificates

HANDSHAKE_SECONDS = 1.5
SERVER = re.compile(r"https://(?:\[([0-9A-Fa-f:]+)\]|([0-9.]+)):([0-9]{1,5})/?\Z")
TIMED_OUT = "timed out"


class Skipped(Exception):
    """The error of a kubeconfig for whose cluster another host has answered."""


class Session:
    """The proxies of one run, and the API that answered."""

    def __init__(self, directory, kubectl, deadline):
        self.directory, self.kubectl, self.deadline = directory, kubectl, deadline
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
        if url not in self.dead and _is_only_local_awake(url, local):
            self.dead.add(url)
            self.failures.append(f"{config} ({url}): it takes connections and says nothing")
        if url in self.dead:
            api.close()
        elif self._answers(api, config, url, ca):
            return True
        if local and local not in self.dead:
            return self._answers(self.open(local, config), config, local, ca)
        return False

    def _answers(self, api, config, url, ca):
        """Return whether this API answers, and keep it; a refusal (403) is an answer too."""
        try:
            self.version = api.get("/version", seconds=kubeapi_proxy.PROBE_SECONDS)
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


def _is_only_local_awake(url, local):
    """Return whether a server is silent in a handshake that this node's API server completes.

    An API server that cannot reach etcd takes connections and says nothing: kubectl would wait
    for it until the time limit. A name is not looked up here, and a proxy's way not known.
    """
    places = [_place(server) for server in (url, local)]
    if None in places or places[0] == places[1]:
        return False
    silent, awake = served_certificates.read(places, HANDSHAKE_SECONDS)
    return silent["error"] == TIMED_OUT and awake["error"] is None


def _place(server):
    """Return (address, port) of a server that is named by its address, else None."""
    match = SERVER.match(server or "")
    if match is None or int(match.group(3)) > 65535:
        return None
    return match.group(1) or match.group(2), int(match.group(3))
