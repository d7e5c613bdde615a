# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet's texts say of a pod that does not start: the cause, and whose it is. Pure.

The texts are those of kubelets 1.14 to 1.36, containerd 1.4 to 2.2, CRI-O and dockershim, and of
the reference plugins of the CNI.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from . import errno_message, error_origin, known_message, origin_wording, plain_error
from .error_origin import Origin
from .known_age import Versions

# Whose mistake it is: the workload's own, or that of the node (and what it reaches).
WORKLOAD, NODE = "workload", "node"
SERVICES, CGROUP_DRIVER, NO_ADDRESS, NO_PLUGIN, NO_CONFIGURATION = (
    "services_unread",
    "cgroup_driver",
    "no_address",
    "cni_program_missing",
    "cni_not_set_up",
)
SANDBOX_IMAGE, RESERVED, CNI_DAEMON, RUNTIME, DEADLINE, CREATE, ERRNO = (
    "sandbox_image",
    "name_reserved",
    "cni_daemon",
    "runtime_unreachable",
    "deadline",
    "create_failed",
    "errno",
)
RATE, UNAUTHORIZED, NOT_FOUND, DNS, CERTIFICATE, PLAIN_HTTP, REFUSED, TIMEOUT, PULL = (
    "pull_rate_limit",
    "pull_unauthorized",
    "pull_not_found",
    "pull_dns",
    "pull_certificate",
    "pull_plain_http",
    "pull_refused",
    "pull_timeout",
    "pull_other",
)
KNOWN = "known_message"
# Behind a kind: the error itself shows that no workload brings it about (error_origin).
OF_MACHINE = "error-origin"
PLATFORM, PROXY, SERVER_ERROR = "pull_platform", "pull_proxy", "pull_server_error"
CLIENT_CERTIFICATE, HANDSHAKE = "pull_client_certificate", "pull_handshake"
PROGRAM, STORE, CLOUD_ADDRESS = "runtime_program_missing", "store_incomplete", "no_cloud_address"
OBJECT_MISSING, MULTI_ATTACH, NO_DRIVER, MOUNT_SERVER, MOUNT_TIMEOUT, MOUNT = (
    "object_missing",
    "multi_attach",
    "csi_driver_missing",
    "mount_server",
    "mount_timeout",
    "mount_failed",
)
BUS, SHIM, RUNTIME_TYPE = "bus_lost", "shim_newer", "runtime_type"
MOUNT_BUSY = "mount_busy"
# Docker and what asks it do not fit (models/docker_image_size.py).
DOCKER_TOO_NEW, IMAGE_WITHOUT_DATA = "docker_too_new", "image_without_data"
SECURITY, IMAGE_NAME, NEVER_PULL, COMMAND, UNREGISTERED, RUNTIME_CLASS, LOW_LIMIT = (
    "security_context",
    "image_name",
    "image_never_pull",
    "command_missing",
    "objects_unregistered",
    "runtime_class",
    "low_limit",
)
PULL_REASONS = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "InspectFailed",
    )
)
# What one workload can cause too, by the names in its template: image, registry, server, path.
OF_ONE = frozenset(
    (
        CREATE,
        RUNTIME_CLASS,
        CERTIFICATE,
        CLIENT_CERTIFICATE,
        DNS,
        HANDSHAKE,
        IMAGE_WITHOUT_DATA,
        PLAIN_HTTP,
        PROXY,
        PULL,
        RATE,
        REFUSED,
        SERVER_ERROR,
        TIMEOUT,
        MOUNT,
        MOUNT_BUSY,
        MOUNT_SERVER,
        MOUNT_TIMEOUT,
        MULTI_ATTACH,
        NO_DRIVER,
    )
)
# What names a symptom of many causes: a message whose cause is known says more.
GENERIC = frozenset(
    (
        CNI_DAEMON,
        CREATE,
        DEADLINE,
        ERRNO,
        MOUNT,
        MOUNT_BUSY,
        MOUNT_SERVER,
        MOUNT_TIMEOUT,
        PULL,
        REFUSED,
        RESERVED,
        RUNTIME,
        TIMEOUT,
    )
)
# What says only that something fails, so that the error within it tells whose it is.
_SYMPTOMS = frozenset((CREATE, DEADLINE, ERRNO, MOUNT, MOUNT_SERVER, MOUNT_TIMEOUT, PULL))
# A runtime lacks or cannot use its own parts, whatever a workload asks for.
_OF_RUNTIME_ALONE = frozenset((BUS, PROGRAM, SHIM, STORE))
MOUNT_REASONS = frozenset(("FailedMount", "FailedMapVolume", "FailedAttachVolume"))


