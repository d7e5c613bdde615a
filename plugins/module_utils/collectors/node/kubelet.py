# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector kubelet: its process, its unit and its configuration."""

import os

from ...shared.kubelet_health import SWITCHED_OFF
from ...shared.systemd_output import words
from ...system import files, procfs, rancher, systemd, unit_mask, yaml_scalars
from ...system.command import CommandError, Late

# The runner takes `question` from here, and other collectors take the rest.
from ...system.kubelet_process import (  # noqa: F401 # pylint: disable=unused-import
    MAX_DROPINS,
    OTHERS,
    dropin_paths,
    here,
    question,
)
from ..base import Absent, Failed

MAX_NETWORKS = 20
NETWORKS = "/etc/cni/net.d"
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"


def collect(context):
    """Return the kubelet as it runs, or as it would start.

    Failed, with the data of the process, is raised where systemd does not say in time what its unit
    is: without a unit it would be a kubelet that nothing starts.
    """
    process, block, trouble = here(context.processes, context.seconds(5))
    unit = _unit(block)
    if process is None and unit is None:
        if trouble:
            raise Failed(str(trouble))
        raise Absent("neither a process nor a unit of a kubelet")
    if process:
        argv, source = process.pop("raw"), "process"
        folder = procfs.link(process["pid"], "cwd") or "/"
        context.source = f"pid {process['pid']}"
    else:
        argv, source = systemd.command_line(block), "unit"
        folder = "/"
        context.source = unit["name"]
    distribution, inner = _distribution(unit, block, context)
    data = dict(
        _configuration(inner or argv, folder),
        process=process,
        unit=unit,
        argv=files.masked_argv(argv),
        argv_source=source,
        distribution=distribution,
    )
    # A step, which has no deadline, goes on with what is known.
    if isinstance(trouble, Late) and context.deadline is not None:
        raise Failed(str(trouble), data)
    return data


def _distribution(unit, block, context):
    """Return ({program, files, argv, templates} of k3s or RKE2, the kubelet's argv within k3s).

    The first is None where no unit of theirs runs the kubelet, the second empty where it is not
    known, or where the kubelet has a process of its own.
    """
    program = rancher.program(unit["name"]) if unit else None
    if program is None:
        return None, []
    records = rancher.configuration(program, systemd.command_line(block))
    argv = []
    if program == "k3s":
        argv = rancher.kubelet_argv(unit, context.seconds(2))
    distribution = {
        "program": program,
        "files": records,
        "argv": files.masked_argv(argv),
        "templates": rancher.templates(program, records),
    }
    return distribution, argv


def _unit(block):
    """Return systemd's properties of the kubelet's unit, and how it starts; None without one."""
    if not block:
        return None
    unit = systemd.unit(block)
    if unit is None:
        return None
    unit.update(_start(block), unit_file_state=_enabled(unit))
    paths = [unit["fragment_path"]] if unit["fragment_path"] else []
    unit["programs"] = systemd.programs([*paths, *unit["drop_in_paths"][:MAX_DROPINS]])
    if "masked" in (unit["load_state"], unit["unit_file_state"].partition("-")[0]):
        unit["mask"] = unit_mask.facts(unit["name"])
    return unit


def _enabled(unit):
    """Return the answer of is-enabled for a unit, or its UnitFileState where that fails."""
    try:
        return systemd.enabled(unit["name"])
    except CommandError:
        return unit["unit_file_state"]


def _start(block):
    """Return how the unit starts the kubelet: its ExecStart and the variables in it.

    start_words: the words of ExecStart, before systemd replaces variables; split_variables:
    [[name, value]] of the variables whose values become words of their own, the value None
    where it holds a secret; environment_files: the records of the files of EnvironmentFile=.
    """
    values = systemd.environment(block)
    variables = [(name, values.get(name, "")) for name in systemd.split_variables(block)]
    plain = [
        [name, value if files.masked_argv(words(value)) == words(value) else None]
        for name, value in variables
    ]
    return {
        "start_words": files.masked_argv(systemd.start_words(block)),
        "split_variables": plain,
        "environment_files": [
            _without_others(
                files.record(path), [*systemd.variables(block), *rancher.PLAIN_VARIABLES]
            )
            for path in systemd.environment_paths(block)[:MAX_DROPINS]
        ],
    }


def _without_others(record, used):
    """Return the record of an environment file, its values masked that the kubelet does not use.

    Such a value may be a secret.
    """
    if record["text"] is not None:
        data = record["text"].encode("utf-8")
        spans = [
            span for span in systemd.values_of_others(data, used) if span not in record["masked"]
        ]
        for start, end in spans:
            data = data[:start] + b"*" * (end - start) + data[end:]
        inside = [
            [mask_start, mask_end]
            for mask_start, mask_end in record["masked"]
            if not any(start <= mask_start and mask_end <= end for start, end in spans)
        ]
        record.update(text=data.decode("utf-8"), masked=sorted(inside + spans))
    return record


