"""Reads packaging/Containerfile, and does on this machine what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "packaging" / "Containerfile"


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
        stage: number of the stage that it is in, from 1.
        name: such as ``RUN``.
        text: what follows, on one line.
    """

    stage: int
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words of the text: of a JSON list, or as a shell splits them."""
        found: list[str] = json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        return found


def instructions(path: Path = PATH) -> Iterator[Instruction]:
    """The instructions of a file, without comments."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    stage = 0
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, text = line.partition(" ")
            stage += name == "FROM"
            yield Instruction(stage, name, " ".join(text.split()) if name != "RUN" else text.strip())


def the(name: str) -> Instruction:
    """The last instruction of a name, which is what the image has."""
    return [found for found in instructions() if found.name == name][-1]


class Machine:
    """A folder in the place of the image's root, in which packages are installed and the server runs.

    Both stages share the folder, so that what the second copies from the first is there already.

    Args:
        folder: the folder.
        port: in the place of the one that the image has.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self._workdir = folder
        self.environment: dict[str, str] = {}

    def build(self) -> subprocess.CompletedProcess[str] | None:
        """Do what the instructions say; the first command that fails, or None."""
        for found in instructions():
            if found.name == "WORKDIR":
                self._workdir = Path(self.placed(found.text))
                self._workdir.mkdir(parents=True)
            elif found.name == "COPY" and not found.text.startswith("--from="):
                self._copy(*found.words)
            elif found.name == "RUN" and (done := self._run(found.text)).returncode:
                return done
            elif found.name == "ENV":
                self.environment |= {key: self.placed(value) for key, _, value in (word.partition("=") for word in found.words)}
        return None

    def start(self) -> subprocess.Popen[str]:
        """Run what the image runs."""
        words = [self.placed(word) for word in [*the("ENTRYPOINT").words, *the("CMD").words]]
        program = shutil.which(words[0], path=self.environment["PATH"])
        return subprocess.Popen(
            [str(program), *words[1:]], env=self.environment, cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def is_healthy(self) -> bool:
        """Whether the image's own check says so."""
        _, _, command = the("HEALTHCHECK").text.partition("CMD ")
        words = [self.placed(word) for word in json.loads(command)]
        program = shutil.which(words[0], path=self.environment["PATH"])
        return subprocess.run([str(program), *words[1:]], env=self.environment, capture_output=True, check=False).returncode == 0

    def files(self) -> set[str]:
        """All files but those of models and in /tmp."""
        return {str(path) for top in ("source", "opt") for path in (self._folder / top).rglob("*")}

    def placed(self, text: str) -> str:
        """A text with the image's paths and port replaced."""
        return re.sub(r"(?<![\w./])/(?=source|opt|models|tmp)", f"{self._folder}/", text).replace("8080", str(self._port))

    def _copy(self, *words: str) -> None:
        *sources, target = words
        for source in sources:
            to = self._workdir / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, to)

    def _run(self, text: str) -> subprocess.CompletedProcess[str]:
        """A command of the build.  Machine code takes minutes to compile, and is tried with the wheels."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CNTK_", "PYTHON"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**kept, "PATH": path, "CNTK_BUILD_MACHINE_CODE": "0"}
        return subprocess.run(
            self.placed(text), shell=True, cwd=self._workdir, env=environment, capture_output=True, text=True, check=False
        )
