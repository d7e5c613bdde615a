# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector certificates: those that components use, by file and by port, and digests of keys.

Only certificates leave the node, and SHA-256 digests of public keys: of a private key the digest of
the public key beside it, which tells whether two files have the same pair. The controller reads
dates, names and signatures.
"""

import functools
import os

from ...system import (
    certificate_flags,
    component_endpoints,
    etcd_settings,
    files,
    procfs,
    public_keys,
    yaml_scalars,
)
from ...system.certificate_flags import API, KEY, KINDS, values
from ..base import Absent

MAX_FILES, MAX_FILE, MAX_PEM = 80, 1048576, 65536
HANDSHAKES_SECONDS = 1.5  # for all of them together
KUBELET_PORT, KUBELET_FOLDER = "10250", "/var/lib/kubelet/pki"
SERVED = {
    API: "tls-cert-file",
    "kube-controller-manager": "tls-cert-file",
    "kube-scheduler": "tls-cert-file",
}
OF_K3S = (
    (API, "tls-cert-file", "127.0.0.1", 6443),
    ("etcd", "cert-file", "127.0.0.1", 2379),
)


def collect(context):
    """Return {uses, files, keys, kubeconfigs, served}."""
    kubelet = context.data.get("kubelet") or {}
    processes = [
        _completed(process)
        for process in (context.data.get("instances") or {}).get("processes") or []
        if process["component"] in KINDS and process["host_network"] is not False
    ]
    context.source = "files that components use, and handshakes"
    store = _Store()
    _add_components(store, context, processes)
    _add_kubelet(store, kubelet)
    _add_folders(store, context, kubelet)
    _add_kubeconfigs(store, processes)
    if not store.uses and not store.kubeconfigs:
        raise Absent("no component of Kubernetes that uses a certificate")
    context.truncated = store.full
    served = _served(_places(processes, kubelet), context)
    return dict(store.data(), served=served)


def _completed(process):
    """Return a process with the flags that the environment or the file of an etcd stands for."""
    if process["component"] == "etcd":
        return etcd_settings.complete(process)
    return process


class _Store:
    """The files that were read, each once, and who uses them."""

    def __init__(self):
        self.uses, self.files, self.keys, self.kubeconfigs = [], [], [], []
        self.paths = {}
        self.full = False

    def data(self):
        """Return what was read."""
        return {
            "uses": self.uses,
            "files": self.files,
            "keys": self.keys,
            "kubeconfigs": self.kubeconfigs,
        }

    def has(self, component, flag=None):
        """Return whether a component's files are known already."""
        rows = self.uses + self.keys
        return any(row["component"] == component and flag in (None, row["flag"]) for row in rows)

    def add(self, component, flag, path, process=None):
        """Read the file that a flag of a component names."""
        if len(self.uses) + len(self.keys) >= MAX_FILES:
            self.full = True
            return
        root = f"/proc/{process['pid']}/root" if process else None
        use = {
            "component": component,
            "flag": flag,
            "path": files.one_line(path, 300),
            "pid": process["pid"] if process else None,
        }
        if certificate_flags.kind_of(component, flag) == KEY:
            self.keys.append(dict(use, **_of_process(_key, path, root)))
        else:
            self.uses.append(dict(use, file=self._file(path, root)))

    def _file(self, path, root):
        """Return the number of the file in `files`."""
        mark = (path, _identity(path, root))
        if mark not in self.paths:
            self.paths[mark] = len(self.files)
            self.files.append(_of_process(_certificates, path, root))
        return self.paths[mark]


def _of_process(read, path, root):
    """Return what a process has at a path; of one that has ended, what the host has there.

    A component that its certificates keep down ends every few seconds, also while it is read: its
    next start reads the host's files.
    """
    record = read(path, root)
    if root is None or not procfs.has_ended(root):
        return record
    return read(path, None)


def _identity(path, root):
    try:
        state = os.stat((root or "") + path)
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _text(path, root):
    return files.read(path, MAX_FILE, root).decode("utf-8", "replace")


def _certificates(path, root):
    """Return the record of a file of certificates."""
    record = {
        "path": files.one_line(path, 300),
        "pem": None,
        "error": None,
        "mtime": files.mtime((root or "") + path),
        "key_beside": os.path.lexists((root or "") + os.path.splitext(path)[0] + ".key"),
    }
    try:
        record["pem"] = files.certificates(_text(path, root))
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    if record["pem"] is None:
        record["error"] = "no certificate in it"
    elif len(record["pem"]) > MAX_PEM:
        record.update(pem=None, error=f"more than {MAX_PEM} bytes of certificates")
    return record


