# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""kubeadm's and containerd's configuration for one node. Pure.

Text in, text out (JSON, which is YAML).
"""

from __future__ import annotations

import json

from tests.lab.cluster import paths

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
# Masters keep the upstream defaults in `default`; `short` makes a dead node or leader show within
# seconds; `steady` is for what one leader's
# own memory shows: on a busy machine it keeps its lead, and etcd its own, where the defaults would
# lose it; its log names the node tree.
TIMERS = {
    "default": {"election": {}, "kcm": {}, "kubelet": {}},
    "short": {
        "election": {
            "leader-elect-lease-duration": "8s",
            "leader-elect-renew-deadline": "5s",
            "leader-elect-retry-period": "1s",
        },
        "kcm": {"node-monitor-grace-period": "14s", "node-monitor-period": "2s"},
        # The report frequency follows the update frequency; the lease is renewed at a quarter of
        # its duration.
        "kubelet": {"nodeStatusUpdateFrequency": "3s", "nodeLeaseDurationSeconds": 12},
    },
    "steady": {
        "election": {
            "leader-elect-lease-duration": "30s",
            "leader-elect-renew-deadline": "25s",
            "leader-elect-retry-period": "2s",
        },
        "kcm": {},
        "kubelet": {},
        "scheduler": {"v": "2"},
        "etcd": {"heartbeat-interval": "500", "election-timeout": "5000"},
    },
}
ETCD_QUOTA = 24 * 1024**2
# As `short`, with an etcd that a few writes of a test fill.
TIMERS["small-etcd"] = {
    **TIMERS["short"],
    "etcd": {**TIMERS["steady"]["etcd"], "quota-backend-bytes": str(ETCD_QUOTA)},
}


def api_version(k8s: str) -> str:
    version = paths.version_tuple(k8s)[:2]
    return "v1beta4" if version >= (1, 31) else "v1beta3" if version >= (1, 22) else "v1beta2"


def scheduler_api_version(k8s: str) -> str:
    version = paths.version_tuple(k8s)[:2]
    older = ((1, 19), "v1alpha2"), ((1, 22), "v1beta1"), ((1, 25), "v1beta2")
    return "kubescheduler.config.k8s.io/" + next(
        (name for before, name in older if version < before), "v1"
    )


def args(k8s: str, values: dict):
    """v1beta4 turned the map of extra arguments into a list."""
    if api_version(k8s) == "v1beta4":
        return [{"name": name, "value": value} for name, value in values.items()]
    return dict(values)


def _document(k8s: str, kind: str, **fields) -> dict:
    return {"apiVersion": f"kubeadm.k8s.io/{api_version(k8s)}", "kind": kind, **fields}


def _registration(k8s: str, name: str, ip: str, labels: dict) -> dict:
    given = {"node-ip": ip}
    if labels:
        given["node-labels"] = ",".join(f"{key}={value}" for key, value in labels.items())
    # Below 1.20 the kubelet takes a bare path only.
    socket = (
        CONTAINERD_SOCKET if paths.version_tuple(k8s) < (1, 20) else f"unix://{CONTAINERD_SOCKET}"
    )
    return {"name": name, "criSocket": socket, "kubeletExtraArgs": args(k8s, given)}


def kubelet(k8s: str, timers: str, swap_on: bool) -> dict:
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        # The images exist on the node alone: a collected one would never come back.
        "imageGCHighThresholdPercent": 100,
        # The disk is the host's, and how full it is says nothing about the node.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        **TIMERS[timers]["kubelet"],
    }
    if paths.version_tuple(k8s) >= (1, 31):
        config["failCgroupV1"] = False
    if swap_on:
        config["failSwapOn"] = False
    return config


def init_config(
    k8s: str, node, *, token: str, certificate_key: str, timers: str, swap_on: bool, labels: dict
) -> str:
    chosen = TIMERS[timers]
    init = _document(
        k8s,
        "InitConfiguration",
        localAPIEndpoint={"advertiseAddress": node.ip, "bindPort": 6443},
        # No expiry: nodes are staged and join hours later.
        bootstrapTokens=[
            {
                "token": token,
                "ttl": "0s",
                "usages": ["signing", "authentication"],
                "groups": ["system:bootstrappers:kubeadm:default-node-token"],
            }
        ],
        certificateKey=certificate_key,
        nodeRegistration=_registration(k8s, node.name, node.ip, labels),
    )
    cluster = _document(
        k8s,
        "ClusterConfiguration",
        kubernetesVersion=k8s,
        controlPlaneEndpoint=f"{node.ip}:6443",
        networking={"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12"},
        controllerManager={"extraArgs": args(k8s, {**chosen["election"], **chosen["kcm"]})},
        scheduler={"extraArgs": args(k8s, {**chosen["election"], **chosen.get("scheduler", {})})},
        # A disk shared by three members on two cores: fsync latency alone would cost elections.
        etcd={
            "local": {
                "dataDir": "/var/lib/etcd",
                "extraArgs": args(k8s, {"unsafe-no-fsync": "true", **chosen.get("etcd", {})}),
            }
        },
    )
    return join_documents(init, cluster, kubelet(k8s, timers, swap_on))


def join_config(
    k8s: str, node, endpoint: str, *, token: str, certificate_key: str, labels: dict
) -> str:
    discovery = {
        "bootstrapToken": {
            "token": token,
            "apiServerEndpoint": endpoint,
            "unsafeSkipCAVerification": True,
        },
        "tlsBootstrapToken": token,
    }
    fields = {
        "discovery": discovery,
        "nodeRegistration": _registration(k8s, node.name, node.ip, labels),
    }
    if node.role == "master":
        fields["controlPlane"] = {
            "localAPIEndpoint": {"advertiseAddress": node.ip, "bindPort": 6443},
            "certificateKey": certificate_key,
        }
    return join_documents(_document(k8s, "JoinConfiguration", **fields))


def join_documents(*documents: dict) -> str:
    return "---\n".join(json.dumps(document, indent=1) + "\n" for document in documents)


def cni_config(index: int) -> str:
    """Pods of one node reach each other; nothing here needs more."""
    return (
        json.dumps(
            {
                "cniVersion": "0.4.0",
                "name": "lab",
                "plugins": [
                    {
                        "type": "bridge",
                        "bridge": "cni0",
                        "isGateway": True,
                        "ipMasq": False,
                        "ipam": {
                            "type": "host-local",
                            "ranges": [[{"subnet": f"10.244.{index}.0/24"}]],
                            "routes": [{"dst": "0.0.0.0/0"}],
                        },
                    }
                ],
            },
            indent=1,
        )
        + "\n"
    )


def containerd_config(own: bool, pause: str) -> str:
    """Return containerd's configuration.

    own: whether it is containerd 2 (configuration version 3), else Debian 12's 1.6 (version 2)
    """
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc dies on a score below its own ("can't
    # get final child's
    # PID from pipe").
    if own:
        return f"""version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "/etc/cni/net.d"
"""
    return f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"
"""
