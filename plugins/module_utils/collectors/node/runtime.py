# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector runtime: the units and the socket of the container runtime, and whether it answers.

The runtime is the one that the kubelet uses. A runtime that is part of another program (k3s, RKE2,
microk8s, k0s) has no unit of its own, and is not asked. Nor is a socket whose unit does not run:
systemd may hold it, and a connection would start what an operator stopped.
"""

import contextlib
import os
import stat

from ...logs import stacks
from ...shared.units import RUNTIME_UNITS as UNITS
from ...shared.units import RUNTIMES as OWN
from ...system import command, cri, files, kubelet_process, listeners, procfs, systemd
from ...system.command import CommandError
from ...system.runtime_endpoint import endpoint
from ..base import Absent, Failed
from . import kubelet_end

CONTAINERD, CRIO, DOCKER, CRI_DOCKER, EMBEDDED, OTHER = (
    "containerd",
    "crio",
    "docker",
    "cri-docker",
    "embedded",
    "other",
)
DOCKERSHIM, DOCKER_SOCKET = "/var/run/dockershim.sock", "/var/run/docker.sock"
CONTAINERD_SOCKET, CONTAINERD_CONFIG = (
    "/run/containerd/containerd.sock",
    "/etc/containerd/config.toml",
)
# What the socket's path holds, and whose it is then. Docker's own comes before what uses it.
PATHS = (
    ("dockershim", DOCKER),
    ("cri-dockerd", CRI_DOCKER),
    ("/crio/", CRIO),
    ("/containerd/containerd.sock", CONTAINERD),
)
WITHIN = ("/run/k3s/", "/var/run/k3s/", "/run/k0s/", "/var/run/k0s/", "/var/snap/", "/run/snap")
# its own packages', and kubespray's: a node has one of them
EITHER = ("cri-docker.service", "cri-dockerd.service")
SOCKETS = ("docker.socket", "cri-docker.socket", "cri-dockerd.socket")
PROPERTIES = (*systemd.PROPERTIES, "WantedBy", "RequiredBy", "UpheldBy")
BOOTS = (
    "multi-user.target",
    "default.target",
    "graphical.target",
    "sysinit.target",
    "basic.target",
)
# Without /run/systemd/system, which no boot brings back.
LOADED = (
    "/etc/systemd/system",
    "/run/systemd/generator.early",
    "/run/systemd/generator",
    "/run/systemd/generator.late",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
NONE = {"LoadState": ["not-found"]}
MAX_WANTED, MAX_CONFIG, MAX_PLUGINS, MAX_DROPINS = 20, 256 * 1024, 50, 50
READ_LINES, READ_BYTES, KEPT, LONGEST = 200, 512 * 1024, 8, 400
# containerd's database of containers and images, and what bbolt looks for: its magic number in the
# first or second page, of whatever size.
CONTAINERD_ROOT, METADATA, MAGIC, PAGES, AT = (
    "/var/lib/containerd",
    "io.containerd.metadata.v1.bolt/meta.db",
    b"\xed\xda\x0c\xed",
    15,
    16,
)
UNLOADED, PLUGIN_SECONDS, LONGEST_PLUGIN = "failed to load plugin", 60, 800
# The arguments of cri-dockerd that say whom it serves and what it makes pods of.
CRI_DOCKER_FLAGS = (
    "container-runtime-endpoint",
    "docker-endpoint",
    "network-plugin",
    "pod-infra-container-image",
)
MAX_PATHS = 8
CONNECT = 2.0  # seconds for a connection, and for an answer


def collect(context):
    """Return the evidence of the runtime that the kubelet uses.

    It is {endpoint, docker, kind, path, units, socket, error, asked, calls, config, metadata,
    emptied, plugin_failures, serving, flags, proxy}.

    docker: whether the kubelet uses docker itself; units: those of UNITS, in their order: each
    as in the collector kubelet, with wanted_by, brought_by, trigger and said (the last lines of
    a unit that ended), or {name, absent}; socket: present, missing, other or denied; error: why
    it takes no connection, None where it does or was not asked; calls: {version of the CRI: the
    status that a call ends with, or an error}; config, metadata: those of containerd, where it
    refuses calls; emptied: the path of containerd's configuration, where that is a file of 0
    bytes; plugin_failures: what containerd without a CRI logged of plugins at its start; serving:
    [{unit, paths}], the sockets at which each runtime that runs listens, where there is none at
    the path of the kubelet; flags: {name: value} of CRI_DOCKER_FLAGS that cri-dockerd has; proxy:
    {HTTPS_PROXY, NO_PROXY} of its process, which the plugins of the CNI inherit, None where that
    was not found or may not be read.
    """
    kubelet = context.data.get("kubelet")
    if not kubelet:
        raise Absent("no kubelet")
    socket = endpoint(kubelet)
    family = _unit_name(kubelet)
    blocks = _blocks(socket, context.seconds(5))
    present = [name for name in OWN if systemd.unit(blocks.get(name, NONE))]
    kind, path = kind_of(socket, family, told_docker(kubelet), present)
    evidence = {
        "endpoint": None,
        "docker": told_docker(kubelet),
        "kind": kind,
        "path": path,
        "socket": None,
        "error": None,
        "asked": False,
        "calls": {},
        "config": None,
        "metadata": None,
        "emptied": None,
        "plugin_failures": None,
        "serving": [],
        "flags": {},
        "proxy": None,
        "units": [_unit(name, blocks) for name in names_of(kind, blocks)],
    }
    if socket:
        evidence["endpoint"] = files.one_line(socket, 200)
    _add_lines(evidence["units"], context)
    _add_settings(evidence, blocks)
    evidence["proxy"] = proxy_of(evidence["units"], kind, family)
    if kind == EMBEDDED or path is None:
        return evidence
    context.source = path
    evidence["socket"] = state_of(path)
    _add_serving(evidence, blocks)
    if evidence["socket"] == "present" and runs(evidence["units"], family, kubelet):
        _ask(evidence, blocks, context)
    return evidence


def _add_settings(evidence, blocks):
    """Add what the runtime of this kind is told."""
    if evidence["kind"] == CRI_DOCKER:
        evidence["flags"] = flags_of(evidence["units"], blocks)
    elif evidence["kind"] == CONTAINERD:
        evidence["emptied"] = emptied(config_of(blocks))


def _add_serving(evidence, blocks):
    """Add where runtimes listen, if there is no socket where the kubelet looks for one."""
    if evidence["socket"] in ("missing", "other"):
        evidence["serving"] = serving(blocks)


def proxy_of(units, kind, family):
    """Return {HTTPS_PROXY, NO_PROXY} of the process that runs the plugins of the CNI, or None."""
    pids = [unit["main_pid"] for unit in units if not unit["absent"] and unit["main_pid"]]
    pid = pids[-1] if pids else None
    if kind == EMBEDDED:
        pid = _within_unit(family)
    if not pid or kind == DOCKER:  # with docker, the kubelet itself runs them
        return None
    return kubelet_process.proxy_of(pid)


def _within_unit(family, proc="/proc"):
    """Return the id of the containerd that a program of this unit started, or None."""
    for name in sorted(filter(str.isdigit, files.names(proc)), key=int):
        folder = os.path.join(proc, name)
        if (files.text(os.path.join(folder, "comm"), 64) or "").strip() == CONTAINERD:
            group = procfs.cgroup(files.text(os.path.join(folder, "cgroup")) or "")
            if family and group["unit"] == family:
                return int(name)
    return None


def serving(blocks):
    """Return [{unit, paths}] of the runtimes that run, without sockets of other protocols."""
    rows = []
    for name in OWN:
        unit = systemd.unit(blocks.get(name, NONE))
        if unit is None or not unit["main_pid"]:
            continue
        paths = [path for path in listeners.unix_paths(unit["main_pid"]) if _may_be_cri(path)]
        rows.append({"unit": name, "paths": [path[:255] for path in paths[:MAX_PATHS]]})
    return rows


def _may_be_cri(path):
    return not path.endswith((".ttrpc", "/docker.sock")) and "/docker/" not in path


def flags_of(units, blocks):
    """Return {name: value} of the arguments that the last of these units gives its program."""
    there = [unit["name"] for unit in units if not unit["absent"]]
    argv = systemd.command_line(blocks.get("".join(there[-1:])) or {})
    values = {name: procfs.flag(argv, name) for name in CRI_DOCKER_FLAGS}
    return {name: files.one_line(value, 255) for name, value in values.items() if value is not None}


def _unit_name(kubelet):
    """Return the name of the unit that runs the kubelet, or an empty text."""
    return (kubelet.get("unit") or {}).get("name") or ""


def _blocks(named, seconds):
    """Return systemd's blocks of the units; {} where the runtime is part of another program."""
    if named and within(named):
        return {}
    names, properties, _dummy = question()
    try:
        return systemd.show(names, properties, seconds)
    except CommandError as error:
        raise Failed(str(error)) from error