def _key(path, root=None):
    """Return {digests, error} of a file with a key."""
    try:
        return {"digests": public_keys.digests(_text(path, root)), "error": None}
    except OSError as error:
        return {"digests": [], "error": files.reason(error)}
    except public_keys.KeyFileError as error:
        return {"digests": [], "error": str(error)}


def _add_components(store, context, processes):
    """Add the files that processes name, and those of manifests whose component does not run."""
    for process in processes:
        _add_argv(store, process["component"], process["argv"], process)
    running = {process["component"] for process in processes}
    manifests = (context.data.get("manifests") or {}).get("files") or []
    for record in manifests:
        component, argv = certificate_flags.argv_of_manifest(record.get("text") or "")
        if component and component not in running and not store.has(component):
            _add_argv(store, component, argv)
            _add_named_kubeconfig(store, component, argv)


def _add_argv(store, component, argv, process=None):
    for flags in KINDS[component].values():
        for flag in flags:
            for value in values(argv, flag):
                for path in value.split(","):
                    if path.startswith("/"):
                        store.add(component, flag, path, process)


def _add_named_kubeconfig(store, component, argv):
    for path in values(argv, "kubeconfig")[-1:]:
        if path.startswith("/"):
            store.kubeconfigs.append(_kubeconfig(component, path))


def _add_kubelet(store, kubelet):
    """Add the serving certificate of the kubelet, and the authority of its clients."""
    argv = kubelet.get("argv") or []
    if not kubelet or _rancher(kubelet) == "k3s":
        return
    texts = _configurations(kubelet)
    authority = _setting(argv, "client-ca-file", texts, "clientCAFile")
    if authority:
        store.add("kubelet", "client-ca-file", authority)
    certificate = _setting(argv, "tls-cert-file", texts, "tlsCertFile")
    if certificate:
        store.add("kubelet", "tls-cert-file", certificate)
        key = _setting(argv, "tls-private-key-file", texts, "tlsPrivateKeyFile")
        if key:
            store.add("kubelet", "tls-private-key-file", key)
        return
    folder = (values(argv, "cert-dir") or [KUBELET_FOLDER])[-1]
    for name in ("kubelet-server-current.pem", "kubelet.crt"):
        if os.path.lexists(os.path.join(folder, name)):
            store.add("kubelet", "tls-cert-file", os.path.join(folder, name))
            return


def _configurations(kubelet):
    records = [kubelet.get("config"), *(kubelet.get("config_dropins") or [])]
    return [record["text"] for record in records if record and record.get("text")]


def _setting(argv, flag, texts, key):
    """Return an absolute path that the kubelet is given, or None."""
    named = values(argv, flag)
    for text in texts:
        if not values(argv, flag):
            named += [yaml_scalars.anywhere(text, key)]
    paths = [path for path in named if path and path.startswith("/")]
    return paths[-1] if paths else None


def _rancher(kubelet):
    """Return k3s or rke2 where the kubelet is a part of it, else None."""
    unit = (kubelet.get("unit") or {}).get("name") or ""
    words = " ".join([unit, *(kubelet.get("argv") or [])])
    if "rke2" in words:
        return "rke2"
    if unit.startswith("k3s") or "/k3s" in words:
        return "k3s"
    return None


def _add_folders(store, context, kubelet):
    """Add the files of an installer's folder whose component is not known by its flags."""
    name = _rancher(kubelet)
    if name:
        _add_known(store, certificate_flags.RANCHER_AGENT, certificate_flags.RANCHER_FOLDERS[name])
        rows = [row for row in certificate_flags.RANCHER_SERVER if not store.has(row[0])]
        _add_known(store, rows, certificate_flags.RANCHER_FOLDERS[name])
        return
    folders = [
        folder
        for folder in certificate_flags.USUAL_FOLDERS
        if os.path.lexists(os.path.join(folder, "apiserver.crt"))
    ]
    for folder in folders[:1]:
        if not store.has(API) and context.data.get("manifests") is None:
            _add_known(store, certificate_flags.USUAL, folder)
        if store.has("etcd"):
            _add_known(store, (certificate_flags.PROBE,), folder)


def _add_known(store, rows, folder):
    for component, flag, name in rows:
        path = os.path.join(folder, name)
        if os.path.lexists(path) and not store.has(component, flag):
            store.add(component, flag, path)


def _add_kubeconfigs(store, processes):
    """Add the kubeconfigs of components and of administrators."""
    paths = {row["path"] for row in store.kubeconfigs}
    for process in processes:
        path = (process.get("kubeconfig") or {}).get("path")
        if path and path not in paths:
            paths.add(path)
            root = f"/proc/{process['pid']}/root"
            read = functools.partial(_kubeconfig, process["component"])
            store.kubeconfigs.append(_of_process(read, path, root))
    for component, path in certificate_flags.KUBECONFIGS:
        if path not in paths and os.path.lexists(path) and not _is_of_others(store, component):
            store.kubeconfigs.append(_kubeconfig(component, path))