@dataclass(frozen=True)
class Trouble:
    """Why a pod does not start.

    kind: of a known message with its id, so that two of them are not taken for one
    whose: WORKLOAD or NODE
    what: the cause, as a clause
    cure: what is done about it
    """

    kind: str
    whose: str
    what: str
    cure: str


# A workload names the interface, and a node may have lost it.
OF_ATTACHMENT = f"{KNOWN} cni-master-interface-missing"


def _table(*rows: tuple[str, str, str, str, str]) -> tuple[tuple[re.Pattern[str], Trouble], ...]:
    return tuple(
        (re.compile(text, re.IGNORECASE), Trouble(kind, party, summary, cure))
        for kind, party, text, summary, cure in rows
    )


# In order: the first whose text is found counts.
# A kubelet with docker, containerd, CRI-O: around whatever the network plugin says.
_OF_NETWORK = re.compile(
    r"networkPlugin cni failed to (?:set up|teardown) pod|failed to (?:set ?up|create|destroy)"
    r" (?:pod )?network for (?:pod )?sandbox|(?:failed to|error) (?:create|creat|add)\w*"
    r" pod network|[Ee]rror adding pod \S+ to CNI network",
)
_CREATE = _table(
    (
        SERVICES,
        NODE,
        # kubelet_pods.go, getServiceEnvVarMap, since 1.20
        r"services have not yet been read at least once",
        "its kubelet could not read the cluster's Services yet",
        "see what its kubelet logs of *v1.Service: an API server that is older than the kubelet"
        " refuses the list",
    ),
    (
        OBJECT_MISSING,
        WORKLOAD,
        r"(?:secrets?|configmaps?) \\?\"[^\"]+\" not found|couldn't find key|references"
        r" non-existent|cannot find a network-attachment-definition",
        "a ConfigMap, Secret or network attachment that they name does not exist, or lacks a key",
        "make the object, or correct the workload's template",
    ),
    (
        SECURITY,
        WORKLOAD,
        r"container has runAsNonRoot|runAsNonRoot and image|must be run as non-root",
        "their security context forbids what their image does",
        "correct runAsNonRoot and runAsUser in the workload's template, or the image's user",
    ),
    (
        PROGRAM,
        NODE,
        # containerd (runtime/v1/shim, runtime/v2/shim); CRI-O and hooks of runc, by Go's os/exec,
        # which runs nothing within a container
        r"failed to start shim:? [^\n]{0,80}exec: |runtime \\?\"io\.containerd\.[^\"]{1,80}\\?\""
        r" binary not installed|fork/exec /[^: ]{1,200}: (?:no such file|permission denied|exec"
        r" format)|exec: \\*\"(?:\S{1,200}/)?(?:containerd-shim[\w.-]*|runc|crun|conmon"
        r"|nvidia-container[\w.-]*)\\*\": ",
        "a program that the runtime of that node needs is missing, or cannot be run",
        "see who names the program of the message: runtimes in containerd's configuration (runtime_"
        "type, BinaryName), monitor_path and runtime_path in /etc/crio/crio.conf and crio.conf.d, a"
        " hook; an update may have moved it: correct the path, or install what has it. Pods that an"
        " earlier release made may need it until they are made again",
    ),
    (
        STORE,
        NODE,
        # containerd (metadata/snapshot.go, content store); containers/storage of CRI-O; docker
        r"missing parent .{1,300}bucket: not found|parent snapshot \S{1,200} does not exist"
        r"|snapshot \S{1,200} does not exist: not found|content digest \S{1,100}: not found"
        r"|layer not known|unable to find image .{1,200}layer",
        "the runtime does not find layers of images that it counts as there: its storage of images"
        " is not complete",
        "this is left of a power cut, or the runtime was started before its folder was mounted:"
        " see that it is (findmnt -T FOLDER), then systemctl restart of the runtime; where that"
        " does not help, remove the images that the message is about and pull them again (crictl"
        " rmi); of CRI-O, on a drained node and while it is stopped, remove"
        " /var/lib/containers/storage/overlay-images",
    ),
    (
        BUS,
        NODE,
        # godbus; libcontainer/cgroups/systemd of kubelets up to 1.24 and of runtimes
        r"dbus: connection closed|Failed to activate service 'org\.freedesktop\.systemd1'"
        r"|org\.freedesktop\.DBus\.Error|dial unix /(?:var/)?run/(?:dbus|systemd)/\S{1,60}: ",
        "kubelet or runtime has no connection to D-Bus any more, by which it makes cgroups: D-Bus"
        " was restarted, or does not answer",
        "see systemctl status dbus; then restart the one that says it, as it may make no new"
        " connection: systemctl restart kubelet (kubelets up to 1.24 make none), or the runtime",
    ),
    (
        SHIM,
        NODE,
        # containerd/runtime/v2/shim: events by ttrpc since 1.3, version 3 since 2.0
        r"containerd\.sock\.ttrpc: |unsupported shim version|shim version .{1,40}not implemented",
        "the shim that they use is built for a newer containerd than the one that runs",
        "compare containerd --version with the shim of the message and what brought it (kata,"
        " gVisor, an upgrade): systemctl restart containerd where its program was replaced"
        " under it, else install releases that fit each other",
    ),
    (
        RUNTIME_TYPE,
        NODE,
        # containerd/core/metadata, validateContainer
        r"container\.Runtime\.Name must be set|invalid runtime name .{0,80}, correct runtime name",
        "their runtime has no runtime_type in containerd's configuration, or a wrong one",
        "write runtime_type into the table of that runtime, such as runtime_type ="
        ' "io.containerd.runc.v2" (a table that is written has none of the defaults), and restart'
        " containerd; containerd config dump shows what counts",
    ),
    (
        CNI_DAEMON,
        NODE,
        # a program of the host that a program of the CNI runs, and none of the pod's image
        r"(?:plugin type=\\?\"[^\"]{1,80}\\?\"|networkPlugin cni failed).{1,400}executable file not"
        r" found",
        "a program that its network plugin runs is missing",
        "install the program that the message names on that node",
    ),
    (
        COMMAND,
        WORKLOAD,
        # runc, libcontainer/standard_init_linux.go; crun, src/libcrun; containerd and docker
        r"exec: \\*\"[^\"]*\": |executable file (?:`[^`]*` )?not found|exec format error"
        r"|exec container process|open executable: |exists but it is not executable"
        r"|\bno command specified",
        "their image lacks the command that they run, or is of another architecture",
        "correct the command or the image in the workload's template",
    ),
    (
        LOW_LIMIT,
        WORKLOAD,
        # runc, libcontainer/process_linux.go; CRI-O
        r"memory limit too low|container init was OOM-?killed|memory limit .{0,60}too low",
        "their memory limit is lower than what a container needs to begin",
        "raise limits.memory in the workload's template",
    ),
    (
        RUNTIME_CLASS,
        NODE,
        # containerd; CRI-O
        r"no runtime for \\?\"[^\"]*\" is configured|failed to find runtime handler"
        r"|RuntimeHandler \\?\"[^\"]*\\?\" not supported|runtime handler \S{1,60} not found",
        "their RuntimeClass, or the default of the runtime, names a handler that the runtime of"
        " that node does not have: none is configured, it was not restarted since, or a file that"
        " its configuration imports replaces the table of runtimes",
        "see what counts (containerd config dump, crio config), configure the handler there and"
        " restart the runtime, or give the RuntimeClass the nodes that have it"
        " (scheduling.nodeSelector); containerd before 2 takes a plugin's table whole from the last"
        " file of imports that has it",
    ),
    (
        CGROUP_DRIVER,
        NODE,
        r"expected cgroupsPath to be of format|receive slice as parent|received slice as parent",
        "kubelet and runtime have different cgroup drivers",
        "give both the same driver (KM516, KM524)",
    ),
    (
        CLOUD_ADDRESS,
        NODE,
        # the VPC CNI of AWS; that of Azure
        r"failed to assign an IP address to container|no available IP addresses|Failed to allocate"
        r" address: .{0,200}(?:AddressSpace|exhausted)",
        "its network plugin has no free address for them: the node has as many as its kind of"
        " machine may have, or its subnet is used up",
        "see the plugin's log (with AWS /var/log/aws-routed-eni/ipamd.log, its IP pool stats), the"
        " free addresses of the subnet, and maxPods of the kubelet against the addresses of that"
        " kind of machine; fewer pods, prefixes for each interface, or another kind of machine",
    ),
    (
        NO_ADDRESS,
        NODE,
        # host-local (allocator.go); Calico; Cilium
        r"no IP addresses available in (?:range set|network)|"
        r"no more free IP addresses|failed to request \d+ IPv|"
        r"all .{0,40}(?:pools|ip addresses) .{0,20}exhausted|range is full|no IPs available",
        "its network plugin has no address left for pods",
        "see how many addresses are taken, and by what that is no pod any more (KM602)",
    ),
    (
        NO_PLUGIN,
        NODE,
        # libcni invoke/find.go
        r"failed to find plugin \\?\"[^\"\\]+\\?\" in path",
        "a program that the CNI configuration names is missing",
        "put the program back into the folder that the message names (KM604)",
    ),
    (
        NO_CONFIGURATION,
        NODE,
        r"cni plugin not initialized|cni config uninitialized|no networks? (?:config )?found in|No"
        r" CNI configuration file|network is not ready",
        "its runtime has no CNI configuration",
        "see the network plugin's pod on that node (KM519)",
    ),
    (
        SANDBOX_IMAGE,
        NODE,
        r"failed to get sandbox image|failed (?:pulling|to pull) (?:sandbox |infra )?image"
        r" \\?\"\S*pause|unable to pull (?:sandbox|pause) image|creating pod sandbox: .{0,80}pause"
        # CRI-O pulls no other image while it makes a sandbox. Where it names it, a known message
        # tells it.
        r"|creating pod sandbox with name [^\n]{1,300}?\": (?![^\n]{0,200}docker://)[^\n]{0,200}?"
        r"(?:OCI artifact|pinging (?:container|docker) registry|[Rr]eading manifest"
        r"|[Mm]anifest unknown|Source image rejected)",
        "the runtime lacks the image of the sandbox and cannot pull it",
        "pull the image that the message names on that node, or let the runtime use one that it"
        " reaches (KM605)",
    ),
    (
        RESERVED,
        NODE,
        # containerd, internal/cri/server: no plugin of the network works while it makes a container
        r"failed to reserve container name",
        "the runtime has not ended their first attempt to make a container: that hangs, or takes"
        " longer than the kubelet waits (two minutes, if not configured), as a large image on a"
        " slow or throttled disk does, or a volume that does not answer",
        "see the load of the disk that has the runtime's folder (iostat -x 1: await and %util; of a"
        " machine in a cloud the limits of its disk, which grow with its size and kind), and"
        " mounts that do not answer (KM607). What is only slow starts by itself later",
    ),
    (
        RESERVED,
        NODE,
        # containerd, internal/cri/server; CRI-O; docker
        r"failed to reserve sandbox name|name \\?\"?[^\"]*\\?\"? is reserved for|"
        r"(?:is|already) in use by container|error reserving (?:pod|ctr) name",
        "the runtime has not ended an earlier attempt to create the same sandbox or container, or"
        " keeps its name",
        "where the earlier attempt is stuck, see what the runtime waits for (its disk, a program of"
        " the CNI, a process in state D: KM607)",
    ),
    (
        RUNTIME,
        NODE,
        r"(?:containerd|crio|cri-?dockerd|dockershim|docker)\.sock|cannot connect to the docker"
        r" daemon|transport is closing|ttrpc: closed",
        "the kubelet does not reach its runtime, or the runtime its own helper",
        "see the runtime of that node (KM508)",
    ),
    (
        CNI_DAEMON,
        NODE,
        r"error getting ClusterInformation|stat /var/lib/calico/nodename|open /run/flannel/subnet"
        r"\.env|unable to connect to Cilium|cilium-agent|multus|plugin type=\\?\"[^\"]+\\?\" "
        r".{0,80}(?:failed|unauthorized)|networkPlugin cni failed|failed to (?:set ?up|destroy) "
        r"(?:pod|network)|ovn-kubernetes|dial unix /\S*(?:cni|ipam|aws-node|calico)\S*",
        "its network plugin fails",
        "see the network plugin's pod on that node, and what it logs",
    ),
    (
        DEADLINE,
        NODE,
        r"context deadline exceeded|DeadlineExceeded|operation timeout|i/o timeout|timed out",
        "the runtime or its network plugin does not answer in time",
        "see what the runtime waits for: its disk, the network plugin's pod, processes in state D"
        " (KM607)",
    ),
    (
        CREATE,
        NODE,
        r"(?:OCI runtime|runc|crun|container) create failed|failed to create (?:shim|containerd"
        r"|runc) |failed to generate (?:sandbox )?container \S{1,80} spec|Error response from"
        r" daemon: |"
        r"failed to (?:create|start|run) (?:pod sandbox|sandbox|containerd task|container)",
        "the runtime cannot create their containers",
        "the message says what fails",
    ),
)
_PULL = _table(
    (
        IMAGE_NAME,
        WORKLOAD,
        r"InvalidImageName|couldn't parse image|invalid reference format",
        "the name of their image is invalid",
        "correct the image in the workload's template",
    ),
    (
        NEVER_PULL,
        WORKLOAD,
        r"ErrImageNeverPull|is not present with pull policy of Never",
        "their image is not on the node, and imagePullPolicy is Never",
        "bring the image to the node, or change imagePullPolicy",
    ),
    (
        RATE,
        NODE,
        r"toomanyrequests|429 Too Many|rate limit",
        "the registry's rate limit is reached",
        "pull as a user of the registry (imagePullSecrets), or through a mirror",
    ),
    (
        CERTIFICATE,
        NODE,
        # crypto/x509/verify.go
        r"certificate has expired or is not yet valid",
        "the registry's certificate has expired, or is not valid yet by the clock of that node",
        "compare the clock of that node (timedatectl) with the times of the certificate (openssl"
        " s_client -connect REGISTRY:443 </dev/null | openssl x509 -noout -dates): set the one"
        " right, or renew the other at the registry",
    ),
    (
        CERTIFICATE,
        NODE,
        r"x509: (?:certificate is (?:valid for|not valid for)|cannot validate certificate for|"
        r"certificate relies on legacy Common Name)",
        "the registry's certificate does not have the name or address by which the runtime asks",
        "name the registry in images and in the runtime's configuration as its certificate does"
        " (openssl x509 -noout -ext subjectAltName), or issue one that has this name as a"
        " subjectAltName",
    ),
    (
        CERTIFICATE,
        NODE,
        r"x509:|certificate (?:signed by unknown|has expired|is not)|tls: failed to verify",
        "the registry's certificate is refused: that node does not trust the authority that signed"
        " it, which is one of the registry's own, or of a proxy that opens TLS",
        "give the runtime of that node this authority: ca of containerd's certs.d/REGISTRY/hosts"
        ".toml (folders with a port in their name where the image has one), /etc/docker/certs.d, or"
        " the node's own ones (update-ca-certificates, update-ca-trust), which a runtime reads at"
        " its start: restart it",
    ),
    (
        CLIENT_CERTIFICATE,
        NODE,
        # crypto/tls/alert.go: what the other side says
        r"remote error: tls: (?:certificate required|bad certificate|unknown certificate(?:"
        r" authority)?|certificate unknown|expired certificate|revoked certificate)",
        "the registry wants a certificate of its clients, and refuses what the runtime of that node"
        " has, or it has none",
        "give the runtime the client's certificate and key for that registry: client = [[CERT,"
        " KEY]] below the host in containerd's certs.d/REGISTRY/hosts.toml, client.cert and"
        " client.key in /etc/docker/certs.d/REGISTRY or /etc/containers/certs.d/REGISTRY; see that"
        " they have not expired",
    ),
    (
        HANDSHAKE,
        NODE,
        r"remote error: tls: ",
        "the registry, or what answers at its address, ends the TLS handshake",
        "see which name, TLS version and ciphers it takes (openssl s_client -connect REGISTRY:443"
        " -servername REGISTRY from that node), and whether a proxy or firewall answers in its"
        " place",
    ),
    (
        PLAIN_HTTP,
        NODE,
        r"server gave HTTP response to HTTPS client",
        "the registry speaks plain HTTP, and the runtime of that node asks by HTTPS",
        "configure that registry in the runtime as plain HTTP (hosts.toml of containerd), as on"
        " other nodes",
    ),
    (
        PROXY,
        NODE,
        r"proxyconnect tcp",
        "the runtime of the node does not reach the proxy by which it asks the registry",
        "see HTTPS_PROXY and NO_PROXY of the runtime's unit (systemctl show -p Environment), and"
        " whether the proxy answers that node",
    ),
    (
        DNS,
        NODE,
        r"no such host|server misbehaving|temporary failure in name resolution|lookup \S+ on \S+",
        "the node cannot resolve the registry's name",
        "see the node's resolver (/etc/resolv.conf), not the cluster's DNS: the runtime pulls from"
        " the host's network",
    ),
    (
        REFUSED,
        NODE,
        r"connection refused|no route to host|network is unreachable|connection reset",
        "the node does not reach the registry",
        "see the way from that node to the registry: routes, firewall, proxy of the runtime's unit",
    ),
    (
        PLATFORM,
        WORKLOAD,
        # containerd; docker; containers/image of CRI-O
        r"no match for platform|no matching manifest for|no image found in (?:manifest list|image"
        r" index)|image architecture mismatch|does not match the specified platform",
        "their image has no variant for the platform of that node",
        "build and push it for that platform too, or give the workload the nodes of its platform"
        " (nodeSelector kubernetes.io/arch)",
    ),
    (
        UNAUTHORIZED,
        WORKLOAD,
        r"pull access denied|authentication required|no basic auth|unauthorized|"
        r"403 Forbidden|status(?: code)?\b.{0,300}: 40[13]\b|insufficient_scope|denied: |"
        r"access to the resource is denied|invalid username/password|access forbidden",
        "the registry refuses them their image",
        "see imagePullSecrets of the workload and its service account, and the name of the image",
    ),
    (
        SERVER_ERROR,
        NODE,
        r"\b50[0234] (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)|"
        r"status(?: code)?\b.{0,300}: 50[0234]\b",
        "the registry, or what answers in its place, has an error of its own",
        "see the registry's own log and disk; until then another registry or a mirror",
    ),
    (
        NOT_FOUND,
        WORKLOAD,
        r"manifest unknown|manifest for \S+ not found|\bnot found\b|repository does not exist|"
        r"404 Not Found|status(?: code)?\b.{0,300}: 404\b",
        "their image is not in the registry",
        "correct the image's name or tag in the workload's template, or push it",
    ),
    (
        TIMEOUT,
        NODE,
        r"i/o timeout|deadline exceeded|DeadlineExceeded|Client\.Timeout|TLS handshake timeout|"
        r"connection timed out|request canceled|\bEOF\b",
        "the registry does not answer that node in time",
        "see the way from that node to the registry: routes, firewall, proxy of the runtime's unit",
    ),
)
_MOUNT = _table(
    (
        UNREGISTERED,
        NODE,
        # util/manager/cache_based_manager.go; volume/secret, volume/configmap
        r"\" not registered|failed to sync (?:secret|configmap) cache",
        "its kubelet does not have the ConfigMaps and Secrets of pods that it starts",
        "see whether that kubelet reaches the API server, and what it logs of it",
    ),
    (
        MULTI_ATTACH,
        NODE,
        # volume/attachdetach reconciler
        r"Multi-Attach error",
        "their volume is still attached to another node",
        "see the node that holds it (KM606)",
    ),
    (
        OBJECT_MISSING,
        WORKLOAD,
        r"(?:secrets?|configmaps?|persistentvolumeclaim) \\?\"[^\"]+\" not found|references"
        r" non-existent",
        "a ConfigMap, Secret or claim that they name does not exist",
        "make the object, or correct the workload's template",
    ),
    (
        NO_DRIVER,
        NODE,
        r"not found in the list of registered CSI drivers|no volume plugin matched",
        "the volume's driver is not registered with the kubelet of that node",
        "see the driver's pod on that node (its DaemonSet), and its registration socket in"
        " /var/lib/kubelet/plugins_registry",
    ),
    (
        MOUNT_SERVER,
        NODE,
        r"mount\.nfs|mount\.cifs|connection timed out|no route to host|connection refused|"
        r"stale file handle|transport endpoint is not connected",
        "the server of a network file system does not answer that node",
        "see the way from that node to the server that the message names, and dead mounts (KM607)",
    ),
    (
        MOUNT_BUSY,
        NODE,
        # util-linux; longhorn#1210, kubevirt/csi-driver#146
        r"already mounted or mount point busy",
        "the device of a volume is in use on that node: multipathd has taken it, or it is mounted"
        " elsewhere",
        "on that node lsblk -o NAME,TYPE,VENDOR,MOUNTPOINT of the device: where an mpath is below"
        " it, exclude the driver's devices in /etc/multipath.conf (blacklist { device { vendor"
        ' "VENDOR" } }), systemctl restart multipathd, and multipath -f that map; else findmnt'
        " shows where it is mounted",
    ),
    (
        MOUNT_TIMEOUT,
        NODE,
        r"timed out waiting for the condition|context deadline exceeded|unable to attach or mount"
        r" volumes|unmounted volumes=",
        "a volume is not attached or mounted in time",
        "see the other events of the pod, the driver's pod on that node and the attacher's log",
    ),
    (
        MOUNT,
        NODE,
        r"MountVolume|MapVolume|mount failed|SetUp failed|AttachVolume",
        "a volume cannot be mounted",
        "the message says what fails",
    ),
)


