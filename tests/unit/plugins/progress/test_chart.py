"""Charts: SVG that is well formed, with all points in it and gaps where there are none."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from cntk.plugins.progress.chart import HEIGHT, WIDTH, Line, Panel, chart, short

NAMESPACE = "{http://www.w3.org/2000/svg}"


def numbers(path: str) -> list[list[tuple[float, float]]]:
    """The pieces of a path."""
    pieces = [re.findall(r"([-\d.]+) ([-\d.]+)", piece) for piece in path.split("M")[1:]]
    return [[(float(x), float(y)) for x, y in piece] for piece in pieces]


def lines_of(root: ElementTree.Element) -> list[list[list[tuple[float, float]]]]:
    return [numbers(path.attrib["d"]) for path in root.iter(f"{NAMESPACE}path") if path.get("fill") == "none"]


def test_values_are_where_the_axes_say() -> None:
    root = ElementTree.fromstring(chart([Panel("loss", [Line("training", [(0, 0.0), (5, 10.0), (10, 5.0)])])], "steps"))
    ((start, top, half),) = lines_of(root)[0]
    labels = {text.text: (float(text.attrib["x"]), float(text.attrib["y"])) for text in root.iter(f"{NAMESPACE}text")}
    assert start[1] > half[1] > top[1]
    assert start[0] == labels["0"][0] or labels["0"][0] < start[0]
    assert labels["10"][1] > start[1]
    assert top[0] == pytest.approx((start[0] + half[0]) / 2, abs=0.1)


@pytest.mark.parametrize(
    ("values", "pieces", "dots"),
    [
        ([1.0, 2.0, math.nan, 3.0, 4.0], [2, 2], 0),
        ([1.0, math.inf, 3.0, 4.0], [2], 1),
        ([math.nan, 1.0, math.nan], [], 1),
        ([math.nan, math.nan], [], 0),
        ([5.0], [], 1),
        ([5.0, 5.0], [2], 0),
        ([-1e308, 1e308], [2], 0),
        ([1e-320, 2e-320], [2], 0),
        ([1e300] * 3, [3], 0),
        ([], [], 0),
    ],
)
def test_gaps_and_single_points(values: list[float], pieces: list[int], dots: int) -> None:
    root = ElementTree.fromstring(chart([Panel("loss", [Line("training", list(enumerate(values)))])], "steps"))
    assert [len(piece) for line in lines_of(root) for piece in line] == pieces
    assert len(list(root.iter(f"{NAMESPACE}circle"))) == dots
    for line in lines_of(root):
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for piece in line for x, y in piece)
    says_so = any(text.text == "no values yet" for text in root.iter(f"{NAMESPACE}text"))
    assert says_so == (not pieces and not dots)


def test_names_are_text_and_panels_lie_below_each_other() -> None:
    root = ElementTree.fromstring(chart([Panel("<b>&", [Line("<script>", [(1, 1.0)])]), Panel("second", [])], "a<b"))
    texts = [text.text for text in root.iter(f"{NAMESPACE}text")]
    assert {"<b>&", "<script> 1", "a<b", "second"} <= set(texts)
    assert root.attrib["height"] == str(2 * HEIGHT)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (9000, "9000"), (20_000, "20k"), (1_500_000, "1.5M"), (-2e9, "-2G"), (0.25, "0.25")]
)
def test_short_numbers(number: float, text: str) -> None:
    assert short(number) == text
