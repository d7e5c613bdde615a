# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Disk, kernel and initrd of a virtual machine: Debian with what a node of the lab has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.lab.cluster import gobuild, images, paths, vm
from tests.lab.cluster.host import run
from tests.lab.cluster.store import artefact

# The kernel's command line configures the network, and no unit waits for more than that.
UNITS = "systemd-networkd.service systemd-network-generator.service ssh.service"
MASKED = "getty@tty1.service systemd-networkd-wait-online.service"
# systemd of Debian 13 takes cgroup v1 only with the second argument.
CGROUP_V1 = "systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
# What kubeadm's documentation asks for: a container has it from the machine.
FILES = {
    "fstab": "/dev/vda / ext4 errors=remount-ro 0 1\n",
    "machine-id": "",
    "hostname": "",
    # Pods inherit it; nothing here asks a name server.
    "resolv.conf": "nameserver 192.0.2.53\n",
    # The package switches zram on; only its test wants that.
    "systemd/zram-generator.conf": "",
    "modules-load.d/kubernetes.conf": "overlay\nbr_netfilter\n",
    "sysctl.d/90-kubernetes.conf": (
        "net.bridge.bridge-nf-call-iptables = 1\n"
        "net.bridge.bridge-nf-call-ip6tables = 1\n"
        "net.ipv4.ip_forward = 1\n"
    ),
}
CGROUP_V2_SINCE = (1, 19)


def suites() -> list[str]:
    return paths.pins()["VM_SUITES"].split()


def arguments(k8s: str) -> str:
    """Return what the kernel's command line needs for that release of Kubernetes."""
    return CGROUP_V1 if paths.version_tuple(k8s) < CGROUP_V2_SINCE else ""


def _root_tar(suite: str) -> Path:
    pins = paths.pins()
    packages = f"{pins['VM_PACKAGES']} {pins.get(f'VM_PACKAGES_{suite}', '')}"
    hook = f'chroot "$1" sh -c "systemctl mask {MASKED} && systemctl enable {UNITS}"'

    def make(folder: Path) -> None:
        run(
            [
                "mmdebstrap",
                "--variant=minbase",
                f"--include={','.join(packages.split())}",
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                f"--customize-hook={hook}",
                suite,
                folder / "root.tar",
            ],
            timeout=1800,
        )

    return artefact(f"vm-root-{suite}", [suite, packages, hook, "1"], make) / "root.tar"


def image(k8s: str, suite: str) -> Path:
    """Return the directory with disk.raw, vmlinuz and initrd.img of that release on that Debian."""
    if suite not in suites():
        raise SystemExit(f"lab: {suite!r} is none of {' '.join(suites())}")
    vm.ensure_host()
    root, binaries, tars = _root_tar(suite), gobuild.kubernetes(k8s), images.archives(k8s)
    runtime = gobuild.containerd() if images.own_containerd(k8s) else None
    layout = sorted(path for path in (paths.FILES / "node").rglob("*") if path.is_file())
    names = [str(path.relative_to(paths.FILES)) for path in layout]
    sources = [root.parent.name, binaries.name, tars.name, runtime and runtime.name]

    def make(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            tree = Path(temporary) / "root"
            _fill(tree, root, binaries, tars, runtime)
            _copy_kernel(tree, folder)
            _format(folder / "disk.raw", tree)

    inputs = [
        *sources,
        *layout,
        *names,
        vm.private_key().parent.name,
        vm.DISK_SIZE,
        *FILES.values(),
        "1",
    ]
    return artefact(f"vm-{suite}-{k8s}", inputs, make)


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
    # authorized_keys is the cluster's.
    shutil.copy(f"{vm.private_key()}.pub", ssh / "authorized_keys2")
    (tree / "etc" / "resolv.conf").unlink(missing_ok=True)  # a link of systemd
    for name, text in FILES.items():
        (tree / "etc" / name).write_text(text)


def _copy_kernel(tree: Path, folder: Path) -> None:
    for pattern, name in (("vmlinuz-*", "vmlinuz"), ("initrd.img-*", "initrd.img")):
        files = sorted((tree / "boot").glob(pattern))
        if not files:
            raise RuntimeError(f"the image has no /boot/{pattern}")
        shutil.copy(files[-1], folder / name)


def _format(disk: Path, tree: Path) -> None:
    """Write an ext4 file system with that content to a sparse file."""
    run(["truncate", "-s", vm.DISK_SIZE, disk])
    features = "lazy_itable_init=1,lazy_journal_init=1"
    run(["mke2fs", "-q", "-t", "ext4", "-L", "root", "-E", features, "-d", tree, disk], timeout=900)
