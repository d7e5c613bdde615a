# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector cri: what the container runtime itself has as its configuration, network and sandboxes.

The calls are those of the kubelet, and change nothing. Of the configuration only a few values leave
the node: registries may have passwords there.
"""

from ...system import cri, files, json_line, protobuf, toml_lines
from ..base import Absent, Failed
from . import runtime

SECONDS = 2.0
MAX_TEXT, MAX_LINES, MAX_FILES, MAX_CONFIG, MAX_SANDBOXES = 400, 20, 20, 256 * 1024, 2000
SYSTEMD, CGROUPFS = 0, 1
DRIVERS = {SYSTEMD: "systemd", CGROUPFS: "cgroupfs"}
VERBOSE = b"\x08\x01"
RUNC = "io.containerd.runc.v2"
RUNC_TYPES = ("io.containerd.runc.", "io.containerd.runtime.v1.linux")
CRIO_NETWORK, CRIO_RUNTIME = ("crio", "network"), ("crio", "runtime")
CRIO_IMAGE, PAUSE_IMAGE = ("crio", "image"), "pause_image"
INFRA_IMAGE = "pod-infra-container-image"  # an argument of cri-dockerd
PIDS_LIMIT = "pids_limit"
# The keys of containerd's configuration whose lines are shown.
KEYS = (
    "SystemdCgroup",
    "systemd_cgroup",
    "sandbox_image",
    "sandbox",
    "config_path",
    "bin_dir",
    "runtime_type",
)
# A mirror of version 2 of the file; a few show that there are some.
MIRRORS, ENDPOINT, MAX_MIRRORS = ("registry", "mirrors"), "endpoint", 3


def collect(context):
    """Return what the runtime answers to Version, Status, RuntimeConfig and ListPodSandbox.

    It is {name, version, driver, conditions, config, cni_error, sandboxes, files}.

    driver: systemd or cgroupfs, where the runtime answers RuntimeConfig (containerd 2.0, CRI-O
    1.28); config: containerd's effective one; cni_error: why it loaded no CNI configuration the
    last time, empty where it did; files: [{path, version, error, lines}] of its configuration.
    """
    answered = context.data.get("runtime")
    if not answered:
        raise Absent("no container runtime")
    api = _version_of(answered)
    if api is None:
        raise Absent("the container runtime answered no call of the CRI")
    asker = _Asker(answered["path"], api, context)
    context.source = answered["path"]
    named = protobuf.fields(asker.reply("RuntimeService/Version"))
    status = protobuf.fields(asker.reply("RuntimeService/Status", VERBOSE))
    info = protobuf.pairs(status, 2)
    config = effective(info.get("config"))
    if answered.get("kind") == runtime.CRIO:
        config = of_crio()
    elif answered.get("kind") == runtime.CRI_DOCKER:
        config = of_cri_docker(answered)
    if config is not None and config["sandbox_image"]:
        config["sandbox_image_present"] = asker.has_image(config["sandbox_image"])
    return {
        "name": files.one_line(protobuf.text(named, 2), 80),
        "version": files.one_line(protobuf.text(named, 3), 80),
        "driver": asker.driver(),
        "conditions": conditions(status),
        "config": config,
        "cni_error": cni_error(info),
        "sandboxes": asker.sandboxes(),
        "files": configuration_files() if answered.get("kind") == runtime.CONTAINERD else [],
    }


def of_embedded(path, context):
    """Return {config, sandboxes} of a runtime that is part of another program.

    The result is None where it does not answer. It is asked for nothing else: that program
    configures it.
    """
    for api in cri.VERSIONS:
        asker = _Asker(path, api, context)
        status, data = asker.ask("RuntimeService/Status", VERBOSE)
        if status == cri.OK:
            info = protobuf.pairs(protobuf.fields(data), 2)
            return {"config": effective(info.get("config")), "sandboxes": asker.sandboxes()}
    return None


def _version_of(answered):
    """Return the version of the CRI that the runtime speaks, or None."""
    calls = answered.get("calls") or {}
    return next((name for name in cri.VERSIONS if calls.get(name) == cri.OK), None)


class _Asker:
    """Asks one runtime, each question on a connection of its own."""

    def __init__(self, path, api, context):
        self.path, self.api, self.context = path, api, context

    def ask(self, method, message=b""):
        """Return (status, reply) of a call."""
        seconds = self.context.seconds(SECONDS)
        return cri.call(self.path, f"runtime.{self.api}.{method}", message, seconds)

    def reply(self, method, message=b""):
        """Return the reply to a call that each runtime answers."""
        status, data = self.ask(method, message)
        if status != cri.OK:
            raise Failed(f"{method}: {status}")
        return data

    def driver(self):
        """Return the cgroup driver that the runtime tells its kubelet, None where it tells none."""
        status, data = self.ask("RuntimeService/RuntimeConfig")
        if status != cri.OK:
            return None
        linux = protobuf.values(protobuf.fields(data), 1)
        if not linux:
            return None
        return DRIVERS.get(protobuf.integer(protobuf.fields(linux[-1]), 1))

    def has_image(self, name):
        """Return whether the runtime has an image, None where it does not tell."""
        image = protobuf.message(1, protobuf.string(1, name))
        status, data = self.ask("ImageService/ImageStatus", image)
        if status != cri.OK:
            return None
        return bool(protobuf.values(protobuf.fields(data), 1))

    def sandboxes(self):
        """Return the ids of all sandboxes, None where they are not told or too many."""
        status, data = self.ask("RuntimeService/ListPodSandbox")
        if status != cri.OK:
            return None
        rows = protobuf.values(protobuf.fields(data), 1)
        if len(rows) > MAX_SANDBOXES:
            return None
        return [files.one_line(protobuf.text(protobuf.fields(row), 1), 128) for row in rows]


def conditions(status):
    """Return [{type, status, reason, message}] of a runtime's status."""
    rows = []
    for outer in protobuf.values(status, 1):
        for row in protobuf.values(protobuf.fields(outer), 1):
            condition = protobuf.fields(row)
            rows.append(
                {
                    "type": files.one_line(protobuf.text(condition, 1), 80),
                    "status": bool(protobuf.integer(condition, 2)),
                    "reason": files.one_line(protobuf.text(condition, 3), 80),
                    "message": files.masked_text(
                        files.one_line(protobuf.text(condition, 4), 2 * MAX_TEXT), MAX_TEXT
                    ),
                }
            )
    return rows[:MAX_LINES]


