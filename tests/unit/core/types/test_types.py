"""Types of variables as objects and in Python's notation."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.types.axis import Axis
from cntk.core.types.spec import BATCH, Spec
from cntk.core.types.types import VariableType, as_type, type_of
from cntk.layers.typing import ParameterTensor, Sequence, SequenceOver, Signature, SparseTensor, Tensor, tensor

SEQUENCE = Axis.default_input_variable_dynamic_axes()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Tensor[2, 3], "Tensor[2,3]"),
        (Tensor[1], "Tensor[1]"),
        (Tensor[()], "float"),
        (Tensor[-1, 3], "Tensor[-1,3]"),
        (Tensor[np.float32, 2], "Tensor[2]"),
        (Tensor[np.float64, 2], "Tensor[np.float64,2]"),
        (Tensor[np.float16, 2], "Tensor[np.float16,2]"),
        (SparseTensor[4], "SparseTensor[4]"),
        (ParameterTensor[2, 2], "ParameterTensor[2,2]"),
        (tensor, "tensor"),
        (Sequence[Tensor[2]], "Sequence[Tensor[2]]"),
        (Sequence[SparseTensor[3]], "Sequence[SparseTensor[3]]"),
        (Sequence[tensor], "Sequence[tensor]"),
        (Sequence[np.float32], "Sequence[np.float32]"),
        (Sequence[float], "Sequence[float]"),
        (SequenceOver[Axis("ax")][Tensor[2]], "SequenceOver[ax][Tensor[2]]"),
        (type_of(Spec()), "Sequence[tensor]"),
        (type_of(Spec((), np.float32, BATCH)), "np.float32"),
        (type_of(Spec((2,), np.float32, SEQUENCE, sparse=True)), "Sequence[SparseTensor[2]]"),
        (type_of(Spec((2,), np.float64, ())), "ParameterTensor[np.float64,2]"),
    ],
)
def test_prints_as_it_is_written(given: VariableType, text: str) -> None:
    assert str(given) == text


def test_element_type_does_not_stick_to_the_next_type() -> None:
    assert Tensor[np.float64, 2].dtype is np.float64
    assert Tensor[2].dtype is None


def test_is_a_set_of_keyword_arguments() -> None:
    assert dict(**SparseTensor[2, 3]) == {"shape": (2, 3), "is_sparse": True, "dynamic_axes": BATCH}
    assert dict(**Sequence[Tensor[2]])["dynamic_axes"] == SEQUENCE


def test_equal_types_are_equal_keys() -> None:
    assert {Tensor[2]: 1}[Tensor[2]] == 1
    assert Tensor[2] != SparseTensor[2]


def test_tells_what_is_known_of_the_shape() -> None:
    assert not tensor.shape_is_known
    assert Tensor[-3, 2].shape_is_known
    assert not Tensor[-3, 2].is_concrete
    assert Tensor[3, 2].is_concrete


def test_cannot_be_instantiated() -> None:
    with pytest.raises(TypeError, match=r"input_variable\(\*\*Tensor\[32\]\)"):
        Tensor[32]()


@pytest.mark.parametrize("item", [2, (2, 3), "a", typing.Sequence[int]])
def test_sequence_of_something_else_is_refused(item: object) -> None:
    with pytest.raises(TypeError, match="Tensor"):
        Sequence[item]


def test_sequence_of_sequences_is_refused() -> None:
    with pytest.raises(TypeError, match="sequences over sequences"):
        Sequence[Sequence[Tensor[2]]]


def test_sequence_axis_must_be_an_axis() -> None:
    with pytest.raises(TypeError, match="Axis"):
        SequenceOver["source"]


def test_shape_must_be_a_shape() -> None:
    with pytest.raises(TypeError, match="shape"):
        Tensor["a"]


def test_annotations_that_are_no_types_are_left_to_the_caller() -> None:
    assert as_type(int) is None
    assert as_type(np.zeros(2)) is None
    assert as_type(np.float64) == VariableType(shape=(), dtype=np.float64, is_sparse=False, dynamic_axes=BATCH)


def test_signature_annotates() -> None:
    @Signature(Tensor[1], b=Tensor[2])
    def f(a, b): ...

    assert f.__annotations__ == {"a": Tensor[1], "b": Tensor[2]}


def test_signature_must_match_the_function() -> None:
    with pytest.raises(TypeError, match="takes the arguments"):
        Signature(Tensor[1])(lambda a, b: a)
    with pytest.raises(TypeError, match="takes the arguments"):
        Signature(Tensor[1], c=Tensor[1])(lambda a, b: a)


def test_signature_does_not_overwrite_annotations() -> None:
    def f(a: int): ...

    with pytest.raises(ValueError, match="annotations"):
        Signature(Tensor[1])(f)


@pytest.mark.parametrize("make", [lambda value: C.parameter(init=value), C.constant])
def test_numbers_have_no_type_of_their_own_but_arrays_have(make: Any) -> None:
    """As in CNTK, where ``-np.log(n)`` for an initial value does not make a parameter float64."""
    assert make(np.float64(3)).dtype is np.float32
    assert make(np.array(3.0)).dtype is np.float64


@pytest.mark.parametrize(
    ("make", "batch", "sequence"),
    [
        (lambda: C.sequence.input_variable(2, sequence_axis=C.Axis("other")), True, True),
        (lambda: C.input_variable(2), True, False),
        (lambda: C.input_variable(2, dynamic_axes=[]), False, False),
        (lambda: C.parameter(2), False, False),
        (lambda: C.sequence.last(C.sequence.input_variable(2)).output, True, False),
        (lambda: C.sequence.slice(C.sequence.input_variable(2), 1, 0).output, True, True),
    ],
)
def test_variables_tell_their_dynamic_axes(make: Callable[[], C.Variable], batch: bool, sequence: bool) -> None:
    assert (make().has_batch_axis(), make().has_sequence_axis()) == (batch, sequence)
