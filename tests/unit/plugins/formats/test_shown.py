"""Attributes of operators as CNTK 2.7 shows them: flags for every axis of a kernel, axes counted from the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C

IMAGE = C.input_variable((2, 8, 9))
FILTERS = C.constant(np.ones((4, 2, 3, 3), np.float32))
TRANSPOSED = C.constant(np.ones((2, 4, 3, 3), np.float32))


def shown(f: Any, *names: str) -> list[Any]:
    attributes = f.root_function.attributes
    return [attributes[name] for name in names]


@pytest.mark.parametrize(
    ("arguments", "padding", "strides", "dilation"),
    [
        ({}, [True, True, True], (1, 1, 1), (1, 1, 1)),
        ({"strides": (2, 3), "auto_padding": [False, True, False]}, [False, True, False], (2, 2, 3), (1, 1, 1)),
        ({"strides": 2, "auto_padding": [True], "dilation": (2, 2)}, [True, True, True], (2, 2, 2), (2, 2, 2)),
        ({"auto_padding": [True, False]}, [True, True, False], (1, 1, 1), (1, 1, 1)),
    ],
)
def test_a_convolution_shows_the_attributes_of_cntk(arguments: Any, padding: Any, strides: Any, dilation: Any) -> None:
    assert C.convolution(FILTERS, IMAGE, **arguments).root_function.attributes == {
        "autoPadding": padding,
        "sharing": [True, True, True],
        "groups": 1,
        "strides": strides,
        "dilation": dilation,
        "maxTempMemSizeInSamples": 0,
        "lowerPad": (0, 0, 0),
        "upperPad": (0, 0, 0),
        "transpose": False,
        "outputShape": (0,),
        "kernelShape": (2, 3, 3),
        "sequential": False,
    }


@pytest.mark.parametrize(
    ("arguments", "padding", "strides"),
    [
        ({}, [False, True, True], (2, 1, 1)),
        ({"auto_padding": [True, False]}, [False, True, False], (2, 1, 1)),
        ({"auto_padding": [True, True, False]}, [True, True, False], (2, 1, 1)),
        ({"strides": 2, "auto_padding": [False]}, [False, False, False], (2, 2, 2)),
    ],
)
def test_convolution_transpose(arguments: Any, padding: Any, strides: Any) -> None:
    f = C.convolution_transpose(TRANSPOSED, IMAGE, **arguments)
    assert shown(f, "autoPadding", "strides", "kernelShape", "transpose") == [padding, strides, (4, 3, 3), True]


def test_kernels_without_channels_have_one() -> None:
    f = C.convolution(C.constant(np.ones((3, 3), np.float32)), C.input_variable((8, 9)), reduction_rank=0)
    assert shown(f, "kernelShape", "autoPadding", "sharing") == [(1, 3, 3), [True] * 3, [True] * 3]


@pytest.mark.parametrize(("axis", "number"), [(0, 1), (1, 0), (-1, 0), (C.Axis(0), 1)])
def test_a_slice_shows_the_attributes_of_cntk(axis: Any, number: int) -> None:
    f = C.slice(C.input_variable((2, 3)), axis, 0, 2)
    assert f.root_function.attributes == {"axis": ("ordered", "static", number), "beginIndex": 0, "endIndex": 2, "sliceStrides": 1}


def test_slice_of_several_axes() -> None:
    f = C.slice(C.input_variable((2, 3)), [0, 1], [1, 0], [2, 2], [-1, 1])
    expected = [[("ordered", "static", 1), ("ordered", "static", 0)], [1, 0], [2, 2], [-1, 1]]
    assert shown(f, "axisVec", "beginIndexVec", "endIndexVec", "sliceStridesVec") == expected


@pytest.mark.parametrize(("axis", "number"), [(0, -1), (-1, 0)])
def test_while_the_rank_is_not_known_axes_count_from_behind(axis: int, number: int) -> None:
    assert shown(C.slice(C.placeholder(), axis, 0, 2), "axis") == [("ordered", "static", number)]


def test_dropout_counts_its_masks() -> None:
    x = C.input_variable(2, needs_gradient=True)
    f = C.dropout(x, 0.5, 42)
    assert f.root_function.attributes == {"dropoutRate": 0.5, "rngSeed": 42, "rngOffset": 0}
    for _ in range(3):
        f.grad({x: np.ones((1, 2), np.float32)})
    assert shown(f, "rngOffset") == [3]


M, N, V = C.input_variable((2, 3, 4)), C.input_variable((2, 3, 4)), C.input_variable(4)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda: C.softmax(V), {}),
        (lambda: C.log_softmax(V), {"axis": ("ordered", "static", 0)}),
        (lambda: C.argmax(M, 0), {"axis": ("ordered", "static", 2), "reductionKeepDimensions": True, "reductionOpName": "Argmax"}),
        (lambda: C.splice(M, N, axis=0), {"axis": ("ordered", "static", 2)}),
        (
            lambda: C.reshape(M, (3, 2), 0, 2),
            {"beginAxis": ("ordered", "static", 1), "endAxis": ("ordered", "static", 3), "newShape": (3, 2)},
        ),
        (lambda: C.transpose(M, (2, 0, 1)), {"axisVec": [("ordered", "static", 1), ("ordered", "static", 2), ("ordered", "static", 0)]}),
        (lambda: C.swapaxes(M, 0, 1), {"axis1": ("ordered", "static", 2), "axis2": ("ordered", "static", 1)}),
        (lambda: C.flatten(M, 1), {"axis": ("ordered", "static", 2)}),
        (lambda: C.cast(V, np.float64), {"newDataType": 2}),
        (lambda: C.top_k(V, 2), {"axis": ("ordered", "static", 0), "numItems": 2}),
        (
            lambda: C.pad(M, [(1, 1), (0, 0), (0, 2)]),
            {"paddingConstantValue": 0.0, "paddingFoot": [2, 0, 1], "paddingHead": [0, 0, 1], "paddingMode": 0},
        ),
        (
            lambda: C.one_hot(C.input_variable(()), 5),
            {"numClass": 5, "oneHotOutputSparse": False, "onehotAxis": ("ordered", "static", 0)},
        ),
        (
            lambda: C.random.uniform((2, 3), seed=1),
            {
                "newDataType": 1,
                "newShape": (2, 3),
                "randomDistributionArgs": [0.0, 1.0],
                "randomDistributionType": "uniform",
                "rngOffset": 0,
                "rngSeed": 1,
            },
        ),
        (
            lambda: C.pooling(IMAGE, C.AVG_POOLING, (3, 3), (2, 2), auto_padding=[True, False]),
            {
                "autoPadding": [True, False],
                "ceilOutDim": False,
                "includePad": False,
                "lowerPad": (0,),
                "poolingType": 1,
                "poolingWindowShape": (3, 3),
                "strides": (2, 2),
                "upperPad": (0,),
            },
        ),
    ],
)
def test_attributes_are_those_that_files_keep(f: Any, expected: dict[str, Any]) -> None:
    assert f().attributes == f().root_function.attributes == expected


def test_a_reduction_lists_its_axes() -> None:
    shown = C.reduce_mean(M, (0, 2)).attributes
    assert shown == {
        "axisVec": [("ordered", "static", 2), ("ordered", "static", 0)],
        "reductionKeepDimensions": True,
        "reductionOpName": "Mean",
    }


def test_operators_that_files_do_not_have_show_their_own() -> None:
    class Scaled(C.ops.functions.UserFunction):
        def infer_outputs(self) -> Any:
            return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

    assert C.user_function(Scaled([V], attributes={"axis": 1, "kind": np.float32})).attributes == {"axis": 1, "kind": np.float32}
