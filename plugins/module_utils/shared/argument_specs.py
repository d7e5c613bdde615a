# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of each module that has an action of the same name, for both of them.

The module adds the options that only its action sets.
"""

from . import collector_names, log_defaults
from .consent import DRAIN_BARE_PODS, DRAIN_LOCAL_STORAGE, FENCED, KEEP_CORDON
from .step_times import DRAIN_TIMEOUT

REPORT_FORMATS = ("terminal", "json", "html", "junit", "prometheus", "sarif", "github")

_NAMES = {"type": "list", "elements": "str", "default": []}
_FORMATS = {"type": "list", "elements": "str", "choices": list(REPORT_FORMATS), "default": []}
_FLAG_OFF, _FLAG_ON = {"type": "bool", "default": False}, {"type": "bool", "default": True}
_REQUIRED = {"type": "str", "required": True}
_REPORT_DIR = {"type": "path", "required": True}
_TEXT, _PATH, _DICT = {"type": "str"}, {"type": "path"}, {"type": "dict"}
_KUBECTL = {"kubeconfig": _PATH, "kubectl": _PATH}
_LOCK_SECONDS = {"type": "int", "default": 900}
_TIMEOUT = {"type": "int", "default": 30}

# What an action alone gives its module, where no program can travel. The name of such an option
# begins with _, and its description says so: ansible-test wants each option documented.
STEP_OF_ACTION = {
    "_run_id": _TEXT,
    "_step": _DICT,
    "_lock": _DICT,
    "_check": _FLAG_OFF,
    "_timeout": {"type": "int"},
    "_patience": {"type": "float"},
}
LOCK_OF_ACTION = {"_controller": _DICT, "_seconds": {"type": "int"}, "_check": _FLAG_OFF}
LEVEL_OF_ACTION = {
    "_targets": {"type": "list", "elements": "dict", "default": []},
    "_program": _TEXT,
    "_lock": _DICT,
    "_halt": _TEXT,
    "_cluster_uid": _TEXT,
}
REVERT_OF_ACTION = {"_host": _TEXT, "_lock": _DICT}
DUMP_OF_ACTION = {"_process": _DICT}


def unhidden(params):
    """Return the options of a module under the names that its function knows."""
    return {name[1:] if name.startswith("_") else name: params[name] for name in params}


def hidden(params, spec):
    """Return what an action hands on, under the names of its module's options."""
    return {"_" + name if "_" + name in spec else name: params[name] for name in params}


# What the module of a document takes besides: the transport of its action has both always.
DOCUMENT = {"evidence_dir": _PATH, "timeout": _TIMEOUT}

APPLY_STEP = dict(
    _KUBECTL,
    id=_REQUIRED,
    report_dir=_REPORT_DIR,
    ttl=_LOCK_SECONDS,
    locked=_FLAG_ON,
    terminal=_FLAG_ON,
)
CLUSTER_EVIDENCE_INFO = {
    "collectors": {"type": "list", "elements": "str", "choices": list(collector_names.CLUSTER)},
    "deep": _FLAG_OFF,
    "expect_pinning": _TEXT,
    "pod": _TEXT,
    "kubeconfig": _TEXT,
    "kubectl": _TEXT,
    "request_timeout": {"type": "int", "default": 15},
    "skip_clusters": _NAMES,
    "settle": _PATH,
    "patient": _FLAG_OFF,
    "terminal": _FLAG_ON,
}
CLUSTER_LOCK = {
    "state": {
        "type": "str",
        "choices": ["acquired", "renewed", "released", "decided"],
        "default": "acquired",
    },
    "report_dir": _REPORT_DIR,
    "run_id": _TEXT,
    "ttl": _LOCK_SECONDS,
    "step": _TEXT,
    "take": _TEXT,
    "cluster": _TEXT,
    "members": {"type": "list", "elements": "str"},
    "unable": _NAMES,
    "timeout": {"type": "int", "default": 40},
}
LOG_LEVEL = dict(
    _KUBECTL,
    state={
        "type": "str",
        "choices": ["planned", "probed", "shown", "raised", "restored", "reported"],
        "required": True,
    },
    report_dir=_REPORT_DIR,
    run_id=_REQUIRED,
    components={
        "type": "list",
        "elements": "str",
        "default": ["kubelet", "kube-scheduler", "kube-controller-manager"],
    },
    level={"type": "int", "default": 4},
    seconds={"type": "int", "default": 60},
    pod=_TEXT,
    allow=_NAMES,
    notices=_NAMES,
    ttl=_LOCK_SECONDS,
    timeout=_TIMEOUT,
    terminal=_FLAG_ON,
    formats=_FORMATS,
    hosts={"type": "dict", "default": {}},
    api_hosts=_NAMES,
)
NODE_DRAIN = dict(
    _KUBECTL,
    name=_REQUIRED,
    state={"type": "str", "choices": ["drained", "uncordoned"], "default": "drained"},
    drain_timeout={"type": "int", "default": DRAIN_TIMEOUT},
    max_unavailable={"type": "int", "default": 1},
    allow={
        "type": "list",
        "elements": "str",
        "choices": [DRAIN_BARE_PODS, DRAIN_LOCAL_STORAGE, FENCED, KEEP_CORDON],
        "default": [],
    },
    reason={"type": "str", "default": "node_drain"},
)
NODE_EVIDENCE_INFO = dict(
    _KUBECTL,
    collectors={"type": "list", "elements": "str"},
    deep=_FLAG_OFF,
    groups=_NAMES,
    terminal=_FLAG_ON,
)
POD_LOGS_INFO = {
    "components": {
        "type": "list",
        "elements": "str",
        "choices": list(log_defaults.COMPONENTS),
        "default": list(log_defaults.COMPONENTS),
    },
    "seconds_back": {"type": "float", "default": log_defaults.SECONDS_BACK},
    "needles": _NAMES,
    "match": _TEXT,
    "max_bytes": {"type": "int", "default": log_defaults.MAX_BYTES},
    "max_line": {"type": "int", "default": log_defaults.MAX_LINE_BYTES},
}
REVERT_RUN = {
    "state": {
        "type": "str",
        "choices": ["listed", "chosen", "reverted", "reported"],
        "default": "listed",
    },
    "report_dir": _REPORT_DIR,
    "run_id": _REQUIRED,
    "reverts": _TEXT,
    "hosts": _NAMES,
    "asked": _NAMES,
    "ttl": _LOCK_SECONDS,
    "locked": _FLAG_ON,
    "allow": _NAMES,
    "kubeconfig": _PATH,
    "timeout": _TIMEOUT,
    "terminal": _FLAG_ON,
    "formats": _FORMATS,
}
CONTAINERD_TRIAL = {"evidence_dir": _REPORT_DIR, "timeout": _TIMEOUT}
SCHEDULER_DUMP = dict(
    _KUBECTL,
    state={
        "type": "str",
        "choices": ["planned", "ready", "dumped", "noted", "compared"],
        "required": True,
    },
    report_dir=_REPORT_DIR,
    run_id=_REQUIRED,
    consent={"type": "str", "choices": ["observe", "check", "go"], "default": "observe"},
    level={"type": "int", "default": 4},
    seconds={"type": "int", "default": 60},
    reason=_TEXT,
    timeout=_TIMEOUT,
)
