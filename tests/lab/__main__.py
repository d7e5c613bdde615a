# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""python3 -m tests.lab: the lab by hand."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from tests.lab.cluster import host, images, paths, vm, vm_image
from tests.lab.cluster.bringup import LAYOUTS
from tests.lab.cluster.clusters import Cluster, remove_leftovers


def _versioned(parser, required: bool) -> None:
    parser.add_argument("--k8s", required=required, help="Kubernetes version, such as v1.36.3")
    parser.add_argument("--name", help="a second cluster of the same version")
    parser.add_argument(
        "--layout", default="kubeadm", choices=LAYOUTS, help="as which installer leaves its nodes"
    )


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="python3 -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="bring a cluster up, or find it up")
    _versioned(up, True)
    up.add_argument("--masters", type=int, default=3)
    up.add_argument("--workers", type=int, default=1)
    up.add_argument("--vms", type=int, default=0, help="workers with a kernel of their own")
    up.add_argument("--timers", choices=("short", "default", "steady"), default="short")
    up.add_argument("--prefix", default="", help="before the names of its nodes")
    _versioned(commands.add_parser("status"), False)
    _versioned(commands.add_parser("down"), False)
    commands.add_parser("clean", help="remove what killed runs left")
    broken = commands.add_parser("break", help="break a cluster by an incident")
    broken.add_argument("--incident", required=True)
    broken.add_argument("--host", help="the node to break; each incident has its default")
    _versioned(broken, False)
    _versioned(commands.add_parser("heal", help="undo every open incident"), False)
    build = commands.add_parser("build", help="fill the cache only")
    build.add_argument("--k8s", nargs="*", default=paths.pinned())
    build.add_argument("--vms", action="store_true", help="the disk of a virtual machine too")
    commands.add_parser("image", help="a plain Debian node image").add_argument(
        "--suite", required=True
    )
    commands.add_parser("check", help="can the lab run here?")
    return parser.parse_args(argv)


def _chosen(args) -> list:
    """Return the clusters that a command is about: the named one, else all that are up."""
    if args.k8s or args.name:
        return [Cluster.find(args.k8s, args.name, args.layout)]
    return [Cluster.find(name, name) for name in Cluster.known()]


def _only(args) -> Cluster:
    chosen = _chosen(args)
    if len(chosen) != 1:
        raise SystemExit(
            f"lab: {len(chosen)} clusters are up ({', '.join(c.name for c in chosen)}); give --k8s"
        )
    return chosen[0]


def _down(args) -> int:
    if args.k8s or args.name:
        Cluster(args.k8s or args.name, name=args.name, layout=args.layout).down()
    else:
        for cluster in _chosen(args):
            cluster.down()
    return 0


def _status(args) -> int:
    chosen = [cluster.status() for cluster in _chosen(args)]
    print(json.dumps(chosen, indent=1))
    return 0 if all(one["healthy"] for one in chosen) else 1


def _clean(_args) -> int:
    if host.unavailable_reason() is None and shutil.which("podman"):
        remove_leftovers()
    return 0


COMMANDS = {"status": _status, "down": _down, "clean": _clean}


def main(argv=None) -> int:
    args = _arguments(argv)
    if args.command == "up":
        Cluster(
            args.k8s,
            args.masters,
            args.workers,
            args.timers,
            args.name,
            args.prefix,
            args.layout,
            vms=args.vms,
        ).up()
        return 0
    if args.command in COMMANDS:
        return COMMANDS[args.command](args)
    if args.command == "check":
        reason = host.unavailable_reason()
        print(reason or "the lab can run here")
        return 1 if reason else 0
    if args.command == "build":
        host.ensure_host()
        for k8s in args.k8s:
            print(images.build_all(k8s))
            if args.vms:
                print(vm.unavailable_reason() or vm_image.image(k8s, vm_image.suites()[0]))
        return 0
    if args.command == "image":
        host.ensure_host()
        print(images.build_plain_image(args.suite))
        return 0
    from tests.lab.support import incident

    if args.command == "break":
        incident.break_by_name(_only(args), args.incident, args.host)
    else:
        for cluster in _chosen(args):
            incident.heal(cluster)
    return 0


if __name__ == "__main__":
    sys.exit(main())
