"""Graph tools: what is found in which order, descriptions, pictures, numbers of parameters, trace levels; all as CNTK 2.7 does."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.logging import graph
from cntk.logging.dot import STYLES, dot_text
from cntk.logging.figure import COLOURS
from cntk.logging.layered import place
from cntk.logging.picture import Picture, picture_of

SPECIAL = 'größe "q" \\n $x^2$ {a|b} <b>'


def network() -> Any:
    features = C.input_variable(3, name="features")
    layers = [C.layers.Dense(4, activation=C.relu), C.layers.LayerNormalization(), C.layers.Dropout(0.5), C.layers.Dense(2)]
    return C.layers.Sequential(layers)(features)


def recurrence() -> Any:
    return C.layers.Recurrence(C.layers.LSTM(4))(C.sequence.input_variable(3))


def shown(text: str) -> list[str]:
    """Lines of a description with the numbers in uids counted from 0."""
    numbers: dict[str, str] = {}
    counted = re.sub(r"\d+(?=_|\b)", lambda found: numbers.setdefault(found[0], str(len(numbers))), text)
    return [line for line in counted.split("\n") if line]


def kinds(nodes: list[Any]) -> list[str]:
    return [node.op_name if isinstance(node, C.Function) else node.name or type(node).__name__ for node in nodes]


# ---- walks ----

DENSE, NORM, OUTER = ["W", "b"], ["Literal", "scale", "bias"], "features"
DEPTHS = {
    0: ["Dense", *DENSE, "Dropout", "LayerNormalization", *NORM, "Dense", *DENSE, OUTER],
    1: ["Dense", "Dropout", "LayerNormalization", *NORM, "Dense", *DENSE, OUTER, "Plus", "Times", *DENSE],
    2: ["Dense", "Dropout", "Plus", "Times", *DENSE, "LayerNormalization", *NORM, "Dense", *DENSE, OUTER, "Dropout"],
}


@pytest.mark.parametrize("depth", DEPTHS)
def test_blocks_are_looked_into_one_after_the_other(depth: int) -> None:
    assert kinds(C.logging.depth_first_search(network(), lambda node: True, depth)) == DEPTHS[depth]


def test_all_blocks_are_looked_into() -> None:
    inside = C.logging.depth_first_search(recurrence(), lambda node: True, -1)
    assert Counter(kinds(inside))["Slice"] == 4
    assert len(inside) == len(set(inside))


def test_outputs_of_all_functions() -> None:
    assert [output.shape for output in graph.get_node_outputs(network())] == [(2,), (4,), (4,), (4,)]
    assert [output.shape for output in graph.get_node_outputs(network(), 1)] == [(2,), (4,), (4,), (4,), (2,), (2,)]


def test_nodes_are_found_by_uid() -> None:
    x = C.input_variable(2, name="x")
    f = C.relu(x, name="f")
    assert graph.find_by_uid(f, x.uid) is x
    assert graph.find_by_uid(f, f.root_function.uid) == f.root_function
    assert graph.find_by_uid(f, f.output.uid) is None
    assert graph.find_by_name(f, "nothing") is None


def test_names_that_are_not_unique_are_refused() -> None:
    x = C.input_variable(2)
    both = C.combine([C.plus(x, 1, name="q"), C.plus(x, 2, name="q")])
    with pytest.raises(ValueError, match="find_all_with_name"):
        graph.find_by_name(both, "q")
    assert len(graph.find_all_with_name(both, "q")) == 2


@pytest.mark.parametrize("find", [graph.find_by_name, graph.find_by_uid, graph.find_all_with_name])
def test_a_name_is_a_string(find: Any) -> None:
    with pytest.raises(ValueError, match="int"):
        find(network(), 3)


# ---- descriptions ----


def test_a_description_of_several_outputs() -> None:
    x, label = C.input_variable((2, 3), name="x"), C.input_variable((), name="label")
    root = C.times(x + C.constant(6, (2, 3)), C.parameter((3, 2)), name="root")
    found = graph.plot(C.combine([root, C.minus(label, C.constant(1))]))
    assert shown(found) == [
        "Minus(Input0, Constant1) -> Minus2_Output_3;",
        "Plus(Input4, Constant5) -> Plus6_Output_3;",
        "Times(Plus6_Output_3, Parameter7) -> Times8_Output_3;",
        "Combine(Times8_Output_3, Minus2_Output_3) -> Minus2_Output_3;",
        "Combine(Times8_Output_3, Minus2_Output_3) -> Times8_Output_3;",
    ]
    assert found.endswith(";\n")
    assert found.count(";\n\n") == 4


def test_constants_of_a_block_are_its_own_affair() -> None:
    assert shown(graph.plot(network())) == [
        "Dense(Parameter0, Parameter1, Input2) -> Block3_Output_4;",
        "LayerNormalization(Parameter5, Parameter6, Block3_Output_4) -> Block7_Output_4;",
        "Dropout(Block7_Output_4) -> Block8_Output_4;",
        "Dense(Parameter9, Parameter10, Block8_Output_4) -> Block11_Output_4;",
    ]


def test_a_description_of_a_recurrence() -> None:
    assert [line.partition("(")[0] for line in shown(graph.plot(recurrence()))] == ["PastValue", "PastValue", "LSTM", "LSTM", "Combine"]


@pytest.mark.parametrize("root", [None, 3, "f"])
def test_what_is_no_function_is_refused(root: Any) -> None:
    with pytest.raises(TypeError, match="expected a function"):
        graph.plot(root)


# ---- pictures ----


def criterion() -> Any:
    model, label = network(), C.input_variable(2, name=SPECIAL)
    return C.combine([C.cross_entropy_with_softmax(model, label), C.classification_error(model, label, name="error")])


def test_a_picture_shows_all_nodes() -> None:
    picture = picture_of(criterion())
    assert Counter(box.kind for box in picture.boxes) == {"parameter": 6, "block": 4, "function": 3, "input": 2, "output": 2}
    texts = [box.text for box in picture.boxes]
    assert f"Input\n{SPECIAL}\n[#](2,)" in texts
    assert "Parameter\nW\n(4, 2)" in texts
    assert "Output\nerror\n[#](1,)" in texts


def test_leaves_show_what_they_are() -> None:
    x = C.sequence.input_variable((2, C.FreeDimension))
    picture = picture_of((x * 2 + C.constant([[1], [3]], name="c")) - C.placeholder(name="p"))
    texts = {box.text: box.kind for box in picture.boxes}
    assert texts["2"] == "number"
    assert texts["Constant\nc\n(2, 1)"] == "constant"
    assert texts["Input\n[#, *](2, -3)"] == "input"
    assert "placeholder" in texts.values()


def test_what_a_picture_shows_is_styled() -> None:
    assert STYLES.keys() == COLOURS.keys()


def test_dot_text_is_quoted() -> None:
    x = C.input_variable(2, name='a"b\\')
    assert r'label="Input\na\"b\\\n[#](2,)"' in dot_text(picture_of(C.relu(x)))


def test_a_dot_file_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "graph.DOT"
    assert graph.plot(criterion(), path).count("Dense(") == 2
    text = path.read_text(encoding="utf-8")
    assert text.startswith("digraph network_graph {")
    assert "größe" in text
    assert text.count(" -> ") == len(picture_of(criterion()).arrows)


BEGINNINGS = {".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
@pytest.mark.parametrize("make", [criterion, recurrence])
@pytest.mark.parametrize("program", ["Graphviz", "matplotlib"])
def test_pictures_are_drawn(ending: str, make: Any, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if program == "Graphviz":
        if shutil.which("dot") is None:
            pytest.skip("Graphviz's program dot is not installed")
    else:
        pytest.importorskip("matplotlib")
        monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / f"graph{ending}"
    graph.plot(make(), str(path))
    data = path.read_bytes()
    if ending == ".svg":
        texts = "".join(ElementTree.fromstring(data).itertext())
        assert ("größe" in texts) if make is criterion else ("LSTM" in texts)
    assert data.startswith(BEGINNINGS.get(ending, b"<?xml"))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_failure_of_graphviz_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho 'no fonts' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="status 3: no fonts"):
        graph.plot(network(), str(tmp_path / "graph.svg"))
    assert not (tmp_path / "graph.svg").exists()


def test_without_a_program_that_draws_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(graph, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'opencntk\[plot\]'.*apt install graphviz"):
        graph.plot(network(), str(tmp_path / "graph.svg"))


@pytest.mark.parametrize("name", ["graph.gif", "graph", ".svg"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="ends in one of"):
        graph.plot(network(), name)


# ---- layout ----

GRAPHS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.lists(st.floats(0.5, 3), min_size=count, max_size=count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30),
    )
)


@settings(deadline=None)
@given(GRAPHS)
def test_boxes_do_not_overlap_and_arrows_go_from_box_to_box(drawn: tuple[list[float], list[tuple[int, int]]]) -> None:
    widths, arrows = drawn
    places, paths = place(widths, arrows, 0.25)
    for i, one in enumerate(places):
        for j, other in enumerate(places[:i]):
            assert one.layer != other.layer or abs(one.x - other.x) >= (widths[i] + widths[j]) / 2 + 0.25 - 1e-9
    for (start, end), path in zip(arrows, paths, strict=True):
        assert path[0] == places[start]
        assert path[-1] == places[end]
        assert start == end or all(abs(a.layer - b.layer) == 1 for a, b in pairwise(path))


def test_without_cycles_all_arrows_point_down() -> None:
    _, paths = place([1.0] * 5, [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4)], 0.5)
    assert all(path[0].layer < path[-1].layer for path in paths)


def test_a_deep_graph_is_placed() -> None:
    count = 1500
    places, _ = place([1.0] * count, [(i, i + 1) for i in range(count - 1)], 0.5)
    assert [at.layer for at in places] == list(range(count))


def test_nothing_is_a_picture_too() -> None:
    assert place([], [], 0.5) == ([], [])
    assert dot_text(Picture([], [])).endswith("}\n")


# ---- parameters and trace levels ----

PARAMETERS = {
    0: "Training 34 parameters in 6 parameter tensors.\n",
    1: "Training 34 parameters in 6 parameter tensors.\n\n\t(4, 2)\n\t(2,)\n\t(4,)\n\t(4,)\n\t(3, 4)\n\t(4,)\n",
}


@pytest.mark.parametrize("level", PARAMETERS)
def test_parameters_are_counted(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    C.logging.log_number_of_parameters(network(), level)
    assert capsys.readouterr().out == PARAMETERS[level]


def test_unknown_and_missing_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    C.logging.progress_print.log_number_of_parameters(C.layers.Dense(3), trace_level=2)
    C.logging.log_number_of_parameters(C.plus(C.input_variable((2, 3)), C.parameter(())))
    C.logging.log_number_of_parameters(C.relu(C.input_variable(2)), 1)
    assert capsys.readouterr().out == (
        "Training so far unspecified number of parameters in 2 parameter tensors.\n\n\t(-1, 3)\n\t(3,)\n"
        "Training 1 parameters in 1 parameter tensors.\n"
        "Training 0 parameters in 0 parameter tensors.\n\n"
    )


def test_trace_levels() -> None:
    level = C.logging.TraceLevel
    assert (C.logging.get_trace_level(), str(C.logging.get_trace_level())) == (1, "1")
    try:
        C.logging.set_trace_level(level.Info)
        assert C.logging.get_trace_level() == level.Info == 2
        C.logging.set_trace_level(0)
        assert C.logging.get_trace_level() == level.Error
    finally:
        C.logging.set_trace_level(level.Warning)
    assert (str(level.Info), repr(level.Info), level(2)) == ("TraceLevel.Info", "<TraceLevel.Info: 2>", level.Info)
    with pytest.raises(ValueError, match="7"):
        C.logging.set_trace_level(7)
