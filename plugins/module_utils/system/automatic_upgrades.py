# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What unattended-upgrades may upgrade of Kubernetes, of its runtime and of a GPU's driver.

apt itself tells its settings and the sources of packages. Their addresses stay on the node, because
they may have passwords; of a source its Release file's names leave it.
"""

import os
import re

from . import command, files, unit_mask

PROGRAMS = ("/usr/bin/unattended-upgrade", "/usr/bin/unattended-upgrades")
TIMER = "apt-daily-upgrade.timer"
WANTS = ("/etc/systemd/system/timers.target.wants/", "/usr/lib/systemd/system/timers.target.wants/")
STATUS = "/var/lib/dpkg/status"
NAMES = (
    "kubelet",
    "kubeadm",
    "kubectl",
    "kubernetes-cni",
    "containerd",
    "containerd.io",
    "docker.io",
    "docker-ce",
    "cri-o",
    "cri-dockerd",
    "runc",
)
DRIVERS = ("nvidia-driver-", "nvidia-dkms-", "libnvidia-compute-", "nvidia-kernel-dkms")
OFF = ("", "0", "false", "no", "off")
INSTALL, HOLD = "install", "hold"  # what dpkg is to do with an installed package
PERIODIC, ENABLED = "APT::Periodic::Unattended-Upgrade", "APT::Periodic::Enable"
ALLOWED = ("Unattended-Upgrade::Allowed-Origins", "Unattended-Upgrade::Origins-Pattern")
BLACKLIST = "Unattended-Upgrade::Package-Blacklist"
# Release files name these; apt prints them by one letter.
FIELDS = (("o", "origin"), ("a", "archive"), ("n", "codename"), ("l", "label"), ("c", "component"))
PINNED = 1000  # a version with such a priority stays, whatever is newer
MAX_STATUS, MAX_TEXT, MAX_ROWS, MAX_PACKAGES, LONGEST = 32 * 1024 * 1024, 1048576, 40, 40, 200
SECONDS = 5


def of_apt(root="", run=command.run, seconds=lambda most: most):
    """Return {on, patterns, system, packages, error}, None without unattended-upgrades.

    patterns: [{old, text}] of the origins that it takes; system: {id, codename} of the
    distribution; packages: those that nothing keeps: [{name, installed, candidate, sources}].
    seconds: returns how long a command may take at most.
    """
    if not any(os.path.exists(root + path) for path in PROGRAMS):
        return None
    answer = {"on": False, "patterns": [], "system": {}, "packages": [], "error": None}
    try:
        settings = settings_of(run(["apt-config", "dump"], seconds(SECONDS), MAX_TEXT))
        answer["on"] = _is_on(settings) and _is_timed(root)
        if answer["on"]:
            answer["patterns"] = _patterns(settings)
            answer["system"] = _system(root)
            kept = settings.get(BLACKLIST, [])
            names = [name for name in free(status_of(root)) if not _is_kept(name, kept)]
            answer["packages"] = _packages(names[:MAX_PACKAGES], run, seconds)
    except (command.CommandError, OSError) as error:
        answer["error"] = files.one_line(error, LONGEST)
    return answer


def settings_of(text):
    """Return {key: values} of `apt-config dump`; a list has one line for each of its values."""
    settings = {}
    for line in text.split("\n"):
        key, quote, rest = line.partition(' "')
        if quote:
            settings.setdefault(key.rstrip(":"), []).append(rest.rpartition('";')[0])
    return settings


def _is_on(settings):
    """Return whether apt's daily job upgrades packages by itself."""
    periodic = settings.get(PERIODIC, ["0"])[-1]
    enabled = settings.get(ENABLED, ["1"])[-1]
    return periodic.lower() not in OFF and enabled.lower() not in OFF


def _is_timed(root):
    """Return whether a boot starts the timer of the daily job."""
    if unit_mask.is_masked(f"{root}/etc/systemd/system/{TIMER}"):
        return False
    return any(os.path.lexists(root + folder + TIMER) for folder in WANTS)


def _patterns(settings):
    rows = []
    for key in ALLOWED:
        rows += [
            {"old": key == ALLOWED[0], "text": files.one_line(value, LONGEST)}
            for value in settings.get(key, [])
            if value
        ]
    return rows[:MAX_ROWS]


