# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A login by asyncssh with the options of ssh: the address, the host key, the keys of the user."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Any

from . import host_keys, identities
from .options import PUBLIC_KEY, NotHonoured, Settings

FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}
CERTIFICATE = b"-cert-"
NOT_CONNECTED = "ssh: connect to host {host} port {port}: {text}\r\n"


class NotConnected(Exception):
    """The host takes no connection; the text is what ssh would say."""


async def connect(settings: Settings) -> socket.socket:
    """Return a connection to the host; raise NotConnected, as ssh would report it."""
    host, port = settings.text("hostname"), settings.number("port", host_keys.DEFAULT_PORT)
    loop = asyncio.get_running_loop()
    family = FAMILIES[settings.text("addressfamily")]
    try:
        places = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NotHonoured(f"{host} has no address: {error}") from error
    number = errno.EADDRNOTAVAIL
    limit = settings.number("connecttimeout", 0) or None
    end = loop.time() + (limit or 0)
    for kind, protocol, variant, _name, address in places:
        connection = socket.socket(kind, protocol, variant)
        connection.setblocking(False)
        seconds = limit and max(end - loop.time(), 0.01)
        try:
            await asyncio.wait_for(loop.sock_connect(connection, address), seconds)
        except (TimeoutError, asyncio.TimeoutError):
            number = errno.ETIMEDOUT
        except OSError as error:
            number = error.errno or number
        except BaseException:
            connection.close()
            raise
        else:
            return connection
        connection.close()
    raise NotConnected(NOT_CONNECTED.format(host=host, port=port, text=os.strerror(number)))


def _checks(keys: host_keys.HostKeys, exchanged: Callable[[], None]) -> Any:
    """Return what checks the host key, in the form in which asyncssh calls it."""
    import asyncssh

    class Checks(asyncssh.SSHClient):
        """Accept one of these host keys only."""

        def validate_host_public_key(self, _host: str, _address: str, _port: int, key: Any) -> bool:
            """Tell whether the host may show this key."""
            exchanged()
            return keys.trusts(key)

    return Checks


async def log_in(settings: Settings) -> Any:
    """Return a connection that has logged in.

    Raises NotConnected, NotHonoured where ssh itself has to log in, or an error of asyncssh.
    """
    import asyncssh
    from asyncssh.encryption import get_encryption_algs
    from asyncssh.kex import get_kex_algs
    from asyncssh.mac import get_mac_algs
    from asyncssh.public_key import get_public_key_algs

    signatures = get_public_key_algs()
    keys = host_keys.host_keys(settings, settings.supported("hostkeyalgorithms", signatures))
    client_keys, agent = await _client_keys(settings)
    timer, connection = _Timer(settings.number("connecttimeout", 0)), None
    try:
        connection = await connect(settings)
        return await timer.limit(
            asyncssh.connect(
                settings.text("hostname"),
                settings.number("port", host_keys.DEFAULT_PORT),
                sock=connection,
                config=None,
                client_factory=_checks(keys, timer.stop),
                username=settings.text("user"),
                client_keys=client_keys,
                known_hosts=([], [], []),
                server_host_key_algs=keys.algorithms,
                signature_algs=settings.supported("pubkeyacceptedalgorithms", signatures),
                kex_algs=settings.supported("kexalgorithms", get_kex_algs()),
                encryption_algs=settings.supported("ciphers", get_encryption_algs()),
                mac_algs=settings.supported("macs", get_mac_algs()),
                compression_algs=None,
                keepalive_interval=settings.number("serveraliveinterval", 0),
                keepalive_count_max=settings.number("serveralivecountmax", 3),
                preferred_auth=(PUBLIC_KEY,),
                password_auth=False,
                kbdint_auth=False,
                host_based_auth=False,
                gss_auth=False,
                gss_kex=False,
                gss_host=None,
                agent_path=None,
                agent_forwarding=False,
                pkcs11_provider=None,
                x509_trusted_certs=None,
                x509_trusted_cert_paths=[],
                canonicalize_hostname=False,
                tcp_keepalive=True,
                login_timeout=0,
                connect_timeout=None,
            )
        )
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    finally:
        if agent is not None:
            agent.close()


class _Timer:
    """Limits a login until the host has shown its key, as ssh's ConnectTimeout does."""

    def __init__(self, seconds: int) -> None:
        self._seconds, self._is_over = seconds, False
        self._handle: asyncio.TimerHandle | None = None

    async def limit(self, login: Any) -> Any:
        task = asyncio.ensure_future(login)

        def end() -> None:
            self._is_over = True
            task.cancel()

        if self._seconds:
            self._handle = asyncio.get_running_loop().call_later(self._seconds, end)
        try:
            return await task
        except asyncio.CancelledError:
            task.cancel()
            if self._is_over:
                raise NotHonoured(f"no key exchange within {self._seconds} seconds") from None
            raise
        finally:
            self.stop()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


async def _client_keys(settings: Settings) -> tuple[list[Any], Any]:
    """Return the keys that log in, and the agent that has to stay open for them."""
    import asyncssh

    path, agent = identities.agent_path(settings, os.environ), None
    keys: list[Any] = []
    if path:
        try:
            agent = await asyncssh.connect_agent(path)
            keys += [key for key in await agent.get_keys() if CERTIFICATE not in key.algorithm]
        except (OSError, ValueError, asyncssh.Error):
            agent = None  # ssh goes on without it too
    keys += identities.file_keys(settings, bool(keys))
    if not keys:
        raise NotHonoured("no key that asyncssh can use")
    return keys, agent