def trouble(
    reason: str, message: str, versions: Versions = (), *, is_current: bool = True
) -> Trouble | None:
    """Return why a pod waits, by an event's reason or a container's, and its message.

    None: the text names no cause.

    versions: those of the kernel and the runtime of its node, where they are known
    is_current: whether it still tries and fails, so that one pod may tell of its node
    """
    if reason in MOUNT_REASONS:
        cause = _of_mount(message)
    elif is_pull(reason, message):
        cause = _of_pull(reason, message)
    else:
        cause = _of_create(message)
    cause = _known(message, cause, versions)
    return _judged(message, cause) if is_current else cause


def _known(message: str, cause: Trouble | None, versions: Versions) -> Trouble | None:
    """Return a cause as the table of known messages tells it, where it has the message."""
    row = known_message.find((known_message.EVENT,), message, None, versions)
    if row is None:
        return _plain(message, cause)
    trouble_of_row = Trouble(f"{KNOWN} {row.id}", NODE, row.clause, row.advice)
    if row.is_of_workload:
        return replace(trouble_of_row, whose=WORKLOAD)
    is_of_attachment = trouble_of_row.kind == OF_ATTACHMENT
    if cause is None or cause.whose == WORKLOAD or is_of_attachment:
        return trouble_of_row
    if cause.kind in GENERIC:
        return replace(trouble_of_row, kind=f"{cause.kind} {row.id}")
    return cause