def _add_lines(units, context):
    """Add the last lines of the units that ended."""
    for row in units:
        if row["absent"]:
            continue
        row["said"] = []
        if ended(row):
            row["said"] = journal_lines(row["name"], context.seconds(3))


def question():
    """Return the question to systemd: (names, properties, whether it asks is-enabled too)."""
    return OWN + SOCKETS, PROPERTIES, True


def told_docker(kubelet):
    """Return whether a kubelet of up to 1.23 uses docker itself, by --container-runtime.

    The result is None without that flag.
    """
    value = procfs.flag(kubelet.get("argv") or [], "container-runtime")
    if value is None:
        return None
    return value == "docker"


def within(path):
    """Return whether a runtime at this socket is part of another program."""
    return path.startswith(WITHIN)


def kind_of(socket, family, docker, present, exists=os.path.lexists):
    """Return (the kind of the runtime, the path of its socket), each None if unknown.

    present: the units that exist.
    """
    if socket and within(socket):
        return EMBEDDED, socket
    if docker:
        return DOCKER, DOCKER_SOCKET
    if socket:
        return _kind_by_path(socket)
    if family.startswith(("k3s", "rke2", "snap.", "k0s")):
        return EMBEDDED, None
    if exists(DOCKERSHIM):
        return DOCKER, DOCKER_SOCKET
    if "docker.service" not in present and "containerd.service" in present:
        return CONTAINERD, CONTAINERD_SOCKET  # the default since 1.24; before, docker's own
    return None, None


