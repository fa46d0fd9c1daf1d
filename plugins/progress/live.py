"""Bars on a terminal, drawn by rich, or in a notebook: those of all writers that share a console, one below the other."""

from __future__ import annotations

import atexit
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from html import escape
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple

import rich
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...core.common.lock import ForkSafeLock
from .notebook import notebook_shell

SECONDS_PER_DRAWING = 0.2


class Drawing(NamedTuple):
    """What a bar shows: a title, how much of the whole is done, texts beside it, and figures below."""

    title: str
    done: int
    whole: int
    texts: Sequence[str]
    figures: str


class Bar:
    """How far something is, on a display; without one it is never due.

    Args:
        display: where it is shown.
    """

    def __init__(self, display: Display | None) -> None:
        self._display = display
        self._due = 0.0
        self._began: tuple[float, int] | None = None
        self.drawing = Drawing("", 0, 1, (), "")

    def is_due(self) -> bool:
        """Whether it has not been drawn for a while."""
        return self._display is not None and monotonic() >= self._due

    def show(self, title: str, samples: int, size: int | None, later: int, figures: str) -> None:
        """Draw it.

        Args:
            title: what stands before the bar.
            samples: number of samples so far.
            size: of how many samples, where that is known.
            later: number of samples after these.
            figures: what stands below the bar.
        """
        if self._display is None:
            return
        now = monotonic()
        began, samples_before = self._began = self._began or (now, samples)
        speed = (samples - samples_before) / (now - began) if now > began else 0.0
        counts = f"{samples:,}{'' if size is None else f'/{size:,}'} samples"
        texts = [counts, f"{speed:,.0f}/s" if speed else ""]
        if size is not None and speed:
            texts.append(f"{timedelta(seconds=round((max(size - samples, 0) + later) / speed))} left")
        self.drawing = Drawing(title, min(samples, size or 0), size or 1, texts, figures)
        self._display.add(self)
        self._due = monotonic() + SECONDS_PER_DRAWING

    def hide(self) -> None:
        """Remove it; measuring starts over."""
        self._due, self._began = 0.0, None
        if self._display is not None:
            self._display.remove(self)


class Display(ABC):
    """The bars in one place."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._bars: list[Bar] = []

    def add(self, bar: Bar) -> None:
        """Draw all bars, this one among them."""
        with self._lock:
            if bar not in self._bars:
                self._bars.append(bar)
            self.draw(self._bars)

    def remove(self, bar: Bar) -> None:
        """Draw the other bars."""
        with self._lock:
            if bar in self._bars:
                self._bars.remove(bar)
                if self._bars:
                    self.draw(self._bars)
                else:
                    self.clear()

    def stop(self) -> None:
        """Remove all bars."""
        with self._lock:
            if self._bars:
                self._bars.clear()
                self.clear()

    @abstractmethod
    def draw(self, bars: Sequence[Bar]) -> None:
        """Draw bars in the place of those that are there."""

    @abstractmethod
    def clear(self) -> None:
        """Leave nothing there."""


class TerminalDisplay(Display):
    """The bars on a console. While there are any, what is printed appears above them; an error that ends the program ends it too."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._live: Live | None = None
        self._excepthook = sys.excepthook

    def draw(self, bars: Sequence[Bar]) -> None:
        if self._live is None:
            self._live = self._started()
        self._live.update(Group(*(_drawn(bar.drawing) for bar in bars)), refresh=True)

    def clear(self) -> None:
        """Give the console back."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            atexit.unregister(self.stop)
            if sys.excepthook == self._on_error:
                sys.excepthook = self._excepthook

    def _started(self) -> Live:
        ours = self._console.file in (sys.stdout, sys.stderr)
        out, err = ours and sys.stdout.isatty(), ours and sys.stderr.isatty()
        live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=out, redirect_stderr=err)
        live.start()
        self._console.show_cursor(True)
        atexit.register(self.stop)
        self._excepthook, sys.excepthook = sys.excepthook, self._on_error
        return live

    def _on_error(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        excepthook = self._excepthook
        self.stop()
        excepthook(kind, error, traceback)


class NotebookDisplay(Display):
    """The bars below a cell, where their place stays from one epoch to the next; they go when the cell ends."""

    def __init__(self, shell: Any) -> None:
        super().__init__()
        self._shell = shell
        self._handle: Any = None
        self._cell = -1
        shell.events.register("post_run_cell", lambda *result: self.stop())

    def draw(self, bars: Sequence[Bar]) -> None:
        from IPython.display import display

        shown = {"text/html": "".join(_html(bar.drawing) for bar in bars), "text/plain": "\n".join(_plain(bar.drawing) for bar in bars)}
        if self._cell == self._shell.execution_count and self._handle is not None:
            self._handle.update(shown, raw=True)
        else:
            self._cell, self._handle = self._shell.execution_count, display(shown, raw=True, display_id=True)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _drawn(drawing: Drawing) -> Group:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    bar = ProgressBar(drawing.whole, drawing.done)
    grid.add_row(Text(drawing.title), bar, *(Text(text, no_wrap=True) for text in drawing.texts))
    return Group(grid, Text(f"  {drawing.figures}", no_wrap=True, overflow="ellipsis"))


def _html(drawing: Drawing) -> str:
    bar = f'<progress style="width:20em" max="{drawing.whole}" value="{drawing.done}"></progress>'
    return f"<div>{escape(drawing.title)} {bar} {escape(', '.join(filter(None, drawing.texts)))}<br>{escape(drawing.figures)}</div>"


def _plain(drawing: Drawing) -> str:
    return f"{drawing.title}: {', '.join(filter(None, drawing.texts))}, {drawing.figures}"


_displays: dict[Console, Display] = {}


def display_of(console: Console | None) -> Display | None:
    """The display on *console*, by default rich's own; None where nothing can be drawn again."""
    chosen = rich.get_console() if console is None else console
    if chosen not in _displays:
        shell = notebook_shell()
        if chosen.is_jupyter and shell is not None:
            _displays[chosen] = NotebookDisplay(shell)
        elif not chosen.is_jupyter and chosen.is_interactive and chosen.file.isatty():
            _displays[chosen] = TerminalDisplay(chosen)
    return _displays.get(chosen)