def _plain(message: str, cause: Trouble | None) -> Trouble | None:
    """Return a cause that only says what failed as general rules tell it."""
    if cause is None or cause.kind not in (CREATE, CNI_DAEMON, MOUNT):
        return cause
    row = plain_error.find(message)
    if row is None:
        return cause
    return Trouble(f"{cause.kind} {row.id}", NODE, row.clause, row.advice)


def _judged(message: str, cause: Trouble | None) -> Trouble | None:
    """Return a cause that names a symptom as the innermost part of its error tells it."""
    if cause is None or _is_known(cause.kind):
        return cause
    origin = error_origin.read(message)
    kind = base(cause.kind)
    if kind == CNI_DAEMON and origin.owner == error_origin.NETWORK:
        return replace(cause, what=f"{cause.what} ({origin.program}: {origin.reason})")
    is_broken = kind == COMMAND and origin.errno in error_origin.BROKEN
    if not (origin.is_of_machine and (is_broken or kind in _SYMPTOMS)):
        return cause
    return _of_machine(cause, origin)


def _of_machine(cause: Trouble, origin: Origin) -> Trouble:
    """Return a cause that no workload brings about; what a general rule says of it stays."""
    kind = f"{base(cause.kind)} {OF_MACHINE}"
    if cause.kind == ERRNO or plain_error.ID in cause.kind:
        return replace(cause, kind=kind)
    return Trouble(kind, NODE, origin_wording.clause(origin), origin_wording.advice(origin))


