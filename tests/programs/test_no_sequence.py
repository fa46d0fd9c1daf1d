"""Inputs and labels that were meant to be sequences, or were not: what the program is told, and where."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.layers import LSTM, Dense, Embedding, Fold, Recurrence, RecurrenceFrom, Sequential, UnfoldFrom

NO_SEQUENCE = r"'features', \[#\], \[4\]\) has no sequence axis; declare it with sequence.input_variable .*test_no_sequence.py"


def features() -> Any:
    return C.input_variable(4, name="features")


def bound_later(x: Any) -> Any:
    p = C.placeholder()
    return Recurrence(LSTM(3))(p).replace_placeholders({p: x})


def called_later(x: Any) -> Any:
    model = Sequential([Recurrence(LSTM(3)), Dense(2)])
    return C.Function(lambda v: model(v))(x)


def closed_by_hand(x: Any) -> Any:
    p = C.placeholder()
    h = C.tanh(C.sequence.past_value(p) + C.times(x, C.parameter((4, 4))))
    return h.replace_placeholders({p: h.output})


@pytest.mark.parametrize(
    "apply",
    [
        lambda x: Recurrence(LSTM(3))(x),
        lambda x: Recurrence(C.plus, go_backwards=True)(x),
        lambda x: Fold(LSTM(3))(x),
        lambda x: RecurrenceFrom(C.plus)(C.Constant(0), x),
        lambda x: Sequential([Embedding(3), Recurrence(LSTM(3)), Dense(2)])(x),
        lambda x: C.splice(Recurrence(LSTM(2))(x), Recurrence(LSTM(2), go_backwards=True)(x)),
        bound_later,
        called_later,
        closed_by_hand,
    ],
)
def test_a_recurrence_over_no_sequence_is_refused_where_it_is_built(apply: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=NO_SEQUENCE):
        apply(features())


def test_what_has_lost_its_sequence_axis_is_named() -> None:
    x = C.sequence.input_variable(4)
    with pytest.raises(RuntimeError, match=r"\[#\], \[3\]\) has no sequence axis; .* keep the sequence axis that it had"):
        Recurrence(LSTM(3))(Fold(LSTM(3))(x))


def test_unfolding_along_no_sequence_is_refused() -> None:
    with pytest.raises(RuntimeError, match="must have a batch axis and a sequence axis"):
        UnfoldFrom(lambda h: h * 2)(C.Constant([1]), features())


def test_one_sequence_among_the_operands_is_enough() -> None:
    steps, once = C.sequence.input_variable(4), features()
    assert Recurrence(C.plus)(C.splice(steps, C.sequence.broadcast_as(once, steps))).shape == (8,)
    assert RecurrenceFrom(C.plus)(once, steps).has_sequence_axis()
    p = C.placeholder()
    h = C.sequence.past_value(p + once) + steps
    assert h.replace_placeholders({p: h.output}).has_sequence_axis()


def test_a_recurrence_of_placeholders_is_not_refused() -> None:
    p, q = C.placeholder(), C.placeholder()
    h = Recurrence(lambda h, x: h + x)(p + q).replace_placeholders({q: features()})
    assert h.replace_placeholders({p: C.sequence.input_variable(4)}).has_sequence_axis()


# ---- losses ----

MODEL = Recurrence(LSTM(3))


@pytest.mark.parametrize(
    "loss", [C.cross_entropy_with_softmax, C.squared_error, C.binary_cross_entropy, C.classification_error, C.element_times]
)
def test_a_label_of_the_sequence_that_meets_every_step(loss: Callable[..., Any]) -> None:
    """CNTK refuses all but the last."""
    label = C.input_variable(3, name="label")

    @C.Function
    def criterion(x: Any, y: Any) -> Any:
        return loss(MODEL(x), y)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            criterion(C.sequence.input_variable(4), label)
    if loss is C.element_times:
        assert not seen
        return
    (warning,) = seen
    assert warning.filename == __file__
    assert re.search(r"label \(\[#\], \[3\]\) has no sequence axis .* sequence.last or a Fold", str(warning.message))


def test_what_is_meant_raises_no_warning() -> None:
    x, label = C.sequence.input_variable(4), C.input_variable(3)
    z = MODEL(x)
    C.cross_entropy_with_softmax(z, C.sequence.broadcast_as(label, z))
    C.squared_error(C.sequence.last(z), label)
    C.squared_error(z, C.constant([1, 2, 3]))
    C.binary_cross_entropy(C.sigmoid(z), C.sequence.input_variable(3))


# ---- reductions over steps ----


@pytest.mark.parametrize(("name", "expected"), [("reduce_mean", [[2, 3], [5, 6]]), ("reduce_min", [[1, 2], [5, 6]]), ("length", [2, 1])])
def test_what_there_is_no_operator_for_has_a_recipe(name: str, expected: Any) -> None:
    with pytest.raises(AttributeError, match=f"no operator '{name}'; write ") as refused:
        getattr(C.sequence, name)
    x = C.sequence.input_variable(2)
    recipe = re.search("write (.*) for the", str(refused.value))
    assert recipe is not None
    data = [np.float32([[1, 2], [3, 4]]), np.float32([[5, 6]])]
    np.testing.assert_array_equal(eval(recipe[1], {"C": C, "x": x}).eval({x: data}), expected)


def test_a_mean_over_the_sequence_axis_has_a_recipe() -> None:
    with pytest.raises(ValueError, match=r"the mean over the steps is C.sequence.reduce_sum\(x\) / "):
        C.reduce_mean(C.sequence.input_variable(2), axis=C.Axis.default_dynamic_axis())
