"""Installs the package in every way there is, each time in a new environment outside of the checkout, and trains something there.

    python tests/installs.py [--wheel FILE]

The checkout, the sdist and the URL of the repository are built in isolation by pip, as is what an editable install needs; of these only
the sdist compiles machine code, which takes minutes.  The wheel is tried on every Python that is to be had, beside other versions of Numba,
and without Numba and SciPy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRAINING = ROOT / "tests" / "small_training.py"

PYTHONS = ("3.11", "3.12", "3.13")
"""Versions that the package is for."""

CLOSE = 1e-3
"""By how much of itself a loss may differ with and without compiled loops."""

ALONE = "on: no machine code comes with the package; others are compiled by Numba"
"""What the doctor says of a package that has been built without machine code."""

COMPILES = sys.platform == "linux" and platform.machine() == "x86_64"
"""Whether wheels bring machine code along."""


class Environment:
    """A new environment, in which something is installed and tried.

    Args:
        folder: where it is made.
        python: whose.
        title: what it is called.
    """

    def __init__(self, folder: Path, python: str, title: str) -> None:
        self.title, self._folder = title, folder / re.sub(r"\W+", "-", title)
        run([python, "-m", "venv", str(self._folder)], folder)
        self._python = str(self._folder / "bin" / "python")
        self._started = time.monotonic()

    def install(self, *what: str, **environment: str) -> None:
        """Have pip install something, with what it requires."""
        run([self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what], self._folder, environment)

    def check(self, doctor: str, is_compiled: bool, **environment: str) -> None:
        """Train with and without compiled loops, and look for a line of the doctor's.

        Args:
            doctor: what one of its lines holds.
            is_compiled: whether compiled loops are to be used.
            environment: further environment variables.

        Raises:
            RuntimeError: something is not as it should be.
        """
        kept = {"NUMBA_CACHE_DIR": str(self._folder / "kept"), **environment}
        found, plain = self._losses(kept), self._losses({**kept, "CNTK_FUSED": "0"})
        if found.pop("is_compiled") != is_compiled or plain.pop("is_compiled"):
            raise RuntimeError(f"{self.title}: compiled loops are {'not ' if is_compiled else ''}used")
        for name, wanted in plain.items():
            if any(abs(one - other) > CLOSE * abs(other) for one, other in zip(found[name], wanted, strict=True)):
                raise RuntimeError(f"{self.title}: {name} has the losses {found[name]} with compiled loops and {wanted} without")
        said = self._run(kept, "-m", "cntk", "doctor")
        if doctor not in said:
            raise RuntimeError(f"{self.title}: expected 'cntk doctor' to say: {doctor}\nIt said:\n{said}")
        print(f"{self.title}: installed, trained and checked in {time.monotonic() - self._started:.0f} s", flush=True)
        shutil.rmtree(self._folder)

    def _losses(self, environment: Mapping[str, str]) -> dict[str, list[float]]:
        losses: dict[str, list[float]] = json.loads(self._run(environment, "-W", "error", str(TRAINING)))
        return losses

    def _run(self, environment: Mapping[str, str], *arguments: str) -> str:
        """What the environment's Python prints."""
        return run([self._python, *arguments], self._folder, environment)


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints that is run in a folder, where no Python finds the checkout.

    Raises:
        RuntimeError: it failed.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CNTK_", "NUMBA_"))}
    done = subprocess.run(command, cwd=folder, env=inherited | dict(environment or {}), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def find_python(version: str) -> str | None:
    """An interpreter of a version: on the path, pyenv's or uv's; None if there is none."""
    named = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [*([named] if named else []), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True))]
    if shutil.which("uv"):
        found = subprocess.run(["uv", "python", "find", version], capture_output=True, text=True, check=False)
        candidates += found.stdout.split()
    return next((python for python in candidates if _is(python, version)), None)


def _is(python: str, version: str) -> bool:
    program = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def built(folder: Path, python: str) -> Iterator[tuple[str, str, bool]]:
    """What is installed in each way that has pip build the package, in isolation, and whether machine code is compiled with it."""
    yield "checkout", str(ROOT), False
    yield "URL", f"git+{ROOT.as_uri()}", False
    builder = folder / "builder"
    run([python, "-m", "venv", str(builder)], folder)
    run([str(builder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build"], folder)
    run([str(builder / "bin" / "python"), "-m", "build", "--sdist", "--outdir", str(folder / "sdist"), str(ROOT)], folder)
    (sdist,) = (folder / "sdist").iterdir()
    yield "sdist", str(sdist), True


def future_numba(folder: Path) -> str:
    """A folder that holds a Numba of a version that nobody knows, which has nothing of what ours has."""
    made = folder / "future"
    (made / "numba").mkdir(parents=True)
    (made / "numba" / "__init__.py").write_text("__version__ = '99.0.0'\n")
    (made / "numba-99.0.0.dist-info").mkdir()
    (made / "numba-99.0.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numba\nVersion: 99.0.0\n")
    return str(made)


def main() -> None:
    """Try all ways; the first that fails raises an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="the wheel to try; by default one is built")
    options = parser.parse_args()
    pythons = {version: find_python(version) for version in PYTHONS}
    for version in [version for version, python in pythons.items() if python is None]:
        print(f"Python {version} is not to be had here: nothing is tried with it")
    present = [python for python in pythons.values() if python is not None] or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="cntk-installs-") as name:
        try_all(Path(name), present, options.wheel)


def try_all(folder: Path, pythons: Sequence[str], wheel: Path | None) -> None:
    """Try all ways in a folder: those that build on the first Python, the wheel on each."""
    first = pythons[0]
    comes = "on: machine code comes with the package" if COMPILES else "on: "
    for title, what, brings_code in built(folder, first):
        environment = Environment(folder, first, title)
        environment.install(what, CNTK_BUILD_MACHINE_CODE="1" if brings_code else "0")
        environment.check(comes if brings_code else ALONE, is_compiled=True)
    if wheel is None:
        run([first, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "wheel"), str(ROOT)], folder)
        (wheel,) = (folder / "wheel").iterdir()
    file = str(wheel.resolve())
    for python in pythons:
        environment = Environment(folder, python, f"wheel, {Path(python).name} {_version(python)}")
        environment.install(file)
        environment.check(comes, is_compiled=True)

    environment = Environment(folder, first, "editable")
    environment.install("--editable", str(ROOT))
    environment.check(ALONE, is_compiled=True)

    environment = Environment(folder, first, "wheel, without Numba and SciPy")
    environment.install("numpy", "pluggy")
    environment.install("--no-deps", file)
    environment.check("off: llvmlite, which comes with Numba, is not installed", is_compiled=False)

    if COMPILES:
        try_other_numbas(folder, first, file)


def try_other_numbas(folder: Path, python: str, wheel: str) -> None:
    """Try versions of Numba that do not compile loops: what is there was made before."""
    environment = Environment(folder, python, "wheel, Numba 0.60")
    environment.install(wheel, "numba==0.60.*")
    environment.check("no others are compiled: Numba 0.60.0 is not known to compile loops", is_compiled=True)

    environment = Environment(folder, python, "wheel, a Numba of the future")
    environment.install(wheel)
    environment.check(
        "no others are compiled: Numba 99.0.0 is not known to compile loops", is_compiled=True, PYTHONPATH=future_numba(folder)
    )  # fmt: skip


def _version(python: str) -> str:
    return run([python, "-c", "import platform; print(platform.python_version())"], ROOT).strip()


if __name__ == "__main__":
    main()
