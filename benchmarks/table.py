"""The table of the results, and the page it stands in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from figures import Figure

BEGIN, END = "<!-- begin: made by make bench -->", "<!-- end -->"
UNITS = {"µs": 1e6, "ms": 1e3, "MB": 1e-6}
ABSENT = "not present"
PEERS = "CNTK 2.7", "PyTorch", "JAX"


class Results:
    """Numbers by figure and framework, each measured once a round, the modes that frameworks ran in, and which of them failed."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.modes: dict[tuple[str, str], str] = {}
        self.failures: list[tuple[str, str]] = []
        self._numbers: dict[tuple[str, str], list[list[float]]] = defaultdict(list)

    def add(self, key: tuple[str, str], numbers: list[float]) -> None:
        """Note what one measurement gave."""
        self._numbers[key].append(numbers)

    def medians(self, figure: str, framework: str) -> list[float]:
        """Medians of all rounds; empty where nothing was measured."""
        return [median(numbers) for numbers in zip(*self._numbers.get((figure, framework), []), strict=True)]


def shown(figure: Figure, numbers: Sequence[float]) -> str:
    """Numbers of a figure in its unit."""
    if figure.items:
        return ", ".join(f"{figure.items / value:,.0f}" for value in numbers) + f" {figure.unit}"
    return ", ".join(number(value * UNITS[figure.unit]) for value in numbers) + f" {figure.unit}"


def page(figures: Sequence[Figure], frameworks: Sequence[str], results: Results, where: str) -> str:
    """The generated part of the page."""
    flop, nbytes = results.medians("machine", "rates")
    peers = [name for name in frameworks if name in PEERS]
    head = ["", *frameworks, *(f"opencntk : {name}" for name in peers), "MFLOP", "MB", "floor"]
    lines = [line(head), line(["---"] * len(head))]
    for figure in figures:
        present = {name: results.medians(figure.title, name) for name in frameworks}
        cells = [
            _cell(figure, numbers, results.modes.get((figure.title, name), ""), any(results.medians(f.title, name) for f in figures))
            for name, numbers in present.items()
        ]
        ratios = [_ratio(present["opencntk"], present[name]) for name in peers]
        lines.append(line([figure.title, *cells, *ratios, *_floor(figure, flop, nbytes)]))
    rates = f"float32 products at {flop / 1e9:.0f} GFLOP/s, copies at {nbytes / 1e9:.1f} GB/s"
    return "\n".join([*lines, "", f"Medians of {results.rounds} rounds. {where}; measured in the same run: {rates}."])


def write(path: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Put the generated part into the page, between its marks."""
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cells) + " |"


def _cell(figure: Figure, numbers: Sequence[float], mode: str, is_present: bool) -> str:
    if numbers:
        return shown(figure, numbers) + (f", {mode}" if mode else "")
    return "" if is_present else ABSENT


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    return f"{ours[-1] / theirs[-1]:.2f}" if ours and theirs else ""


def _floor(figure: Figure, flop: float, nbytes: float) -> list[str]:
    """Arithmetic, memory traffic, and the time that the larger of the two takes at least."""
    if not figure.flop:
        return ["", "", ""]
    least = max(figure.flop / flop, figure.nbytes / nbytes)
    return [number(figure.flop / 1e6), number(figure.nbytes / 1e6), shown(figure, [least])]


def number(value: float) -> str:
    """A number to three digits or, where it has more before the point, to these."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