def cni_error(info):
    """Return why containerd loaded no CNI configuration the last time; None where it is unknown."""
    text = info.get("lastCNILoadStatus")
    if text is None:
        return None
    return "" if text == "OK" else files.masked_text(files.one_line(text, MAX_TEXT), MAX_TEXT)


def effective(text):
    """Return a few values of containerd's effective configuration; None of another runtime.

    systemd_cgroup is that of the default runtime: what is not set is false. Only the options of
    runc have it; gVisor, Kata and others make their cgroups themselves, so that it is None.
    """
    config = _object(text)
    containerd, cni = _part(config, "containerd"), _part(config, "cni")
    if not containerd:
        return None
    name = containerd.get("defaultRuntimeName")
    default = _part(_part(containerd, "runtimes"), name)
    return dict(
        _unknown(),
        default_runtime=_word(name),
        systemd_cgroup=_systemd(config, default),
        sandbox_image=_word(config.get("sandboxImage")),
        snapshotter=_word(containerd.get("snapshotter")),
        conf_dir=_word(cni.get("confDir")),
        bin_dirs=_words(cni.get("binDirs")) or _words([cni.get("binDir")]),
        max_conf_num=cni.get("maxConfNum") if isinstance(cni.get("maxConfNum"), int) else None,
    )


