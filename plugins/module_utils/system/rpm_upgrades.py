# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dnf-automatic, dnf5 or yum-cron may upgrade of Kubernetes, of its runtime and of a driver.

It reads their files, and asks rpm for the packages that are installed. Addresses of repositories
stay on the node, because they may have passwords.
"""

import configparser
import fnmatch
import glob
import os
import re

from . import automatic_upgrades, command, files, unit_mask

DNF, DNF5, YUM = "dnf-automatic", "dnf5 automatic", "yum-cron"
OWN = "etc/dnf/automatic.conf"
YUM_CONF, HOURLY = "etc/yum/yum-cron.conf", "etc/yum/yum-cron-hourly.conf"
DEFAULTS = "usr/share/dnf5/dnf5-plugins/automatic.conf"
# (program, its unit, the files of its settings, the last of which counts; () if it always installs)
UNITS = (
    (DNF, "dnf-automatic-install.timer", ()),
    (DNF5, "dnf5-automatic.timer", (DEFAULTS, OWN)),
    (DNF, "dnf-automatic.timer", (OWN,)),
    (YUM, "yum-cron.service", (YUM_CONF,)),
    (YUM, "yum-cron.service", (HOURLY,)),
)
CONFIGURATIONS = ("etc/dnf/dnf.conf", "etc/yum.conf", OWN)
REPOSITORIES = "etc/yum.repos.d"
LOCKS = ("etc/dnf/plugins/versionlock.list", "etc/yum/pluginconf.d/versionlock.list")
PLUGINS = ("etc/dnf/plugins/versionlock.conf", "etc/yum/pluginconf.d/versionlock.conf")
TOML_LOCK = "etc/dnf/versionlock.toml"
TYPES = {DNF: "upgrade_type", DNF5: "upgrade_type", YUM: "update_cmd"}
ON = ("1", "yes", "true", "on")
DRIVERS = ("nvidia-driver*", "kmod-nvidia*", "akmod-nvidia*")
DISTRIBUTION = "systemd"  # a package whose vendor is always the distribution
# A version begins with its epoch or number: kubelet-0:1.30.1-1.*, kubelet-1.30*
LOCK = re.compile(r"(?P<name>.+?)-(?:[0-9]+:)?[0-9*].*")
MAX_TEXT, MAX_FILES, MAX_ROWS, LONGEST = 65536, 100, 40, 200
MAX_PATTERNS, MAX_STARS = 2000, 3  # matching takes long with many stars
FORMAT = "%{NAME}\\t%{VERSION}-%{RELEASE}\\t%{VENDOR}\\n"
SECONDS = 5


def of_rpm(root="", run=command.run, seconds=lambda most: most):
    """Return {on, program, unit, security, packages, error}, None where no such program is there.

    security: whether it takes security updates alone; packages: those that no file keeps, as
    [{name, installed, own}], own: whether the distribution made it.
    """
    base = root or "/"
    programs = [row for row in UNITS if _is_there(base, row)]
    if not programs:
        return None
    answer = {
        "on": False,
        "program": programs[0][0],
        "unit": programs[0][1],
        "security": False,
        "packages": [],
        "error": None,
    }
    try:
        _switch_on(answer, base, programs)
        if answer["on"]:
            rows = installed(_asked(run, seconds))
            answer["packages"] = _free(rows, kept(base))[:MAX_ROWS]
    except (command.CommandError, OSError, ValueError) as error:
        answer["error"] = files.one_line(error, LONGEST)
    return answer


def _switch_on(answer, base, programs):
    """Note the first program that a boot starts and that applies what it downloads."""
    for program, unit, paths in programs:
        settings = _settings(base, paths)
        if _is_started(base, unit) and (not paths or _is_applied(settings)):
            kind = (settings or _settings(base, (OWN,))).get(
                ("commands", TYPES[program]), "default"
            )
            answer.update(on=True, program=program, unit=unit, security="security" in kind)
            return


def _is_there(base, row):
    """Return whether a unit file of a program is there."""
    _program, unit, _paths = row
    folders = ("usr/lib/systemd/system", "etc/systemd/system", "lib/systemd/system")
    return any(os.path.lexists(os.path.join(base, folder, unit)) for folder in folders)


def _is_started(base, unit):
    """Return whether a boot starts a unit."""
    folder = os.path.join(base, "etc/systemd/system")
    return unit_mask.is_wanted(unit, folder) and not unit_mask.is_masked(os.path.join(folder, unit))


def _settings(base, paths):
    """Return {(section, key): value} of files, of which the last one that has a key counts."""
    settings = {}
    for path in paths:
        settings.update(sections(_text(os.path.join(base, path))))
    return settings


def _is_applied(settings):
    return settings.get(("commands", "apply_updates"), "no").lower() in ON


def sections(text):
    """Return {(section, key): value} of a file of dnf or yum; ValueError where it is none."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except (configparser.Error, AttributeError) as error:  # Python 3.6 meets its own None
        raise ValueError(files.one_line(error, LONGEST)) from error
    return {
        (section, key): (value or "").strip()
        for section in parser.sections()
        for key, value in parser.items(section)
    }


