# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Disk, kernel and initrd of a virtual machine: Debian with what a node of the lab has."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.lab.cluster import gobuild, images, paths, vm
from tests.lab.cluster.host import run
from tests.lab.cluster.store import artefact

# The network is configured from the kernel's command line, and no unit waits for more than that.
UNITS = "systemd-networkd.service systemd-network-generator.service ssh.service"


def suites() -> list[str]:
    return paths.pins()["VM_SUITES"].split()


def _root_tar(suite: str) -> Path:
    packages = paths.pins()["VM_PACKAGES"]

    def make(folder: Path) -> None:
        run(
            [
                "mmdebstrap",
                "--variant=minbase",
                f"--include={','.join(packages.split())}",
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                (
                    '--customize-hook=chroot "$1" systemctl mask getty@tty1.service'
                    " systemd-networkd-wait-online.service"
                ),
                f'--customize-hook=chroot "$1" systemctl enable {UNITS}',
                suite,
                folder / "root.tar",
            ],
            timeout=1800,
        )

    return artefact(f"vm-root-{suite}", [suite, packages, UNITS, "vm root 1"], make) / "root.tar"


def image(k8s: str, suite: str) -> Path:
    """Return the folder with disk.raw, vmlinuz and initrd.img of that release on that Debian."""
    if suite not in suites():
        raise SystemExit(f"lab: {suite!r} is none of {' '.join(suites())}")
    vm.ensure_host()
    root, binaries, tars = _root_tar(suite), gobuild.kubernetes(k8s), images.archives(k8s)
    runtime = gobuild.containerd() if images.own_containerd(k8s) else None
    layout = sorted(path for path in (paths.FILES / "node").rglob("*") if path.is_file())
    own = [str(path.relative_to(paths.FILES)) for path in layout]
    inputs = [root.parent.name, binaries.name, tars.name, runtime and runtime.name, *layout, *own]

    def make(folder: Path) -> None:
        tree = folder / "root"
        try:
            _fill(tree, root, binaries, tars, runtime)
            _take_kernel(tree, folder)
            run(["truncate", "-s", vm.DISK, folder / "disk.raw"])
            run(
                [
                    "mke2fs",
                    "-q",
                    "-t",
                    "ext4",
                    "-L",
                    "root",
                    "-E",
                    "lazy_itable_init=1,lazy_journal_init=1",
                    "-d",
                    tree,
                    folder / "disk.raw",
                ],
                timeout=900,
            )
        finally:
            shutil.rmtree(tree, ignore_errors=True)

    return artefact(f"vm-{suite}-{k8s}", [*inputs, vm.key().parent.name, vm.DISK, "vm 1"], make)


def _fill(tree: Path, root: Path, binaries: Path, tars: Path, runtime: Path | None) -> None:
    tree.mkdir()
    run(["tar", "-x", "-p", "--numeric-owner", "-C", tree, "-f", root], timeout=600)
    shutil.copytree(paths.FILES / "node", tree, dirs_exist_ok=True)
    programs = [binaries / name for name in ("kubelet", "kubeadm", "kubectl")]
    programs += [gobuild.etcd() / "etcdctl", *(sorted(runtime.iterdir()) if runtime else ())]
    for program in programs:
        shutil.copy(program, tree / "usr" / "bin" / program.name)
    store = tree / "opt" / "kubemend-lab"
    store.mkdir(parents=True)
    for tar in ("control.tar", "pause.tar"):
        shutil.copy(tars / tar, store / tar)
    ssh = tree / "root" / ".ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    # not authorized_keys: that one is the cluster's
    shutil.copy(f"{vm.key()}.pub", ssh / "authorized_keys2")
    (tree / "etc" / "fstab").write_text("/dev/vda / ext4 defaults 0 1\n")
    (tree / "etc" / "machine-id").write_text("")


def _take_kernel(tree: Path, folder: Path) -> None:
    for pattern, name in (("vmlinuz-*", "vmlinuz"), ("initrd.img-*", "initrd.img")):
        found = sorted((tree / "boot").glob(pattern))
        if not found:
            raise RuntimeError(f"the image has no /boot/{pattern}")
        shutil.copy(found[-1], folder / name)
