# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of kubelets, for the tests: which releases take or refuse them, by their sources."""

from __future__ import annotations

# (configuration, flags, releases; None: of each that the test has)
ACCEPTED = [
    ("cpuManagerPolicy: none\n", (), None),
    ("cpuManagerPolicy: null\nmemoryManagerPolicy: ~\ntopologyManagerPolicy:\n", (), None),
    ("cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n", (), None),
    ("cpuManagerPolicy: 'Static'\n", ("--cpu-manager-policy=none",), None),
    ("cpuManagerPolicy: Static\n", (), "1.14 1.15"),
    ("memoryManagerPolicy: static\n", (), "1.14 1.20"),
    ("memoryManagerPolicy: static\n", (), "1.21"),
    ("memoryManagerPolicy: static\nfeatureGates: {MemoryManager: false}\n", (), "1.22 1.31"),
    (
        "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n  limits: {memory: 100Mi}\n",
        (),
        "1.22 1.31 1.36",
    ),
    (
        (
            "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n"
            "  limits: {memory: 1024Mi}\nkubeReserved: {memory: 300Mi}\n"
            "systemReserved: {memory: 224Mi}\nevictionHard: {memory.available: 500Mi}\n"
        ),
        (),
        None,
    ),
    (
        (
            "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n"
            "  limits: {memory: 1Gi}\nkubeReserved: {memory: 1Gi}\n"
            "evictionHard: {nodefs.available: 5%}\n"
        ),
        (),
        None,
    ),
    (
        (
            "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n"
            "  limits: {memory: 1124Mi}\nkubeReserved: {memory: 1Gi}\n"
            "evictionHard: {nodefs.available: 5%}\nmergeDefaultEvictionSettings: true\n"
        ),
        (),
        "1.33 1.36",
    ),
    (
        "memoryManagerPolicy: Static\n",
        (
            "--reserved-memory",
            "0:memory=150Mi;1:memory=50Mi",
            "--eviction-hard=memory.available<200Mi",
        ),
        None,
    ),
    (
        "memoryManagerPolicy: Static\n",
        (
            "--reserved-memory=0:memory=150Mi",
            "--reserved-memory=1:memory=50Mi",
            "--system-reserved=memory=100Mi",
        ),
        None,
    ),
    ("topologyManagerPolicy: restricted\ntopologyManagerScope: pod\n", (), "1.20 1.26 1.36"),
    ("topologyManagerPolicy: nonsense\n", (), "1.14 1.15"),
    ("topologyManagerPolicy: restricted\nfeatureGates: {TopologyManager: true}\n", (), "1.16 1.17"),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n"
        ),
        (),
        "1.28 1.32 1.36",
    ),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '12'}\n"
        ),
        (),
        "1.31 1.35 1.36",
    ),
    ("topologyManagerPolicyOptions: {nonsense: 'true'}\n", (), "1.28 1.36"),
    ("reservedSystemCPUs: 0,2-3\n", (), None),
    ("reservedSystemCPUs: '9'\n", (), "1.14 1.16"),
    ("reservedSystemCPUs: '9'\n", ("--reserved-cpus=",), None),
    ("reservedSystemCPUs: 0\nkubeReserved: {cpu: nonsense}\n", (), None),
    ("kubeReserved: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi, pid: '1000'}\n", (), None),
    ("enforceNodeAllocatable: [pods]\n", (), None),
    ("enforceNodeAllocatable: []\ncgroupsPerQOS: false\n", (), None),
    ("enforceNodeAllocatable: [none]\ncgroupsPerQOS: false\n", (), "1.31 1.36"),
    ("enforceNodeAllocatable: [pods, pods]\n", (), "1.14 1.30"),
    (
        (
            "enforceNodeAllocatable: [pods, kube-reserved]\nkubeReserved: {cpu: 1}\n"
            "kubeReservedCgroup: /kube\n"
        ),
        (),
        None,
    ),
    (
        (
            "enforceNodeAllocatable: [pods, kube-reserved-compressible]\nkubeReserved: {cpu: 1}\n"
            "kubeReservedCgroup: /kube\n"
        ),
        (),
        "1.32 1.36",
    ),
    ("enforceNodeAllocatable: [pods, kube-reserved]\n", ("--enforce-node-allocatable=pods",), None),
    (
        (
            "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
            "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
        ),
        (),
        "1.23 1.36",
    ),
    ("cpuManagerPolicyOptions: {nonsense: 'true'}\n", (), "1.14 1.21"),
    ("cpuManagerPolicy: Static\nfeatureGates: {CPUManager: false}\n", (), "1.16 1.25"),
]

