"""A picture of a profile: how many operations a second each operator does, over how many it has for each byte.

Source: S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from cntk.core.run.profiling import BACKWARD, FORWARD, Tally
from cntk.debugging.rates import Rates

NAMED = 12
"""So many operators, those that take longest, have their names beside them."""
COLOURS = {FORWARD: "#1f77b4", BACKWARD: "#d62728"}


def check_for_matplotlib() -> None:
    """Refuse to go on where pictures cannot be drawn.

    Raises:
        ImportError: matplotlib is missing.
    """
    if not find_spec("matplotlib"):
        raise ImportError("start_profiler: the picture (plot=True) is drawn by matplotlib: pip install 'opencntk[plot]'")


def draw(tallies: Mapping[tuple[str, str], Tally], rates: Rates, path: Path) -> None:
    """Draw the operators below the machine's roof, larger ones having taken longer; those without operations are left out.

    Args:
        tallies: the profile.
        rates: the peak rates of the machine.
        path: file to write, of the kind that its ending says, such as ``.svg`` or ``.png``.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    longest_first = sorted(tallies.items(), key=lambda item: -item[1].total)
    shown = [(uid, direction, tally) for (uid, direction), tally in longest_first if tally.flop and tally.total]
    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel="FLOP / byte", ylabel="FLOP / s", title=str(rates))
    intensities = [tally.flop / tally.nbytes for _, _, tally in shown]
    widest = np.geomspace(min([0.05, *intensities]) / 2, max([rates.float32 / rates.copy, *intensities]) * 4, 500)
    for dtype, style in ((np.float32, "-"), (np.float64, "--")):
        axes.plot(widest, np.minimum(rates.of_products(dtype), widest * rates.copy), style, color="#333333", label=dtype.__name__)
    longest = max((tally.total for _, _, tally in shown), default=1.0)
    for direction, colour in COLOURS.items():
        of_pass = [(x, tally) for x, (_, way, tally) in zip(intensities, shown, strict=True) if way == direction]
        sizes = [20 + 400 * tally.total / longest for _, tally in of_pass]
        speeds = [tally.flop / tally.total for _, tally in of_pass]
        axes.scatter([x for x, _ in of_pass], speeds, sizes, color=colour, alpha=0.5, label=direction)
    for x, (uid, _, tally) in list(zip(intensities, shown, strict=True))[:NAMED]:
        axes.annotate(uid, (x, tally.flop / tally.total), fontsize=8, parse_math=False)
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(path)
