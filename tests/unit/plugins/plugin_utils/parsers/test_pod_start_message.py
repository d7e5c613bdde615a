# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubelets and runtimes report of pods that do not start. Texts of public threads."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    known_message,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    pod_start_message as message,
)
from tests.unit.support import known_rows

CREATING = "Failed to create pod sandbox: rpc error: code = Unknown desc = "
PULLING = 'Failed to pull image "reg.example/app:1": rpc error: code = Unknown desc = '
MOUNTING = 'MountVolume.SetUp failed for volume "data" : '


@pytest.mark.parametrize(
    ("reason", "text", "kind", "whose"),
    [
        (
            "CreateContainerConfigError",
            "services have not yet been read at least once, cannot construct envvars",
            message.SERVICES,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            'failed to get sandbox runtime: no runtime for "kata" is configured',
            message.RUNTIME_CLASS,
            message.NODE,
        ),
        (
            "FailedCreatePodContainer",
            "unable to ensure pod container exists: failed to create container for [kubepods"
            " burstable pod3b7a3b5d] : dbus: connection closed by user",
            message.BUS,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            "failed to start sandbox container: failed to create containerd task:"
            " io.containerd.kata.v2: failed to connect: dial unix"
            " /run/containerd/containerd.sock.ttrpc: connect: no such file or directory",
            message.SHIM,
            message.NODE,
        ),
        (
            "Failed",
            "Error: failed to create task for container: Unimplemented: failed to start shim: start"
            " failed: unsupported shim version (3): not implemented",
            message.SHIM,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            "failed to create containerd container: create container failed validation:"
            " container.Runtime.Name must be set: invalid argument",
            message.RUNTIME_TYPE,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            'error creating pod sandbox with name "k8s_a_b_c_0": layer not known',
            message.STORE,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            "failed to find runtime handler kata from runtime list map[]",
            message.RUNTIME_CLASS,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            "runc create failed: unable to start container process: container init was OOM-killed"
            " (memory limit too low?): unknown",
            message.LOW_LIMIT,
            message.WORKLOAD,
        ),
        (
            "FailedCreatePodSandBox",
            'plugin type="multus" failed (add): cannot find a network-attachment-definition (x) in'
            " namespace (y)",
            message.OBJECT_MISSING,
            message.WORKLOAD,
        ),
        (
            "ImageInspectError",
            'Failed to inspect image "": rpc error: code = Unavailable desc = dial unix'
            " /run/containerd/containerd.sock: connect: connection refused",
            message.RUNTIME,
            message.NODE,
        ),
        (
            "Failed",
            'Failed to pull image "a": no matching manifest for windows/amd64 in the manifest list',
            message.PLATFORM,
            message.WORKLOAD,
        ),
        (
            "CreateContainerConfigError",
            'configmap "app" not found',
            message.OBJECT_MISSING,
            message.WORKLOAD,
        ),
        (
            "CreateContainerConfigError",
            "couldn't find key url in Secret default/app",
            message.OBJECT_MISSING,
            message.WORKLOAD,
        ),
        (
            "CreateContainerConfigError",
            "container has runAsNonRoot and image will run as root",
            message.SECURITY,
            message.WORKLOAD,
        ),
        (
            "RunContainerError",
            "failed to create containerd task: failed to create shim task: OCI runtime create"
            ' failed: runc create failed: unable to start container process: exec: "run":'
            " executable file not found in $PATH: unknown",
            message.COMMAND,
            message.WORKLOAD,
        ),
        (
            "FailedCreatePodSandBox",
            'Failed create pod sandbox: rpc error: code = Unknown desc = RuntimeHandler "nvidia"'
            " not supported",
            message.RUNTIME_CLASS,
            message.NODE,
        ),
        # what the node's own storage lacks is not missing in the registry
        (
            "Failed",
            PULLING + 'failed to pull and unpack image "reg.example/app:1": failed to prepare'
            ' extraction snapshot "extract-1": missing parent "k8s.io/2/sha256:0a" bucket: not'
            " found",
            message.STORE,
            message.NODE,
        ),
        (
            "InspectFailed",
            'Failed to inspect image "reg.example/app:1": rpc error: code = Unknown desc = layer'
            " not known",
            message.STORE,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + 'failed to pull and unpack image "reg.example/app:1": content at'
            " https://reg.example/v2/app/manifests/1 not found: not found",
            message.NOT_FOUND,
            message.WORKLOAD,
        ),
        # crun's words for it
        (
            "Failed",
            "Error: container create failed: executable file `run` not found in $PATH: No such file"
            " or directory",
            message.COMMAND,
            message.WORKLOAD,
        ),
        (
            "Failed",
            "Error: container create failed: open executable: Permission denied",
            message.COMMAND,
            message.WORKLOAD,
        ),
        (
            "Failed",
            'Error: failed to generate container "aa" spec: failed to generate spec: no command'
            " specified",
            message.COMMAND,
            message.WORKLOAD,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING
            + "error reserving pod name k8s_a_default_0123_0 for id 0123: name is reserved",
            message.RESERVED,
            message.NODE,
        ),
        # what CRI-O, containerd before its task, and docker say first
        (
            "Failed",
            "Error: container create failed: unshare `CLONE_NEWNS`: Cannot allocate memory",
            message.CREATE,
            message.NODE,
        ),
        (
            "Failed",
            'Error: failed to generate container "aa" spec: failed to generate spec: not this one',
            message.CREATE,
            message.NODE,
        ),
        (
            "Failed",
            "Error: Error response from daemon: layer of another kind",
            message.CREATE,
            message.NODE,
        ),
        # an address that one pod asks for is not a range without addresses
        (
            "FailedCreatePodSandBox",
            CREATING
            + 'failed to setup network for sandbox "aa": plugin type="bridge" failed (add):'
            " failed to allocate for range 0: cannot understand ip: 10.244.1",
            message.CNI_DAEMON,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING
            + 'failed to setup network for sandbox "aa": plugin type="bridge" failed (add):'
            " failed to allocate for range 0: no IP addresses available in range set:"
            " 10.244.1.1-10.244.1.254",
            message.NO_ADDRESS,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + 'failed to setup network for sandbox "aa": plugin type="aws-cni"'
            ' name="aws-cni" failed (add): add cmd: failed to assign an IP address to container',
            message.CLOUD_ADDRESS,
            message.NODE,
        ),
        # what the runtime runs is the node's, what a container runs is the workload's
        (
            "Failed",
            "Error: failed to create containerd task: failed to start shim: exec:"
            ' "containerd-shim": executable file not found in $PATH: unknown',
            message.PROGRAM,
            message.NODE,
        ),
        (
            "CreateContainerError",
            "fork/exec /usr/bin/crio-conmon: no such file or directory",
            message.PROGRAM,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + 'runtime "io.containerd.krun.v2" binary not installed'
            ' "containerd-shim-krun-v2": file does not exist: unknown',
            message.PROGRAM,
            message.NODE,
        ),
        (
            "Failed",
            'failed to create containerd task: OCI runtime create failed: exec: "runc": executable'
            " file not found in $PATH",
            message.PROGRAM,
            message.NODE,
        ),
        (
            "RunContainerError",
            'OCI runtime create failed: exec: "runctl": executable file not found in $PATH',
            message.COMMAND,
            message.WORKLOAD,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + 'failed to create snapshot: missing parent "k8s.io/9/sha256:e171" bucket:'
            " not found",
            message.STORE,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + 'failed to find plugin "flannel" in path [/opt/cni/bin]',
            message.NO_PLUGIN,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox"
            ' image "registry.k8s.io/pause:3.6": failed to pull image: dial tcp: i/o timeout',
            message.SANDBOX_IMAGE,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + 'failed to reserve sandbox name "a_b_c_0": name "a_b_c_0" is reserved for'
            ' "4f1d"',
            message.RESERVED,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + 'failed to setup network for sandbox "4f1d": plugin type="portmap" failed'
            ' (add): exec: "x-tables": executable file not found in $PATH',
            message.CNI_DAEMON,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + "error reserving pod name k8s_a_b_c_0 for id 4f1d: name is reserved",
            message.RESERVED,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context"
            " deadline exceeded",
            message.DEADLINE,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING
            + 'failed to setup network for sandbox "aa": plugin type="calico" failed (add):'
            " error getting ClusterInformation: connection is unauthorized: Unauthorized",
            message.CNI_DAEMON,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + "loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or"
            " directory",
            message.CNI_DAEMON,
            message.NODE,
        ),
        (
            "FailedCreatePodContainer",
            "unable to ensure pod container exists: failed to create container for [kubepods"
            " burstable pod1]: mkdir /sys/fs/cgroup/memory/kubepods/burstable/pod1: no space left"
            " on device",
            message.ERRNO,
            message.NODE,
        ),
        (
            "FailedCreatePodSandBox",
            CREATING + "failed to create containerd task: expected cgroupsPath to be of format"
            ' "slice:prefix:name" for systemd cgroups, got "/kubepods/pod1/aa" instead',
            message.CGROUP_DRIVER,
            message.NODE,
        ),
        (
            "NetworkNotReady",
            "network is not ready: container runtime network not ready: NetworkReady=false"
            " reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not"
            " initialized",
            message.NO_CONFIGURATION,
            message.NODE,
        ),
        ("Failed", PULLING + "toomanyrequests: You have reached", message.RATE, message.NODE),
        (
            "ErrImagePull",
            "rpc error: code = NotFound desc = failed to pull and unpack image"
            ' "docker.io/library/nginx:none": failed to resolve reference: not found',
            message.NOT_FOUND,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + "pull access denied, repository does not exist or may require authorization",
            message.UNAUTHORIZED,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + 'Head "https://reg.example/v2/": dial tcp: lookup reg.example on 10.0.0.2:53:'
            " no such host",
            message.DNS,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + 'failed to do request: Head "https://reg.example/v2/app/manifests/1": remote'
            " error: tls: certificate required",
            message.CLIENT_CERTIFICATE,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + 'failed to do request: Head "https://reg.example/v2/app/manifests/1": remote'
            " error: tls: handshake failure",
            message.HANDSHAKE,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + "x509: certificate signed by unknown authority",
            message.CERTIFICATE,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + "http: server gave HTTP response to HTTPS client",
            message.PLAIN_HTTP,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + "dial tcp 10.0.0.9:443: connect: connection refused",
            message.REFUSED,
            message.NODE,
        ),
        ("Failed", PULLING + "dial tcp 10.0.0.9:443: i/o timeout", message.TIMEOUT, message.NODE),
        (
            "Failed",
            PULLING + "write /var/lib/containerd/tmp/1: no space left on device",
            message.ERRNO,
            message.NODE,
        ),
        ("Failed", PULLING + "something new", message.PULL, message.NODE),
        # containerd, docker, CRI-O (containers/image#1100, cri-o#3233)
        (
            "Failed",
            PULLING + "no match for platform in manifest sha256:b9ab2c28208d: not found",
            message.PLATFORM,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + "Error choosing image instance: no image found in manifest list for"
            " architecture arm64, variant v8, OS linux",
            message.PLATFORM,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + 'Image architecture mismatch: image uses "amd64", expecting "arm64"',
            message.PLATFORM,
            message.WORKLOAD,
        ),
        # claudie#1272
        (
            "Failed",
            PULLING + "unexpected status from HEAD request to https://reg.example/v2/a/manifests/1:"
            " 403 Forbidden",
            message.UNAUTHORIZED,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + "failed to authorize: failed to fetch anonymous token: unexpected status from"
            " GET request to https://reg.example/token: 401 Unauthorized",
            message.UNAUTHORIZED,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + "pulling from host reg.example failed with status code [manifests 1]: 404 Not"
            " Found",
            message.NOT_FOUND,
            message.WORKLOAD,
        ),
        (
            "Failed",
            PULLING + "unexpected status from HEAD request to https://reg.example/v2/a/manifests/1:"
            " 429 Too Many Requests",
            message.RATE,
            message.NODE,
        ),
        # k8s.io#5181
        (
            "Failed",
            PULLING + "received unexpected HTTP status: 503 Service Unavailable",
            message.SERVER_ERROR,
            message.NODE,
        ),
        (
            "Failed",
            PULLING + "proxyconnect tcp: dial tcp: lookup proxy.example: no such host",
            message.PROXY,
            message.NODE,
        ),
        # kubeadm#2936
        (
            "Failed",
            PULLING + 'Head "https://reg.example/v2/": dial tcp 34.96.108.209:443: connect:'
            " connection timed out",
            message.TIMEOUT,
            message.NODE,
        ),
        (
            "ImagePullBackOff",
            'Back-off pulling image "reg.example/a:1": ErrImagePull: failed to resolve reference'
            ' "reg.example/a:1": unexpected status from HEAD request: 500 Internal Server Error',
            message.SERVER_ERROR,
            message.NODE,
        ),
        (
            "InvalidImageName",
            "couldn't parse image name: invalid reference format",
            message.IMAGE_NAME,
            message.WORKLOAD,
        ),
        ("ErrImageNeverPull", "", message.NEVER_PULL, message.WORKLOAD),
        (
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one'
            " node and can't be attached to another",
            message.MULTI_ATTACH,
            message.NODE,
        ),
        ("FailedMount", MOUNTING + 'secret "tls" not found', message.OBJECT_MISSING, "workload"),
        (
            "FailedMount",
            MOUNTING + 'object "default"/"kube-root-ca.crt" not registered',
            message.UNREGISTERED,
            message.NODE,
        ),
        (
            "FailedMount",
            MOUNTING + "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: driver name"
            " x.csi.example not found in the list of registered CSI drivers",
            message.NO_DRIVER,
            message.NODE,
        ),
        (
            "FailedMount",
            MOUNTING + "mount failed: exit status 32 Output: mount.nfs: Connection timed out",
            message.MOUNT_SERVER,
            message.NODE,
        ),
        (
            "FailedMount",
            MOUNTING + "mount failed: exit status 32 Output: mount: /var/lib/kubelet/pods/p/mount:"
            " /dev/sda already mounted or mount point busy.",
            message.MOUNT_BUSY,
            message.NODE,
        ),
        (
            "FailedMapVolume",
            'MapVolume.SetUpDevice failed for volume "data" : rpc error: code = Internal desc = no',
            message.MOUNT,
            message.NODE,
        ),
        (
            "FailedMount",
            MOUNTING + "mkdir /var/lib/kubelet/pods/p/volumes: no space left on device",
            message.ERRNO,
            message.NODE,
        ),
        (
            "FailedMount",
            MOUNTING + "write /var/lib/kubelet/pods/p/volumes/a: disk quota exceeded",
            message.ERRNO,
            message.NODE,
        ),
        (
            "FailedMount",
            "Unable to attach or mount volumes: unmounted volumes=[data], unattached"
            " volumes=[data]: timed out waiting for the condition",
            message.MOUNT_TIMEOUT,
            message.NODE,
        ),
    ],
)
def test_the_cause_and_whose_it_is(reason, text, kind, whose):
    trouble = message.trouble(reason, text)
    assert (message.base(trouble.kind), trouble.whose) == (kind, whose)
    assert trouble.what
    assert trouble.cure


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("ImagePullBackOff", 'Back-off pulling image "reg.example/app:1"'),
        ("BackOff", "Back-off restarting failed container"),
        ("ContainerCreating", ""),
        ("ErrImagePull", ""),
    ],
)
def test_what_only_says_that_it_is_tried_again_is_no_cause(reason, text):
    assert message.vague(text)
    assert message.trouble(reason, text) is None