def of_crio(folder="/etc/crio"):
    """Return the same of CRI-O: what its files say of networks and limits; crio.conf.d is last."""
    values, limit, limited_by, image, image_by = {}, None, "", "", ""
    for path in [folder + "/crio.conf", *_matches(folder + "/crio.conf.d/*")]:
        text = files.text(path, MAX_CONFIG) or ""
        for line, table, key, value in toml_lines.rows(text):
            if table == CRIO_NETWORK:
                values[key] = _words(toml_lines.texts(value))
            elif table == CRIO_RUNTIME and key == PIDS_LIMIT:
                limit, limited_by = _number(value), f"{path}:{line}"
            elif table == CRIO_IMAGE and key == PAUSE_IMAGE:
                image, image_by = "".join(_words(toml_lines.texts(value))[:1]), f"{path}:{line}"
    return dict(
        _unknown(),
        sandbox_image=image,
        sandbox_image_by=image_by,
        conf_dir="".join(values.get("network_dir", [])[:1]),
        bin_dirs=values.get("plugin_dirs", []),
        default_network="".join(values.get("cni_default_network", [])[:1]),
        pids_limit=limit,
        pids_limit_path=limited_by,
    )


def of_cri_docker(answered):
    """Return the same of cri-dockerd: its arguments name the image of sandboxes."""
    image = _word((answered.get("flags") or {}).get(INFRA_IMAGE))
    units = [unit["name"] for unit in answered.get("units") or () if not unit.get("absent")]
    by = ""
    if image and units:
        by = f"--{INFRA_IMAGE} of {units[-1]}"
    return dict(_unknown(), sandbox_image=image, sandbox_image_by=by)


def _unknown():
    """Return the values of a configuration that does not tell them."""
    return {
        "default_runtime": "",
        "systemd_cgroup": None,
        "sandbox_image": "",
        "sandbox_image_present": None,
        "sandbox_image_by": "",
        "snapshotter": "",
        "conf_dir": "",
        "bin_dirs": [],
        "max_conf_num": None,
        "default_network": "",
        PIDS_LIMIT: None,
        "pids_limit_path": "",
    }


def _number(text):
    """Return an integer of TOML, None for what is none."""
    digits = text.replace("_", "").lstrip("+")
    is_number = digits.lstrip("-").isdigit() and len(digits) < 12
    return int(digits) if is_number else None


def _systemd(config, default):
    if not str(default.get("runtimeType") or RUNC).startswith(RUNC_TYPES):
        return None
    options = _part(default, "options")
    return bool(options.get("SystemdCgroup") or config.get("systemdCgroup"))


def _object(text):
    try:
        value = json_line.loads(text or "")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def _part(values, name):
    value = values.get(name)
    return value if isinstance(value, dict) else {}


def _word(value):
    return files.one_line(value, 253) if isinstance(value, str) else ""


def _words(values):
    return [_word(value) for value in values or () if isinstance(value, str) and value][:MAX_LINES]


def configuration_files(path=None):
    """Return [{path, version, error, lines}] of containerd's configuration and its imports.

    lines: [{line, table, key, value}] of the keys that decide how pods are made.
    """
    record, patterns = _file(path or runtime.CONTAINERD_CONFIG)
    records, folder = [record], record["path"].rpartition("/")[0]
    for pattern in patterns:
        names = _matches(pattern if pattern.startswith("/") else folder + "/" + pattern)
        records += [_file(name)[0] for name in names[:MAX_FILES]]
    return records[:MAX_FILES]


def _matches(pattern):
    import glob  # it brings re

    return sorted(glob.glob(pattern))


def _file(path):
    """Return (the record of one file, its imports)."""
    record = {"path": files.one_line(path, 253), "version": None, "error": None, "lines": []}
    try:
        text = files.read(path, MAX_CONFIG).decode("utf-8", "replace")
    except OSError as error:
        record["error"] = files.reason(error)
        return record, []
    imports = []
    for line, table, key, value in toml_lines.rows(text):
        if not table and key == "version" and value.isdigit():
            record["version"] = int(value)
        elif not table and key == "imports":
            imports = toml_lines.texts(value)[:MAX_FILES]
        elif _is_shown(record["lines"], table, key):
            record["lines"].append(
                {
                    "line": line,
                    "table": files.one_line(".".join(table), 253),
                    "key": key,
                    "value": files.masked_text(files.one_line(value, 253), 253),
                }
            )
    return record, imports


def _is_shown(shown, table, key):
    """Return whether a line is shown after those that are."""
    if key == ENDPOINT and table[-3:-1] == MIRRORS:
        return sum(line["key"] == ENDPOINT for line in shown) < MAX_MIRRORS
    return key in KEYS and len(shown) < MAX_LINES