def _text(path):
    return files.text(path, MAX_TEXT) or ""


def kept(base):
    """Return the patterns of names that files of dnf or yum keep from upgrades."""
    patterns = []
    folder = os.path.join(base, REPOSITORIES)
    repositories = sorted(glob.glob(os.path.join(glob.escape(folder), "*.repo")))
    for path in [os.path.join(base, path) for path in CONFIGURATIONS] + repositories[:MAX_FILES]:
        patterns += _excluded(sections(_text(path)))
    if any(_is_enabled(base, path) for path in PLUGINS):
        for path in LOCKS:
            patterns += locked(_text(os.path.join(base, path)))
    patterns += toml_locked(_text(os.path.join(base, TOML_LOCK)))
    return [pattern for pattern in patterns if pattern.count("*") <= MAX_STARS][:MAX_PATTERNS]


def _is_enabled(base, path):
    settings = sections(_text(os.path.join(base, path)))
    return settings.get(("main", "enabled"), "0").lower() in ON


def _excluded(settings):
    """Return the patterns of names that a file excludes, not those of repositories that are off."""
    patterns = []
    for (section, key), value in settings.items():
        is_off = settings.get((section, "enabled"), "1").lower() in ("0", "no", "false", "off")
        if key in ("exclude", "excludepkgs") and not is_off:
            patterns += re.split(r"[\s,]+", value)
    return [pattern for pattern in patterns if pattern]


def locked(text):
    """Return the patterns of names that a list of the plugin versionlock keeps.

    A line with an exclamation mark excludes one version alone.
    """
    patterns = []
    for line in text.split("\n"):
        entry = line.partition("#")[0].strip()
        if not entry or entry.startswith("!") or len(entry) > LONGEST:
            continue
        entry = re.sub(r"^[0-9]+:", "", entry)  # yum's own form begins with the epoch
        match = LOCK.fullmatch(entry)
        patterns.append(match.group("name") if match else entry)
    return patterns


def toml_locked(text):
    """Return the patterns of names that dnf5's versionlock.toml keeps at a version or below one."""
    patterns = []
    for block in text.split("[[packages]]")[1:]:
        values = re.findall(r'^\s*(name|comparator)\s*=\s*["\']([^"\'\n]{1,200})', block, re.M)
        name = next((value for key, value in values if key == "name"), "")
        if name and any(key == "comparator" and value in ("=", "<", "<=") for key, value in values):
            patterns.append(name)
    return patterns


def _asked(run, seconds):
    argv = ["rpm", "-qa", "--qf", FORMAT, DISTRIBUTION, *automatic_upgrades.NAMES, *DRIVERS]
    return run(argv, seconds(SECONDS), MAX_TEXT)


def installed(text):
    """Return [{name, installed, own}] of what rpm tells, without the distribution's own mark."""
    rows = [line.split("\t") for line in text.split("\n") if line.count("\t") == 2]
    vendors = {vendor for name, _version, vendor in rows if name == DISTRIBUTION}
    return [
        {
            "name": files.one_line(name, 80),
            "installed": files.one_line(version, 80),
            "own": vendor in vendors,
        }
        for name, version, vendor in rows
        if name != DISTRIBUTION
    ]


def _free(rows, patterns):
    return [row for row in rows if not any(_matches(row, pattern) for pattern in patterns)]


def _matches(row, pattern):
    """Return whether a pattern names a package, or the name with its version."""
    full = "{}-{}".format(row["name"], row["installed"])
    return fnmatch.fnmatchcase(row["name"], pattern) or fnmatch.fnmatchcase(full, pattern)
