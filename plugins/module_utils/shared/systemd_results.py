# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's messages about a start that failed: steps, results and lines."""

# systemd's own range. A status in it that STEPS lacks is systemd's only if its line names it.
FIRST, LAST = 200, 254
NAMELESS = "n/a"  # what systemd's line has for a status of the program
# systemd.exec(5), "Process exit codes", but for BPF: the manual says 245, systemd-analyze(1) and
# systemd 252 itself say 244. 223 and 234 are not in use. 245 is of 254 and newer.
STEPS = {
    200: ("CHDIR", "enter the working directory", "WorkingDirectory="),
    201: ("NICE", "set the scheduling priority", "Nice="),
    202: ("FDS", "close or pass file descriptors", ""),
    203: ("EXEC", "execute its program", "ExecStart="),
    204: ("MEMORY", "get memory for the start", ""),
    205: ("LIMITS", "set a limit", "LimitNOFILE= and its like"),
    206: ("OOM_ADJUST", "set the OOM score", "OOMScoreAdjust="),
    207: ("SIGNAL_MASK", "set the signal mask", ""),
    208: ("STDIN", "open the standard input", "StandardInput="),
    209: ("STDOUT", "open the standard output", "StandardOutput="),
    210: ("CHROOT", "change the root directory", "RootDirectory="),
    211: ("IOPRIO", "set the I/O priority", "IOSchedulingClass="),
    212: ("TIMERSLACK", "set the timer slack", "TimerSlackNSec="),
    213: ("SECUREBITS", "set the secure bits", "SecureBits="),
    214: ("SETSCHEDULER", "set the CPU scheduler", "CPUSchedulingPolicy="),
    215: ("CPUAFFINITY", "set the CPU affinity", "CPUAffinity="),
    216: ("GROUP", "change to the group", "Group="),
    217: ("USER", "change to the user", "User="),
    218: ("CAPABILITIES", "set the capabilities", "CapabilityBoundingSet="),
    219: ("CGROUP", "move the process into its cgroup", "Slice="),
    220: ("SETSID", "make a new session", ""),
    221: ("CONFIRM", "get a confirmation on the console", "systemd.confirm_spawn="),
    222: ("STDERR", "open the standard error", "StandardError="),
    223: ("TCPWRAP", "check the TCP wrapper", "TCPWrapName="),
    224: ("PAM", "set up the PAM session", "PAMName="),
    225: ("NETWORK", "set up the network namespace", "PrivateNetwork="),
    226: ("NAMESPACE", "set up the mount namespace", "ReadWritePaths=, BindPaths= and their like"),
    227: ("NO_NEW_PRIVILEGES", "disable new privileges", "NoNewPrivileges="),
    228: ("SECCOMP", "set the system call filter", "SystemCallFilter="),
    229: ("SELINUX_CONTEXT", "set the SELinux context", "SELinuxContext="),
    230: ("PERSONALITY", "set the personality", "Personality="),
    231: ("APPARMOR", "set the AppArmor profile", "AppArmorProfile="),
    232: ("ADDRESS_FAMILIES", "restrict address families", "RestrictAddressFamilies="),
    233: ("RUNTIME_DIRECTORY", "make the runtime directory", "RuntimeDirectory="),
    235: ("CHOWN", "change the owner of a socket", ""),
    236: ("SMACK_PROCESS_LABEL", "set the SMACK label", "SmackProcessLabel="),
    237: ("KEYRING", "set up the kernel keyring", "KeyringMode="),
    238: ("STATE_DIRECTORY", "make the state directory", "StateDirectory="),
    239: ("CACHE_DIRECTORY", "make the cache directory", "CacheDirectory="),
    240: ("LOGS_DIRECTORY", "make the logging directory", "LogsDirectory="),
    241: ("CONFIGURATION_DIRECTORY", "make the configuration directory", "ConfigurationDirectory="),
    242: ("NUMA_POLICY", "set the NUMA policy", "NUMAPolicy="),
    243: ("CREDENTIALS", "set up the credentials", "LoadCredential="),
    244: ("BPF", "apply the BPF restrictions", "RestrictFileSystems="),
    245: ("KSM", "set the merging of memory pages", "MemoryKSM="),
}
# Result= of a service, systemd 219 to 257, and what it means. start-limit: up to 229.
RESULTS = {
    "success": "",
    "exit-code": "",
    "signal": "",
    "core-dump": "",
    "resources": "systemd could not set up its start",
    "protocol": "it did not report its start as its Type= says",
    "timeout": "it did not start or end in time",
    "watchdog": "it did not answer systemd's watchdog",
    "oom-kill": "the kernel killed a process of it for lack of memory",
    "start-limit-hit": "it ended too often",
    "start-limit": "it ended too often",
    "exec-condition": "its ExecCondition= said no",
}
SKIPS = (
    "was skipped because",
    "Condition check resulted in",
    "start condition failed",
    "ConditionPathExists",
    "condition check",
)
# Lines with the reason at their end. DETAILS name the path too where there is one (since 235);
# "Failed to run 'start' task" is of every version, "Failed to spawn" of 253 and newer.
DETAILS = (
    "Failed to set up ",
    "Changing to the requested working directory failed",
    "Unable to locate executable",
    "Failed to load environment files",
    "Failed to determine user credentials",
    "Failed to determine group credentials",
    "Failed to determine supplementary groups",
    "Failed to create cgroup",
    "Failed to attach to cgroup",
    "Failed to adjust resource limit",
    "Failed to execute ",
    "Failed to prepare filename",
    "Failed to change ownership",
)
REASONS = (
    *DETAILS,
    "Failed at step ",
    "Failed to run 'start",
    "Failed to spawn",
    "Failed to fork",
    "Failed to acquire control group",
)
LIMIT = ("Start request repeated too quickly", "start request repeated too quickly")


def after_kill(name, result, status):
    """Return what to do about a unit that was killed (SIGKILL, or for want of memory), or ""."""
    if result != "oom-kill" and (result, status) != ("signal", 9):
        return ""
    return (
        f"{name} was killed: journalctl -k -g 'Out of memory|oom-kill' shows whether the kernel did"
        f" it for want of memory; then make room, and let systemctl edit {name} set [Service]"
        " Restart=always and OOMScoreAdjust=-999, so that it comes back and is killed last"
    )
