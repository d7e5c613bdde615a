# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A node as kubespray leaves it.

It has its own kubelet unit, environment file and configuration, and a scheduler with a --config
file. For the rest kubespray calls kubeadm, with its certificates in a folder of its own.

The functions are pure: text in, text out.
"""

from __future__ import annotations

import json

from tests.lab.cluster import kubeadm, paths
from tests.lab.cluster.inventory import to_yaml

UNIT = "/etc/systemd/system/kubelet.service"
ENVIRONMENT = "/etc/kubernetes/kubelet.env"
KUBELET_CONFIG = "/etc/kubernetes/kubelet-config.yaml"
SCHEDULER_CONFIG = "/etc/kubernetes/kubescheduler-config.yaml"
KUBEADM_CONFIG = "/etc/kubernetes/kubeadm-config.yaml"
CERTIFICATES = "/etc/kubernetes/ssl"
# What Debian's packages leave and kubespray does not have; kubeadm's own folder is a link, because
# some paths in it are fixed.
SCRIPT = f"""set -e
rm -rf /usr/lib/systemd/system/kubelet.service /usr/lib/systemd/system/kubelet.service.d \
/etc/default/kubelet
mv /usr/bin/kubelet /usr/local/bin/kubelet
mkdir -p {CERTIFICATES} /etc/kubernetes/manifests
ln -sfn {CERTIFICATES} /etc/kubernetes/pki
"""


def files(k8s: str, node, pause: str, timers: str, swap_on: bool) -> dict:
    """Path -> (text, mode) of what is there before kubeadm is called."""
    made = {
        UNIT: (unit(), 0o644),
        ENVIRONMENT: (environment(k8s, node, pause), 0o600),
        KUBELET_CONFIG: (kubelet_config(k8s, timers, swap_on), 0o640),
    }
    if node.role == "master":
        made[SCHEDULER_CONFIG] = (scheduler_config(k8s, timers), 0o644)
    return made


def unit() -> str:
    words = (
        "$KUBE_LOGTOSTDERR",
        "$KUBE_LOG_LEVEL",
        "$KUBELET_API_SERVER",
        "$KUBELET_ADDRESS",
        "$KUBELET_HOSTNAME",
        "$KUBELET_ARGS",
        "$KUBELET_NETWORK_PLUGIN",
        "$KUBELET_CLOUDPROVIDER",
    )
    start = " \\\n".join(["/usr/local/bin/kubelet", *(f"\t\t{word}" for word in words)])
    return (
        "[Unit]\nDescription=Kubernetes Kubelet"
        " Server\nAfter=containerd.service\nWants=containerd.service\n\n"
        f"[Service]\nEnvironmentFile=-{ENVIRONMENT}\nExecStart={start}\n"
        "Restart=always\nRestartSec=10s\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def environment(k8s: str, node, pause: str) -> str:
    """Continued lines in quotes, as kubespray writes them.

    The flags of those versions that still have them.
    """
    version = paths.version_tuple(k8s)
    arguments = [
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        f"--config={KUBELET_CONFIG}",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
    ]
    if version < (1, 27):
        arguments += [f"--pod-infra-container-image={pause}", "--container-runtime=remote"]
    endpoint = (
        kubeadm.CONTAINERD_SOCKET if version < (1, 20) else f"unix://{kubeadm.CONTAINERD_SOCKET}"
    )
    arguments.append(f"--container-runtime-endpoint={endpoint}")
    if node.labels:
        arguments.append(
            "--node-labels=" + ",".join(f"{key}={value}" for key, value in node.labels.items())
        )
    lines = ['KUBE_LOGTOSTDERR="--logtostderr=true"'] if version < (1, 26) else []
    lines += [
        'KUBE_LOG_LEVEL="--v=2"',
        f'KUBELET_ADDRESS="--node-ip={node.ip}"',
        f'KUBELET_HOSTNAME="--hostname-override={node.name}"',
        "",
        'KUBELET_ARGS="' + " \\\n".join(arguments) + ' "',
    ]
    if version < (1, 24):
        lines.append(
            'KUBELET_NETWORK_PLUGIN="--network-plugin=cni --cni-conf-dir=/etc/cni/net.d'
            ' --cni-bin-dir=/usr/lib/cni"'
        )
    lines += [
        'KUBELET_CLOUDPROVIDER=""',
        "",
        "PATH=/usr/local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]
    return "\n".join(lines) + "\n"


def kubelet_config(k8s: str, timers: str, swap_on: bool) -> str:
    config = {
        **kubeadm.kubelet(k8s, timers, swap_on),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{CERTIFICATES}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "staticPodPath": "/etc/kubernetes/manifests",
        "clusterDomain": "cluster.local",
        "clusterDNS": ["10.96.0.10"],
        "rotateCertificates": True,
    }
    return to_yaml(config)


def scheduler_config(k8s: str, timers: str) -> str:
    """No leaderElect in it unless the inventory sets kube_scheduler_leader_elect_extra_opts."""
    lines = [
        f"apiVersion: {kubeadm.scheduler_api_version(k8s)}",
        "kind: KubeSchedulerConfiguration",
        "clientConnection:",
        '  kubeconfig: "/etc/kubernetes/scheduler.conf"',
        "leaderElection:",
    ]
    election = kubeadm.TIMERS[timers]["election"]
    lines += [
        f"  leaseDuration: {election.get('leader-elect-lease-duration', '15s')}",
        f"  renewDeadline: {election.get('leader-elect-renew-deadline', '10s')}",
    ]
    if "leader-elect-retry-period" in election:
        lines.append(f"  retryPeriod: {election['leader-elect-retry-period']}")
    return "\n".join(lines) + "\n"


def adjusted(k8s: str, config: str) -> str:
    """Kubeadm's configuration with what kubespray says otherwise.

    The folder of the certificates, the scheduler's file.
    """
    documents = [json.loads(part) for part in config.split("---\n")]
    for document in documents:
        if document["kind"] == "ClusterConfiguration":
            document["certificatesDir"] = CERTIFICATES
            document["scheduler"] = {
                "extraArgs": kubeadm.args(
                    k8s,
                    {"bind-address": "0.0.0.0", "config": SCHEDULER_CONFIG, "profiling": "False"},
                ),
                "extraVolumes": [
                    {
                        "name": "kubescheduler-config",
                        "hostPath": SCHEDULER_CONFIG,
                        "mountPath": SCHEDULER_CONFIG,
                        "readOnly": True,
                    }
                ],
            }
        if document["kind"] == "JoinConfiguration":
            document["caCertPath"] = f"{CERTIFICATES}/ca.crt"
    return kubeadm.join_documents(*documents)
