"""Where the models of a server are: files by name, and folders of models with versions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FIRST = "1"
"""The version of a model that is given as a file."""
BESIDE = (".data", ".tmp")
"""Suffixes of files that are no models, but lie beside one."""


class Source(NamedTuple):
    """A version of a model.

    Attributes:
        name: name of the model.
        version: its version, a number.
        path: its file; its folder, where that has several.
    """

    name: str
    version: str
    path: str


class Sources:
    """What is to be served.

    Args:
        given: for each ``NAME=PATH`` or ``PATH``: a file, whose name without suffix is the model's where none is given; or a folder
            with files ``NAME/VERSION/FILE``, versions being numbers.

    Raises:
        ValueError: a path does not exist, a folder has no models, or two models have the same name.

    >>> import pathlib, tempfile
    >>> from cntk.serving.sources import Sources
    >>> folder = tempfile.TemporaryDirectory()
    >>> for version in ('1', '2'):
    ...     pathlib.Path(folder.name, 'digits', version).mkdir(parents=True)
    ...     pathlib.Path(folder.name, 'digits', version, 'model.dnn').touch()
    >>> [(source.name, source.version) for source in Sources([folder.name]).found()]
    [('digits', '1'), ('digits', '2')]
    >>> folder.cleanup()
    """

    def __init__(self, given: Sequence[str]) -> None:
        self._files: dict[str, str] = {}
        self._folders: list[str] = []
        for text in given:
            self._add(text)
        names = [source.name for source in self.found() if source.version == FIRST]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"several models are called {twice[0]!r}; say NAME=PATH to give a model another name")

    def _add(self, text: str) -> None:
        name, equals, path = text.partition("=")
        if not equals or os.path.exists(text):
            name, path = "", text
        if os.path.isdir(path):
            if name:
                raise ValueError(f"{text}: {path!r} is a folder, in which models have their names: NAME/VERSION/FILE")
            self._folders.append(path)
        elif os.path.isfile(path):
            name = name or Path(path).stem
            if name in self._files:
                raise ValueError(f"several models are called {name!r}; say NAME=PATH to give a model another name")
            self._files[name] = path
        else:
            raise ValueError(f"there is no file or folder {path!r}")
        if "/" in name:
            raise ValueError(f"{text}: a model's name is part of an address, and has no '/'")

    @property
    def required(self) -> set[str]:
        """Names of the models without which the server does not start."""
        return set(self._files)

    def found(self) -> list[Source]:
        """What is there now."""
        files = [Source(name, FIRST, path) for name, path in self._files.items()]
        return files + [source for folder in self._folders for source in _in_folder(Path(folder))]


def _in_folder(folder: Path) -> Iterator[Source]:
    for model in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        versions = [path for path in model.iterdir() if path.is_dir() and path.name.isascii() and path.name.isdigit()]
        for version in sorted(versions, key=lambda path: int(path.name)):
            files = [path for path in version.iterdir() if path.is_file() and path.suffix not in BESIDE and not path.name.startswith(".")]
            if files:
                yield Source(model.name, version.name, str(files[0] if len(files) == 1 else version))
