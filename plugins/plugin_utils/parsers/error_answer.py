# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an error says of the answer that a component got: who refuses what, or is silent. Pure.

The texts are those of the sources of apimachinery (errors.go), apiserver (admission, webhooks),
client-go, Go's net and crypto packages, and etcd. What names an address, a user or a webhook is
quoted. Where none of these texts is in a line, the table of messages decides (message_form).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import component_log, errno_message, message_class

LONGEST = 200  # characters of a part that is quoted
SLOW_WEBHOOK = "slow_webhook"
PROGRAM = "program"  # A program of the host fails that the component runs.


@dataclass(frozen=True)
class Answer:
    """Answer that a component got, or none.

    kind: what it is: unauthorized, forbidden, proxy, not_found, conflict, busy, invalid, gone,
    slow_webhook, webhook, denied, credentials, discovery, name, refused, unreachable, timeout,
    certificate, quota, no_leader, peer, slow, program, or a class of message_class
    clause: what is wrong, about the component
    advice: what an operator does about it
    """

    kind: str
    clause: str
    advice: str


@dataclass(frozen=True)
class _Text:
    kind: str
    pattern: re.Pattern[str]
    clause: str
    advice: str


def _text(kind: str, pattern: str, clause: str, advice: str) -> _Text:
    return _Text(kind, re.compile(pattern), clause, advice)


_REACH = (
    "see from this machine whether the address answers (nc -vz ADDRESS PORT, ip route get ADDRESS),"
    " whether its program runs there, and what lies between: a load balancer, a firewall, a proxy"
)
_PROXY = (
    "see HTTPS_PROXY and NO_PROXY in the environment of its unit (systemctl show UNIT -p"
    " Environment): NO_PROXY needs the address of the API server, and the networks of nodes, pods"
    " and services"
)
_WEBHOOK = (
    "see the pods and the Service of that webhook (kubectl get validatingwebhookconfigurations,"
    "mutatingwebhookconfigurations -o yaml names them); until they answer, failurePolicy: Ignore or"
    " a selector that leaves out kube-system and kube-node-lease lets the control plane work, and"
    " what a deleted program left behind is deleted"
)
_NAME = r"(?P<{}>[^\s\"',:\]]{{1,255}}|\[[0-9a-f:]{{2,45}}\])".format
_ADDRESS = (
    r"(?P<address>\[[0-9a-fA-F:%.\w]{2,60}\]:\d{1,5}|[^\s\"',\]]{1,255}?:\d{1,5}|/[^\s\"':]{1,255})"
)

_SLOW_WEBHOOK = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml shows its"
    " configuration, its Service and its rules: see why the pods of that Service do not answer, and"
    " let its namespaceSelector leave out kube-system and kube-node-lease, so that leases do not"
    " wait for it. Until it answers, timeoutSeconds of 3 or less is little enough for the elections"
    " of the control plane, whose leaders give up after 10 s and two writes"
)

