"""How the cost of a training step grows with minibatch, sequences' steps, layers and width; writes docs/scaling.md and its plot.

    python benchmarks/scaling.py [--rounds 3] [--no-page]

opencntk and PyTorch (where it is installed; as it stands) take turns in one process; the tables tell the medians of all rounds.
*Growth* is that of the time since the line before for each unit of growth of the arithmetic: below 1 a larger size uses the machine
better, above 1 cost grows faster than it should.  *First* is the time to build the network and take the first step, which should grow
as the layers do.  The plot wants matplotlib.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import machine
import table
from curves import CURVES, STEPS, Curve, Size, Step

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
PLOT = PAGE.with_suffix(".svg")

SECONDS, LEAST, MOST = 0.2, 2, 200
"""Seconds in which steps of one size are timed in a round, and how many steps at least and at most."""

TOO_STEEP = 1.25
"""Growth of time for each unit of growth of the arithmetic that is pointed out."""


class Point(NamedTuple):
    """Seconds of a training step, and of building the network and taking the first."""

    step: float
    first: float


def measure(size: Size, names: Sequence[str], rounds: int) -> dict[str, Point]:
    """Points of the frameworks, which take turns."""
    steps: dict[str, Step] = {}
    first: dict[str, float] = {}
    for name in names:
        start = time.perf_counter()
        steps[name] = STEPS[name](size)
        steps[name]()
        first[name] = time.perf_counter() - start
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            times[name].append(median(timed(steps[name])))
    return {name: Point(median(times[name]), first[name]) for name in names}


def timed(step: Step) -> list[float]:
    """Seconds of some steps, after one that is not counted."""
    step()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < LEAST or (time.perf_counter() < end and len(times) < MOST):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def growths(curve: Curve, points: Sequence[Point]) -> list[float | None]:
    """Growth of the time since the size before, for each unit of growth of the arithmetic."""
    sizes = curve.sizes()
    pairs = zip(sizes, sizes[1:], points, points[1:], strict=False)
    return [None, *((q.step / p.step) / (large.flop / small.flop) for small, large, p, q in pairs)]


def lines(curve: Curve, results: dict[str, list[Point]]) -> list[str]:
    """The table of a curve."""
    names = list(results)
    growth = {name: growths(curve, points) for name, points in results.items()}
    head = [curve.axis, "MFLOP", *(f"{name}, {what}" for name in names for what in ("ms", "growth", "first, ms")), "opencntk : PyTorch"]
    rows = [head, ["---"] * len(head)]
    for i, size in enumerate(curve.sizes()):
        cells = [f"{getattr(size, curve.axis):,}", f"{size.flop / 1e6:.3g}"]
        for name in names:
            point, grown = results[name][i], growth[name][i]
            cells += [f"{point.step * 1e3:.3g}", "" if grown is None else f"{grown:.2f}", f"{point.first * 1e3:.3g}"]
        cells.append(f"{results['opencntk'][i].step / results['PyTorch'][i].step:.2f}" if "PyTorch" in results else "")
        rows.append(cells)
    title = curve.title[0].upper() + curve.title[1:]
    return [f"## {title}", "", *(f"| {' | '.join(row)} |" for row in rows), ""]


def steep(curve: Curve, points: Sequence[Point]) -> list[str]:
    """Where opencntk's cost grows faster than the arithmetic."""
    sizes = curve.sizes()
    return [
        f"* {curve.title}: from {getattr(sizes[i - 1], curve.axis):,} to {getattr(sizes[i], curve.axis):,}, {growth:.2f} times as fast"
        for i, growth in enumerate(growths(curve, points))
        if growth is not None and growth > TOO_STEEP
    ]


def plot(path: Path, results: dict[str, dict[str, list[Point]]]) -> None:
    """Draw all curves, with the arithmetic's slope through opencntk's last point."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "scaling", "font.size": 8})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(CURVES), figsize=(3 * len(CURVES), 2.8), layout="constrained")
    for axis, curve in zip(axes, CURVES, strict=True):
        for name, points in results[curve.title].items():
            axis.loglog(curve.values, [point.step * 1e3 for point in points], marker=".", label=name)
        last = results[curve.title]["opencntk"][-1].step * 1e3
        flop = [size.flop for size in curve.sizes()]
        axis.loglog(curve.values, [last * part / flop[-1] for part in flop], ":", color="grey", label="arithmetic")
        axis.set_ylim(bottom=min(point.step for points in results[curve.title].values() for point in points) * 500)
        axis.set_xlabel(curve.title)
        axis.minorticks_off()
    axes[0].set_ylabel("ms a training step")
    axes[0].legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all curves, print the tables and write the page and its plot."""
    parser = argparse.ArgumentParser(description="Measure how the cost of a training step grows.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-page", action="store_true", help=f"leave {PAGE.name} and {PLOT.name} as they are")
    options = parser.parse_args(arguments)

    names = [name for name in STEPS if name != "PyTorch" or find_spec("torch")]
    text, notes, results = [], [], {}
    where = machine.description()
    measure(CURVES[0].sizes()[0], names, 1)  # imports everything
    for curve in CURVES:
        of_sizes = []
        for size in curve.sizes():
            of_sizes.append(measure(size, names, options.rounds))
            gc.collect()
        results[curve.title] = points = {name: [found[name] for found in of_sizes] for name in names}
        text += lines(curve, points)
        notes += steep(curve, points["opencntk"])
        print("\n".join(lines(curve, points)), flush=True)
    if notes:
        text += ["Here the cost of opencntk grows faster than the arithmetic does:", "", *notes, ""]
    text.append(f"Medians of {options.rounds} rounds. {where}.")
    print("\n".join(notes))
    if not options.no_page:
        if find_spec("matplotlib"):
            plot(PLOT, results)
        table.write(PAGE, "\n".join(text))


if __name__ == "__main__":
    main()