def _kind_by_path(path):
    """Return (the kind of the runtime at this socket, the runtime's own socket)."""
    kind = next((kind for part, kind in PATHS if part in path), OTHER)
    return kind, DOCKER_SOCKET if kind == DOCKER else path


def socket_of(name, kubelet):
    """Return the socket at which this unit's program answers.

    It is None where neither the kubelet's evidence nor a default names it.
    """
    if name == "docker.service":
        return DOCKER_SOCKET
    named = endpoint(kubelet)
    if named and not within(named) and name in UNITS.get(kind_of(named, "", None, ())[0], ()):
        return named
    if name == "containerd.service" and not named:
        return CONTAINERD_SOCKET
    return None


def names_of(kind, blocks):
    """Return the names in UNITS of this kind.

    Two of them may be names for one unit. The result has the one that runs, else the one that
    exists.
    """
    ranks = {
        name: (unit["active_state"] == "active", 1) if unit else (False, 0)
        for name in EITHER
        for unit in [systemd.unit(blocks.get(name, NONE))]
    }
    best = max(EITHER, key=lambda name: ranks[name])  # the first of equals
    return [name for name in UNITS.get(kind, ()) if name not in EITHER or name == best]


def _unit(name, blocks):
    """Return the evidence of one unit, with the units that start it and a socket."""
    block = blocks.get(name) or {}
    unit = None
    if block:
        unit = systemd.unit(block)
    if unit is None:
        return {"name": name, "absent": True}
    unit["absent"] = False
    with contextlib.suppress(CommandError):
        # show tells of before an enable or disable without a reload
        unit["unit_file_state"] = systemd.enabled(name)
    targets = []
    for key in ("WantedBy", "RequiredBy", "UpheldBy"):
        targets += " ".join(block.get(key, [])).split()
    unit["wanted_by"] = sorted(set(targets))[:MAX_WANTED]
    unit["brought_by"] = []
    if unit["unit_file_state"] == "disabled":
        # What systemd tells may be of before a disable without a reload: files alone tell of the
        # next boot.
        unit["brought_by"] = [
            target for target in BOOTS if target in targets and brings(target, name)
        ]
    unit["trigger"] = _trigger(name.replace(".service", ".socket"), blocks)
    return unit