def _is_known(kind: str) -> bool:
    """Tell whether a kind is of a known message, which says more than the parts of its error."""
    return base(kind) == KNOWN or kind.partition(" ")[2] not in ("", plain_error.ID)


def base(kind: str) -> str:
    """Return a kind of trouble without the id of its known message."""
    return kind.partition(" ")[0]


def may_be_of_one(kind: str) -> bool:
    """Tell whether one workload alone can bring about a kind of trouble."""
    if kind.endswith(f" {OF_MACHINE}"):
        return False
    return base(kind) == KNOWN or base(kind) in OF_ONE


def is_of_machine(kind: str) -> bool:
    """Tell whether only the machine of a node brings about a kind of trouble."""
    cause = kind.rpartition(" ")[2]
    if base(kind) in _OF_RUNTIME_ALONE:
        return True
    return kind == DOCKER_TOO_NEW or cause == OF_MACHINE or cause in known_message.OF_NODES


def is_pull(reason: str, message: str) -> bool:
    """Tell whether a text is about the image of a container, and not about that of a sandbox."""
    if reason in PULL_REASONS:
        return True
    about_image = re.search(r"(?:pull|unpack|inspect)\w* image", message, re.IGNORECASE)
    return about_image is not None and "andbox" not in message


def pull(message: str) -> Trouble | None:
    """Return why an image cannot be pulled, None where the text does not say it."""
    return _of_errno(message) or _first(_PULL, message)


