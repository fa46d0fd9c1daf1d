"""Small programs as they were written for CNTK, which gave the very same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cntk as C

# ---- streams are reshaped ----

IMAGES = np.arange(24, dtype=np.float32).reshape(2, 12)


def source_of(folder: Path, field: str, keys: Any, size: int) -> Any:
    """A minibatch source of one field: a picture of 12 numbers, dense or as one of them that is 1."""
    path = folder / "data.ctf"
    lines = (f"{key} |dense {' '.join(map(str, image))} |sparse {int(image[0]) % 11}:1\n" for key, image in zip(keys, IMAGES, strict=True))
    path.write_text("".join(lines))
    stream = C.io.StreamDef(field=field, shape=12, is_sparse=field == "sparse")
    return C.io.MinibatchSource(C.io.CTFDeserializer(str(path), C.io.StreamDefs(x=stream)), randomize=False)


@pytest.mark.parametrize("shape", [(1, 4, 3), (4, 3), (C.FreeDimension, 3), (C.InferredDimension, 3), (12,)])
@pytest.mark.parametrize("field", ["dense", "sparse"])
@pytest.mark.parametrize("is_sequence", [False, True])
def test_a_stream_of_as_many_numbers_is_reshaped(tmp_path: Path, shape: Any, field: str, is_sequence: bool) -> None:
    source = source_of(tmp_path, field, [0, 0] if is_sequence else [0, 1], 2)
    x = (C.sequence.input_variable if is_sequence else C.input_variable)(shape)
    found = (x * 1).eval({x: source.next_minibatch(2)[source.streams.x]})
    expected = IMAGES if field == "dense" else np.eye(12, dtype=np.float32)[[0, 1]]
    assert_array_equal(found[0] if is_sequence else found, expected.reshape(-1, *(4 if dim < 0 else dim for dim in shape)))


def test_a_sparse_stream_is_reshaped_for_a_sparse_input(tmp_path: Path) -> None:
    source = source_of(tmp_path, "sparse", [0, 1], 2)
    x = C.input_variable((1, 12), is_sparse=True)
    found = C.times(x, np.eye(12, dtype=np.float32)).eval({x: source.next_minibatch(2)[source.streams.x]})
    assert_array_equal(found, np.eye(12)[[0, 1]].reshape(2, 1, 12))


@pytest.mark.parametrize("shape", [(3, 3), (C.FreeDimension, 5), (C.FreeDimension, C.FreeDimension)])
def test_a_stream_of_other_numbers_is_refused(tmp_path: Path, shape: Any) -> None:
    source = source_of(tmp_path, "dense", [0, 1], 2)
    x = C.input_variable(shape)
    with pytest.raises(ValueError, match=r"takes samples of shape .* and those of the stream are \(12,\)"):
        (x * 1).eval({x: source.next_minibatch(2)[source.streams.x]})


def test_an_array_is_not_reshaped() -> None:
    x = C.input_variable((1, 4, 3))
    for data in (IMAGES, C.Value(IMAGES), C.Value.create(C.input_variable(12), IMAGES)):
        with pytest.raises(ValueError, match=r"takes an array of shape \('batch', 1, 4, 3\)"):
            (x * 1).eval({x: data})


def test_a_network_of_images_trains_from_streams(tmp_path: Path) -> None:
    x, w = C.input_variable((1, 4, 3)), C.parameter((1, 4, 3))
    loss = C.reduce_sum(w * x)
    source = source_of(tmp_path, "dense", [0, 1], 2)
    trainer = C.Trainer(None, (loss, loss), [C.sgd([w], C.learning_parameter_schedule(0.1))])
    C.training_session(trainer=trainer, mb_source=source, mb_size=2, model_inputs_to_streams={x: source.streams.x}, max_samples=6).train()
    assert trainer.previous_minibatch_loss_average == -346
    images = source_of(tmp_path, "dense", [0, 1], 2).next_minibatch(2, {x: source.streams.x})
    assert trainer.test_minibatch(images) == -519
    assert loss.grad(images, wrt=[w]).shape == (1, 4, 3)


# ---- flags of new sequences for all inputs ----

ONES, TWOS = np.ones((2, 2), np.float32), np.full((2, 2), 2, np.float32)


@pytest.fixture
def running_sum() -> Any:
    x = C.sequence.input_variable(2, name="x")
    return C.layers.Recurrence(lambda total, x: total + x)(x)


def test_flags_are_for_the_data_of_a_dictionary(running_sum: Any) -> None:
    x = running_sum.arguments[0]
    first = running_sum.eval(({x: [ONES, TWOS]}, [True, True]))
    assert_array_equal(first, [[[1, 1], [2, 2]], [[2, 2], [4, 4]]])
    second = running_sum.eval(({"x": [ONES, TWOS]}, [False, True]))
    assert_array_equal(second, [[[3, 3], [4, 4]], [[2, 2], [4, 4]]])
    _, third = running_sum.forward(([ONES, TWOS], np.array([False, False])))
    assert_array_equal(third[running_sum.output], [[[5, 5], [6, 6]], [[6, 6], [8, 8]]])
    assert_array_equal(running_sum.eval(({x: [ONES]}, None)), [[[1, 1], [2, 2]]])


def test_a_trainer_takes_flags_for_all_inputs(running_sum: Any) -> None:
    x, y = running_sum.arguments[0], C.sequence.input_variable(1, name="y")
    w = C.parameter((2,), init=1)
    loss = C.reduce_sum(running_sum * w) - C.reduce_sum(y)
    trainer = C.Trainer(None, (loss, loss), [C.sgd([w], C.learning_parameter_schedule(0.0))])
    data = {x: [ONES], y: [np.ones((2, 1), np.float32)]}
    losses = []
    for start in (True, False, False, True):
        assert trainer.train_minibatch((data, [start]))
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses == [2, 6, 10, 2]
    assert trainer.test_minibatch((data, [True])) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda x: ({x: ([ONES], [True])}, [True]), "has flags of its own, and there are some for all inputs"),
        (lambda x: ({x: [ONES]}, [True, False]), "1 sequences are given, but 2 flags"),
        (lambda x: ({x: [ONES, ONES]}, [1, 0]), "are True or False, got 1"),
        (lambda x: ({x: C.Value.create(x, [ONES])}, [True]), "go with a list or an array, got Value"),
    ],
)
def test_flags_that_do_not_fit_are_refused(running_sum: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        running_sum.eval(arguments(running_sum.arguments[0]))


def test_flags_need_a_sequence_axis_of_every_input(running_sum: Any) -> None:
    y = C.input_variable(2, name="y")
    with pytest.raises(ValueError, match=r"'y'.* has no sequence axis, .*\{x: \(data, flags\), y: data\}"):
        (running_sum + y).eval(({running_sum.arguments[0]: [ONES], y: [[1, 1]]}, [True]))


def test_data_of_a_variable_that_is_no_argument_is_warned_of(running_sum: Any) -> None:
    x, other = running_sum.arguments[0], C.input_variable(3, name="other")
    both = C.combine([running_sum, C.reduce_sum(C.input_variable(3, name="second"))])
    data = {"x": [ONES], "second": [[1, 1, 1]]}
    assert_array_equal(both.eval(data, outputs=[running_sum]), [[[1, 1], [2, 2]]])
    with pytest.warns(UserWarning, match=r"data for Input\('other'.* is not used: the arguments of .* are Input\('x'"):
        running_sum.eval(({x: [ONES], other: [[1, 1, 1]]}, [True]))


# ---- graphs ----


def test_several_open_dimensions_are_checked_when_data_come() -> None:
    x = C.input_variable((C.FreeDimension, C.FreeDimension))
    for shape in [(C.FreeDimension, C.FreeDimension), (C.InferredDimension, C.FreeDimension)]:
        y = C.reshape(x, shape)
        assert y.shape == (C.FreeDimension, C.FreeDimension)
        with pytest.raises(ValueError, match="leaves more than one dimension open"):
            y.eval({x: np.ones((2, 3, 4), np.float32)})
    with pytest.raises(ValueError, match="leaves more than one dimension open"):
        C.reshape(x, (C.InferredDimension, C.InferredDimension))


def test_a_block_of_constants_is_part_of_a_graph() -> None:
    @C.BlockFunction("Triple", "triple")
    def triple(a: Any) -> Any:
        return a * 3

    x = C.input_variable(3)
    six = triple(C.constant(2.0))
    assert six.eval() == 6
    assert_array_equal((six + x).eval({x: np.ones((1, 3), np.float32)}), [[7, 7, 7]])
    outer = C.as_block(triple(C.constant([1.0, 2.0])) + 1, [], "Outer")
    assert_array_equal((outer * C.input_variable(2)).eval(np.ones((1, 2), np.float32)), [[4, 7]])


def test_the_type_of_a_variable_tells_of_its_gradient() -> None:
    assert C.input_variable(3)._type.needs_gradient is False
    assert C.input_variable(3, needs_gradient=True)._type.needs_gradient is True
    assert C.input_variable(**C.input_variable(3, needs_gradient=True)._type).needs_gradient


def test_an_array_without_batch_axis_is_said_to_be_one_sequence() -> None:
    x, y = C.sequence.input_variable(3, name="x"), C.input_variable(2, name="y")
    loss = C.cross_entropy_with_softmax(C.layers.Dense(2)(C.sequence.last(x)), y)
    with pytest.raises(ValueError, match=r"32 samples; Input\('x'.*was given one sequence of 32 steps: an array without"):
        loss.eval({x: np.ones((32, 3), np.float32), y: np.ones((32, 2), np.float32)})
