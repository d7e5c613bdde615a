# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for the get-pip script that ansible-test downloads from a host of its own.

It installs the same pip from the wheel in its folder, which came from the package index like
everything else here.
"""

import pathlib
import runpy
import sys

if __name__ == "__main__":
    script = pathlib.Path(__file__).absolute()
    version = script.stem.split("get_pip_")[1].replace("_", ".")
    sys.path.insert(0, str(next(script.parent.glob(f"pip-{version}-*.whl"))))
    options = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
    # A folder of ours that is inherited by pip would win over the wheel.
    sys.argv = ["pip", "install", "--upgrade", *options]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
