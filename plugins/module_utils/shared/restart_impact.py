# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else a restart of a component would load, apart from the step's own change.

The module is pure. The node passes it what it reads immediately before the restart; the plan passes
it the evidence.
"""

MISSING = "\0"
RELOAD = "its unit was changed and not loaded (systemctl daemon-reload)"
SLACK = 1.0  # seconds: start times are told in hundredths, and by another clock than a file's


def changes(process, files=(), words=None, flags=(), own_files=()):
    """Return one clause for each change that the next start of this process would load.

    process: {component, started_at, argv, exe}.
    files: [{path, mtime, replaced}] of the files that the process reads.
    words: the command line of its manifest, None where it is not known.
    flags: the names of the flags that the step itself changes.
    own_files: the files that the step itself changes.
    """
    clauses = []
    for file in files:
        if file["path"] in own_files:
            continue
        clause = _change_of(file, process.get("started_at"))
        if clause:
            clauses.append(clause)
    if words is not None:
        clauses += _differing(
            process.get("argv") or [], words, [name.replace("_", "-") for name in flags]
        )
    if (process.get("exe") or "").endswith(" (deleted)"):
        clauses.append("its program {} was replaced".format(process["exe"][: -len(" (deleted)")]))
    return clauses


def _change_of(file, started):
    """Return the clause about a file that the process would read when it starts again, or None."""
    if file.get("replaced"):
        return "{} was replaced after the process started".format(file["path"])
    if started and file.get("mtime") and file["mtime"] > started + SLACK:
        return "{} is newer than the process".format(file["path"])
    return None


def of_kubelet(evidence, own_files=()):
    """Return the clauses about the kubelet's next start, without its kubeconfig and certificates.

    The kubelet writes these itself while it runs.
    """
    process, unit = evidence.get("process") or {}, evidence.get("unit") or {}
    records = [
        evidence.get("config"),
        *list(evidence.get("config_dropins") or []),
        *list(unit.get("environment_files") or []),
    ]
    exe = "{}{}".format(process.get("exe"), " (deleted)" if process.get("exe_deleted") else "")
    clauses = changes(
        {"started_at": process.get("started_at"), "exe": exe},
        [record for record in records if record and record.get("path")],
        own_files=own_files,
    )
    if unit.get("need_daemon_reload"):
        clauses.append(RELOAD)
    return clauses


def sentence(host, component, clauses):
    """Return the refusal."""
    return (
        "a restart of {} on {} would also load changes of others: {}; look at them, then"
        " allow it with kubemend_allow: [pending_changes]".format(
            component, host, "; ".join(clauses)
        )
    )


def _differing(argv, words, own_flags):
    """Return the flags that differ between manifest and process, apart from those of the step.

    The last occurrence of a flag counts.
    """
    running, manifest_flags = flags_of(argv), flags_of(words)
    names = [
        name
        for name in sorted(set(running) | set(manifest_flags))
        if name not in own_flags and running.get(name, MISSING) != manifest_flags.get(name, MISSING)
    ]
    return [
        f"--{name} is {_shown(manifest_flags, name)} in the manifest and {_shown(running, name)} in"
        " the process"
        for name in names
    ]


def _shown(flags, name):
    if name not in flags:
        return "not set"
    if flags[name] is None:
        return "set without a value"
    return repr(str(flags[name])[:80])


def flags_of(words):
    """Return {name: last value} of a command line; None for a flag without one."""
    flags, before = {}, None
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equal, value = word[2:].partition("=")
            before = name.replace("_", "-")
            if equal:
                flags[before] = value
            else:
                flags[before] = None
            if equal:
                before = None
        else:
            if before:
                flags[before] = word
            before = None
    return flags