def _trigger(socket, blocks):
    """Return the state of the socket that starts a unit, or None."""
    if socket not in SOCKETS or socket not in blocks:
        return None
    trigger = systemd.unit(blocks[socket])
    if trigger is None:
        return None
    return {key: trigger[key] for key in ("name", "active_state", "unit_file_state")}


def ended(unit):
    """Return whether a unit failed, or is restarted again and again.

    An orderly stop of the unit is no failure.
    """
    return unit["active_state"] in ("failed", "activating") or (
        unit["active_state"] == "inactive" and unit["result"] not in ("success", "")
    )


def journal_lines(name, seconds):
    """Return the unit's own last lines in the journal, oldest first, without the stacks of Go.

    The list is empty where this user may not read them.
    """
    try:
        text = kubelet_end.read(name, seconds, READ_LINES)
    except CommandError:
        return []
    lines = stacks.removed(
        [line for line in text.split("\n")[::-1] if "]: " in line and " systemd[1]: " not in line],
        kubelet_end.message_of,
    )
    return [files.masked_ends(line, LONGEST) for line in lines[-KEPT:]]


def plugin_failures(unit, seconds):
    """Return what containerd logged of plugins that it did not load, the first PLUGIN_SECONDS.

    The result is None where this user may not read it, or the start is not known.
    """
    begin = procfs.started_at(unit.get("main_pid") or 0)
    if not begin:
        return None
    window = [f"--since=@{int(begin) - 1}", f"--until=@{int(begin) + PLUGIN_SECONDS}"]
    journal = ["journalctl", "--no-pager", "--all", "-q", "-o", "short-iso", "-u", unit["name"]]
    try:
        text = command.run([*journal, *window], seconds, READ_BYTES)
    except CommandError:
        return None
    lines = [line for line in text.split("\n") if UNLOADED in line and "skip plugin" not in line]
    return [files.masked_ends(line, LONGEST_PLUGIN) for line in lines[-KEPT:]]


def metadata(root=CONTAINERD_ROOT):
    """Return {path, size, valid} of containerd's database, None where it cannot be read.

    An empty file is valid: containerd creates a new database in it.
    """
    path = os.path.join(root, METADATA)
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            valid = not size or any(
                _magic(file, start + AT)
                for start in [0] + [1024 << power for power in range(PAGES + 1)]
                if start < size
            )
    except OSError:
        return None
    return {"path": path, "size": size, "valid": valid}


def _magic(file, place):
    """Return whether a page with a header begins there.

    It reads four bytes, because the database may have gigabytes.
    """
    file.seek(place)
    return file.read(len(MAGIC)) == MAGIC


def brings(target, name, folders=LOADED):
    """Return whether a link or a drop-in of this target starts the unit at a boot.

    Vendors of images use these (Flatcar, COS, systemd's system extensions).
    """
    bases = [os.path.join(folder, target) for folder in folders]
    return any(_links_to(base, name) or _dropins_name(base + ".d", name) for base in bases)


def _links_to(base, name):
    """Return whether a folder of links of a unit holds one to another unit."""
    return any(
        os.path.lexists(os.path.join(base + kind, name))
        for kind in (".wants", ".requires", ".upholds")
    )


def _dropins_name(folder, name):
    """Return whether a drop-in of this folder has a setting that starts the unit."""
    try:
        names = sorted(os.listdir(folder))[:MAX_DROPINS]
    except OSError:
        return False
    return any(
        _is_started_by(files.text(os.path.join(folder, dropin), MAX_CONFIG) or "", name)
        for dropin in names
        if dropin.endswith(".conf")
    )


def _is_started_by(text, name):
    for _dummy, line in systemd.joined(text):
        key, value = line.partition("=")[::2]
        if key.strip() in ("Wants", "Requires", "Upholds", "BindsTo") and name in value.split():
            return True
    return False


