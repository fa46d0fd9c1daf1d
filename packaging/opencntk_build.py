"""Builds packages by setuptools.  Wheels that are made on Linux for x86-64 bring the machine code of loops along.

To compile it takes half a minute; with CNTK_BUILD_MACHINE_CODE=0 in the environment it is left out, and loops are compiled when needed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403
from setuptools.command.build_py import build_py

PREBUILT = "cntk/core/machine/prebuilt"
"""Where the package looks for machine code."""

COMPILES = sys.platform == "linux" and platform.machine() == "x86_64" and os.environ.get("CNTK_BUILD_MACHINE_CODE") != "0"


COMPILER = "numba>=0.62,<0.69; python_version < '3.15'"
"""The versions of Numba that are known to compile loops, as core/machine/numba_version.py has them.  Users may have any other."""


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What a wheel is built with: where loops are compiled, all that the package runs with, and a Numba that compiles them."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *([*project["dependencies"], COMPILER] if COMPILES else [])]


class BuildPy(build_py):
    """Puts the package's files together, and what is made of them."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # or modules would come back that have been removed since
        super().run()
        if not self.editable_mode and COMPILES and not compile_loops(Path(self.build_lib)):
            self.warn("loops have not been compiled: the wheel brings no machine code along")


def compile_loops(package: Path) -> bool:
    """Compile the loops of a package that lies in a folder; tells whether that went well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    # In front of what is there: pip hands a build its requirements by this path.
    path = os.pathsep.join([str(package.resolve()), *filter(None, [environment.get("PYTHONPATH")])])
    environment |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "cntk", "compile", "--into", str(package / PREBUILT)]
    is_done = subprocess.run(command, env=environment, check=False).returncode == 0
    if not is_done:
        shutil.rmtree(package / PREBUILT, ignore_errors=True)
    return is_done