# (configuration, flags, releases, key, what is said of it)
REFUSED = [
    (
        "cpuManagerPolicy: Static\n",
        (),
        "1.16 1.18 1.25 1.36 1.40",
        "cpuManagerPolicy",
        "cpuManagerPolicy: Static; accepted values are none and static",
    ),
    (
        "cpuManagerPolicy: None\n",
        (),
        "1.16 1.36",
        "cpuManagerPolicy",
        "accepted values are none and static",
    ),
    (
        "cpuManagerPolicy: dynamic\n",
        (),
        "1.16 1.36",
        "cpuManagerPolicy",
        "cpuManagerPolicy: dynamic",
    ),
    (
        "",
        ("--cpu-manager-policy=Static",),
        "1.18 1.36",
        "cpuManagerPolicy",
        "--cpu-manager-policy=Static; accepted",
    ),
    (
        "",
        ("--cpu-manager-policy", "Static"),
        "1.18 1.36",
        "cpuManagerPolicy",
        "--cpu-manager-policy=Static; accepted",
    ),
    (
        "cpuManagerPolicy: static\n",
        ("--cpu-manager-policy=",),
        "1.36",
        "cpuManagerPolicy",
        "--cpu-manager-policy=; accepted",
    ),
    (
        "memoryManagerPolicy: static\n",
        (),
        "1.22 1.31 1.32 1.36 1.40",
        "memoryManagerPolicy",
        "accepted values are None and Static",
    ),
    (
        "memoryManagerPolicy: none\n",
        (),
        "1.22 1.36",
        "memoryManagerPolicy",
        "accepted values are None and Static",
    ),
    (
        "memoryManagerPolicy: BestEffort\n",
        (),
        "1.22 1.32 1.36",
        "memoryManagerPolicy",
        "accepted values are None and Static",
    ),
    (
        "memoryManagerPolicy: static\nfeatureGates: {MemoryManager: true}\n",
        (),
        "1.21",
        "memoryManagerPolicy",
        "None and Static",
    ),
    (
        "memoryManagerPolicy: static\nfeatureGates: {AllAlpha: true}\n",
        (),
        "1.21",
        "memoryManagerPolicy",
        "None and Static",
    ),
    (
        "topologyManagerPolicy: Restricted\n",
        (),
        "1.16 1.25 1.36 1.40",
        "topologyManagerPolicy",
        "none, best-effort, restricted and single-numa-node",
    ),
    (
        "topologyManagerPolicy: restricted\n",
        (),
        "1.16 1.17",
        "topologyManagerPolicy",
        "feature gate TopologyManager",
    ),
    (
        "topologyManagerPolicy: restricted\nfeatureGates: {TopologyManager: false}\n",
        (),
        "1.18 1.26",
        "topologyManagerPolicy",
        "feature gate",
    ),
    (
        "topologyManagerScope: Pod\n",
        (),
        "1.20 1.36 1.40",
        "topologyManagerScope",
        "accepted values are container and pod",
    ),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n"
        ),
        (),
        "1.26 1.27",
        "topologyManagerPolicyOptions",
        "feature gate TopologyManagerPolicyOptions",
    ),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n"
            "featureGates: {TopologyManagerPolicyOptions: true}\n"
        ),
        (),
        "1.26 1.27",
        "topologyManagerPolicyOptions",
        "feature gate TopologyManagerPolicyAlphaOptions",
    ),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '12'}\n"
        ),
        (),
        "1.28 1.30",
        "topologyManagerPolicyOptions",
        "came with 1.31",
    ),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '4'}\n"
        ),
        (),
        "1.31 1.36",
        "topologyManagerPolicyOptions",
        "a number from 8 on",
    ),
    (
        "topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {nonsense: 'true'}\n",
        (),
        "1.28 1.36",
        "topologyManagerPolicyOptions",
        "known options",
    ),
    (
        (
            "topologyManagerPolicy: restricted\n"
            "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'ja'}\n"
        ),
        (),
        "1.28 1.36",
        "topologyManagerPolicyOptions",
        "true and false",
    ),
    (
        "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n",
        (),
        "1.22 1.36",
        "cpuManagerPolicyOptions",
        "the policy none takes no",
    ),
    (
        (
            "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
            "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n"
        ),
        (),
        "1.25 1.31",
        "cpuManagerPolicyOptions",
        "not known to Kubernetes",
    ),
    (
        "reservedSystemCPUs: 0,9\n",
        (),
        "1.17 1.36 1.40",
        "reservedSystemCPUs",
        "CPUs 0-3 online, and not 9",
    ),
    ("reservedSystemCPUs: two\n", (), "1.17 1.36", "reservedSystemCPUs", "a list of CPUs"),
    (
        "reservedSystemCPUs: '0'\nkubeReservedCgroup: /kube\n",
        (),
        "1.17 1.36",
        "reservedSystemCPUs",
        "it excludes kubeReservedCgroup: /kube",
    ),
    (
        "kubeReserved: {cpu: 3}\nsystemReserved: {cpu: 1500m}\n",
        (),
        "1.14 1.36",
        "kubeReserved",
        "4 CPUs online",
    ),
    ("kubeReserved: {hugepages-2Mi: 4Mi}\n", (), "1.14 1.36", "kubeReserved", "not hugepages-2Mi"),
    (
        "",
        ("--system-reserved=cpu=half",),
        "1.14 1.36",
        "systemReserved",
        "a quantity that is not negative",
    ),
    (
        "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n  limits: {memory: 1Gi}\n",
        (),
        "1.22 1.36 1.40",
        "reservedMemory",
        "comes to 1Gi of memory; it must be 100Mi, the sum of evictionHard memory.available 100Mi",
    ),
    (
        (
            "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n"
            "  limits: {memory: 1Gi}\nkubeReserved: {memory: 1Gi}\n"
        ),
        (),
        "1.22 1.36",
        "reservedMemory",
        "it must be 1124Mi, the sum of kubeReserved.memory 1Gi, evictionHard",
    ),
    (
        (
            "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n"
            "  limits: {memory: 1Gi}\nevictionHard: {memory.available: 10%}\n"
        ),
        (),
        "1.36",
        "reservedMemory",
        "evictionHard memory.available 10%",
    ),
    (
        "memoryManagerPolicy: Static\n",
        (),
        "1.22 1.36",
        "reservedMemory",
        "comes to 0 of memory; it must be 100Mi",
    ),
    (
        "memoryManagerPolicy: Static\nevictionHard: {nodefs.available: 5%}\n",
        (),
        "1.22 1.36",
        "reservedMemory",
        "the policy Static needs some",
    ),
    (
        "memoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 1\n  limits: {memory: 100Mi}\n",
        (),
        "1.22 1.36",
        "reservedMemory",
        "names NUMA node 1; this machine has 0",
    ),
    (
        (
            "memoryManagerPolicy: Static\n"
            "reservedMemory: [{numaNode: 0, limits: {memory: 100Mi, hugepages-2Mi: 4Mi}}]\n"
        ),
        (),
        "1.22 1.36",
        "reservedMemory",
        "take no huge pages",
    ),
    (
        "reservedMemory: [{numaNode: 0, limits: {memory: 0}}]\n",
        (),
        "1.21 1.36",
        "reservedMemory",
        "may not be zero",
    ),
    (
        (
            "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, "
            "{numaNode: 0, limits: {memory: 1Gi}}]\n"
        ),
        (),
        "1.21 1.36",
        "reservedMemory",
        "given twice",
    ),
    (
        "reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]\n",
        (),
        "1.21 1.36",
        "reservedMemory",
        "accepted are memory and hugepages",
    ),
    (
        "enforceNodeAllocatable: [pods, kube]\n",
        (),
        "1.14 1.36",
        "enforceNodeAllocatable",
        "enforceNodeAllocatable: kube; accepted values are pods",
    ),
    (
        "enforceNodeAllocatable: [pods, kube-reserved]\nkubeReserved: {cpu: 1}\n",
        (),
        "1.15 1.36 1.40",
        "enforceNodeAllocatable",
        "it needs kubeReservedCgroup",
    ),
    (
        "",
        ("--enforce-node-allocatable=pods,system-reserved", "--system-reserved-cgroup=/s"),
        "1.14 1.36",
        "enforceNodeAllocatable",
        "it needs systemReserved,",
    ),
    (
        "enforceNodeAllocatable: [pods, none]\n",
        (),
        "1.14 1.36",
        "enforceNodeAllocatable",
        "none goes with no other value",
    ),
    (
        "enforceNodeAllocatable: [pods, pods]\n",
        (),
        "1.31 1.36",
        "enforceNodeAllocatable",
        "pods is given twice",
    ),
    (
        (
            "enforceNodeAllocatable: [pods, kube-reserved-compressible]\nkubeReserved: {cpu: 1}\n"
            "kubeReservedCgroup: /k\n"
        ),
        (),
        "1.14 1.31",
        "enforceNodeAllocatable",
        "accepted values are",
    ),
    (
        "cgroupsPerQOS: false\n",
        (),
        "1.14 1.36",
        "cgroupsPerQOS",
        "enforceNodeAllocatable is pods, and must be",
    ),
]