def _configuration(argv, folder):
    """Return every file and setting that the command line leads to."""

    def path_of(flag):
        value = procfs.flag(argv, flag)
        if value:
            return os.path.join(folder, value)
        return None

    config_path, dropin_folder = path_of("config"), path_of("config-dir")
    config, dropins = _records(config_path, dropin_folder)
    texts = [record["text"] or "" for record in [config, *dropins] if record]
    kubeconfig_path = path_of("kubeconfig")
    credentials, text = None, ""
    if kubeconfig_path:
        credentials = files.record(kubeconfig_path)
        text = credentials["text"] or ""  # certificates are not masked in it
    static, source = static_pods(procfs.flag(argv, "pod-manifest-path"), folder, config_path, texts)
    base = os.path.dirname(kubeconfig_path or "/")
    return {
        "config": config,
        "config_dropins": dropins,
        "kubeconfig": credentials,
        "client_certificate": _client_certificate(text, base, path_of("cert-dir")),
        "ca": _authority(text, base),
        "static_pod_path": static,
        "static_pod_path_source": source,
        "healthz": _healthz(argv, texts),
        "cni": networks(path_of("cni-conf-dir") or NETWORKS),
    }


def _records(config_path, dropin_folder):
    """Return the records of (the configuration file or None, its drop-ins)."""
    config, dropins = None, []
    if config_path:
        config = files.record(config_path)
    if dropin_folder:
        dropins = [files.record(path) for path in dropin_paths(dropin_folder)]
    return config, dropins


def static_pods(flag, folder, config_path, texts):
    """Return (path, source) of the folder of static pods: the flag's, else that of the last file.

    A path of a file is relative to the folder of the configuration file.
    """
    if flag:
        return os.path.normpath(os.path.join(folder, flag)), "argv"
    for text in reversed(texts):
        value = yaml_scalars.top(text, "staticPodPath")
        if value:
            return (
                os.path.normpath(os.path.join(os.path.dirname(config_path or "/"), value)),
                "config",
            )
    return None, None


def networks(folder):
    """Return {folder, files, error}: the name and size of the CNI configuration files.

    The kubelet reads this folder up to 1.23. Later the runtime does, and it may have another.
    """
    rows, error = [], None
    try:
        for name in sorted(os.listdir(folder)):
            if name.endswith((".conf", ".conflist", ".json")) and len(rows) < MAX_NETWORKS:
                rows.append(
                    {"name": files.one_line(name, 120), "size": _size(os.path.join(folder, name))}
                )
    except OSError as failure:
        error = files.reason(failure)
    return {"folder": folder, "files": rows, "error": error}


def _size(path):
    try:
        return os.stat(path).st_size
    except OSError:  # a link to nowhere
        return None


def _client_certificate(text, base, cert_dir):
    embedded = yaml_scalars.anywhere(text, "client-certificate-data")
    if embedded:
        pem = files.certificates(yaml_scalars.decoded(embedded) or "")
        return {"path": None, "pem": pem, "error": None if pem else "no certificate in it"}
    named = yaml_scalars.anywhere(text, "client-certificate")
    if named:
        return files.pem(os.path.join(base, named))
    if cert_dir:
        usual = os.path.join(cert_dir, "kubelet-client-current.pem")
    else:
        usual = CERTIFICATE
    if os.path.lexists(usual):
        return files.pem(usual)
    return None


def _authority(text, base):
    named = yaml_scalars.anywhere(text, "certificate-authority")
    if not named:
        return None
    record = files.pem(os.path.join(base, named))
    return {"path": record["path"], "pem": record["pem"], "error": record["error"]}


def _healthz(argv, texts):
    address, port = procfs.flag(argv, "healthz-bind-address"), procfs.flag(argv, "healthz-port")
    for text in reversed(texts):
        address = address or yaml_scalars.top(text, "healthzBindAddress")
        port = port or yaml_scalars.top(text, "healthzPort")
    address, port = address or "127.0.0.1", port or "10248"
    if port == "0" or not port.isdigit():
        return {"url": None, "status": None, "body": None, "error": SWITCHED_OFF}
    from ...system import http_client

    address = http_client.reachable(address)
    answer = http_client.get(address, int(port), "/healthz", 3)
    return dict({"url": f"http://{http_client.bracketed(address)}:{port}/healthz"}, **answer)
