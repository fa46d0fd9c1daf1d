"""The runs in a folder: what their event files have, read on as they grow."""

from __future__ import annotations

import os
from collections.abc import Iterator

from cntk.plugins.progress.curve import Curve
from cntk.plugins.progress.event_reader import EventReader

MARK = "tfevents"
"""What names of event files have in them."""


class Runs:
    """The runs in a folder, each a folder with event files: the folder itself, and those in it.

    A run that goes on from a checkpoint writes a new file into the same folder: its numbers take the place of those of the same steps
    and later ones. Curves of any length are kept in little memory.

    Args:
        folder: where to look; it may be made later.

    Attributes:
        curves: by tag and by name of the run.
        notes: what is wrong with files, as text.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.curves: dict[str, dict[str, Curve]] = {}
        self.notes: list[str] = []
        self._readers: dict[str, EventReader] = {}
        self._latest: dict[tuple[str, str], tuple[str, int]] = {}

    def refresh(self) -> bool:
        """Read what has come; tells whether there was anything."""
        self.notes = []
        return sum(self._read(run, path) for run, path in self._files()) > 0

    def names(self) -> list[str]:
        """Names of the runs that have numbers."""
        return sorted({run for runs in self.curves.values() for run in runs})

    def _files(self) -> Iterator[tuple[str, str]]:
        """Event files with the names of their runs, those of a run by age, which their names tell."""
        for folder, folders, names in os.walk(self.folder):
            folders.sort()
            run = os.path.relpath(folder, self.folder)
            for name in sorted(name for name in names if MARK in name):
                yield ("" if run == "." else run), os.path.join(folder, name)

    def _read(self, run: str, path: str) -> bool:
        reader = self._readers.setdefault(path, EventReader(path))
        has_new = False
        try:
            for number in reader.read():
                self._add(run, path, number.tag, number.step, number.value)
                has_new = True
        except OSError as error:
            self.notes.append(f"{path}: {error.strerror or error}")
        if reader.damaged:
            self.notes.append(f"{path} is damaged; what can be read of it is shown")
        return has_new

    def _add(self, run: str, path: str, tag: str, step: int, value: float) -> None:
        curve = self.curves.setdefault(tag, {}).setdefault(run, Curve())
        latest, last = self._latest.get((tag, run), (path, step - 1))
        if path < latest:
            return
        if step <= last:
            curve.forget_from(step)
        self._latest[tag, run] = path, step
        curve.add(step, value)