# The first that matches decides: what another program answered comes before how it was reached.
_TEXTS = (
    _text(
        SLOW_WEBHOOK,
        r"failing open\b.{0,600}?failed calling webhook \"?(?P<name>[^\s\"]{1,255})\"?"
        r".{0,900}?[?&]timeout=(?P<limit>\d{1,3}m?s).{0,200}?(?:context deadline exceeded"
        r"|Client\.Timeout|i/o timeout|request canceled|TLS handshake timeout)",
        "the webhook {name} does not answer, and each request that it is asked about waits {limit}"
        " before it passes without it",
        _SLOW_WEBHOOK,
    ),
    _text(
        "webhook",
        r"conversion webhook for (?P<name>[\w./-]{1,253}, Kind=\w{1,80}) failed",
        "the API server cannot ask the webhook that converts {name}, and gives no object of it",
        "kubectl get crd -o yaml shows spec.conversion with its Service: see why its pods do not"
        " answer",
    ),
    _text(
        "webhook",
        r"failed calling webhook \"?(?P<name>[^\s\"]{1,255})\"?",
        "the API server cannot ask the webhook {name}, and therefore refuses what goes to it",
        _WEBHOOK,
    ),
    _text(
        "denied",
        r"admission webhook \"?(?P<name>[^\s\"]{1,255})\"? denied the request",
        "the webhook {name} denies what it sends",
        "see what that webhook checks, and what it says; correct it or what is sent",
    ),
    _text(
        "denied",
        r"ValidatingAdmissionPolicy '(?P<name>[^']{1,255})' with binding '[^']{1,255}' denied",
        "the ValidatingAdmissionPolicy {name} denies what it sends",
        "see what that policy checks, and to whom its binding applies",
    ),
    _text(
        "forbidden",
        r"is forbidden: User \"(?P<user>[^\"]{0,255})\" cannot (?P<verb>[\w-]{1,40}) (?:resource"
        r" \"(?P<resource>[^\"]{1,255})\"|path \"(?P<path>[^\"]{1,255})\")",
        "the API server refuses it (403 Forbidden): {user} may not {verb} {resource}{path}",
        "see whether that user is the one that is meant (the subject of the component's client"
        " certificate), and whether its role and binding are there: kubectl auth can-i VERB"
        " RESOURCE --as USER; of a kubelet the mode Node of --authorization-mode and the group"
        " system:nodes in its certificate; kube-apiserver restores default roles at its start",
    ),
    _text(
        "forbidden",
        r"is forbidden: (?P<reason>node \"[^\"]{0,255}\" (?:is not allowed|cannot) [^;]{1,120})",
        "the API server refuses it (403 Forbidden): {reason}",
        "compare the Node's name with the user of the kubelet's client certificate (openssl x509"
        " -noout -subject)",
    ),
    _text(
        "forbidden",
        r"is forbidden: (?P<reason>is not allowed to (?:set|modify) (?:the following )?"
        r"(?:labels|taints)[^;]{0,160})",
        "the API server refuses it (403 Forbidden): {reason}",
        "take these out of --node-labels or --register-with-taints of the kubelet, as the admission"
        " plugin NodeRestriction lets a kubelet set a few labels only, and set them by kubectl",
    ),
    _text(
        "proxy",
        r"proxyconnect tcp: (?P<reason>[^\"]{1,200})",
        "it sends its requests to a proxy, which it does not reach{of_address}: {reason}",
        _PROXY,
    ),
    _text(
        "proxy",
        r"https?://[^\s\"]{1,400}\"?: (?P<reason>Forbidden|Proxy Authentication Required"
        r"|Bad Gateway|Gateway Timeout|Service Unavailable)(?=$|[\s\";,)])",
        "it sends its requests to a proxy, which refuses them ({reason})",
        _PROXY,
    ),
    _text(
        "credentials",
        r"getting credentials: exec: executable (?P<name>[^\s\"]{1,255}) (?P<reason>not found)",
        "it gets no credential: the program {name}, which its kubeconfig runs, is {reason}",
        "install that program where the PATH of its unit has it, or let its kubeconfig run another"
        " one (users[].user.exec.command), then restart it",
    ),
    _text(
        "credentials",
        r"getting credentials: exec: executable (?P<name>[^\s\"]{1,255}) (?P<reason>failed with"
        r" exit code \d{1,3})",
        "it gets no credential: the program {name}, which its kubeconfig runs, does not work"
        " ({reason})",
        "run what its kubeconfig names (users[].user.exec) by hand on this machine, and see what it"
        " says",
    ),
    _text(
        "discovery",
        r"(?P<name>[\w.-]{1,200}/v\w{1,30}): stale GroupVersion discovery",
        "the API server does not discover {name}, which another server serves: namespaces do not"
        " end, quotas and garbage collection wait",
        "see kubectl get apiservices and the pods of its Service. Where it says Available=True, the"
        " server answers, and the API server does not take its answer: kube-apiserver before"
        " 1.27.6 and 1.28.2 takes some servers without aggregated discovery for ones that fail: an"
        " upgrade solves it; an APIService without a use is deleted",
    ),
    _text(
        "configuration",
        r"kube-proxy mode changed\. Restart felix",
        "felix starts again and again, because the interface kube-ipvs0 of kube-proxy comes, goes"
        " or changes its state",
        "with Calico's eBPF, which takes the place of kube-proxy, take kube-proxy away (kubectl -n"
        " kube-system patch daemonset kube-proxy -p"
        ' \'{"spec":{"template":{"spec":{"nodeSelector":{"none":"true"}}}}}\'), and remove what it'
        " left on each node (ip link delete kube-ipvs0; ipvsadm --clear, which also ends the"
        " virtual servers of kube-vip or keepalived); without eBPF see why"
        " kube-proxy makes that interface again",
    ),
    _text(
        "kernel",
        r"modprobe: (?:ERROR|FATAL): (?:could not insert|Module|could not find module by name=)"
        r" ?'?(?P<name>[\w-]{1,64})'?",
        "the kernel's module {name} is not loaded, and it cannot load it itself",
        "load it on the host (modprobe NAME), and name it in a file of /etc/modules-load.d: an"
        " image may have no program that reads the host's modules, which may be compressed. Where"
        " the host cannot load it either, install the modules of the kernel that runs (uname -r),"
        " or boot another one",
    ),
    _text(
        "unauthorized",
        r"(?:^|: )Unauthorized(?=$|[\s;,)])|has asked for the client to provide credentials"
        r"|no valid certificates found|User \"system:anonymous\"",
        "the API server does not accept its credential (401 Unauthorized)",
        "see the certificate or token of its kubeconfig: not expired (openssl x509 -noout -subject"
        " -dates), issued by the CA of --client-ca-file, and a clock that is right",
    ),
    _text(
        "name",
        r"lookup " + _NAME("name") + r"(?: on " + _ADDRESS + r")?: (?P<reason>no such host"
        r"|server misbehaving|Temporary failure in name resolution|i/o timeout"
        r"|(?:read|write|dial) udp [^\"]{0,200}?(?:refused|timeout|unreachable))",
        "it cannot resolve {name}{of_server}: {reason}",
        "see getent hosts NAME on this machine, /etc/resolv.conf with the server that it names, and"
        " /etc/hosts; of a control plane without DNS a line in /etc/hosts is usual",
    ),
    _text(
        "certificate",
        r"x509: (?P<reason>certificate (?:has expired or is not yet valid[^\"]{0,90}|signed by"
        r" unknown authority|is valid for [^\"]{1,160}?, not [^\s\"]{1,100}"
        r"|specifies an incompatible key usage)"
        r"|cannot validate certificate for [^\"]{1,120}|[^\"]{1,100})",
        "a TLS certificate is not accepted: {reason}",
        "see the certificate that is shown there (openssl s_client -connect ADDRESS </dev/null |"
        " openssl x509 -noout -subject -issuer -dates), the CA that the component trusts, and the"
        " clock; with kubeadm, kubeadm certs check-expiration",
    ),
    _text(
        "certificate",
        r"remote error: tls: (?P<reason>[\w ]{1,60})",
        "the other side does not accept its TLS certificate: {reason}",
        "see the client certificate of the component (openssl x509 -noout -subject -issuer -dates)"
        " and the CA that the other side trusts",
    ),
    _text(
        "quota",
        r"etcdserver: mvcc: database space exceeded|etcdserver: no space",
        "etcd takes no writes, because its database is at its quota",
        "compact and defragment etcd, then disarm the alarm",
    ),
    _text(
        "no_leader",
        r"etcdserver: (?P<reason>no leader|leader changed|request timed out[^\"]{0,60}|too many"
        r" requests)",
        "etcd does not answer it in time: {reason}",
        "see etcd's members and their logs: a member that is down, a slow disk, a slow network",
    ),
    _text(
        "peer",
        r"prober detected unhealthy status|health check for peer|lost TCP streaming connection|peer"
        r" became inactive|failed to reach the peer|dropped internal Raft message"
        r"|rafthttp: failed to (?:dial|reach|write)|failed to dial \w{1,20} on stream",
        "it does not reach another member of etcd{of_address}",
        "see whether that member runs, and whether its address and port 2380 are reached from this"
        " machine; a member that is gone for good is removed (etcdctl member list, member remove)",
    ),
    _text(
        "peer",
        r"cluster ID mismatch|request sent was ignored",
        "another member of etcd is of another cluster",
        "see etcdctl member list at each of them, and --initial-cluster: one was initialised on its"
        " own, and has to be removed and added again with an empty data directory",
    ),
    _text(
        "slow",
        r"slow fdatasync|leader failed to send out heartbeat on time|likely overloaded",
        "its disk or its CPU is too slow for etcd",
        "see what else uses the disk of /var/lib/etcd and the CPU (iostat -x, vmstat), and the"
        " latency of fdatasync of that disk; etcd wants a disk of its own",
    ),
    _text(
        "timeout",
        r"net/http: TLS handshake timeout",
        "a connection is made and its TLS handshake does not end{of_address}",
        "see whether that program is overloaded, and whether large packets get through (ping -M do"
        " -s 1472 ADDRESS)",
    ),
    _text(
        "unreachable",
        r"no route to host|network is unreachable|host is unreachable",
        "it has no route{of_address}",
        _REACH,
    ),
    _text(
        "refused",
        r"connection refused",
        "nothing listens where it connects to{of_address}",
        _REACH,
    ),
    _text(
        "timeout",
        r"i/o timeout|connection timed out|context deadline exceeded|Client\.Timeout exceeded"
        r"|request canceled while waiting for connection|handshake failed: EOF",
        "it gets no answer in time{of_address}",
        _REACH,
    ),
    _text(
        "busy",
        r"[Tt]oo many requests|has received too many requests",
        "the API server has no time for it (429 TooManyRequests)",
        "see who sends so many requests (apiserver_flowcontrol_rejected_requests_total by"
        " flow_schema)",
    ),
    _text(
        "busy",
        r"the server is currently unable to handle the request|unable to return a response in the"
        r" time allotted",
        "the API server, or what answers behind it, is not available (503)",
        "see kubectl get apiservices, and the log of kube-apiserver",
    ),
    _text(
        "gone",
        r"the server could not find the requested resource|no matches for kind",
        "the API server does not serve what it asks for",
        "compare the versions of the component and of kube-apiserver (kubectl version, and the"
        " component's --version): a release has removed or not yet added this API",
    ),
    _text(
        "conflict",
        r"the object has been modified|Operation cannot be fulfilled|already exists",
        "another one changed the object first (409 Conflict)",
        "this passes, unless two components write the same object",
    ),
    _text(
        "invalid",
        # the validation of a Node in API servers up to 1.18 (kubernetes #80452)
        r"may not have pre-allocated hugepages for multiple page sizes",
        "the API server refuses a Node with hugepages of more than one size, as it does up to 1.18",
        "delete the Node (kubectl delete node NAME) and restart the kubelet, which registers it"
        " with the size that the machine has now; API servers from 1.19 take several sizes",
    ),
    _text(
        "invalid", r" is invalid: ", "the API server calls it invalid (422)", "correct the object"
    ),
    _text(
        PROGRAM,
        # The first part takes what it can: the program nearest to its status is meant.
        r"^[^\n]{0,1000}\b(?P<name>(?:ip6?tables|ebtables)(?:-(?:nft|legacy))?"
        r"(?:-(?:save|restore))?|ipset|nft|conntrack|ipvsadm)\b[^\n]{0,200}?"
        r"\bexit(?:ed with)? (?:status|code):? (?P<status>[1-9]\d?)\b",
        "{name}, which it runs, ends with status {status}",
        "run that command by hand on the machine: what it says names the set, chain, table or"
        " module that is missing, the lock that another program holds, or the rule that another"
        " release of it wrote (compare its --version on the host and in the container)",
    ),
    _text(
        "not_found",
        r"\"[^\"]{1,255}\" not found|\bnot found$",
        "what it asks for is not there (404 NotFound)",
        "see whether the object that the line names was deleted",
    ),
)
_DIALLED = re.compile(r"dial (?:tcp|udp|unix)[46]? (?:[^\s\"]{1,80}->)?" + _ADDRESS + r"(?=[:\s])")
_ADDR = re.compile(
    r"Addr: \"([^\"]{1,255})\"|failed to connect to \{(?:https?://)?([^\s}\":]{1,255}:\d{1,5})"
)
_URL = re.compile(r"https?://([^/\s\"]{1,255})")
# Of a program that is started for a container, where the runtime's own is missing.
_OWN_PROGRAM = re.compile(
    r"exec: \"?(?:\S{0,200}/)?(?P<name>runc|crun|containerd-shim[\w-]{0,40}|conmon|youki)\"?: "
    r"(?:executable file not found|permission denied|no such file|exec format error)"
    r"|fork/exec (?P<path>\S{1,200}/(?:runc|crun|containerd-shim[\w-]{0,40}|conmon)): "
    r"|binary not installed \"(?P<shim>[\w.-]{1,80})\""
)


