# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of each component, from the calls by which Go sources register them.

More names than real flags do no harm: the removal of such a flag is not seen, and nothing is
claimed of it. So a component's own packages count with every text that may be a flag, and a shared
package with the flags that it registers for other components too. A real flag that is missed would
be claimed to be gone: `python3 -m tests.next_release compare` shows that none is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.messages.go_source import Source, Token, closing, read

SHARED = (
    "component-base/cli",
    "component-base/config/options",
    "component-base/featuregate",
    "component-base/logs",
    "component-base/metrics",
    "component-base/version",
    "component-base/zpages",
    "component-base/compatibility",
)
SERVING = (
    "apiserver/pkg/server/options/authentication",
    "apiserver/pkg/server/options/authorization",
    "apiserver/pkg/server/options/serving",
    "apiserver/pkg/util/feature",
    "apiserver/pkg/util/flag",
    "kubernetes/pkg/client/leaderelectionconfig",
    "kubernetes/pkg/util/flag",
)
PACKAGES = {
    "kubelet": (
        "kubernetes/cmd/kubelet",
        "kubernetes/pkg/kubelet/config",
        "kubernetes/pkg/credentialprovider",
        *SHARED,
    ),
    "kube-apiserver": (
        "kubernetes/cmd/kube-apiserver",
        "kubernetes/pkg/kubeapiserver",
        "kubernetes/pkg/controlplane/apiserver/options",
        "kubernetes/pkg/serviceaccount",
        "kubernetes/plugin/pkg/admission/defaulttolerationseconds",
        "kubernetes/pkg/master",
        "kubernetes/pkg/cloudprovider",
        "apiserver/pkg/server",
        "apiserver/pkg/util/feature",
        "apiserver/pkg/util/flag",
        *SHARED,
    ),
    "kube-controller-manager": (
        "kubernetes/cmd/kube-controller-manager",
        "kubernetes/cmd/controller-manager",
        "controller-manager",
        "cloud-provider/options",
        *SERVING,
        *SHARED,
    ),
    "kube-scheduler": ("kubernetes/cmd/kube-scheduler", *SERVING, *SHARED),
}
KLOG = (
    "add-dir-header",
    "alsologtostderr",
    "log-backtrace-at",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "logtostderr",
    "one-output",
    "skip-headers",
    "skip-log-headers",
    "stderrthreshold",
)
# of klog that every release has; and what cobra and verflag add
ALWAYS = ("v", "vmodule", "help", "version")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")
# Its flags are those of a component that has its options.
INSECURE, INSECURE_OPTIONS = (
    "apiserver/pkg/server/options/deprecated_insecure_serving",
    "DeprecatedInsecureServingOptions",
)
_INSECURE_FILE = re.compile(r"/pkg/server/options/deprecated_insecure_serving\w*\.go$")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REGISTERS = re.compile(
    r"(?:\w*Var|\w*VarP|Bool|String|Int|Int32|Int64|Duration|Float64|StringSlice|StringArray"
    r"|[rR]egister\w*)\Z"
)
# kube-log-runner is a program of its own, and the egress selector registers no flag.
_LEFT_OUT = re.compile(
    r"_test\.go$|_windows\.go$|zz_generated|/testing/|/testdata/|/test/"
    r"|/kube-log-runner/|/server/egressselector/"
)


def of_component(component: str, folders: dict[str, Path]) -> frozenset[str]:
    """Return the names of all flags that a component registers in one release."""
    own = [name for name in PACKAGES[component] if name.startswith("kubernetes/")]
    shared = [name for name in PACKAGES[component] if name not in own]
    sources = [source for package in own for source in _sources(package, folders)]
    names = {name for source in sources for name in _literals(source)}
    insecure = any(_has_insecure_port(source) for source in sources)
    sources += [
        source
        for package in [*shared, INSECURE]
        for source in _sources(package, folders)
        if insecure or not _INSECURE_FILE.search(source.path)
    ]
    constants = {name: text for source in sources for name, text in source.constants.items()}
    names.update(name for source in sources for name in _registered(source, constants))
    if _has_klog(folders["component-base"]):
        names.update(KLOG)
    return frozenset(names.union(ALWAYS) - {""})


def _literals(source: Source) -> Iterator[str]:
    if "/cmd/" in source.path:
        texts = (token.value for token in source.tokens if token.kind == "text")
        names = (text.replace("_", "-") for text in texts if _NAME.match(text))
        yield from (name for name in names if "-" in name or name in ("address", "port"))


def _has_insecure_port(source: Source) -> bool:
    return any(token.value.startswith(INSECURE_OPTIONS) for token in source.tokens)


def _sources(package: str, folders: dict[str, Path]) -> Iterator[Source]:
    module, _slash, rest = package.partition("/")
    if module not in folders:
        return
    place = folders[module] / rest
    beside = place.parent.glob(f"{place.name}*.go")
    for path in sorted([*place.rglob("*.go"), *beside]):
        if not _LEFT_OUT.search(str(path)):
            yield read(str(path), path.read_text(encoding="utf-8"))


def _has_klog(component_base: Path) -> bool:
    """Tell whether a release registers all flags of klog: up to 1.25."""
    return not (component_base / "logs" / "klogflags").is_dir()


def _registered(source: Source, constants: dict[str, str]) -> Iterator[str]:
    for index, token in enumerate(source.tokens[:-1]):
        if token.kind == "name" and source.tokens[index + 1].value == "(":
            if _REGISTERS.match(token.value):
                name = _first_name(source.tokens, index + 1, constants)
                yield name.replace("_", "-")
            elif token.value == "Sprintf":
                yield from _of_backends(source.tokens[index + 2].value)


def _of_backends(form: str) -> Iterator[str]:
    """Yield the names of a flag that each backend of the audit log has: audit-%s-mode."""
    if form.startswith("audit-%s-"):
        for backend in ("log", "webhook"):
            yield form.replace("%s", backend)


def _first_name(tokens: list[Token], begin: int, constants: dict[str, str]) -> str:
    """Return the first argument of a call that is the name of a flag, itself or as a constant."""
    end, depth, named = closing(tokens, begin), 0, ""
    for index in range(begin, end):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.value in "([{") - (token.value in ")]}")
        if depth != 1 or tokens[index + 1].value not in {",", ")"}:
            continue
        if token.kind == "text" and _NAME.match(token.value):
            return token.value
        if token.kind == "name" and _is_whole(tokens, index):
            named = named or constants.get(token.value, _of_constant(tokens, index))
    return named if _NAME.match(named) else ""


def _of_constant(tokens: list[Token], index: int) -> str:
    """Return the flag for which another module has a constant: flags.MachineID is machine-id."""
    if tokens[index - 1].value != ".":
        return ""
    return _CAPITAL.sub("-", tokens[index].value).lower()


def _is_whole(tokens: list[Token], index: int) -> bool:
    """Tell whether an argument is this name alone, or this name of another package."""
    before = [token.value for token in tokens[max(index - 3, 0) : index]]
    return before[-1] in {",", "("} or (before[-1] == "." and before[0] in {",", "("})
