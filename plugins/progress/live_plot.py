"""Training curves that grow while training goes on: in a notebook, or in a file."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any

from ...core.common.launch import launched_rank
from ...core.storage.files import write_file
from .base import ProgressWriter
from .chart import Line, Panel, chart, last_of
from .curve import Curve, smoothed
from .notebook import notebook_shell

SECONDS_PER_DRAWING = 0.5
AXES = ("samples", "minibatches")
ENDINGS = (".svg", ".html")
CURVES = ("loss", "metric", "test")
PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Training</title>'
    "<style>:root {{ color-scheme: light dark }}</style></head><body>{}</body></html>\n"
)
"""A page that a browser loads again every two seconds."""


class LivePlot(ProgressWriter):
    """Draws loss and metric over samples or minibatches, together with smoothed curves and the results of tests.

    In a notebook there is one picture, below the cell that trained first, which is drawn again at most twice a second; a path is a file
    that is written at these times, an ``.html`` of which a browser shows each new state. In a program without either nothing is shown;
    :meth:`svg` gives the picture. The last state is drawn when training or a test is summed up, when the cell or the program ends, and by
    :meth:`close` or at the end of a ``with`` statement.

    Curves take the same memory however long training goes on: behind 1,000 points, neighbours become one with their average. Losses that
    are not finite are gaps. A metric is drawn when there is one.

    Args:
        along: what is counted from left to right: ``'samples'`` or ``'minibatches'``.
        smoothing: what the mean until then counts in smoothed curves, and a new point the rest: from 0 to less than 1.
        path: file for the picture, ``.svg`` or ``.html``.
        rank: number of this worker, by default as its launcher has it; those but 0 draw nothing.

    Raises:
        ValueError: another axis, smoothing or ending of the file.

    Example:
        >>> plot = C.logging.LivePlot(along='minibatches')
        >>> for loss in (8.0, float('nan'), 2.0):
        ...     plot.update_training(10, loss, 0.0)
        >>> plot.curves['loss'].points()
        [(1, 0.8), (2, nan), (3, 0.2)]
    """

    def __init__(
        self,
        along: str = "samples",
        smoothing: float = 0.9,
        path: str | os.PathLike[str] | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__()
        if along not in AXES:
            raise ValueError(f"LivePlot: along must be one of {', '.join(map(repr, AXES))}, got {along!r}")
        if not 0 <= smoothing < 1:
            raise ValueError(f"LivePlot: smoothing must be from 0 to less than 1, got {smoothing!r}")
        if path is not None and os.path.splitext(os.fspath(path))[1].lower() not in ENDINGS:
            raise ValueError(f"LivePlot: the name of its file ends in one of {', '.join(ENDINGS)}, got {os.fspath(path)!r}")
        self.along = along
        self._samples = 0
        self._draws = not (launched_rank() if rank is None else rank)
        self._picture = _Picture(smoothing, None if path is None else os.path.abspath(path), along)
        self.curves = self._picture.curves
        if self._draws:
            weakref.finalize(self, self._picture.draw)

    def __enter__(self) -> LivePlot:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows of it as the last line of a cell: the curves as they are then."""
        return self._picture.bundle()

    def svg(self) -> str:
        """The curves as they are now, as the text of an SVG file.

        >>> C.logging.LivePlot().svg()[:4]
        '<svg'
        """
        return self._picture.svg()

    def close(self) -> None:
        """Draw what has come since the last drawing."""
        if self._draws:
            self._picture.draw()

    def update_training(self, samples: int, loss: float, metric: float) -> None:
        """Report a training minibatch, a point of the curves: number of samples, sum of the losses and of the metrics."""
        super().update_training(samples, loss, metric)
        if self._draws and samples:
            self._samples += samples
            place = self._place()
            self._picture.add("loss", place, loss, samples)
            self._picture.add("metric", place, metric, samples)
            if self._picture.is_due():
                self._picture.draw()

    def on_write_training_summary(
        self,
        samples: int,
        updates: int,
        summaries: int,
        aggregate_loss: float,
        aggregate_metric: float,
        elapsed_milliseconds: int,
    ) -> None:
        """Draw the curves."""
        self.close()

    def on_write_test_summary(self, samples: int, updates: int, summaries: int, aggregate_metric: float, elapsed_milliseconds: int) -> None:
        """Add the result of a test to the metric's curves, and draw them."""
        if self._draws and samples:
            place = self._place() if self.total_training_updates() else summaries
            self._picture.add("test", place, aggregate_metric, samples)
            self._picture.draw()

    def create_checkpoint(self) -> dict[str, Any]:
        curves = {name: curve.create_checkpoint() for name, curve in self.curves.items()}
        return {**super().create_checkpoint(), "samples": self._samples, "curves": curves}

    def check_checkpoint(self, checkpoint: Any) -> None:
        super().check_checkpoint(checkpoint)
        if isinstance(checkpoint["samples"], bool) or not isinstance(checkpoint["samples"], int):
            raise ValueError(f"expected a number as 'samples', got {checkpoint['samples']!r:.80}")
        for name in CURVES:
            Curve().restore_from_checkpoint(checkpoint["curves"][name])

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        super().restore_from_checkpoint(checkpoint)
        self._samples = checkpoint["samples"]
        for name, curve in self.curves.items():
            curve.restore_from_checkpoint(checkpoint["curves"][name])

    def _place(self) -> int:
        return self._samples if self.along == "samples" else self.total_training_updates()