def runs(units, family="", kubelet=None):
    """Return whether a connection to the socket starts nothing, because every unit runs.

    Where no unit is there, the kubelet has to run in a unit: it is connected to the socket
    then.

    Where the last unit is absent (cri-dockerd, with docker there), the result is False: a
    socket unit of another name may hold the path.
    """
    there = [unit for unit in units if not unit["absent"]]
    if not there:
        return bool((kubelet or {}).get("process")) and bool(family)
    return not units[-1]["absent"] and all(
        unit["active_state"] in ("active", "reloading") for unit in there
    )


def state_of(path):
    """Return the state of a socket: present, missing, other (it is no socket) or denied."""
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            return "present"
        return "other"
    except OSError as error:
        if files.reason(error) == "missing":
            return "missing"
        return "denied"


def _ask(evidence, blocks, context):
    """Connect to the socket, and add the answers of the CRI and containerd's configuration.

    The question is the version of the CRI, in each version that the client speaks.
    """
    evidence["asked"] = True
    evidence["error"] = cri.connect(evidence["path"], CONNECT)
    if evidence["error"] is not None or evidence["kind"] == DOCKER:
        return
    for version in cri.VERSIONS:
        evidence["calls"][version] = cri.version(evidence["path"], version, CONNECT)
        if not isinstance(evidence["calls"][version], int):
            break  # what is silent, or no gRPC, is not asked again
    if evidence["kind"] == CONTAINERD and cri.UNIMPLEMENTED in evidence["calls"].values():
        evidence["plugin_failures"] = plugin_failures(evidence["units"][-1], context.seconds(3))
        evidence["config"] = plugins(config_of(blocks))
        named = procfs.flag(
            systemd.command_line(blocks.get("containerd.service") or {}), "root"
        ) or root_of(evidence["config"]["path"])
        evidence["metadata"] = metadata(named or CONTAINERD_ROOT)


def config_of(blocks):
    """Return where containerd's configuration lies."""
    argv = systemd.command_line(blocks.get("containerd.service") or {})
    return procfs.flag(argv, "config") or procfs.flag(argv, "c") or CONTAINERD_CONFIG


def emptied(path):
    """Return the path where it is a file of 0 bytes, else None.

    containerd accepts such a configuration and keeps its defaults.
    """
    try:
        state = os.stat(path)
    except OSError:
        return None
    if stat.S_ISREG(state.st_mode) and state.st_size == 0:
        return path
    return None


def plugins(path):
    """Return {path, disabled_plugins, line} of containerd's configuration.

    The rest of it is left out, because it may have passwords of registries.
    """
    text = files.text(path, MAX_CONFIG)
    record = {"path": path, "disabled_plugins": None if text is None else [], "line": None}
    rows = (text or "").split("\n")
    for index, row in enumerate(rows):
        if row.lstrip().startswith("["):
            break  # it is a key of the top
        key, equal, value = row.partition("=")
        if equal and key.strip() == "disabled_plugins":
            for more in rows[index + 1 :]:
                if "]" in _bare(value):
                    break
                value += "\n" + more
            record["line"] = index + 1
            record["disabled_plugins"] = _quoted(_bare(value).partition("]")[0])[:MAX_PLUGINS]
            break
    return record


def root_of(path):
    """Return the folder that containerd's configuration names as its root, or None."""
    for row in (files.text(path, MAX_CONFIG) or "").split("\n"):
        if row.lstrip().startswith("["):
            break
        key, equal, value = row.partition("=")
        if equal and key.strip() == "root":
            if value.strip()[:1] in ("'", '"'):
                root = value.strip()[1:].partition(value.strip()[:1])[0]
            else:
                root = ""
            if root.startswith("/"):
                return root
            return None
    return None


def _bare(value):
    """Return a value without comments; the names of plugins have neither quotes nor a #."""
    return "\n".join(row.partition("#")[0] for row in value.split("\n"))


def _quoted(value):
    words = []
    for part in value.replace("[", ",").replace("\n", ",").split(","):
        word = part.strip()
        if len(word) > 2 and word[0] in "\"'" and word[-1] == word[0]:
            words.append(files.one_line(word[1:-1], 80))
    return words