def test_the_image_of_a_sandbox_is_no_image_of_a_container():
    assert message.is_pull("Failed", 'Failed to pull image "a"')
    assert not message.is_pull("FailedCreatePodSandBox", "failed to pull image: sandbox")
    assert not message.is_pull("FailedMount", "timed out")


@pytest.mark.parametrize("image", ["app:2.404.1", "b:404", "c-401:1", "d:401"])
@pytest.mark.parametrize(
    "error",
    [
        "dial tcp 1.2.3.4:443: i/o timeout",
        "net/http: request canceled while waiting for connection (Client.Timeout exceeded while"
        " awaiting headers)",
    ],
)
def test_a_number_of_an_image_is_no_answer_of_its_registry(image, error):
    found = message.trouble("Failed", f'Failed to pull image "reg.example/{image}": {error}')
    assert (found.kind, found.whose) == (message.TIMEOUT, message.NODE)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("unexpected status from HEAD request to https://reg.example/v2/: 401", "UNAUTHORIZED"),
        ("unexpected status code https://reg.example/v2/app: 404", "NOT_FOUND"),
    ],
)
def test_a_bare_status_is_an_answer_of_a_registry(answer, kind):
    assert message.trouble("Failed", PULLING + answer).kind == getattr(message, kind)


@pytest.mark.parametrize("reason", ["Failed", "FailedMount", "FailedCreatePodSandBox"])
def test_a_known_message_of_workloads_is_no_trouble_of_a_node(reason):
    for name, _place, text in known_rows.of_workloads():
        trouble = message.trouble(reason, text)
        assert (trouble.kind, trouble.whose) == (f"{message.KNOWN} {name}", message.WORKLOAD)