# Of an OCI runtime that is asked for a container which it has no state of: crun, then runc.
_NO_STATE = re.compile(
    r"\b(?P<name>crun|runc)\b(?:[^\n]{0,200}?--root (?P<root>/\S{1,200}))?[^\n]{0,400}?"
    r"(?:error opening file [`'\"]?\S{1,400}/status[`'\"]?: No such file"
    r"|container (?:[`'\"]?\w{1,128}[`'\"]? )?does not exist)"
)


def read(line: str, component: str) -> Answer | None:
    """Return the answer that a line of a component's log tells of, or None. Never raises."""
    text = component_log.text(line).replace('\\"', '"')
    program = _OWN_PROGRAM.search(text)
    if program is not None:
        return _of_program(program)
    stateless = _NO_STATE.search(text)
    if stateless is not None:
        return _without_state(stateless)
    machine = _of_machine(text)
    if machine is not None:
        return machine
    for row in _TEXTS:
        match = row.pattern.search(text)
        if match is not None:
            return Answer(row.kind, _clause(row, match, text), row.advice)
    return _by_table(line, component)


def _of_program(match: re.Match[str]) -> Answer:
    name = next(filter(None, match.groups()))
    return Answer(
        "runtime",
        f"the program {name} of the container runtime does not start",
        "see whether that program is there and may be executed (command -v, ls -lZ), and which one"
        " the runtime's configuration names; install it again",
    )