def is_of_sandbox_image(message: str) -> bool:
    """Return whether a message is of a sandbox whose own image cannot be pulled."""
    cause = trouble("FailedCreatePodSandBox", message)
    return cause is not None and cause.kind == SANDBOX_IMAGE


def is_of_network(message: str) -> bool:
    """Return whether a message is of a sandbox whose network cannot be made."""
    return _OF_NETWORK.search(message) is not None


def vague(message: str) -> bool:
    """Tell whether a text only says that something is tried again."""
    return message.startswith(("Back-off ", "Error: ", "back-off ")) or not message


def _of_mount(message: str) -> Trouble | None:
    """Return the cause of a volume; an errno says more than that its mount failed."""
    cause = _first(_MOUNT, message)
    if cause is None or cause.kind == MOUNT:
        return _of_errno(message) or cause
    return cause


def _of_pull(reason: str, message: str) -> Trouble | None:
    cause = _of_errno(message) or _of_runtime(message) or _first(_PULL, f"{reason}: {message}")
    if cause is not None or vague(message):
        return cause
    return Trouble(PULL, NODE, "their image cannot be pulled", "the message says what fails")


def _of_runtime(message: str) -> Trouble | None:
    """Return what concerns the runtime itself or its storage, and is no answer of a registry."""
    cause = _first(_CREATE, message)
    if cause is None or cause.kind not in (RUNTIME, STORE):
        return None
    return cause


def _of_create(message: str) -> Trouble | None:
    """Return the cause of a sandbox or container; an errno says more than that it failed."""
    cause = _first(_CREATE, message)
    if cause is None or cause.kind in (CREATE, RESERVED, CNI_DAEMON, DEADLINE):
        return _of_errno(message) or cause
    return cause


def _of_errno(message: str) -> Trouble | None:
    explained = errno_message.explanation(message)
    if explained is None:
        return None
    return Trouble(ERRNO, NODE, *explained)


def _first(table: tuple[tuple[re.Pattern[str], Trouble], ...], text: str) -> Trouble | None:
    return next((cause for pattern, cause in table if pattern.search(text)), None)
