# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the lab needs of the machine it runs on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.cluster import paths

# One command per package that proves its presence; busybox is told by its file because other builds
# are not static.
PROOF = {
    "podman": "podman",
    "runc": "runc",
    "mmdebstrap": "mmdebstrap",
    "openssh-client": "ssh-keygen",
    "iptables": "iptables",
    "openssl": "openssl",
    "netavark": "/usr/lib/podman/netavark",
    "busybox-static": "/bin/busybox",
    "debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
}


def note(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr, flush=True)


def run(argv, timeout=600, check=True, **kwargs) -> subprocess.CompletedProcess:
    """Run a command; a failure says what the command printed, and not only its exit status."""
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    kwargs.setdefault("stdin", subprocess.DEVNULL if kwargs.get("input") is None else None)
    if kwargs.get("input") is not None:
        kwargs.pop("stdin")
    argv = [str(part) for part in argv]
    done = subprocess.run(argv, timeout=timeout, check=False, **kwargs)
    if check and done.returncode:
        said = b"\n".join(part for part in (done.stdout, done.stderr) if part)[-3000:].decode(
            "utf-8", "replace"
        )
        # the reason stands first: a summary shows one line
        last = (said.strip().splitlines() or [""])[-1][:300]
        command = " ".join(argv)[:400]
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {last}\n{command}\n{said}")
    return done


def _present(package: str) -> bool:
    proof = PROOF.get(package)
    if package == "python3-venv":
        return run([sys.executable, "-c", "import ensurepip"], check=False).returncode == 0
    if proof is None or proof.startswith("/"):
        return proof is None or Path(proof).exists()
    return shutil.which(proof) is not None


def missing_packages() -> list:
    return [package for package in paths.pins()["HOST_PACKAGES"].split() if not _present(package)]


def unavailable_reason() -> str | None:
    """Return one sentence when the lab cannot run on this machine, None when it can."""
    if sys.platform != "linux":
        return "the lab needs Linux"
    if os.geteuid() != 0:
        return "the lab needs root (systemd nodes in privileged containers)"
    if missing_packages() and shutil.which("apt-get") is None:
        return (
            f"the lab needs {', '.join(missing_packages())} and this machine has no apt-get to"
            " install them"
        )
    if not Path("/sys/fs/cgroup").is_dir():
        return "the lab needs cgroups mounted at /sys/fs/cgroup"
    return None


def version_unavailable_reason(k8s: str) -> str | None:
    """Return why this machine cannot run that Kubernetes, None when it can."""
    if paths.version_tuple(k8s) < (1, 19) and cgroup_v2():
        return (
            f"Kubernetes {k8s} needs cgroup v1: boot the machine with the kernel argument "
            "systemd.unified_cgroup_hierarchy=0"
        )
    return None


def cgroup_v2() -> bool:
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def ensure_host() -> None:
    reason = unavailable_reason()
    if reason:
        raise SystemExit(f"lab: {reason}")
    missing = missing_packages()
    if not missing:
        return
    note(f"installing {' '.join(missing)}")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run(["apt-get", "update", "-q"], env=env, timeout=300)
    # Recommended packages bring a second container runtime and a desktop's worth of helpers.
    run(
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing],
        env=env,
        timeout=900,
    )
    left = missing_packages()
    if left:
        raise SystemExit(
            f"lab: apt-get installed {' '.join(missing)} but {' '.join(left)} is still missing"
        )