def _without_state(match: re.Match[str]) -> Answer:
    name, folder = match.group("name"), match.group("root") or f"/run/{match.group('name')}"
    return Answer(
        "runtime",
        f"{name} does not know a container that the runtime has: another program made it, or its"
        f" state below {folder} is gone",
        "see which program made the containers (ls /run/runc /run/crun /run/containerd/runc), and"
        " which one the runtime uses now (default_runtime in /etc/crio/crio.conf and"
        " /etc/crio/crio.conf.d, default_runtime_name of containerd): set the former one and"
        " restart the runtime, or drain the node and reboot it. It is replaced on a drained node",
    )


def _of_machine(text: str) -> Answer | None:
    """Return what an errno of this machine tells, or None."""
    explanation = errno_message.explanation(text)
    if explanation is None:
        return None
    return Answer("machine", *explanation)


def _clause(row: _Text, match: re.Match[str], text: str) -> str:
    values = {name: (value or "")[:LONGEST] for name, value in match.groupdict().items()}
    values["of_server"] = ""
    if values.get("address"):
        values["of_server"] = f" (asked {values['address']})"
    values["of_address"] = ""
    place = address(text)
    if place:
        values["of_address"] = f" ({place})"
    return row.clause.format_map(values).strip()


def address(text: str) -> str:
    """Return the address to which a connection failed, as the text names it, or ""."""
    dialled = _DIALLED.search(text)
    if dialled is not None:
        return dialled.group("address")
    named = _ADDR.search(text)
    if named is not None:
        return named.group(1) or named.group(2)
    url = _URL.search(text)
    if url is not None:
        return url.group(1)
    return ""


def _by_table(line: str, component: str) -> Answer | None:
    """Return what the table of messages with which components end says of a line, or None."""
    reading = component_log.reading(line, component)
    if reading is None or reading.weak:
        return None
    row = message_class.CLASSES[reading.meaning]
    return Answer(reading.meaning, row.clause, row.advice)