def _system(root):
    """Return {id, codename} of the distribution, as lsb_release tells them."""
    values = {}
    for line in (files.text(root + "/etc/os-release", 65536) or "").split("\n"):
        key, equals, value = line.partition("=")
        if equals:
            values[key] = files.one_line(value.strip("\"' "), 80)
    return {"id": values.get("ID", "").capitalize(), "codename": values.get("VERSION_CODENAME", "")}


def status_of(root=""):
    """Return the text of dpkg's status file; OSError where it cannot be read."""
    return files.read(root + STATUS, MAX_STATUS).decode("utf-8", "replace")


def free(status):
    """Return the installed packages of interest that are not held, by dpkg's status file."""
    return [name for name, _architecture, selection in installed(status) if selection != HOLD]


def installed(status):
    """Return (name, architecture, selection) of the installed packages of interest."""
    rows = []
    for block in status.split("\n\n"):
        head = block[:2000].split("\n")
        name = _field(head, "Package: ")
        selection, _flag, state = (_field(head, "Status: ") + "  ").split(" ")[:3]
        if state == "installed" and is_of_interest(name):
            rows.append((name, _field(head, "Architecture: "), selection))
    return rows


def is_of_interest(name):
    """Return whether a package is of Kubernetes, of its runtime or of a GPU's driver."""
    return name in NAMES or name.startswith(DRIVERS)


def _field(lines, key):
    return next((line[len(key) :].strip() for line in lines if line.startswith(key)), "")


def _is_kept(name, patterns):
    """Return whether an expression of the blacklist begins with the name of a package."""
    for pattern in patterns:
        try:
            if pattern and re.match(pattern, name):
                return True
        except re.error:
            continue
    return False


def _packages(names, run, seconds):
    if not names:
        return []
    releases = releases_of(run(["apt-cache", "policy"], seconds(SECONDS), MAX_TEXT))
    text = run(["apt-cache", "policy", *names], seconds(SECONDS), MAX_TEXT)
    return policies(text, releases)


def releases_of(text):
    """Return {line of a source: its names} of `apt-cache policy`."""
    releases, source = {}, None
    for line in text.split("\n"):
        words = line.split()
        if len(words) > 1 and words[0].lstrip("-").isdigit():
            source = " ".join(words[1:])
        elif source and words[:1] == ["release"]:
            releases[source] = _names(line.strip()[len("release ") :])
        elif source and words[:1] == ["origin"] and source in releases:
            releases[source]["site"] = files.one_line(words[-1], 80)
    return releases


def _names(text):
    """Return the names of a Release file; a name may have a comma that no equals sign follows."""
    row, letter = {}, ""
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals and len(key) == 1:
            letter = key
            row[letter] = value
        elif letter:
            row[letter] += "," + part
    return {name: files.one_line(row.get(letter, ""), 120) for letter, name in FIELDS}


def policies(text, releases):
    """Return the rows of packages of `apt-cache policy NAME...` that no pin keeps."""
    rows = []
    for block in re.split(r"\n(?=\S)", text):
        name, _colon, rest = block.partition(":\n")
        if name and rest:
            rows += _policy(name.strip(), rest, releases)
    return rows


def _policy(name, text, releases):
    """Return [the row of a package], [] where a pin keeps its version.

    Only sources of the version that is installed and of newer ones, which stand above it, count.
    """
    row = {"name": files.one_line(name, 80), "installed": "", "candidate": "", "sources": []}
    table = text.partition("  Version table:\n")[2]
    newer, mark, installed = table.partition(" *** ")
    for line in text.split("\n"):
        if line.startswith(("  Installed: ", "  Candidate: ")):
            words = line.split()
            row[words[0].strip(":").lower()] = files.one_line(words[-1], 80)
    if not mark or _priority(installed.partition("\n")[0].split()[1:2]) >= PINNED:
        return []
    versions = re.split(r"\n     (?=\S)", "\n" + newer)
    versions.append(re.split(r"\n     (?=\S)", installed)[0])
    for version in versions:
        _add_sources(row["sources"], version.strip("\n").split("\n"), releases)
    return [row]


def _add_sources(sources, lines, releases):
    """Add the Release files' names of the sources of one version, which no pin forbids."""
    if _priority(lines[0].split()[1:2]) < 0:
        return
    for line in lines[1:]:
        source = releases.get(" ".join(line.split()[1:]))
        is_new = source is not None and source not in sources
        if is_new and source["origin"] and len(sources) < MAX_ROWS:
            sources.append(source)


def _priority(words):
    """Return the number in a list of at most one word, 0 without one."""
    try:
        return int("".join(words))
    except ValueError:
        return 0
