"""Pictures of graphs as SVG, as browsers read it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import cntk as C
from cntk.logging.picture import picture_of
from cntk.logging.svg import draw

NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(data: bytes) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(data).iter(f"{NAMESPACE}text")]


def test_every_box_is_there_within_the_picture() -> None:
    model = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(3)), C.layers.Dense(2, name="z")])(
        C.sequence.input_variable(4, name="x")
    )
    picture = picture_of(model)
    data = draw(picture, "A & B")
    root = ElementTree.fromstring(data)
    assert root.findtext(f"{NAMESPACE}title") == "A & B"
    assert {line for box in picture.boxes for line in box.text.split("\n")} <= set(texts(data))
    assert len(list(root.iter(f"{NAMESPACE}g"))) == 1 + len(picture.boxes)
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    for kind, x, y, half in (("ellipse", "cx", "cy", "rx"), ("text", "x", "y", "")):
        for element in root.iter(f"{NAMESPACE}{kind}"):
            reach = float(element.get(half, 0))
            assert left <= float(element.attrib[x]) - reach
            assert float(element.attrib[x]) + reach <= left + width
            assert top <= float(element.attrib[y]) <= top + height


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a"b', "ä & ö"])
def test_names_are_text(name: str) -> None:
    data = draw(picture_of(C.relu(C.input_variable(2, name=name))))
    assert name in texts(data)
    assert b"<script" not in data


def test_recurrences_have_arrows_that_point_up() -> None:
    x, before = C.sequence.input_variable(2), C.placeholder()
    loop = C.plus(x, C.sequence.past_value(before))
    data = draw(picture_of(loop.replace_placeholders({before: loop.output})))
    ends = [path.attrib["d"] for path in ElementTree.fromstring(data).iter(f"{NAMESPACE}path") if path.get("class") != "head"]
    starts_and_ends = [(float(d[1:].split("C")[0].split()[1]), float(d.split()[-1])) for d in ends]
    assert any(end < start for start, end in starts_and_ends)
    assert any(end > start for start, end in starts_and_ends)