def test_each_known_message_of_workloads_is_in_the_table():
    ids = {row.id for rows in known_message.files().values() for row in rows}
    assert ids > known_message.OF_WORKLOADS
    assert message.OF_ATTACHMENT.rpartition(" ")[2] in ids


def test_why_a_certificate_of_a_registry_is_refused():
    reasons = (
        "certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is after",
        "certificate is valid for a.example, not reg.example",
        "cannot validate certificate for 192.0.2.5 because it doesn't contain any IP SANs",
        "certificate signed by unknown authority",
    )
    troubles = [message.pull(f"{PULLING}tls: failed to verify: x509: {text}") for text in reasons]
    assert {cause.kind for cause in troubles} == {message.CERTIFICATE}
    expired, other_name, no_name, unknown = (cause.what for cause in troubles)
    assert other_name == no_name
    assert len({expired, other_name, unknown}) == 3


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        (
            "failed to create containerd task: listen unix @/shim/moby/70/shim.sock: bind: address"
            " already in use: unknown",
            message.CREATE,
            "@/shim/moby/70/shim.sock",
        ),
        (
            'plugin type="x" name="x" failed (add): dial unix /run/openvswitch/db.sock: connect: no'
            " such file or directory",
            message.CNI_DAEMON,
            "Open vSwitch",
        ),
        ("OCI runtime create failed: something", message.CREATE, ""),
    ],
)
def test_what_only_fails_is_explained_by_general_rules(text, kind, named):
    found = message.trouble("FailedCreatePodSandBox", text)
    assert found is not None
    assert message.base(found.kind) == kind
    assert (found.kind == kind) is not bool(named)
    assert named in found.what