class _Picture:
    """The curves, and where they are drawn."""

    def __init__(self, smoothing: float, path: str | None, along: str) -> None:
        self.curves = {name: Curve() for name in CURVES}
        self._smoothing, self._path, self._along = smoothing, path, along
        self._display: Any = None
        self._is_stale = False
        self._due = 0.0

    def add(self, name: str, place: int, total: float, samples: int) -> None:
        self.curves[name].add(place, total, samples)
        self._is_stale = True

    def is_due(self) -> bool:
        return monotonic() >= self._due

    def svg(self) -> str:
        panels = [Panel("loss", self._lines("loss"))]
        has_metric = any(y for _, y in self.curves["metric"].points())
        if has_metric or len(self.curves["test"]):
            tests = self.curves["test"].points()
            lines = [Line("test", tests, 1, has_dots=True)] if tests else []
            panels.append(Panel("metric", [*(self._lines("metric") if has_metric else []), *lines]))
        return chart(panels, self._along)

    def bundle(self) -> dict[str, str]:
        text = ", ".join(f"{name} {last_of(curve.points())}" for name, curve in self.curves.items() if len(curve))
        return {"text/plain": f"LivePlot: {text or 'nothing yet'}", "text/html": self.svg()}

    def draw(self) -> None:
        """Draw what has changed since it was drawn last."""
        if not self._is_stale:
            return
        self._is_stale = False
        self._show()
        if self._path is not None:
            picture = self.svg()
            write_file(self._path, [(PAGE.format(picture) if self._path.lower().endswith(".html") else picture).encode()])
        self._due = monotonic() + SECONDS_PER_DRAWING

    def _show(self) -> None:
        """Draw in the notebook, if there is one."""
        if self._display is None:
            shell = notebook_shell()
            if shell is None:
                return
            from IPython.display import display

            self._display = display(self.bundle(), raw=True, display_id=True)
            shell.events.register("post_run_cell", _draw_last(weakref.ref(self)))
            return
        self._display.update(self.bundle(), raw=True)

    def _lines(self, name: str) -> list[Line]:
        """A training curve as it is, faint, and smoothed."""
        points = self.curves[name].points()
        return [Line("", points, is_faint=True), Line("training", smoothed(points, self._smoothing))]


def _draw_last(picture: weakref.ref[_Picture]) -> Callable[..., None]:
    """What draws the last state of a picture when a cell ends."""

    def draw(*result: Any) -> None:
        if (held := picture()) is not None:
            held.draw()

    return draw
