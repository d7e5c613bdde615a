# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's journal for the tests.

It has the last words of 1.14 to 1.36, as kubelets wrote them, with what they mean.

`m` marks those of v1.18.4 or v1.36.3, run here or read in their strings. The named issue shows the
others.
"""

from __future__ import annotations

PID = 20288
FAILED = {
    "name": "kubelet.service",
    "load_state": "loaded",
    "active_state": "activating",
    "sub_state": "auto-restart",
    "result": "exit-code",
}
CPU_STATE = (
    'could not restore state from checkpoint: configured policy \\"static\\" differs from state'
    ' checkpoint policy \\"none\\", please drain this node and delete the CPU manager checkpoint'
    ' file \\"/var/lib/kubelet/cpu_manager_state\\" before restarting Kubelet'
)


def entry(text, ident="kubelet", pid=PID):
    return f"2026-11-22T18:31:29+0000 w1 {ident}[{pid}]: {text}"


def klog(text, severity="E", file="run.go:72", pid=PID, header=PID):
    return entry(f"{severity}1122 18:31:29.346075   {header} {file}] {text}", pid=pid)


def fatal(text, file="server.go:274"):
    return klog(text, "F", file)


def failed(error):
    return klog(f'"command failed" err="{error}"')


def systemd(text):
    return entry(text, "systemd", 1)


def ended(status, name="FAILURE", unit="kubelet.service"):
    return [
        systemd(f"{unit}: Main process exited, code=exited, status={status}/{name}"),
        systemd(f"{unit}: Failed with result 'exit-code'."),
    ]


AGAIN = [
    systemd("kubelet.service: Scheduled restart job, restart counter is at 259."),
    systemd("Stopped kubelet.service - kubelet."),
    systemd("Started kubelet.service - kubelet: The Kubernetes Node Agent."),
]
HARMLESS = klog('"Standalone mode, no API client"', "I", "server.go:575")

# (line, the status that the process ends with, cause, what)
CASES = [
    # swap: <= 1.15 (k/k#50373), 1.22 (its form), 1.36.3 (m, strings; AKSFlexNode#67)
    (
        fatal(
            "failed to run Kubelet: Running with swap on is not supported, please disable swap! or"
            " set --fail-swap-on flag to false. /proc/swaps contained:"
            " [Filename\t\t\t\tType\t\tSize\tUsed\tPriority /dev/dm-1 partition\t4001788\t0\t-1]"
        ),
        255,
        "swap",
        "",
    ),
    (
        klog(
            '"Failed to run kubelet" err="failed to run Kubelet: running with swap on is not'
            " supported, please disable swap! or set --fail-swap-on flag to false. /proc/swaps"
            ' contained: [Filename]"',
            file="server.go:302",
        ),
        1,
        "swap",
        "",
    ),
    (
        failed(
            "failed to run Kubelet: running with swap on is not supported, please disable swap or"
            " set --fail-swap-on flag to false"
        ),
        1,
        "swap",
        "",
    ),
    # flags: 1.18.4 m, 1.22 (E … server.go:158, seen on RHEL 7), 1.24.0 (k/website#34755), 1.36.3 m
    (fatal("unknown flag: --nope", "server.go:157"), 255, "unknown_flag", "--nope"),
    (
        klog(
            '"Failed to parse kubelet flag" err="unknown flag: --cgroupDriver"',
            file="server.go:158",
        ),
        1,
        "unknown_flag",
        "--cgroupDriver",
    ),
    (
        entry("Error: failed to parse kubelet flag: unknown flag: --network-plugin"),
        1,
        "unknown_flag",
        "--network-plugin",
    ),
    (
        failed("failed to parse kubelet flag: unknown flag: --network-plugin"),
        1,
        "unknown_flag",
        "--network-plugin",
    ),
    (
        failed("failed to parse kubelet flag: unknown shorthand flag: 'n' in -nope"),
        1,
        "unknown_flag",
        "-nope",
    ),
    (
        fatal(
            'invalid argument "many" for "--max-pods" flag: strconv.ParseInt: parsing "many":'
            " invalid syntax"
        ),
        255,
        "bad_configuration",
        "--max-pods=many",
    ),
    (
        failed(
            r"failed to parse kubelet flag: invalid argument \"Nope\" for \"--feature-gates\" flag:"
            r" malformed pair, expect string=bool"
        ),
        1,
        "bad_configuration",
        "--feature-gates=Nope",
    ),
    (fatal("unknown command: stray"), 255, "bad_configuration", "stray"),
    (failed("unknown command stray"), 1, "bad_configuration", "stray"),
    (klog('"Unknown command" command="stray"', file="server.go:166"), 1, "bad_configuration", ""),
    # gates: m, and 1.31 (test-infra#33218)
    (fatal("unrecognized feature gate: Nope", "server.go:209"), 255, "removed_gate", "Nope"),
    (
        failed(
            "failed to set feature gates from initial flags-based config: unrecognized feature"
            " gate: InTreePluginGCEUnregister"
        ),
        1,
        "removed_gate",
        "InTreePluginGCEUnregister",
    ),
    (
        entry(
            "panic: failed to merge global and in-flight KubeletConfiguration while setting"
            " defaults, error: unrecognized feature gate: Nope"
        ),
        2,
        "removed_gate",
        "Nope",
    ),
    (
        entry(
            "panic: failed to merge global and in-flight KubeletConfiguration while setting"
            " defaults, error: cannot set feature gate NodeSwap to false, feature is locked to true"
        ),
        2,
        "removed_gate",
        "NodeSwap",
    ),
    # configuration: m
    (
        fatal(
            "failed to load Kubelet config file /nonexistent, error failed to read kubelet config"
            ' file "/nonexistent", error: open /nonexistent: no such file or directory',
            "server.go:199",
        ),
        255,
        "bad_configuration",
        "/nonexistent",
    ),
    (
        failed(
            r"failed to load kubelet config file, path: /etc/k.yaml, error: failed to load Kubelet"
            r" config file /etc/k.yaml, error failed to decode: json: "
            "cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type"
            " int32"
        ),
        1,
        "bad_configuration",
        "/etc/k.yaml: maxPods",
    ),
    (
        fatal(
            "failed to load Kubelet config file yaml.yaml, error failed to decode: yaml: line 3:"
            " mapping values are not allowed in this context"
        ),
        255,
        "bad_configuration",
        "yaml.yaml: line 3",
    ),
    (
        failed(
            r"failed to validate kubelet configuration, error: [invalid configuration: healthzPort"
            r" (--healthz-port) 99999999 must be between 1 and 65535,"
            r" inclusive, invalid configuration: option \"x\" specified for enforceNodeAllocatable"
            r" (--enforce-node-allocatable)], path: &x"
        ),
        1,
        "bad_configuration",
        "healthzPort",
    ),
    (
        fatal(
            "[invalid configuration: HealthzPort (--healthz-port) 99999999 must be between 1 and"
            " 65535, inclusive]",
            "server.go:216",
        ),
        255,
        "bad_configuration",
        "HealthzPort",
    ),
    (
        failed(
            r"failed to load kubelet dropin file, path: /etc/d/10.conf, error: strict decoding"
            r" error: unknown field \"noSuch\""
        ),
        1,
        "bad_configuration",
        "/etc/d/10.conf: noSuch",
    ),
    (
        fatal(
            "unable to load client CA file /etc/kubernetes/pki/ca.crt: open"
            " /etc/kubernetes/pki/ca.crt: no such file or directory"
        ),
        255,
        "credential",
        "unable to load client CA file /etc/kubernetes/pki/ca.crt: open /etc/kubernetes/pki/ca.crt:"
        " no such file or directory",
    ),
    (
        failed(
            r"failed to load kubelet config file, path: empty.yaml, error: failed to load Kubelet"
            r" config file empty.yaml, error kubelet config file "
            r"\"/tmp/h4k/empty.yaml\" was empty"
        ),
        1,
        "state_file",
        "/tmp/h4k/empty.yaml",
    ),
    # what the resource managers are told: k/k#102073 (1.21), k/k#96352 (1.19), k/k#85887 (1.14), cm
    # of 1.14.0 to 1.36.3
    (
        klog(
            r'"Failed to run kubelet" err="failed to run Kubelet: unknown policy: \"static\""',
            file="server.go:292",
        ),
        1,
        "bad_configuration",
        "policy: static",
    ),
    (
        fatal('failed to run Kubelet: unknown policy: "Static"'),
        255,
        "bad_configuration",
        "policy: Static",
    ),
    (
        failed(
            r"failed to run Kubelet: policy \"BestEffort\" is not available for platform \"linux\""
        ),
        1,
        "bad_configuration",
        "policy: BestEffort",
    ),
    (
        failed(
            r"failed to run Kubelet: the total amount \"1Gi\" of type \"memory\" is not equal to"
            r" the value \"1124Mi\" determined by Node Allocatable "
            "feature"
        ),
        1,
        "bad_configuration",
        "reservedMemory: memory 1Gi, which must be 1124Mi",
    ),
    (
        failed(
            "failed to run Kubelet: the reserved memory configuration references a NUMA node 3 that"
            " does not exist on this machine"
        ),
        1,
        "bad_configuration",
        "reservedMemory: NUMA node 3",
    ),
    (
        failed(
            "failed to run Kubelet: [memorymanager] you should specify the system reserved memory"
        ),
        1,
        "bad_configuration",
        "reservedMemory",
    ),
    (
        failed("failed to run Kubelet: reserved-cpus: 0,9 is not a subset of online-cpus: 0-3"),
        1,
        "bad_configuration",
        "reservedSystemCPUs: 0,9",
    ),
    (
        failed("failed to run Kubelet: unsupported on machines with more than 8 NUMA Nodes"),
        1,
        "bad_configuration",
        "topologyManagerPolicy",
    ),
    (
        failed(
            r"failed to run Kubelet: new static policy error: CPU Manager Policy Alpha-level"
            r" Options not enabled, but option \"align-by-socket\" provided"
        ),
        1,
        "bad_configuration",
        "cpuManagerPolicyOptions: align-by-socket",
    ),
    (
        failed(
            "failed to run Kubelet: new none policy error: None policy: received unsupported"
            " options=map[full-pcpus-only:true]"
        ),
        1,
        "bad_configuration",
        "cpuManagerPolicyOptions",
    ),
    (
        failed(r"failed to run Kubelet: unknown Topology Manager Policy option: \"x\""),
        1,
        "bad_configuration",
        "topologyManagerPolicyOptions: x",
    ),
    (
        fatal(
            "Failed to start ContainerManager Failed to enforce Kube Reserved Cgroup Limits on"
            ' "/kubelet.slice": ["kubelet"] cgroup does not exist',
            "kubelet.go:1384",
        ),
        255,
        "bad_configuration",
        "kubeReservedCgroup: /kubelet.slice",
    ),
    (
        klog(
            r'"Failed to start ContainerManager" err="Failed to enforce Kube Reserved Cgroup Limits'
            r" on \"/system.slice/kubelet.service\": Unit "
            r'kubelet.service.slice is not loaded."',
            file="kubelet.go:1480",
        ),
        1,
        "bad_configuration",
        "kubeReservedCgroup: /system.slice/kubelet.service",
    ),
    (
        klog(
            r'"Failed to start ContainerManager" err="Failed to enforce System Reserved Cgroup'
            r' Limits on \"/sys\": [\"sys\"] cgroup is not configured properly"'
        ),
        1,
        "bad_configuration",
        "systemReservedCgroup: /sys",
    ),
    (
        failed(
            "failed to run Kubelet: --kube-reserved value failed to parse: cannot reserve resource"
        ),
        1,
        "bad_configuration",
        "kubeReserved",
    ),
    # state files: scylla-operator#1265, kubernetes-facts 5, k/k#135711
    (
        klog(
            f'"Failed to start ContainerManager" err="start cpu manager error: {CPU_STATE}"',
            file="kubelet.go:1480",
        ),
        1,
        "cpu_manager_state",
        "/var/lib/kubelet/cpu_manager_state",
    ),
    (
        fatal(
            "Failed to start ContainerManager start cpu manager error: "
            + CPU_STATE.replace("\\", ""),
            "kubelet.go:1383",
        ),
        255,
        "cpu_manager_state",
        "/var/lib/kubelet/cpu_manager_state",
    ),
    (
        entry("panic: [cpumanager] - please drain node and remove policy state file"),
        2,
        "cpu_manager_state",
        "[cpumanager] - please drain node and remove policy state file",
    ),
    (
        klog(
            '"Failed to start ContainerManager" err="start memory manager error: could not restore'
            " state from checkpoint: [memorymanager] the expected machine state is different from"
            " the real one, please drain this node and delete the memory manager checkpoint file"
            ' \\"/var/lib/kubelet/memory_manager_state\\" before restarting Kubelet"'
        ),
        1,
        "memory_manager_state",
        "/var/lib/kubelet/memory_manager_state",
    ),
    (
        klog(
            '"Failed to start ContainerManager" err="start memory manager error: the policy needs'
            ' reserved memory"'
        ),
        1,
        "unknown",
        "",
    ),
    (
        entry(
            "panic: could not restore state from checkpoint: invalid character '\"' after"
            " top-level value, please drain this node and delete pod allocation checkpoint file"
            ' "/var/lib/kubelet/pod_status_manager_state" before restarting Kubelet'
        ),
        2,
        "state_file",
        "/var/lib/kubelet/pod_status_manager_state",
    ),
    (
        entry(
            "panic: could not restore state from checkpoint: unexpected end of JSON input, please"
            " drain this node and delete pod allocation checkpoint file"
            ' "/var/lib/kubelet/pod_status_manager_state" before restarting Kubelet'
        ),
        2,
        "state_file",
        "/var/lib/kubelet/pod_status_manager_state",
    ),
    # certificates: k/k#98150, clientcmd, certificate_store.go (m, strings)
    (
        fatal(
            "failed to run Kubelet: unable to load bootstrap kubeconfig: stat"
            " /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"
        ),
        255,
        "client_certificate",
        "",
    ),
    (
        failed(
            "failed to run Kubelet: invalid configuration: [unable to read client-cert"
            " /var/lib/kubelet/pki/kubelet-client-current.pem for default-auth due to open"
            " /var/lib/kubelet/pki/kubelet-client-current.pem: no such file or directory, unable to"
            " read client-key x for default-auth]"
        ),
        1,
        "client_certificate",
        "/var/lib/kubelet/pki/kubelet-client-current.pem",
    ),
    (
        failed(
            r"failed to run Kubelet: failed to initialize client certificate manager: could not"
            r" convert data from "
            r"\"/var/lib/kubelet/pki/kubelet-client-current.pem\" into cert/key pair: tls: failed"
            r" to find any PEM data in certificate input"
        ),
        1,
        "client_certificate",
        "/var/lib/kubelet/pki/kubelet-client-current.pem",
    ),
    (
        failed(
            r"failed to run Kubelet: failed to create kubelet: failed to initialize certificate"
            r" manager: could not convert data from "
            r"\"/var/lib/kubelet/pki/kubelet-server-current.pem\" into cert/key pair: tls: failed"
            r" to find any PEM data"
        ),
        1,
        "state_file",
        "/var/lib/kubelet/pki/kubelet-server-current.pem",
    ),
    (
        failed("failed to run Kubelet: failed to initialize client certificate manager: no"),
        1,
        "client_certificate",
        "",
    ),
    # the machine: 1.35 and newer (m, strings); microk8s#3091 (1.22); k/k#66241
    (
        failed(
            "failed to run Kubelet: kubelet is configured to not run on a host using cgroup v1."
            " cgroup v1 support is unsupported and will be removed in a future release"
        ),
        1,
        "cgroup_v1",
        "",
    ),
    (
        klog(
            '"Failed to start ContainerManager" err="[invalid kernel flag: vm/overcommit_memory,'
            " expected value: 1, actual value: 0, invalid kernel flag: kernel/panic, expected"
            ' value: 10, actual value: -1]"',
            file="kubelet.go:1423",
        ),
        1,
        "kernel_defaults",
        "kernel/panic, vm/overcommit_memory",
    ),
    (
        fatal(
            "Failed to start ContainerManager [Invalid kernel flag: kernel/panic, expected value:"
            " 10, actual value: 0]",
            "kubelet.go:1335",
        ),
        255,
        "kernel_defaults",
        "kernel/panic",
    ),
    # the runtime: kubernetes/kubelet#9 (1.18), sealer#1447 (1.22), k/website#38385 (1.26),
    # k/kubeadm#2945 (1.24), k/k#66457, k/k#73189
    (
        fatal(
            'failed to run Kubelet: misconfiguration: kubelet cgroup driver: "cgroupfs" is'
            ' different from docker cgroup driver: "systemd"'
        ),
        255,
        "cgroup_driver",
        "kubelet cgroupfs, docker systemd",
    ),
    (
        klog(
            r'"Failed to run kubelet" err="failed to run Kubelet: misconfiguration: kubelet cgroup'
            r" driver: \"cgroupfs\" is different from docker cgroup "
            r'driver: \"systemd\""',
            file="server.go:292",
        ),
        1,
        "cgroup_driver",
        "kubelet cgroupfs, docker systemd",
    ),
    (
        failed(
            r"failed to run Kubelet: validate service connection: CRI v1 runtime API is not"
            r" implemented for endpoint "
            r"\"unix:///var/run/containerd/containerd.sock\": rpc error: code = Unimplemented desc"
            r" = unknown service runtime.v1.RuntimeService"
        ),
        1,
        "runtime",
        "unix:///var/run/containerd/containerd.sock: Unimplemented",
    ),
    (
        failed(
            r"failed to run Kubelet: validate service connection: validate CRI v1 runtime API for"
            r" endpoint \"unix:///run/crio/crio.sock\": rpc error: "
            r"code = Unavailable desc = connection error: desc = \"transport: Error while dialing:"
            r" dial unix /run/crio/crio.sock: connect: refused\""
        ),
        1,
        "runtime",
        "unix:///run/crio/crio.sock: Unavailable",
    ),
    (
        failed("failed to run Kubelet: validate service connection: context deadline exceeded"),
        1,
        "runtime",
        "",
    ),
    (
        entry(
            "Error: failed to run Kubelet: unable to determine runtime API version: rpc error: code"
            ' = Unavailable desc = connection error: desc = "transport: Error while dialing dial'
            ' unix: missing address"'
        ),
        1,
        "runtime",
        "",
    ),
    (
        fatal(
            "failed to run Kubelet: failed to create kubelet: failed to get docker version: Cannot"
            " connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon"
            " running?"
        ),
        255,
        "runtime",
        "docker",
    ),
    (
        fatal(
            "failed to run Kubelet: failed to create kubelet: rpc error: code = Unimplemented desc"
            " = unknown service runtime.v1alpha2.RuntimeService"
        ),
        255,
        "runtime",
        "",
    ),
    # what is used up: k/k#58081, tarmak#756 (watches: not the disk), k/k#112364, minikube#4500
    (
        fatal("Failed to start cAdvisor inotify_init: too many open files", "kubelet.go:1230"),
        255,
        "inotify",
        "max_user_instances",
    ),
    (
        klog(
            '"Failed to start cAdvisor" err="inotify_init: too many open files"',
            file="kubelet.go:1630",
        ),
        1,
        "inotify",
        "max_user_instances",
    ),
    (
        failed("failed to run Kubelet: error creating fsnotify watcher: too many open files"),
        1,
        "inotify",
        "max_user_instances",
    ),
    (
        fatal(
            "Failed to start cAdvisor inotify_add_watch"
            " /sys/fs/cgroup/memory/x.slice:cri-containerd:1: no space left on device"
        ),
        255,
        "inotify",
        "max_user_watches",
    ),
    (
        klog(
            '"Failed to listen and serve" err="listen tcp 0.0.0.0:10250: bind: address already in'
            ' use"',
            file="server.go:165",
        ),
        1,
        "port_in_use",
        "0.0.0.0:10250",
    ),
    (
        fatal("listen tcp 0.0.0.0:10250: bind: address already in use", "server.go:153"),
        255,
        "port_in_use",
        "0.0.0.0:10250",
    ),
    (
        failed("failed to run Kubelet: mkdir /var/lib/kubelet/pki: no space left on device"),
        1,
        "disk_full",
        "/var/lib/kubelet/pki",
    ),
    # k3s (embed.go), and what nobody has seen yet
    (
        entry(
            'time="2026-11-22T18:31:29Z" level=fatal msg="kubelet exited: failed to run Kubelet:'
            ' kubelet is configured to not run on a host using cgroup v1"',
            "k3s",
        ),
        1,
        "cgroup_v1",
        "",
    ),
    (
        entry(
            'time="2026-11-22T18:31:29Z" level=error msg="kubelet exited: unknown flag: --x"', "k3s"
        ),
        1,
        "unknown_flag",
        "--x",
    ),
    # cgroups (k/k#61937, k/k#96701): the errno of a full disk, of a file system that is on none;
    # and one that names no path
    (
        klog(
            '"Failed to start ContainerManager" err="failed to initialize top level QOS containers:'
            ' mkdir /sys/fs/cgroup/memory/kubepods: no space left on device"',
            file="kubelet.go:1",
        ),
        1,
        "cgroup",
        "mkdir /sys/fs/cgroup/memory/kubepods: no space left on device",
    ),
    (
        fatal(
            "Failed to start ContainerManager failed to initialize top level QOS containers: root"
            " container [kubepods] doesn't exist"
        ),
        255,
        "cgroup",
        "root container [kubepods] doesn't exist: cgroups may be mounted a second time",
    ),
    (
        fatal(
            "Failed to start ContainerManager failed to initialize top level QOS containers: failed"
            " to set supported cgroup subsystems for cgroup [kubepods burstable]: Failed to find"
            " subsystem mount for required subsystem: pids"
        ),
        255,
        "controller",
        "pids",
    ),
    (
        fatal(
            "failed to run Kubelet: failed to get the kubelet's cgroup: cpu and memory cgroup"
            " hierarchy not unified.  cpu: /, memory: /system.slice/kubelet.service"
        ),
        255,
        "unit_cgroups",
        "cpu: /, memory: /system.slice/kubelet.service",
    ),
    (
        fatal(
            "Failed to start ContainerManager failed to build map of initial containers from"
            " runtime: no PodsandBox found with Id '0f6a2d9b'"
        ),
        255,
        "orphan",
        "sandbox 0f6a2d9b",
    ),
    (
        fatal(
            "Failed to start ContainerManager mkdir /sys/fs/cgroup/memory/kubepods: cannot allocate"
            " memory"
        ),
        255,
        "cgroup",
        "mkdir /sys/fs/cgroup/memory/kubepods: cannot allocate memory",
    ),
    (
        failed(
            "failed to run Kubelet: write"
            " /sys/fs/cgroup/cpuset/a.slice:cri-containerd:1/cpuset.cpus: no space left on device"
        ),
        1,
        "cgroup",
        "write /sys/fs/cgroup/cpuset/a.slice:cri-containerd:1/cpuset.cpus: no space left on device",
    ),
    (
        failed("failed to run Kubelet: mkdir /sys/fs/cgroup/kubepods: read-only file system"),
        1,
        "cgroup",
        "mkdir /sys/fs/cgroup/kubepods: read-only file system",
    ),
    (
        failed("failed to run Kubelet: write /var/lib/kubelet/x: disk quota exceeded"),
        1,
        "disk_full",
        "/var/lib/kubelet/x",
    ),
    (failed("failed to run Kubelet: no space left on device"), 1, "unknown", ""),
    (
        failed("failed to run Kubelet: write /proc/sys/kernel/x: no space left on device"),
        1,
        "kernel",
        "write /proc/sys/kernel/x: no space left on device",
    ),
    (
        failed("failed to run Kubelet: unable to create session key: disk quota exceeded"),
        1,
        "shortage",
        "unable to create session key: disk quota exceeded",
    ),
    (fatal("failed to run Kubelet: something new"), 255, "unknown", ""),
    (entry("fatal error: runtime: out of memory"), 2, "unknown", ""),
]