def test_a_mount_that_failed_says_what_the_error_of_any_program_means():
    text = MOUNTING + 'rpc error: code = Internal desc = exec: "mount.x": executable file not found'
    trouble = message.trouble("FailedMount", text + " in $PATH")
    assert trouble.kind == f"{message.MOUNT} plain-error"
    assert "mount.x" in trouble.what


@pytest.mark.parametrize(
    ("text", "is_of_machine"),
    [
        # of a real CRI-O 1.34
        ("fork/exec /usr/bin/conmon: no such file or directory", True),
        ("layer not known", True),
        ("failed to pull image: connection refused", False),
    ],
)
def test_what_a_runtime_lacks_is_of_the_machine(text, is_of_machine):
    cause = message.trouble("CreateContainerError", text)
    kind = cause.kind if cause is not None else ""
    assert message.is_of_machine(kind) is is_of_machine


CRIO_SANDBOX = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = creating pod sandbox with name"
    ' "k8s_d-lqww8_default_673a9069-9ca6-4ecb-9967-b2e32dd80ad3_0": '
)


@pytest.mark.parametrize(
    ("error", "is_image"),
    [
        # of a real CRI-O 1.34
        (
            "unable to try pulling possible OCI artifact: build image source: pinging container"
            ' registry registry.k8s.io: Get "https://registry.k8s.io/v2/": no such host',
            True,
        ),
        # a row of known messages
        ("initializing source docker://registry.k8s.io/pause:3.9: reading manifest 3.9", False),
        ("identifier is not a container", False),
    ],
)
def test_the_image_of_a_sandbox_that_crio_makes(error, is_image):
    assert message.is_of_sandbox_image(CRIO_SANDBOX + error) is is_image
