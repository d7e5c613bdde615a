# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Static pod manifests as an operator edits them, and the processes that follow from them."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import time

MANIFESTS = "/etc/kubernetes/manifests"
SCHEDULER, MANAGER, API_SERVER = "kube-scheduler", "kube-controller-manager", "kube-apiserver"
# Longer than a lock may stand still unsuspected: a new leader needs its time.
STALE_SECONDS = 80
PORTS = {SCHEDULER: 10259, MANAGER: 10257}

_PROCESSES = """
import glob, json
found = []
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        argv = open(path, "rb").read().decode("utf-8", "replace").split("\\0")[:-1]
    except OSError:
        continue
    if argv and argv[0].rsplit("/", 1)[-1].startswith("kube-"):
        found.append([int(path.split("/")[2]), argv])
print(json.dumps(found))
"""


def manifest(component: str) -> str:
    return f"{MANIFESTS}/{component}.yaml"


def processes(cluster, node: str, component: str) -> list:
    """Return [(pid, argv)] of that component on that node, of any parent."""
    found = json.loads(cluster.exec(node, ["python3", "-I", "-S", "-c", _PROCESSES]).stdout)
    return [(pid, argv) for pid, argv in found if argv[0].rsplit("/", 1)[-1] == component]


def ended_long_ago() -> str:
    """Return a time of change for a manifest that its kubelet has had for a while.

    What follows from a younger one is still to come.
    """
    return str(time.time() - 3600)


def wait_settled(cluster, node: str) -> None:
    """Wait until the kubelet has run so long that it starts nothing more."""
    cluster.wait(
        lambda: (
            int(cluster.exec(node, ["ps", "-o", "etimes=", "-C", "kubelet"]).stdout.split()[0])
            > 185
        ),
        240,
        f"the kubelet of {node} to have run for three minutes",
        every=3,
    )


def set_flag(text: str, flag: str, value: str) -> str:
    """Return the manifest with the flag's new value, in place or as the last argument."""
    changed, count = re.subn(rf"(?m)^(\s*)- --{flag}=.*$", rf"\1- --{flag}={value}", text)
    if count:
        return changed
    return re.sub(r"(?m)^(\s*)- (kube-[a-z-]+)$", rf"\1- \2\n\1- --{flag}={value}", text, count=1)


def wait_flag(
    cluster, node: str, component: str, flag: str, timeout: float = 400, gone: bool = False
) -> None:
    """Wait until the one running process of the component has that argument, or has it no more.

    A manifest that comes back to bytes that ran before meets the kubelet's back-off, minutes of it
    after some rounds.
    """

    def runs():
        running = processes(cluster, node, component)
        if len(running) != 1 or (flag in running[0][1]) == gone:
            raise ValueError(f"processes of {component} on {node}: {running}")
        return True

    cluster.wait(runs, timeout, f"{component} on {node} to run with{'out' if gone else ''} {flag}")


def restart(cluster, node: str, component: str) -> None:
    """End the component's process and wait until the kubelet starts another.

    A changed configuration file needs that, because no program watches it.
    """
    before = [pid for pid, _argv in processes(cluster, node, component)]
    if before:
        cluster.exec(node, ["kill", *map(str, before)])
    cluster.wait(
        lambda: [pid for pid, _argv in processes(cluster, node, component) if pid not in before],
        240,
        f"another {component} on {node}",
    )


@contextlib.contextmanager
def away(cluster, names, component: str):
    """Move its manifest aside on these nodes, so that none runs there, and back at the end."""
    aside = f"/root/lab-{component}.yaml"
    try:
        for name in names:
            cluster.exec(name, f"mv {manifest(component)} {aside}")
        for name in names:
            cluster.wait(
                lambda node=name: not processes(cluster, node, component),
                300,
                f"{component} of {name} to end",
            )
        yield
    finally:
        for name in names:
            cluster.exec(name, f"if [ -e {aside} ]; then mv {aside} {manifest(component)}; fi")
        for name in names:
            cluster.wait(
                lambda node=name: len(processes(cluster, node, component)) == 1,
                300,
                f"{component} of {name} to run again",
            )


def election_off(cluster, node: str, component: str) -> bool:
    """Return whether the process runs without election: its health lists no leaderElection."""
    said = cluster.exec(
        node,
        ["curl", "-sk", "-m", "3", f"https://127.0.0.1:{PORTS[component]}/healthz?verbose"],
        check=False,
    ).stdout.decode()
    return "healthz check passed" in said and "leaderElection" not in said


def wait_election_off(cluster, node: str, component: str, timeout: float = 120) -> None:
    cluster.wait(
        lambda: election_off(cluster, node, component),
        timeout,
        f"{component} on {node} to serve without an election",
    )


def lock_holder(cluster, component: str) -> str:
    """Return the host that holds the lease.

    Versions whose default lock is older keep the lease as well.
    """
    holder = cluster.kubectl(
        "-n", "kube-system", "get", "lease", component, "-o", "jsonpath={.spec.holderIdentity}"
    ).stdout.decode()
    return holder.partition("_")[0]


def wait_nobody_leads(cluster, component: str) -> None:
    """Wait until no master runs one, and its lock is not renewed for so long that it shows."""
    for master in cluster.of_role("master"):
        cluster.wait(
            lambda node=master: not processes(cluster, node, component),
            240,
            f"{component} of {master.name} to end",
        )

    wait_lock_stands_still(cluster, component)


def wait_lock_stands_still(cluster, component: str) -> None:
    """Wait until the component's lock is not renewed for so long that it shows.

    Processes of the component may run meanwhile.
    """

    def stands_still():
        said = cluster.kubectl(
            "-n", "kube-system", "get", "lease", component, "-o", "jsonpath={.spec.renewTime}"
        ).stdout.decode()
        age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(
            said.replace("Z", "+00:00")
        )
        if age.total_seconds() < STALE_SECONDS:
            raise ValueError(f"it was renewed {age.total_seconds():.0f} s ago")
        return True

    cluster.wait(stands_still, 240, f"the lock of {component} to stand still", every=3)
