# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the CRI on a runtime's socket, without crictl or the gRPC library.

The kubelet too makes the call Version first.
"""

import time

from . import files, grpc_call

try:
    import _socket as socket  # the module behind socket, without enum, selectors and re
except ImportError:
    import socket

VERSIONS = ("v1", "v1alpha2")  # v1 since 1.23, alone since 1.26; v1alpha2 alone up to 1.22
OK, UNIMPLEMENTED, SILENT = grpc_call.OK, grpc_call.UNIMPLEMENTED, grpc_call.SILENT


def connect(path, seconds):
    """Return why this socket takes no connection; None where it does.

    PermissionError is raised where this user may not connect.
    """
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        plain.settimeout(seconds)
        plain.connect(path)
    except PermissionError:
        raise
    except OSError as error:
        return files.one_line(error.strerror or error, 80)
    finally:
        plain.close()
    return None


def version(path, api_version, seconds):
    """Return the final status of /runtime.<api_version>.RuntimeService/Version.

    Without a status the result is SILENT, CLOSED or ODD of grpc_call, or the reason why there is
    no connection.
    """
    end = time.monotonic() + seconds
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        plain.settimeout(seconds)
        plain.connect(path)
        plain.sendall(grpc_call.request(f"/runtime.{api_version}.RuntimeService/Version"))
        return grpc_call.final_status(plain, end)
    except socket.timeout:
        return SILENT
    except OSError as error:
        return files.one_line(error.strerror or error, 80)
    finally:
        plain.close()


def call(path, method, message, seconds):
    """Return (status, the message of the reply) of a call such as runtime.v1.RuntimeService/Status.

    Where the status is not OK, the message is empty; without a status it is as that of version().
    """
    end = time.monotonic() + seconds
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        plain.settimeout(seconds)
        plain.connect(path)
        plain.sendall(grpc_call.request("/" + method, message, grpc_call.MAX_REPLY))
        return grpc_call.reply(plain, end)
    except socket.timeout:
        return SILENT, b""
    except OSError as error:
        return files.one_line(error.strerror or error, 80), b""
    finally:
        plain.close()
