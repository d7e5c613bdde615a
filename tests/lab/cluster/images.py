# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Container images without a registry.

They are those that kubeadm asks for, and those that the nodes themselves run.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

from tests.lab.cluster import gobuild, paths
from tests.lab.cluster.host import note, run
from tests.lab.cluster.store import artefact, digest

# What a test's workload runs: the pause image sleeps, and has nothing else.
BUSYBOX = Path("/bin/busybox")


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def _scratch_layer(path: Path, files: dict) -> str:
    """Add a layer with nothing but `files` (name in the image -> file here); return its digest."""
    with tarfile.open(path, "w") as layer:
        for folder in sorted({part for name in files for part in _parents(name)}):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            layer.addfile(info)
        for name, source in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = source.stat().st_size, 0o755
            with source.open("rb") as handle:
                layer.addfile(info, handle)
    total = hashlib.sha256()
    with path.open("rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            total.update(block)
    return total.hexdigest()


def _parents(name: str) -> list:
    return [str(parent) for parent in Path(name).parents if str(parent) not in (".", "/")]


def write_archive(path: Path, images: dict) -> None:
    """Write a `docker save` archive that `ctr images import` reads.

    Reference -> (files, entrypoint).
    """
    manifest = []
    with tarfile.open(path, "w") as archive:
        for reference, (files, entrypoint) in images.items():
            layer = path.with_suffix(".layer")
            layer_digest = _scratch_layer(layer, files)
            config = json.dumps(
                {
                    "architecture": "amd64",
                    "os": "linux",
                    "created": gobuild.BUILD_DATE,
                    "config": {
                        "Entrypoint": entrypoint,
                        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                    },
                    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
                    "history": [{"created": gobuild.BUILD_DATE}],
                }
            ).encode()
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(archive, config_name, config)
            archive.add(layer, f"{layer_digest}/layer.tar")
            layer.unlink()
            manifest.append(
                {
                    "Config": config_name,
                    "RepoTags": [reference],
                    "Layers": [f"{layer_digest}/layer.tar"],
                }
            )
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def kubernetes_images(k8s: str) -> list:
    """Return the references that this kubeadm requests; their registry is its own business."""
    said = run(
        [
            gobuild.kubernetes(k8s) / "kubeadm",
            "config",
            "images",
            "list",
            "--kubernetes-version",
            k8s,
        ]
    )
    return said.stdout.decode().split()


def _pick(references: list, name: str) -> str:
    return next(ref for ref in references if ref.rsplit("/", 1)[1].split(":")[0] == name)


def pause_image(k8s: str) -> str:
    """Sandbox and workload in one: busybox whose entry point sleeps."""
    return _pick(kubernetes_images(k8s), "pause")


def archives(k8s: str) -> Path:
    """Folder with control.tar (what a master runs) and pause.tar (what every node runs)."""
    binaries, etcd = gobuild.kubernetes(k8s), gobuild.etcd()
    references = kubernetes_images(k8s)

    def make(folder: Path) -> None:
        control = {
            _pick(references, name): (
                {f"usr/local/bin/{name}": binaries / name},
                [f"/usr/local/bin/{name}"],
            )
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        }
        control[_pick(references, "etcd")] = (
            {f"usr/local/bin/{name}": etcd / name for name in ("etcd", "etcdctl")},
            ["/usr/local/bin/etcd"],
        )
        write_archive(folder / "control.tar", control)
        applets = {f"bin/{name}": BUSYBOX for name in ("busybox", "sleep", "sh", "cat")}
        write_archive(
            folder / "pause.tar",
            {_pick(references, "pause"): (applets, ["/bin/sleep", "1000000000"])},
        )

    return artefact(
        f"images-{k8s}", [binaries.name, etcd.name, BUSYBOX, *references, "docker-archive 2"], make
    )


def root_tar(name: str, suite: str, packages: str) -> Path:
    """Return the file system of a systemd node of one Debian suite."""

    def make(folder: Path) -> None:
        # No apt lists and no documentation: they are a third of such an image.
        run(
            [
                "mmdebstrap",
                "--variant=minbase",
                f"--include={','.join(packages.split())}",
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                # A node has no terminal; a login prompt that fails makes its systemd "degraded".
                (
                    '--customize-hook=chroot "$1" systemctl mask getty@tty1.service'
                    " console-getty.service"
                ),
                suite,
                folder / "root.tar",
            ],
            timeout=1200,
        )

    return artefact(name, [suite, packages, "mmdebstrap minbase 2"], make) / "root.tar"


def _image_exists(image: str) -> bool:
    return run(["podman", "image", "exists", image], check=False, timeout=60).returncode == 0


def _import(tar: Path, image: str) -> None:
    if not _image_exists(image):
        note(f"importing {image}")
        run(
            ["podman", "import", "--quiet", "--change", 'CMD=["/sbin/init"]', tar, image],
            timeout=600,
        )


def build_plain_image(suite: str) -> str:
    """Build a Debian node with systemd, Python and sshd, no Kubernetes; return its image."""
    pins = paths.pins()
    if suite not in pins["PLAIN_SUITES"].split():
        raise SystemExit(f"lab: {suite!r} is none of {pins['PLAIN_SUITES']}")
    tar = root_tar(f"plain-{suite}", suite, pins["PLAIN_PACKAGES"])
    image = f"localhost/kubemend-lab/plain-{suite}:{tar.parent.name.rsplit('-', 1)[1]}"
    _import(tar, image)
    return image


def base_image() -> str:
    pins = paths.pins()
    tar = root_tar("base", pins["NODE_SUITE"], pins["NODE_PACKAGES"])
    image = f"localhost/kubemend-lab/base:{tar.parent.name.rsplit('-', 1)[1]}"
    _import(tar, image)
    return image


def own_containerd(k8s: str) -> bool:
    return paths.version_tuple(k8s)[:2] >= paths.version_tuple(paths.pins()["CONTAINERD_SINCE"])[:2]


def node_image(k8s: str) -> str:
    """Return the image of a node: Debian, the kubelet as its packages lay it out, a runtime."""
    base, binaries, tars = base_image(), gobuild.kubernetes(k8s), archives(k8s)
    runtime = gobuild.containerd() if own_containerd(k8s) else None
    layout = sorted(path for path in (paths.FILES / "node").rglob("*") if path.is_file())
    tag = digest(
        base,
        binaries.name,
        tars.name,
        runtime and runtime.name,
        *layout,
        *[str(path.relative_to(paths.FILES)) for path in layout],
        "node 1",
    )
    image = f"localhost/kubemend-lab/node-{k8s}:{tag}"
    if not _image_exists(image):
        _build_node_image(image, base, binaries, tars, runtime)
    return image


def _build_node_image(image, base, binaries, tars, runtime) -> None:
    note(f"assembling {image}")
    # two checkouts may build it at once
    context = paths.cache() / f".tmp-context-{image.rsplit(':', 1)[1]}-{os.getpid()}"
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(paths.FILES / "node", context / "root")
    target = context / "root" / "usr" / "bin"
    target.mkdir(parents=True, exist_ok=True)
    for name in ("kubelet", "kubeadm", "kubectl"):
        shutil.copy(binaries / name, target / name)
    shutil.copy(gobuild.etcd() / "etcdctl", target / "etcdctl")
    for binary in sorted(runtime.iterdir()) if runtime else ():
        shutil.copy(binary, target / binary.name)
    images = context / "root" / "opt" / "kubemend-lab"
    images.mkdir(parents=True)
    for tar in ("control.tar", "pause.tar"):
        shutil.copy(tars / tar, images / tar)
    (context / "Containerfile").write_text(f'FROM {base}\nCOPY root/ /\nCMD ["/sbin/init"]\n')
    try:
        run(
            [
                "podman",
                "--runtime",
                "runc",
                "build",
                "--pull=never",
                "--quiet",
                "-t",
                image,
                context,
            ],
            timeout=900,
        )
    finally:
        shutil.rmtree(context, ignore_errors=True)


def build_all(k8s: str) -> str:
    """Everything a cluster of that version is made of; returns the node image."""
    gobuild.device_plugin()
    return node_image(k8s)
