# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the docs site in tests/output/site/html: python -m tests.docs.site.

Its sources are the pages in docs/ and what antsibull-docs makes of plugins.

The site has no address yet. The build asks the network for nothing: a link to another site stays a
link, and the inventory of another site is not read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs import ROOT
from tests.gate import machine, venvs

SITE = machine.OUTPUT.parent / "site"
SOURCE, HTML = SITE / "source", SITE / "html"
NAME = "kubemend.remediation"
# What a reader of the site needs of the checkout beside docs/, as the pages link it.
PAGES = (
    "README.md",
    "README.zh-CN.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "MAINTAINERS.md",
    "CHANGELOG.md",
    "LICENSE",
)
CONF = """
project = "kubemend.remediation"
copyright = "kubemend contributors"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["examples/**/*.md"]
myst_heading_anchors = 4
html_theme = "alabaster"
html_theme_options = {
    "sidebar_includehidden": False,
    "page_width": "1200px",
    "sidebar_width": "260px",
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
pygments_style = "ansible"
nitpicky = True
smartquotes = False
"""
# A table of paths and codes must not push the words beside them together.
CSS = """
code.literal { white-space: normal; overflow-wrap: anywhere; }
table.docutils td { vertical-align: top; }
"""
INDEX = """\
kubemend.remediation
====================

.. toctree::
   :maxdepth: 1

   Overview <README>
   docs/quickstart
   docs/command
   docs/variables
   docs/rights
   docs/faults
   docs/known-messages
   docs/reports
   docs/waivers
   docs/exit-codes
   docs/repairs
   docs/undo
   docs/installers
   docs/filters
   docs/catalogue
   docs/faq
   docs/glossary
   docs/cases
   docs/timeline
   docs/capture
   docs/automation
   docs/awx
   docs/prometheus
   docs/notifications

.. toctree::
   :caption: Symptoms
   :maxdepth: 1
   :glob:

   docs/symptoms/*

.. toctree::
   :caption: 中文
   :maxdepth: 1
   :glob:

   概述 <README.zh-CN>
   docs/zh-CN/quickstart
   docs/zh-CN/symptoms/*
   docs/zh-CN/faq
   docs/zh-CN/glossary

.. toctree::
   :caption: Faults
   :maxdepth: 1
   :hidden:
   :glob:

   docs/faults/*

.. toctree::
   :caption: Known messages
   :maxdepth: 1
   :hidden:
   :glob:

   docs/known-messages/*

.. toctree::
   :hidden:
   :glob:

   docs/decisions/0*

.. toctree::
   :caption: Plugins, roles and playbooks
   :maxdepth: 2

   collection/index
   roles

.. toctree::
   :caption: The project
   :maxdepth: 1

   docs/versioning
   docs/architecture
   docs/decisions/README
   docs/trust
   docs/performance
   docs/verification
   CONTRIBUTING
   MAINTAINERS
   CODE_OF_CONDUCT
   SECURITY
   CHANGELOG

.. toctree::
   :hidden:
   :glob:

   docs/dev/*
"""
# Labels of ansible-core's own documentation that plugin pages refer to: its address is known, its
# inventory is not fetched.
ANSIBLE = {
    "action_plugins": ("Action plugins", "plugins/action.html"),
    "common_return_values": (
        "Common return values",
        "reference_appendices/common_return_values.html",
    ),
    "ansible_configuration_settings": (
        "Ansible configuration settings",
        "reference_appendices/config.html",
    ),
}
# Of a link to what the site does not show as a page, the text is left: there is no address that it
# could lead to.
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)")


class Failed(Exception):
    """What went wrong, as the tools say it."""


def run(*command: str | Path) -> str:
    home = venvs.ensure("test")
    env = machine.environment(
        ANSIBLE_COLLECTIONS_PATH=str(venvs.collections()),
        ANSIBLE_HOME=str(SITE / "ansible-home"),
        PYTHONPATH=str(ROOT),
    )
    env["PATH"] = os.pathsep.join([str(home / "bin"), env["PATH"]])
    done = subprocess.run(
        [str(home / "bin" / command[0]), *map(str, command[1:])],
        cwd=SITE,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stdout.strip()[-4000:]}")
    return done.stdout


def assemble() -> None:
    """Write the site's sources: the pages at their paths, so that links hold, and the plugins'."""
    if SITE.exists():
        shutil.rmtree(SITE)
    SOURCE.mkdir(parents=True)
    pages = [
        *(ROOT / name for name in PAGES),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "roles").glob("*/README.md")),
    ]
    shown = {page.relative_to(ROOT) for page in pages}
    for page in shown:
        target = SOURCE / page
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / page).read_text(encoding="utf-8")
        target.write_text(
            linked(text, page, shown) if page.suffix == ".md" else text, encoding="utf-8"
        )
    for picture in (ROOT / "docs" / "img").glob("*.svg"):
        target = SOURCE / picture.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, target)
    (SOURCE / "conf.py").write_text(CONF, encoding="utf-8")
    (SOURCE / "static").mkdir()
    (SOURCE / "static" / "site.css").write_text(CSS, encoding="utf-8")
    (SOURCE / "index.rst").write_text(INDEX, encoding="utf-8")
    roles = "\n".join(
        f"   {page.with_suffix('')}" for page in sorted(shown) if page.parts[0] == "roles"
    )
    (SOURCE / "roles.rst").write_text(
        f"Roles\n=====\n\n.. toctree::\n   :maxdepth: 1\n\n{roles}\n", encoding="utf-8"
    )
    elsewhere = [":orphan:\n\nIn ansible-core's documentation\n===============================\n"]
    for label, (title, path) in ANSIBLE.items():
        elsewhere.append(
            f".. _{label}:\n\n{title}\n{'-' * len(title)}\n\n"
            f"https://docs.ansible.com/ansible-core/devel/{path}\n"
        )
    (SOURCE / "ansible.rst").write_text("\n".join(elsewhere), encoding="utf-8")
    (SOURCE / "collection").mkdir()
    run(
        "antsibull-docs",
        "collection",
        "--use-current",
        "--squash-hierarchy",
        "--fail-on-error",
        "--dest-dir",
        SOURCE / "collection",
        NAME,
    )


def linked(text: str, page: Path, shown: set[Path]) -> str:
    """Return a page in which links to files that are no pages of the site are plain names."""

    def one(match: re.Match) -> str:
        name, target = match[1], match[2]
        path, _hash, _anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        there = Path(os.path.normpath(page.parent / path))
        if not (ROOT / there).exists():
            raise Failed(f"{page}: the link {target} leads nowhere")
        if there in shown and there.suffix == ".md":
            return match[0]
        return name if name.strip("`") == str(there) else f"{name} (`{there}`)"

    return LINK.sub(one, text)


def build() -> str:
    """Build the site and return the tools' output; raise Failed with it on a warning."""
    assemble()
    return run(
        "sphinx-build",
        "-b",
        "html",
        "-q",
        "-W",
        "--keep-going",
        "-j",
        "2",
        "-d",
        SITE / "doctrees",
        SOURCE,
        HTML,
    )


def main() -> int:
    try:
        build()
    except (Failed, venvs.Unavailable) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{HTML / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
