"""Bars on a terminal or in a notebook, drawn by rich: those of all writers that share a console, one below the other."""

from __future__ import annotations

import atexit
import sys
from datetime import timedelta
from importlib.util import find_spec
from time import monotonic
from types import TracebackType

import rich
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ...core.common.lock import ForkSafeLock

SECONDS_PER_DRAWING = 0.2


class Bar:
    """How far something is, on a display; without one it is never due.

    Args:
        display: where it is shown.
    """

    def __init__(self, display: Display | None) -> None:
        self._display = display
        self._due = 0.0
        self._began: tuple[float, int] | None = None
        self.drawing: Group | str = ""

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
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_row(Text(title), ProgressBar(size or 1, min(samples, size or 0)), *(Text(text, no_wrap=True) for text in texts))
        self.drawing = Group(grid, Text(f"  {figures}", no_wrap=True, overflow="ellipsis"))
        self._display.add(self)
        self._due = monotonic() + SECONDS_PER_DRAWING

    def hide(self) -> None:
        """Remove it; measuring starts over."""
        self._due, self._began = 0.0, None
        if self._display is not None:
            self._display.remove(self)


class Display:
    """The bars on a console. While there are any, what is printed appears above them; an error that ends the program ends it too."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = ForkSafeLock()
        self._bars: list[Bar] = []
        self._live: Live | None = None
        self._excepthook = sys.excepthook

    def add(self, bar: Bar) -> None:
        """Draw all bars, this one among them."""
        with self._lock:
            if bar not in self._bars:
                self._bars.append(bar)
            if self._live is None:
                self._start()
            self._draw()

    def remove(self, bar: Bar) -> None:
        """Draw the other bars."""
        with self._lock:
            if bar in self._bars:
                self._bars.remove(bar)
                if self._bars:
                    self._draw()
                else:
                    self.stop()

    def stop(self) -> None:
        """Give the console back."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None
                self._bars.clear()
                atexit.unregister(self.stop)
                if sys.excepthook == self._on_error:
                    sys.excepthook = self._excepthook

    def _start(self) -> None:
        ours = self._console.file in (sys.stdout, sys.stderr)
        out, err = ours and sys.stdout.isatty(), ours and sys.stderr.isatty()
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=out, redirect_stderr=err)
        self._live.start()
        self._console.show_cursor(True)
        atexit.register(self.stop)
        self._excepthook, sys.excepthook = sys.excepthook, self._on_error

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(Group(*(bar.drawing for bar in self._bars)), refresh=True)

    def _on_error(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        excepthook = self._excepthook
        self.stop()
        excepthook(kind, error, traceback)


_displays: dict[Console, Display] = {}


def display_of(console: Console | None) -> Display | None:
    """The display on *console*, by default rich's own; None where nothing can be drawn again."""
    chosen = rich.get_console() if console is None else console
    can_draw = find_spec("ipywidgets") is not None if chosen.is_jupyter else chosen.is_interactive and chosen.file.isatty()
    if not can_draw:
        return None
    return _displays.setdefault(chosen, Display(chosen))
