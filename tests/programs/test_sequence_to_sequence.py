"""A program that turns one sequence into another, with and without attention: its loss, its gradients, and what it decodes.

The expected numbers are those of CNTK 2.7 for the same program with the same parameters and data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import cntk as C
from cntk.layers import (
    LSTM,
    AttentionModel,
    Delay,
    Dense,
    Embedding,
    Fold,
    For,
    Label,
    Recurrence,
    RecurrenceFrom,
    Sequential,
    Stabilizer,
    UnfoldFrom,
)
from cntk.layers.typing import SequenceOver, Tensor
from cntk.testing import assert_close
from cntk.testing.tolerances import Tolerance

WORDS, END = 4, 3
LAYERS, CELLS = 2, 5
Source, Target = SequenceOver[C.Axis("source")], SequenceOver[C.Axis("target")]
one_hot = np.eye(WORDS, dtype=np.float32)
SOURCES = [one_hot[[1, 2, 0, 3]], one_hot[[2, 3]], one_hot[[0, 1, 1, 2, 0, 3]]]
TARGETS = [one_hot[[2, 1, 3]], one_hot[[1, 2, 1, 3]], one_hot[[0, 3]]]
FIVE_DIGITS = Tolerance(1e-5, 2e-5)


class Measured(NamedTuple):
    """What CNTK 2.7 computes.

    Attributes:
        parameters: names and shapes.
        loss: cross entropy of every step.
        gradients: products of the gradients with a wave, by parameter.
        decoded: words for parameters of a size and a phase.
    """

    parameters: str
    loss: list[float]
    gradients: list[float]
    decoded: dict[tuple[int, int], list[list[int]]]


PLAIN = Measured(
    "W5x4 b4 alpha b20 W5x20 H5x20 alpha b20 W5x20 H5x20 alpha b20 W3x20 H5x20 alpha alpha E4x3 b20 W3x20 H5x20 alpha alpha",
    [1.93957, 1.06837, 1.80633, 1.08146, 1.185, 1.12587, 1.81603, 1.61441, 1.92082],
    [
        *(0.34918, 0.56979, 0.5343, -0.14337, 0.1858, 0.5597, 0.3924, 0.07627, -0.09757, -0.00235, -0.01043, 0.0112, 0.03391, 0.0065),
        *(-0.00572, 0.01469, -0.33705, 0.20295, -0.12453, 0.00501, 0.04868, 0.04133),
    ],
    {
        (3, 4): [[0, 1, 2, 2, 2, 2], [2, 2, 2], [1, 2, 2, 2, 2, 2, 2, 2, 2]],
        (3, 7): [[0, 3], [3], [0, 3]],
        (5, 4): [[2, 2, 1, 1, 1, 1], [1, 1, 1], [1, 2, 2, 1, 1, 1, 1, 1, 1]],
    },
)
WITH_ATTENTION = Measured(
    "W5x4 b4 alpha b20 W5x20 H5x20 alpha b20 W8x20 H5x20 alpha alpha E4x3 alpha b20 W5x20 H5x20 alpha b20 W3x20 H5x20 alpha alpha "
    "W6x1 alpha W5x6 alpha W5x6 alpha",
    [1.07834, 1.0352, 2.38455, 1.08782, 1.3609, 0.98111, 2.781, 1.8359, 1.85844],
    [
        *(-0.0368, 0.59675, 1.00077, 1.87, -1.84049, 0.26593, 0.5002, -0.57292, -0.23341, -0.04888, 0.01214, -0.30261, 1.36329, 0.18558),
        *(0.03762, -0.07237, 0.02873, 0.00617, -0.04487, 0.14242, -0.00019, -0.00063, -0.04956, 0.01358, -0.01166, 0.00303, 0.00213),
        *(0.01033, -0.01207),
    ],
    {
        (3, 4): [[2, 1, 0, 2, 2, 1], [2, 1, 0], [2, 1, 0, 2, 2, 1, 0, 2, 2]],
        (3, 7): [[3], [3], [3]],
        (5, 4): [[2, 2, 2, 2, 1, 2], [2, 2, 1], [2, 2, 2, 2, 2, 1, 2, 2, 2]],
    },
)


def waves(shape: tuple[int, ...], k: int) -> Any:
    return np.sin(0.7 * np.arange(np.prod(shape, dtype=int)) + 1.3 * k + 0.4).reshape(shape).astype(np.float32)


def translator(attends: bool) -> Any:
    """A function (words so far, source) → scores of the next word."""
    embed = Embedding(3)
    with C.default_options(enable_self_stabilization=True):
        with C.default_options(go_backwards=not attends):
            encode = Sequential(
                [
                    embed,
                    Stabilizer(),
                    For(range(LAYERS - 1), lambda: Recurrence(LSTM(CELLS))),
                    (Recurrence if attends else Fold)(LSTM(CELLS), return_full_state=True),
                    (Label("encoded_h"), Label("encoded_c")),
                ]
            )
        before, behind, emit = Stabilizer(), Stabilizer(), Dense(WORDS)
        cells = [LSTM(CELLS) for _ in range(LAYERS)]
        attend = AttentionModel(6) if attends else None

    @C.Function
    def translate(history: Any, source: Any) -> Any:
        encoded = encode(source)
        r = before(embed(history))
        for i, cell in enumerate(cells):
            if attend is None:
                r = RecurrenceFrom(cell)(*encoded.outputs, r)
                continue

            @C.Function
            def attending(dh: Any, dc: Any, x: Any, cell: Any = cell) -> Any:
                return cell(dh, dc, C.splice(x, attend(encoded.outputs[0], dh)))

            r = Recurrence(cell if i else attending)(r)
        return emit(behind(r))

    return translate


class Program:
    """Criterion and decoder of a translator."""

    def __init__(self, attends: bool) -> None:
        translate = translator(attends)
        start = C.Constant(one_hot[0])

        @C.Function
        def criterion(source: Source[Tensor[WORDS]], target: Target[Tensor[WORDS]]) -> Any:
            return C.cross_entropy_with_softmax(translate(Delay(initial_state=start)(target), source), target)

        @C.Function
        def decode(source: Source[Tensor[WORDS]]) -> Any:
            unfold = UnfoldFrom(
                lambda history: translate(history, source) >> C.hardmax, until_predicate=lambda word: word[..., END], length_increase=1.5
            )
            return unfold(initial_state=start, dynamic_axes_like=source)

        self.criterion, self.decode = criterion, decode

    def set_parameters(self, size: float, phase: int) -> None:
        for k, parameter in enumerate(self.criterion.parameters):
            parameter.value = size * waves(parameter.shape, k + phase) if parameter.shape else np.float32(1 + 0.01 * k)


@pytest.mark.parametrize(("attends", "measured"), [(False, PLAIN), (True, WITH_ATTENTION)], ids=["plain", "attention"])
class TestTranslation:
    def test_training(self, attends: bool, measured: Measured) -> None:
        program = Program(attends)
        program.set_parameters(1.5, 4)
        criterion, parameters = program.criterion, program.criterion.parameters
        assert " ".join(p.name + "x".join(map(str, p.shape)) for p in parameters) == measured.parameters
        source, target = criterion.arguments
        feed = {source: SOURCES, target: TARGETS}
        assert_close(np.concatenate([np.ravel(value) for value in criterion.eval(feed)]), measured.loss, "loss", FIVE_DIGITS)
        gradients = criterion.grad(feed, wrt=parameters)
        for parameter, expected in zip(parameters, measured.gradients, strict=True):
            assert_close(np.sum(gradients[parameter] * waves(parameter.shape, 5)), expected, parameter.name, FIVE_DIGITS)

    def test_decoding(self, attends: bool, measured: Measured) -> None:
        program = Program(attends)
        for (size, phase), expected in measured.decoded.items():
            program.set_parameters(size, phase)
            words = program.decode.eval({program.decode.arguments[0]: SOURCES})
            assert [np.argmax(value, axis=1).tolist() for value in words] == expected
