# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: words that name nobody, whoever is called by them.

A host that is called `node` or `etcd` cannot be replaced in running text, where the word means what it says; nor does it
give anything away. Domains of projects and vendors name software, and stay too.
"""

from __future__ import annotations

WORDS = frozenset("""
a absent active activating address addresses admin after agent all allow an and any api apiserver apps argv arm64 amd64 as at auth authority available
azure backup bad base batch before bin binary boot box bridge build by ca calico cert certificate certificates cfg cgroup check cilium clear client
cloud cluster clusters cni com command component components compute conf config configuration connect connection container containerd containers
control controller controllers core coredns cpu cpus cri crio custom daemon data database db dead debian debug default denied deny dev device devices
directory disabled disk dns docker down driver effect enabled endpoint endpoints entries env error errors etc etcd eth0 event events example exe exit
exited external failed false fault fedora file files flannel folder folders for found free from fs gateway general gid gpu group groups guest has head
health healthy healthz high home host hostname hosts http https id image images in inactive info infra ingress init inotify instance instances
interface internal ip is item items job jobs journal k3s k8s kernel key kind kube kubeadm kubeconfig kubectl kubelet kubernetes kubespray lab label
labels lan leader lease leases left lib limit limits line linux list lo load loaded loadbalancer local localdomain localhost lock locks log login logs
lost low machine mail main manager manifest manifests map masked master masters max mem memory message method metrics microk8s min mirror missing mode
module modules monitoring mount mounts name names namespace net network never nfs no node nodes none normal not notready null nvidia object objects ok
on online open openshift opt or other out owner pam path paths pending phase pid plane pod pods policy pool port present primary private probe proc
process processes prod production prometheus proxy public python ready reason redhat registry release remote replica reserved resource result rke2
role root router rpm run running runtime scheduler secondary server servers service services session set shared sock socket source space ssh sshd
standby start started state static status storage store swap sys sysctl system systemd taint taints target task tasks test text the time timeout tls
tmp to token true type ubuntu udp uid unit units unknown unreachable up url user users usr v1 value var version vm volume waiting warning watch web
with work worker workers working yaml yes zone zones
""".split())
USERS = frozenset("""
root nobody nogroup daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats sshd ssh systemd messagebus dbus polkitd
chrony ntp etcd kube kubelet kubernetes containerd docker crio ftp adm wheel sudo users admin user default-auth default kubernetes-admin
kubernetes-super-admin system syslog postfix tss rpc rpcuser haproxy keepalived nginx prometheus node-exporter student faculty lost+found linuxbrew all any none
unknown user1 username
""".split())
PUBLIC_DOMAINS = tuple("""
kubernetes.io k8s.io x-k8s.io docker.io docker.com quay.io gcr.io ghcr.io pkg.dev github.com gitlab.com githubusercontent.com debian.org ubuntu.com
redhat.com fedoraproject.org centos.org rockylinux.org almalinux.org suse.com opensuse.org rancher.io rancher.com cattle.io k3s.io containerd.io
cri-o.io coreos.com cilium.io projectcalico.org tigera.io nvidia.com amd.com intel.com prometheus.io grafana.com helm.sh istio.io linkerd.io
openshift.io kubevirt.io cncf.io kernel.org freedesktop.org man7.org gnu.org golang.org go.dev google.com microsoft.com apache.org python.org
flannel.com kubespray.io etcd.io systemd.io linuxfoundation.org metallb.io metallb.universe.tf nginx.org cluster.local in-addr.arpa ip6.arpa
node.local argoproj.io cert-manager.io snapcraft.io openssh.com canonical.com gopkg.in mozilla.org wikipedia.org aws.com gke.io ceph.com azure.com
vmware.com netapp.io purestorage.com longhorn.io openebs.io
""".split())
# The last label of a name that is one wherever it stands; files, units and Go packages end otherwise.
TOP = frozenset("""
com net org edu gov mil int info biz io dev app cloud tech online site de at ch fr nl be lu it es pt uk ie dk se no fi pl cz sk hu ro bg gr tr ru ua
us ca mx br ar cl jp cn kr tw hk sg au nz za il eu lan local internal intranet corp intra home private localdomain arpa
""".split())
INSIDE = frozenset("local internal intranet lan corp intra home private localdomain arpa app dev info cloud online site".split())
FILES = frozenset("""
service socket target timer slice scope mount swap path device automount conf config yaml yml json toml ini env log txt pem crt cert key csr pub sock
d so go py sh c h gz tar zip pid lock bak old orig new save rpmsave rpmnew dpkg-old dpkg-dist svc d1 cri v1 ko kubeconfig list rules
""".split())
