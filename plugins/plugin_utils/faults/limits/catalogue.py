# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of limits, KM401 to KM411."""

from __future__ import annotations

from ..base import Fault
from . import kernel as limits_kernel
from . import process as limits_process

_INOTIFY = "https://man7.org/linux/man-pages/man7/inotify.7.html"
_SYSCTL = "https://www.freedesktop.org/software/systemd/man/latest/sysctl.d.html"
_PAM = "https://man7.org/linux/man-pages/man5/limits.conf.5.html"
_EXEC = "https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html"
_RAISES = (
    "Raising it writes one file of ours in /etc/sysctl.d, which is read after the others, and tells"
    " the kernel; nothing restarts. Where a line of /etc is read later still and says less (one of"
    " ufw too), the plan names it, raises the number in that line alone, and a revert brings the"
    " file's bytes back; where that is a vendor's file, one of /run, a setting of tuned or a line"
    " that excludes the key, nothing is written, and the plan says what to do by hand. Nothing is"
    " lowered by it, whatever a variable says: the role open_files does that, with"
    " kubemend_allow=lower_limits."
)
_SHARED = (
    "All processes of one user share the limit, those of its containers too, where they have no"
    " user namespace of their own: all of root's, as a rule. "
)

FAULTS = (
    Fault(
        code="KM401",
        title="One process holds most inotify instances",
        severity="critical",
        applies="nodes whose processes were looked at",
        explanation=(
            'Another inotify instance cannot be made ("too many open files", "inotify_init",'
            ' "failed to create fsnotify watcher", "Failed to allocate directory watch"), because'
            " one process holds more than half of fs.inotify.max_user_instances. "
        )
        + _SHARED
        + "So large a share "
        "is a leak, as a rule. Instances that a process inherited are counted for it too.",
        remedy="Mend or restart that process. "
        + _RAISES
        + " It only buys time where one process leaks.",
        risk=1,
        needs=("limits", "descriptors"),
        tier="deep",
        sooner=True,
        node=limits_kernel.one_holder,
        references=(_INOTIFY,),
    ),
    Fault(
        code="KM402",
        title="Inotify instances are used up",
        severity="critical",
        applies="nodes",
        explanation=(
            "Another inotify instance cannot be made, and no process holds most of them:"
            " fs.inotify.max_user_instances is too small for what runs. It is 128 unless somebody"
            ' raised it. A kubelet that starts then ends ("Failed to start cAdvisor ...'
            ' inotify_init: too many open files"), kubectl logs -f fails, and systemctl says'
            ' "Failed to allocate directory watch: Too many open files". '
        )
        + _SHARED
        + "Proven by trying to make as many as a kubelet needs, which are held for less than a"
        " millisecond. Who holds them is looked for at once; where that was not possible it is"
        " this code, whoever does.",
        remedy="Raise it (kubespray and kOps have 8192). " + _RAISES,
        risk=1,
        needs=("limits",),
        node=limits_kernel.too_small,
        references=(_INOTIFY,),
    ),
    Fault(
        code="KM403",
        title="Inotify watches are used up",
        severity="critical",
        applies="nodes",
        explanation=(
            'Another inotify watch cannot be made ("no space left on device" from a program that'
            " watches files, although no disk is full): fs.inotify.max_user_watches is reached. "
        )
        + _SHARED,
        remedy="Raise it. A watch takes about a kilobyte of the kernel's memory. " + _RAISES,
        risk=1,
        needs=("limits",),
        node=limits_kernel.watches,
        references=(_INOTIFY,),
    ),
    Fault(
        code="KM404",
        title="A process is at its limit of open files",
        severity="warning",
        applies="kubelet, runtimes and sshd; every process where they were looked at",
        explanation=(
            'A process has 95 % or more of its soft limit of open files open, and soon gets "too'
            " many open files\". Critical for kubelet, runtime and sshd. The limit is the process's"
            " own, as /proc/PID/limits says: a service has it from its unit, a container from its"
            " runtime, a login from pam_limits; a kubelet raises its own to maxOpenFiles (1000000)."
        ),
        remedy=(
            "Find out whether it leaks. Of a service the plan writes a drop-in of ours in"
            " /etc/systemd/system (kubemend_nofile, never less than the unit has, refused above"
            " what a process can have), which counts from the unit's next start after a"
            " daemon-reload, and raises the limit of the running process at once, as far as the"
            " kernel lets it: without CAP_SYS_RESOURCE no further than its hard limit; the unit's"
            " first process too, because those that it starts inherit its limit. The kernel gives a"
            " running process and its children what a new one would have: no restart is needed for"
            " it, and nothing is restarted. Only where it does not let us (a node that is itself a"
            " container), or the program may use select(), the old limit stays until the unit's"
            " next start, and systemd is not told. There, and there alone,"
            " kubemend_allow=service_restart has systemd read its units again and the service"
            " restarted (risk 2; of a runtime, or where pods with devices run, 3), proven by a"
            " process that stays up with the limit, else the file and the service are as they were;"
            " not for a unit that others must follow, whose end would end containers, or whose"
            " start would load somebody else's changes. Of a login at its hard limit it is a line"
            " of ours in /etc/security/limits.d, from the next login on; a soft limit is raised"
            " with ulimit -Sn. A kubelet has maxOpenFiles in its configuration, a container what"
            " its runtime gives it, and a user's own service what its manager has: of those nothing"
            " here is changed."
        ),
        risk=3,
        needs=("limits",),
        node=limits_process.full,
        references=(_EXEC,),
    ),
    Fault(
        code="KM405",
        title="The machine's file handles are used up",
        severity="critical",
        applies="nodes",
        explanation=(
            "95 % or more of fs.file-max are in use (/proc/sys/fs/file-nr): soon nobody but root"
            " can open a file."
        ),
        remedy="Raise it, and find out who opens so many. " + _RAISES,
        risk=1,
        needs=("limits",),
        node=limits_kernel.file_max,
        references=("https://docs.kernel.org/admin-guide/sysctl/fs.html",),
    ),
    Fault(
        code="KM406",
        title="Limits that lock everybody out",
        severity="critical",
        applies="nodes where pam_limits is in use",
        explanation=(
            "limits.conf or limits.d sets a hard limit of more open files than a process can have:"
            " more than fs.nr_open, or, where PID 1 lacks CAP_SYS_RESOURCE (a container), than its"
            " hard limit. pam_limits then refuses the login wherever pam.d requires it (by ssh, at"
            " the console, with su), until somebody who is still logged in mends it. A soft limit"
            ' does not; "unlimited" does before pam_limits 1.5.2. That of Debian and Ubuntu passes'
            " over such a limit, and the login goes on without it: there it is a warning."
        ),
        remedy=(
            "Keep the open session, and lower the values in the files that are named. The plan"
            " touches none of them: it writes a file of ours in /etc/security/limits.d, which is"
            " read last, with the most that is possible for each of these users and groups, because"
            " the last line of one counts. Sessions that are open stay as they are. Where another"
            " file is read later still, nothing is written, and the plan names it."
        ),
        risk=1,
        needs=("limits",),
        node=limits_process.locked_out,
        references=(_PAM,),
    ),
    Fault(
        code="KM407",
        title="Kernel settings that do not last",
        severity="warning",
        applies="nodes",
        explanation=(
            "One of the limits of files, inotify and processes is not what somebody meant: a later"
            " file of sysctl.d overrides a higher value (Debian and Red Hat link 99-sysctl.conf to"
            " /etc/sysctl.conf, which beats 99-kubernetes.conf), the kernel has more than the files"
            " say and a reboot takes it back, a file says more than the kernel has, or only"
            " /etc/sysctl.conf says so and no link leads to it. What the machine will have is"
            " computed as systemd-sysctl does: one file of a name, in the order of names, the last"
            " one wins, an exact name before a pattern. A vendor's file (/usr) that one of /etc"
            " overrides is no finding. What ufw and tuned set after that counts too."
        ),
        remedy="Write the value where nothing overrides it. " + _RAISES,
        risk=1,
        needs=("limits",),
        node=limits_kernel.lasting,
        references=(_SYSCTL,),
    ),
    Fault(
        code="KM408",
        title="limits.conf does not reach services",
        severity="info",
        applies="nodes whose limits.conf has open files for root or everybody",
        explanation=(
            "limits.conf or limits.d asks for more open files than kubelet or runtime have:"
            " pam_limits is for logins only, and services get what their unit says (LimitNOFILE=,"
            " else systemd's DefaultLimitNOFILE=). A kubelet sets its own to maxOpenFiles."
        ),
        remedy="Where a service needs more, give it a drop-in. Nothing here does it.",
        risk=0,
        needs=("limits",),
        node=limits_process.services,
        references=(_PAM, _EXEC),
    ),
    Fault(
        code="KM409",
        title="A unit whose limits the kernel refuses",
        severity="critical",
        applies="kubelet, runtimes and sshd",
        explanation=(
            'A unit does not start with "status=205/LIMITS": the kernel refuses its LimitNOFILE= or'
            " another limit. A number above PID 1's own hard limit alone does not do that: systemd"
            " then gives as much as PID 1 has. It fails where that is refused as well: fs.nr_open"
            " was lowered below it since the boot, so that LimitNOFILE=infinity, or any number"
            " above fs.nr_open, ends so; or something else forbids setrlimit()."
        ),
        remedy="Lower the limit in the file that is named. Nothing here does it.",
        risk=0,
        needs=("limits",),
        node=limits_process.refused,
        references=(_EXEC,),
    ),
    Fault(
        code="KM410",
        title="A runtime without a limit of open files",
        severity="info",
        applies="nodes with a runtime",
        explanation=(
            "The unit of a container runtime has LimitNOFILE=infinity, as upstream ships it, and"
            " containers inherit it. It is no fault: some old programs visit every descriptor that"
            " they could have, and are slow or use much memory under it."
        ),
        remedy="Nothing, unless such a program runs here.",
        risk=0,
        needs=("limits",),
        tier="deep",
        node=limits_process.infinite,
        references=(_EXEC,),
    ),
    Fault(
        code="KM411",
        title="The machine's process ids are used up",
        severity="critical",
        applies="nodes",
        explanation=(
            "95 % or more of kernel.pid_max, or of kernel.threads-max where that is less, are in"
            ' use, counted in threads: soon nothing can be started ("fork: retry: Resource'
            ' temporarily unavailable", "failed to create new OS thread", "runc: ... cannot'
            ' allocate memory"), and neither kubelet nor runtime start a container. On some'
            " distributions kernel.pid_max is 32768. It looks like too little memory or too few"
            " files, and is neither. A pod at its own limit (podPidsLimit, TasksMax= of its slice)"
            " is not seen here: that is the limit of a control group."
        ),
        remedy=(
            "Find who has so many threads; bound pods with podPidsLimit; raise kernel.pid_max."
            " Nothing here does it."
        ),
        risk=0,
        needs=("limits",),
        node=limits_kernel.pids,
        references=(
            "https://kubernetes.io/docs/concepts/policy/pid-limiting/",
            "https://docs.kernel.org/admin-guide/sysctl/kernel.html#pid-max",
        ),
    ),
)
