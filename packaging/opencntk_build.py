"""Builds packages by setuptools.  Wheels that are made on Linux for x86-64 bring the machine code of loops along.

To compile it takes half a minute; with CNTK_BUILD_MACHINE_CODE=0 in the environment it is left out, and loops are compiled when needed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403
from setuptools.command.build_py import build_py

BROUGHT = "cntk/backends/fused/brought"
"""Where the package looks for machine code."""

COMPILES = sys.platform == "linux" and platform.machine() == "x86_64" and os.environ.get("CNTK_BUILD_MACHINE_CODE") != "0"


def get_requires_for_build_wheel(config_settings: Mapping[str, Any] | None = None) -> list[str]:
    """What a wheel is built with: where loops are compiled, all that the package runs with."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *(project["dependencies"] if COMPILES else [])]


class BuildPy(build_py):
    """Puts the package's files together, and what is made of them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode or not COMPILES:
            return
        if find_spec("numba") is None:
            self.warn("there is no Numba here: the wheel brings no machine code along")
        else:
            compile_loops(Path(self.build_lib))


def compile_loops(package: Path) -> None:
    """Compile the loops of a package that lies in a folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"PYTHONPATH": str(package.resolve()), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-m", "cntk", "compile", "--into", str(package / BROUGHT)], env=environment, check=True)
