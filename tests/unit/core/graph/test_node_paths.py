"""Paths of nodes: what is in a block is called after the block, and no two nodes are alike."""

from __future__ import annotations

from typing import Any

import cntk as C
from cntk.core.graph.node_paths import NodePaths


def paths(function: C.Function) -> list[str]:
    names = NodePaths(function).names
    return [names[parameter] for parameter in names if getattr(parameter, "is_parameter", False)]


def test_parameters_are_called_after_their_layers_in_the_order_in_which_these_run() -> None:
    x = C.input_variable(4)
    model = C.layers.Sequential([C.layers.Dense(3, name="h1"), C.layers.Dense(3), C.layers.Dense(2)])(x)
    assert paths(model) == ["h1/W", "h1/b", "Dense/W", "Dense/b", "Dense_1/W", "Dense_1/b"]


def test_blocks_in_blocks() -> None:
    dense = C.layers.Dense(3, name="dense")

    @C.BlockFunction("Twice", "twice")
    def twice(a: Any) -> Any:
        return dense(dense(a))

    model = twice(C.input_variable(3))
    assert paths(model) == ["twice/dense/W", "twice/dense/b"]
    assert list(NodePaths(model).blocks.values()) == ["twice", "twice/dense", "twice/dense_1"]


def test_shared_parameters_are_those_of_the_layer_that_comes_first() -> None:
    dense = C.layers.Dense(3, name="dense")
    assert paths(dense(dense(C.input_variable(3)))) == ["dense/W", "dense/b"]


def test_parameters_outside_of_layers_and_without_names() -> None:
    x = C.input_variable(3)
    assert paths(C.times(x, C.parameter((3, 2), name="U")) + C.parameter(2) + C.parameter(2)) == ["U", "Parameter", "Parameter_1"]
