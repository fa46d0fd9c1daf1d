"""What ONNX files cannot have is refused by name, with the line that made it and a way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exported import Exported, check_function

import cntk as C
from cntk.plugins.formats.onnx.writing.model import UnsupportedOperators


class Doubled(C.ops.functions.UserFunction):
    """A user function."""

    def __init__(self, x: Any, name: str = "doubled") -> None:
        super().__init__([x], name=name)

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return None, 2 * argument

    def backward(self, state: Any, root_gradients: Any) -> Any:
        return 2 * root_gradients

    def infer_outputs(self) -> Any:
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def clone(self, cloned_inputs: Any) -> Any:
        return Doubled(cloned_inputs[0])


def test_user_functions_are_refused_by_name_and_line() -> None:
    x = C.input_variable(3, name="x")
    z = C.layers.Dense(2, name="z")(x)
    z_of_user = C.user_function(Doubled(z))
    with pytest.raises(UnsupportedOperators) as caught:
        Exported(z_of_user)
    message = str(caught.value)
    assert "Doubled" in message
    assert "outputs=" in message
    assert "test_refusals.py" in message


def test_all_operators_without_a_counterpart_are_named() -> None:
    x, y = C.input_variable(3, name="x"), C.input_variable(3, name="y")
    z = C.layers.Dense(3, name="scores")(x)
    weights = C.constant(np.ones(3, np.float32))
    drawn = C.plus(C.random_sample(weights, 1, True, seed=1), z, name="drawn")
    wrong = C.edit_distance_error(z, y, name="distance")
    with pytest.raises(UnsupportedOperators) as caught:
        Exported(C.combine([drawn, wrong]), outputs=[drawn, wrong])
    message = str(caught.value)
    assert "RandomSample" in message
    assert "EditDistanceError" in message
    assert message.count("[built at") == 2
    assert message.count("test_refusals.py") == 2


def test_results_that_do_not_need_them_are_written() -> None:
    x, y = C.input_variable(3, name="x"), C.input_variable(3, name="y")
    z = C.layers.Dense(3, name="scores")(x)
    both = C.combine([z, C.edit_distance_error(z, y)])
    with pytest.warns(UserWarning, match="losses and metrics are left out"):
        assert list(Exported(both).inputs) == ["x"]
    assert list(Exported(both, outputs=["scores"]).inputs) == ["x"]
    check_function(z, np.eye(3, dtype=np.float32))


def test_several_free_dimensions_cannot_be_reshaped_at_once() -> None:
    x = C.input_variable((2, C.FreeDimension, C.FreeDimension))
    with pytest.raises(ValueError, match="several free dimensions at once"):
        Exported(C.swapaxes(C.reduce_sum(C.hardmax(x), axis=0), 1, 2))