def _is_of_others(store, component):
    """Return whether a component has a kubeconfig already, so that a usual one is not its own."""
    rows = [row["component"] for row in store.kubeconfigs]
    return bool(component) and (component in rows or not store.has(component))


def _kubeconfig(component, path, root=None):
    """Return the certificates of a kubeconfig, and the digest of its key."""
    record = {
        "component": component,
        "path": files.one_line(path, 300),
        "server": None,
        "client": None,
        "client_path": None,
        "authority": None,
        "digests": [],
        "users": 0,
        "error": None,
        "mtime": files.mtime((root or "") + path),
        "host_client": None,
    }
    try:
        text = _text(path, root)
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    record["host_client"] = _host_client(path, root)
    base = os.path.dirname(path)
    server = yaml_scalars.anywhere(text, "server")
    record["server"] = files.one_line(server or "", 200) or None
    record["users"] = text.count("client-certificate-data") + text.count("client-certificate:")
    client, record["client_path"] = _part(text, "client-certificate", base, root)
    record["client"] = files.certificates(client)
    record["authority"] = files.certificates(_part(text, "certificate-authority", base, root)[0])
    try:
        record["digests"] = public_keys.digests(_part(text, "client-key", base, root)[0])
    except public_keys.KeyFileError:
        record["digests"] = []
    return record


def _host_client(path, root):
    """Return the certificate that the host has at a path of which a process has another file."""
    if root is None or _identity(path, root) == _identity(path, None):
        return None
    try:
        return files.certificates(_part(_text(path, None), "client-certificate", "/", None)[0])
    except OSError:
        return None


def _part(text, name, base, root):
    """Return (PEM, path) of what a kubeconfig embeds or names; the path is None if embedded."""
    embedded = yaml_scalars.anywhere(text, name + "-data")
    if embedded:
        return yaml_scalars.decoded(embedded) or "", None
    path_of = yaml_scalars.anywhere(text, name)
    if not path_of:
        return "", None
    path = os.path.normpath(os.path.join(base, path_of))
    try:
        return _text(path, root), files.one_line(path, 300)
    except OSError:
        return "", files.one_line(path, 300)


def _places(processes, kubelet):
    """Return [(component, flag, pid, address, port)] of the ports that show a certificate."""
    places = []
    for process in processes:
        for flag, address, port in _ports(process["component"], process["argv"]):
            places.append((process["component"], flag, process["pid"], address, port))
    if kubelet.get("process"):
        places += _places_of_kubelet(kubelet, kubelet["process"]["pid"])
    return places


def _places_of_kubelet(kubelet, pid):
    places, argv = [], kubelet.get("argv") or []
    if _rancher(kubelet) == "k3s" and "server" in argv[1:2]:
        places = [
            (component, flag, pid, address, port) for component, flag, address, port in OF_K3S
        ]
    ports = [yaml_scalars.top(text, "port") for text in _configurations(kubelet)]
    ports += values(argv, "port")[-1:]
    port = ([port for port in ports if port] or [KUBELET_PORT])[-1]
    if port.isdigit() and 0 < int(port) < 65536:
        places.append(("kubelet", "tls-cert-file", pid, _address(kubelet), int(port)))
    return places


def _address(kubelet):
    from ...system import http_client

    addresses = [yaml_scalars.top(text, "address") for text in _configurations(kubelet)]
    addresses += values(kubelet.get("argv") or [], "address")[-1:]
    paths = [address for address in addresses if address]
    return http_client.reachable(paths[-1] if paths else "")


def _ports(component, argv):
    """Return [(flag of the certificate, address, port)] where a component shows a certificate."""
    if component == "etcd":
        return _of_etcd(argv)
    doors = [door for door in component_endpoints.doors(component, argv) if door[2]]
    return [(SERVED[component], address, port) for address, port, _secure in doors[:1]]


def _of_etcd(argv):
    from .etcd import parsed, split

    ports = []
    for flag, name in (("cert-file", "listen-client-urls"), ("peer-cert-file", "listen-peer-urls")):
        urls = [url for named in values(argv, name)[-1:] for url in split(named)]
        secure = [parsed(url) for url in urls if url.startswith("https://")]
        ports += [(flag, address, port) for _scheme, address, port in secure[:1]]
    return ports


def _served(places, context):
    """Return the certificate that each port shows, or why it shows none."""
    if not places:
        return []
    from ...system import served_certificates

    seconds = context.seconds(HANDSHAKES_SECONDS)
    answers = served_certificates.read([place[3:] for place in places], seconds)
    return [
        dict(answer, component=place[0], flag=place[1], pid=place[2])
        for place, answer in zip(places, answers)
    ]
