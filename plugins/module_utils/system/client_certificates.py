# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client certificates that a control-plane node already has, which are read and never written."""

import os
import time

from . import files, procfs, public_keys, yaml_scalars

ADMIN = ("/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf")
MAX_PEM = 262144
VERSION, SHORT_TIME, LONG_TIME = 0xA0, 0x17, 0x18  # tags of DER


def of_kubeconfig(path):
    """Return (certificate, key) of the first user with a client certificate, embedded or in files.

    The result is None when there is no such user.
    """
    text = files.read(path, 4194304).decode("utf-8", "replace")
    base = os.path.dirname(path)
    pair = []
    for name in ("client-certificate", "client-key"):
        embedded, named = (
            yaml_scalars.anywhere(text, name + "-data"),
            yaml_scalars.anywhere(text, name),
        )
        if embedded:
            pair.append((yaml_scalars.decoded(embedded) or "").encode("utf-8"))
        elif named:
            pair.append(files.read(os.path.join(base, named), MAX_PEM))
    if len(pair) == 2 and all(pair):
        return tuple(pair)
    return None


def of_process(process, certificate_flag, key_flag):
    """Return (path of the certificate, certificate, key) that two flags of a process name.

    The paths are read within the root of the process while it runs. The result is None where a flag
    is missing.
    """
    certificate, key = (
        procfs.flag(process["argv"], certificate_flag),
        procfs.flag(process["argv"], key_flag),
    )
    if not certificate or not key:
        return None
    pid = process["pid"]
    return (
        certificate,
        procfs.file_of(pid, certificate, MAX_PEM),
        procfs.file_of(pid, key, MAX_PEM),
    )


def of_components(params, processes):
    """Yield (path, certificate, key) of clients of a scheduler or controller manager.

    The administrator's kubeconfig comes first, then the API server's own certificate.
    """
    for path in [params["kubeconfig"]] if params.get("kubeconfig") else ADMIN:
        try:
            pair = of_kubeconfig(path)
        except OSError:
            continue
        if pair:
            yield (path, *pair)
    for process in processes:
        if process["component"] == "kube-apiserver" and process["host_network"]:
            try:
                client = of_process(process, "kubelet-client-certificate", "kubelet-client-key")
            except OSError:
                continue
            if client:
                yield client


def has_expired(certificate, now=None):
    """Return whether the first certificate of these PEM bytes has ended; False where unreadable.

    Who asks with such a one is refused, and asking again does not help.
    """
    try:
        text = certificate.decode("ascii", "replace")
        for label, data in public_keys.blocks(text):
            if label == "CERTIFICATE":
                return _end(data) <= time.strftime("%Y%m%d%H%M%SZ", time.gmtime(now))
    except (ValueError, IndexError):
        pass
    return False


def _end(data):
    """Return when a certificate of DER ends, as GeneralizedTime writes it."""
    fields = public_keys.parts_of(public_keys.parts_of(data)[0][1])
    first = 4 if fields[0][0] == VERSION else 3
    tag, _whole, content = public_keys.parts_of(fields[first][1])[1]
    text = content.decode("ascii")
    if tag == SHORT_TIME:  # two digits of the year, from 1950 on
        text = ("19" if text[:2] >= "50" else "20") + text
    if tag not in (SHORT_TIME, LONG_TIME) or len(text) != 15:
        raise ValueError("no time")
    return text
