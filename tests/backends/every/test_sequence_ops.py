"""Operators along sequences: what their samples do not show; numbers of CNTK 2.7 where they are a matter of convention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.testing import assert_close

S = C.sequence
X = [np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[7, 8]]), np.float32([[9, 10], [11, 12]])]


@pytest.fixture
def x() -> Any:
    return S.input_variable(2, needs_gradient=True, name="x")


@pytest.fixture
def c() -> Any:
    """A condition."""
    return S.input_variable((), needs_gradient=True, name="c")


def steps(*sequences: Any) -> list[Any]:
    return [np.float32(sequence) for sequence in sequences]


def same(actual: Any, expected: Any) -> None:
    """Require the same number of sequences with the same steps."""
    assert len(actual) == len(expected)
    for one, its_right in zip(actual, expected, strict=True):
        assert_close(one, np.float32(its_right))


# ---- slices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("begin", "end"), [(1, 0), (0, -1), (-2, 0), (0, 2), (1, 3), (1, -1), (-3, -1), (-6, 3), (2, 5)])
def test_slices_are_those_of_python(x: Any, begin: int, end: int, device: DeviceDescriptor) -> None:
    data = [np.arange(2.0 * length, dtype=np.float32).reshape(length, 2) for length in (4, 7, 3, 5)]
    sliced = S.slice(x, begin, end)
    same(sliced.eval(data, device=device), [sequence[begin : end or None] for sequence in data])
    gradient = sliced.grad(data, [x], device=device)
    for found, sequence in zip(gradient, data, strict=True):
        chosen = np.zeros(len(sequence))
        chosen[begin : end or None] = 1
        assert_close(found, np.repeat(chosen[:, None], 2, axis=1))


@pytest.mark.parametrize(("begin", "end", "step"), [(-1, 0, -1), (0, 1, 0), (-3, -2, -3), (2, 3, 2)])
def test_a_slice_of_one_step_has_no_sequence_axis(x: Any, begin: int, end: int, step: int, device: DeviceDescriptor) -> None:
    data = [np.arange(2.0 * length, dtype=np.float32).reshape(length, 2) for length in (4, 7, 3, 5)]
    sliced = S.slice(x, begin, end)
    assert sliced.dynamic_axes == (C.Axis.default_batch_axis(),)
    assert_close(sliced.eval(data, device=device), np.stack([sequence[step] for sequence in data]))


def test_slices_shorter_by_as_much_are_on_one_axis(x: Any, device: DeviceDescriptor) -> None:
    difference = S.slice(x, 1, 0) - S.slice(x, 0, -1)
    assert difference.dynamic_axes[1].name == "defaultDynamicAxis_times_1_minus_1"
    same(difference.eval([X[0], X[2]], device=device), [[[2, 2], [2, 2]], [[2, 2]]])
    fixed = S.slice(x, -2, 0) + S.slice(x, 0, 2)
    assert fixed.dynamic_axes[1].name == "defaultDynamicAxis_fixedSliceOf_2"


def test_the_slice_from_0_to_0_is_the_sequence(x: Any, device: DeviceDescriptor) -> None:
    assert S.slice(x, 0, 0).dynamic_axes == x.dynamic_axes
    same(S.slice(x, 0, 0).eval(X, device=device), X)


def test_a_sequence_without_a_step_left_is_named(x: Any, device: DeviceDescriptor) -> None:
    with pytest.raises(RuntimeError, match=r"Sequence::Slice.*from step 1 to step 0 leaves sequence 1 of the minibatch without a step"):
        S.slice(x, 1, 0).eval(X, device=device)
    with pytest.raises(RuntimeError, match="is empty, whatever the sequence"):
        S.slice(x, 2, 2)


@pytest.mark.parametrize("function", [S.first, S.is_last, S.reduce_sum, S.reduce_max, S.softmax, lambda x: S.unpack(x, 0)])
def test_what_is_no_sequence_is_refused_with_a_way_out(function: Any) -> None:
    with pytest.raises(ValueError, match=r"on the dynamic axes \[#\], but must be a sequence.*sequence\.broadcast_as.*to_sequence"):
        function(C.input_variable(2))


# ---- where, gather, scatter ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ([0, 1, 0, 1], [1, 3]),
        ([1, 2, 1, 3, 2], [0, 1, 1, 2, 3, 3, 3, 4, 4]),
        ([2.5, 2.5, 2.5, 2.5], [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]),
        ([0.5] * 8, [0, 2, 4, 6]),
        ([0.3] * 8, [0, 3, 6]),
        ([1.2] * 10, [0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9]),
        ([0.1] * 35, [0, 10, 20, 30]),
        ([2.5, 0, 1.5, 0.25, 3], [0, 0, 0, 2, 3, 4, 4, 4]),
        ([-1, 1, 2], [2, 2]),
        ([-3, 5], [1, 1]),
    ],
)
def test_a_condition_picks_steps_as_in_cntk(c: Any, condition: list[float], expected: list[int], device: DeviceDescriptor) -> None:
    same(S.where(c).eval(steps([1], condition, [1, 1]), device=device), [[0], expected, [0, 1]])


def test_fractions_add_up_in_the_precision_of_the_condition(device: DeviceDescriptor) -> None:
    c = S.input_variable((), np.float64)
    (found,) = S.where(c).eval([np.full(60, 0.1)], device=device)
    assert found.tolist() == [0, 10, 20, 29, 39, 50]  # CNTK's numbers: 30 times 0.1 is above 3 in double precision


def test_gather_repeats_steps_and_adds_up_their_gradients(x: Any, c: Any, device: DeviceDescriptor) -> None:
    data = {x: X, c: steps([1, 0, 1], [1], [0, 2])}
    gathered = S.gather(x, c)
    same(gathered.eval(data, device=device), [[[1, 2], [5, 6]], [[7, 8]], [[11, 12], [11, 12]]])
    gradients = gathered.grad(data, [x, c], device=device)
    same(gradients[x], [[[1, 1], [0, 0], [1, 1]], [[1, 1]], [[0, 0], [2, 2]]])
    same(gradients[c], [[0, 0, 0], [0], [0, 0]])


def test_scatter_adds_up_what_goes_to_one_step(x: Any, c: Any, device: DeviceDescriptor) -> None:
    scattered = S.scatter(S.gather(x, c), c)
    found = scattered.eval({x: X, c: steps([1, 0, 1], [1], [0, 2])}, device=device)
    same(found, [[[1, 2], [0, 0], [5, 6]], [[7, 8]], [[0, 0], [22, 24]]])


def test_scatter_takes_a_value_of_the_batch_for_one_step(c: Any, device: DeviceDescriptor) -> None:
    b = C.input_variable(2, needs_gradient=True)
    data = {b: np.float32([[1, 2], [3, 4], [5, 6]]), c: steps([0, 0, 1], [1], [0, 1])}
    scattered = S.scatter(b, c)
    same(scattered.eval(data, device=device), [[[0, 0], [0, 0], [1, 2]], [[3, 4]], [[0, 0], [5, 6]]])
    assert_close(scattered.grad(data, [b], device=device), np.ones((3, 2)))


def test_steps_picked_by_one_condition_combine(x: Any, c: Any, device: DeviceDescriptor) -> None:
    y = S.input_variable(2)
    both = S.gather(x, c) + S.gather(y, c) + S.where(c, name="places")
    data = {x: X, y: X, c: steps([1, 0, 1], [1], [0, 1])}
    expected = [[[2, 4], [12, 14]], [[14, 16]], [[23, 25]]]
    same(both.eval(data, device=device), expected)
    copies = dict(zip(both.arguments, both.clone("share").arguments, strict=True))
    clone = both.clone("share", copies)
    assert clone.dynamic_axes[1] != both.dynamic_axes[1]
    same(clone.eval({copies[variable]: value for variable, value in data.items()}, device=device), expected)


def test_steps_picked_by_different_conditions_do_not_combine(x: Any, c: Any) -> None:
    with pytest.raises(ValueError, match="do not combine"):
        S.gather(x, c) + S.gather(x, S.is_first(x))


def test_typeinfo_tells_the_axis(x: Any, c: Any, device: DeviceDescriptor) -> None:
    y = S.input_variable(2)
    pairs = S.gather(x, c, new_sequence_axis_typeinfo=(2, 0)) + S.gather(y, C.alias(c), new_sequence_axis_typeinfo=(2, 0))
    assert pairs.dynamic_axes[1].name == "defaultDynamicAxis_times_2"
    found = pairs.eval({x: X[1:], y: X[1:], c: steps([2], [2, 2])}, device=device)
    same(found, [[[14, 16], [14, 16]], [[18, 20], [18, 20], [22, 24], [22, 24]]])
    one = S.gather(x, S.is_last(x), new_sequence_axis_typeinfo=(0, 1))
    assert one.dynamic_axes == (C.Axis.default_batch_axis(),)
    assert_close(one.eval(X, device=device), np.float32([[5, 6], [7, 8], [11, 12]]))
    with pytest.raises(ValueError, match=r"picks 2 steps of sequence 2 .*new_sequence_axis_typeinfo=\(0, 1\)"):
        S.gather(x, c, new_sequence_axis_typeinfo=(0, 1)).eval({x: X, c: steps([1, 0, 0], [1], [1, 1])}, device=device)


@pytest.mark.parametrize("typeinfo", [(0.5, 1), (-1, 1), (1,), "x", 3])
def test_a_wrong_typeinfo_is_refused(x: Any, c: Any, typeinfo: Any) -> None:
    with pytest.raises(ValueError, match="new_sequence_axis_typeinfo must be two whole numbers"):
        S.gather(x, c, typeinfo)


def test_conditions_are_checked(x: Any, c: Any, device: DeviceDescriptor) -> None:
    z = S.input_variable(2, sequence_axis=C.Axis("other lengths"))
    with pytest.raises(RuntimeError, match="the condition leaves sequence 1 of the minibatch without a step"):
        S.gather(x, c).eval({x: X, c: steps([1, 0, 0], [0], [1, 1])}, device=device)
    with pytest.raises(ValueError, match=r"must be one number a step, but has the shape \[2\]"):
        S.where(x)
    with pytest.raises(ValueError, match="the same lengths, but one has sequences of 1, 3 steps and the other has sequences of 3, 1 steps"):
        S.gather(z, c).eval({z: [X[1], X[0]], c: steps([1, 1, 1], [1])}, device=device)
    with pytest.raises(ValueError, match="but has sequences of 3 steps, and the condition picks sequences of 1 steps"):
        S.scatter(z, c).eval({z: [X[0]], c: steps([1, 0, 0])}, device=device)


def test_rows_that_data_decide_differ_between_minibatches(x: Any, c: Any, device: DeviceDescriptor) -> None:
    total = S.reduce_sum(S.gather(x * 2, C.greater(c, 0.5)) + 1)
    generator = np.random.default_rng(5)
    for _ in range(6):
        lengths = generator.integers(1, 6, size=3)
        data = [np.float32(generator.normal(size=(length, 2))) for length in lengths]
        chosen = [np.float32(generator.uniform(size=length)) for length in lengths]
        for one in chosen:
            one[generator.integers(len(one))] = 1
        expected = [(2 * sequence[one > 0.5] + 1).sum(axis=0) for sequence, one in zip(data, chosen, strict=True)]
        assert_close(total.eval({x: data, c: chosen}, device=device), np.stack(expected))
        gradient = total.grad({x: data, c: chosen}, [x], device=device)
        same(gradient, [np.repeat(2.0 * (one > 0.5)[:, None], 2, axis=1) for one in chosen])


def test_what_is_picked_can_be_picked_from_again(x: Any, c: Any, device: DeviceDescriptor) -> None:
    twice = S.gather(x, c)
    again = S.gather(twice, S.where(c))
    found = again.eval({x: [X[0]], c: steps([1, 2, 1])}, device=device)
    same(found, [[[3, 4], [3, 4], [5, 6], [5, 6]]])  # positions 0, 1, 1, 2 repeat the steps 1, 2, 2, 3 so many times


# ---- reductions ----------------------------------------------------------------------------------


def test_the_gradient_of_the_maximum_goes_to_every_step_that_has_it(x: Any, device: DeviceDescriptor) -> None:
    gradient = S.reduce_max(x).grad([np.float32([[1, 3], [1, 3], [1, 1]]), np.float32([[2, 2]])], [x], device=device)
    same(gradient, [[[1, 1], [1, 1], [1, 0]], [[1, 1]]])


def test_a_sum_of_many_small_steps_is_right_in_float16(device: DeviceDescriptor) -> None:
    x = S.input_variable((), np.float16)
    total = S.reduce_sum(x).eval([np.full(5000, 0.5, np.float16), np.ones(3, np.float16)], device=device)
    assert total.tolist() == [2500, 3]
    weights = S.softmax(x).eval([np.zeros(4096, np.float16)], device=device)[0]
    assert_close(weights.astype(np.float64), np.full(4096, 1 / 4096), tolerance=(1e-2, 0))  # type: ignore[arg-type]


def test_softmax_over_steps_does_not_overflow(device: DeviceDescriptor) -> None:
    x = S.input_variable(1)
    same(S.softmax(x).eval([np.full((4, 1), 5e5, np.float32)], device=device), [np.full((4, 1), 0.25)])


def test_a_reduction_of_what_is_not_known_yet(device: DeviceDescriptor) -> None:
    p, x = C.placeholder(shape=(2,)), S.input_variable(2)
    total = S.reduce_sum(p)
    total.replace_placeholder(x)
    assert_close(total.eval(X, device=device), np.float32([[9, 12], [7, 8], [20, 22]]))


# ---- unpack --------------------------------------------------------------------------------------


def test_unpack_pads_and_masks(x: Any, device: DeviceDescriptor) -> None:
    unpacked = S.unpack(x, -9)
    data, mask = unpacked.outputs
    assert (data.shape, mask.shape) == ((C.FreeDimension, 2), (C.FreeDimension,))
    assert data.dynamic_axes == mask.dynamic_axes == (C.Axis.default_batch_axis(),)
    found = unpacked.eval(X, device=device)
    expected = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [-9, -9], [-9, -9]], [[9, 10], [11, 12], [-9, -9]]]
    assert_close(found[data], np.float32(expected))
    assert_close(found[mask], np.float32([[1, 1, 1], [1, 0, 0], [1, 1, 0]]))
    assert_close(unpacked.eval(X[1:], device=device)[mask], np.float32([[1, 0], [1, 1]]))


def test_no_gradient_comes_from_padding_or_mask(x: Any, device: DeviceDescriptor) -> None:
    data, mask = S.unpack(x, 5).outputs
    masked = C.reduce_sum(C.square(data)) + C.reduce_sum(mask)
    same(masked.grad(X, [x], device=device), [2 * sequence for sequence in X])
    same((mask + 0).grad(X, [x], device=device), [0 * sequence for sequence in X])


# ---- to_sequence ---------------------------------------------------------------------------------


def test_steps_beyond_the_lengths_get_no_gradient(device: DeviceDescriptor) -> None:
    q, n = C.input_variable((3, 2), needs_gradient=True), C.input_variable((1,))
    data = {q: np.arange(12, dtype=np.float32).reshape(2, 3, 2), n: np.float32([[2], [3]])}
    made = C.to_sequence(q, n)
    same(made.eval(data, device=device), [[[0, 1], [2, 3]], [[6, 7], [8, 9], [10, 11]]])
    assert_close(made.grad(data, [q], device=device), np.float32([[[1, 1], [1, 1], [0, 0]], [[1, 1], [1, 1], [1, 1]]]))


@pytest.mark.parametrize("length", [0, -1, 4, 1.5, np.nan])
def test_a_wrong_length_is_named(length: float, device: DeviceDescriptor) -> None:
    q, n = C.input_variable((3, 2)), C.input_variable(())
    with pytest.raises(ValueError, match=r"length of sequence 1 of the minibatch is .*; expected a whole number from 1 to 3"):
        C.to_sequence(q, n).eval({q: np.ones((2, 3, 2), np.float32), n: np.float32([2, length])}, device=device)


def test_sequences_made_twice_are_on_two_axes() -> None:
    q = C.input_variable((3, 2))
    one, other = C.to_sequence(q), C.to_sequence(q)
    assert one.dynamic_axes[1].name.startswith("toSequence_")
    assert one.dynamic_axes != other.dynamic_axes != one.clone("share").dynamic_axes
    assert C.to_sequence(q, sequence_axis_name_prefix="words").dynamic_axes[1].name.startswith("words")


def test_a_free_dimension_becomes_a_sequence(device: DeviceDescriptor) -> None:
    q = C.input_variable((C.FreeDimension, 2))
    for length in (2, 5):
        data = np.random.default_rng(1).normal(size=(3, length, 2)).astype(np.float32)
        same(C.to_sequence(q).eval({q: data}, device=device), data)


def test_a_sequence_longer_than_the_axis_is_named(x: Any, device: DeviceDescriptor) -> None:
    q = C.input_variable((2, 2))
    with pytest.raises(ValueError, match=r"sequence 0 of dynamic_axes_like has 3 steps, but the first static axis .* only 2"):
        C.to_sequence_like(q, x).eval({q: np.ones((3, 2, 2), np.float32), x: X}, device=device)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: C.to_sequence(x), r"must have a batch axis and no sequence axis, but has the dynamic axes \[#, \*\]"),
        (lambda x: C.to_sequence(C.input_variable(())), "is a scalar"),
        (lambda x: C.to_sequence(C.constant(np.ones((3, 2)))), r"dynamic axes \[\]; to_batch"),
        (lambda x: C.to_sequence(C.input_variable(3), C.constant(3.0)), r"lengths of the sequences are on the dynamic axes \[\], but must"),
        (lambda x: C.to_sequence(C.input_variable(3), C.input_variable(2)), r"one number for each sequence, but have the shape \[2\]"),
        (lambda x: C.to_sequence_like(C.input_variable(3), C.input_variable(2)), r"dynamic_axes_like is on the dynamic axes \[#\]"),
        (lambda x: S.broadcast_as(x, C.constant(1.0)), "has no dynamic axes to bring the first one onto"),
        (lambda x: C.reconcile_dynamic_axes(x, C.constant(1.0)), "has no dynamic axes to bring the first one onto"),
    ],
)
def test_operands_on_wrong_axes_are_refused(x: Any, build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(x)


# ---- bringing values onto other axes -------------------------------------------------------------


@pytest.mark.parametrize("bring", [S.broadcast_as, C.reconcile_dynamic_axes])
class TestBringing:
    """Values brought onto the axes of others."""

    def test_a_sequence_comes_onto_another_axis(self, bring: Any, x: Any, device: DeviceDescriptor) -> None:
        z = S.input_variable(2, sequence_axis=C.Axis("elsewhere"))
        brought = bring(x, z)
        assert brought.dynamic_axes == z.dynamic_axes
        same((brought * z).eval({x: X, z: X}, device=device), [sequence**2 for sequence in X])
        same(brought.grad({x: X, z: X}, [x], device=device), [np.ones_like(sequence) for sequence in X])

    def test_lengths_must_agree(self, bring: Any, x: Any, device: DeviceDescriptor) -> None:
        z = S.input_variable(2, sequence_axis=C.Axis("elsewhere"))
        with pytest.raises(ValueError, match="the first operand has sequences of 3, 1, 2 steps and the second sequences of 1, 3, 2 steps"):
            bring(x, z).eval({x: X, z: [X[1], X[0], X[2]]}, device=device)

    def test_sequences_of_one_step_are_repeated_or_lose_their_axis(self, bring: Any, x: Any, device: DeviceDescriptor) -> None:
        z, b = S.input_variable(2, sequence_axis=C.Axis("elsewhere")), C.input_variable(2)
        ones = steps([[1, 2]], [[3, 4]], [[5, 6]])
        same(bring(x, z).eval({x: ones, z: X}, device=device), [[[1, 2]] * 3, [[3, 4]], [[5, 6]] * 2])
        same(bring(x, z).grad({x: ones, z: X}, [x], device=device), [[[3, 3]], [[1, 1]], [[2, 2]]])
        assert_close(bring(x, b).eval({x: ones, b: np.ones((3, 2), np.float32)}, device=device), np.concatenate(ones))

    def test_a_parameter_is_repeated(self, bring: Any, x: Any, device: DeviceDescriptor) -> None:
        w = C.parameter(init=np.float32([1, 2]))
        same(bring(w, x).eval(X, device=device), [np.repeat([[1, 2]], len(sequence), axis=0) for sequence in X])
        assert_close(bring(w, x).grad(X, [w], device=device), np.float32([6, 6]))


# ---- products ------------------------------------------------------------------------------------


def test_a_product_over_steps_needs_two_sequences() -> None:
    over_steps = C.ops.TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK
    x, w = S.input_variable(2), C.parameter((2, 3))
    with pytest.raises(ValueError, match=r"takes two sequences, but the right operand is on the dynamic axes \[\]; use sequence\."):
        C.times(x, w, infer_input_rank_to_map=over_steps)
    with pytest.raises(ValueError, match="which do not combine"):
        C.times(x, S.input_variable((2, 3), sequence_axis=C.Axis("elsewhere")), infer_input_rank_to_map=over_steps)
    with pytest.raises(ValueError, match=r"infer_input_rank_to_map must be a number of axes, -1 .* or -2"):
        C.times(x, w, infer_input_rank_to_map=-3)


# ---- sparse sequences ----------------------------------------------------------------------------


def _sparse(dense: Any) -> Any:
    from scipy.sparse import csr_matrix

    return C.NDArrayView.from_csr(csr_matrix(dense.reshape(-1, dense.shape[-1])), shape=dense.shape)


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 1, 5)])
@pytest.mark.parametrize(
    "build",
    [
        S.last,
        lambda x: S.slice(x, -2, 0),
        lambda x: S.gather(x, S.is_first(x) + 2 * S.is_last(x)),
        lambda x: S.scatter(S.gather(x, S.is_first(x) + 2 * S.is_last(x)), S.is_first(x) + 2 * S.is_last(x)),
        lambda x: S.broadcast_as(S.first(x), x),
        lambda x: C.reconcile_dynamic_axes(x, x),
    ],
    ids=["last", "slice", "gather", "scatter", "broadcast_as", "reconcile_dynamic_axes"],
)
def test_sparse_steps_are_picked_like_dense_ones(build: Any, shape: tuple[int, ...], device: DeviceDescriptor) -> None:
    generator = np.random.default_rng(4)
    data = [np.float32(generator.integers(0, 3, (steps, *shape)) * (generator.random((steps, *shape)) < 0.4)) for steps in (3, 1, 6, 2)]
    sparse, dense = S.input_variable(shape, is_sparse=True), S.input_variable(shape)
    values = C.Value.create(sparse, [_sparse(sequence) for sequence in data])
    weights = C.parameter(init=np.float32(generator.normal(size=(5, 3))))
    picked = build(sparse)
    assert picked.is_sparse
    product, right = C.times(picked, weights), C.times(build(dense), weights)
    found, expected = product.eval({sparse: values}, device=device), right.eval({dense: data}, device=device)
    for one, its_right in zip(found, expected, strict=True):
        assert_close(one, its_right)
    gradient = product.grad({sparse: values}, [weights], device=device)
    assert_close(getattr(gradient, "toarray", lambda: gradient)(), right.grad({dense: data}, [weights], device=device))


def test_a_sparse_vector_cannot_become_steps() -> None:
    with pytest.raises(ValueError, match=r"sparse and of shape \[5\], whose only axis cannot become steps"):
        C.to_sequence(C.input_variable(5, is_sparse=True))


# ---- all together --------------------------------------------------------------------------------


def _one_sequence(x: Any, b: Any, w: Any) -> float:
    """What the graph below computes of one sequence."""
    h = np.tanh(x @ w)
    chosen = h.sum(axis=1) > h[0].sum() - 1e-3
    powers = np.exp(h[chosen] - h[chosen].max(axis=0))
    y = powers / powers.sum(axis=0) * b + h.max(axis=0)
    placed = np.zeros_like(h)
    placed[chosen] = y
    placed[-1] += h[-1]
    return float(((placed[1:] - placed[:-1]) ** 2).sum() + y[-1].sum())


def _slope(function: Any, at: Any, index: Any, step: float = 1e-6) -> float:
    ahead, behind = at.copy(), at.copy()
    ahead[index] += step
    behind[index] -= step
    return (function(ahead) - function(behind)) / (2 * step)


def test_a_graph_of_many_operators_is_right_for_every_minibatch(device: DeviceDescriptor) -> None:
    generator = np.random.default_rng(0)
    x, b = S.input_variable(3, np.float64, needs_gradient=True), C.input_variable(2, np.float64, needs_gradient=True)
    w = C.parameter(init=generator.normal(size=(3, 2)), dtype=np.float64)
    h = C.tanh(C.times(x, w))
    chosen = C.greater(C.reduce_sum(h), C.reduce_sum(S.broadcast_as(S.first(h), h)) - 1e-3)
    picked = S.gather(h, chosen)
    y = S.softmax(picked) * S.broadcast_as(b, picked) + S.broadcast_as(S.reduce_max(h), picked)
    placed = S.scatter(y, chosen) + h * S.is_last(h)
    differences = S.slice(placed, 1, 0) - S.slice(placed, 0, -1)
    result = C.reduce_sum(C.square(S.unpack(differences, 0, no_mask_output=True))) + C.reduce_sum(S.last(y))
    for _ in range(10):
        lengths = generator.integers(2, 12, size=generator.integers(1, 7))
        xs, bs = [generator.normal(size=(length, 3)) for length in lengths], generator.normal(size=(len(lengths), 2))
        data = {x: xs, b: bs}
        assert_close(result.eval(data, device=device), [_one_sequence(*pair, w.value) for pair in zip(xs, bs, strict=True)])
        gradients = result.grad(data, [x, b, w], device=device)
        slope = _slope(lambda w: sum(_one_sequence(*pair, w) for pair in zip(xs, bs, strict=True)), w.value, (1, 0))  # noqa: B023
        np.testing.assert_allclose(gradients[w][1, 0], slope, rtol=1e-4, atol=1e-6)
        number = int(generator.integers(len(lengths)))
        at = (int(generator.integers(lengths[number])), 2)
        slope = _slope(lambda x: _one_sequence(x, bs[number], w.value), xs[number], at)  # noqa: B023
        np.testing.assert_allclose(gradients[x][number][at], slope, rtol=1e-4, atol=1e-6)
        slope = _slope(lambda b: _one_sequence(xs[number], b, w.value), bs[number], 1)  # noqa: B023
        np.testing.assert_allclose(gradients[b][number, 1], slope, rtol=1e-4, atol=1e-6)


# ---- attention ----


def attending(*sizes: int) -> tuple[Any, Any, Any]:
    """A query, keys and values, of so many elements."""
    words, question = C.Axis("words"), C.Axis("question")
    axes = (question, words, words)
    query, key, value = (C.sequence.input_variable(size, sequence_axis=axis) for size, axis in zip(sizes, axes, strict=True))
    return query, key, value


def test_attention_on_sequences_of_their_own_lengths(device: Any) -> None:
    query, key, value = attending(3, 3, 2)
    random = np.random.default_rng(1)
    lengths = [(2, 5), (4, 1), (1, 3)]
    data = {
        x: [random.normal(size=(pair[i > 0], *x.shape)).astype(np.float32) for pair in lengths] for i, x in enumerate((query, key, value))
    }
    for found, q, k, v in zip(C.sequence.attention(query, key, value, scale=0.7).eval(data, device=device), *data.values(), strict=True):
        powers = np.exp(q @ k.T * 0.7)
        assert_close(found, powers / powers.sum(axis=1, keepdims=True) @ v)


def test_attention_wants_sequences_of_vectors_that_match() -> None:
    query, key, value = attending(3, 3, 2)
    with pytest.raises(ValueError, match=r"query \[4\] and key \[3\] must have the same shape"):
        C.sequence.attention(attending(4, 3, 2)[0], key, value)
    with pytest.raises(ValueError, match="key and value must be on the same sequence axis"):
        C.sequence.attention(query, key, query)
    with pytest.raises(ValueError, match="the query is on the dynamic axes"):
        C.sequence.attention(C.input_variable(3), key, value)
    with pytest.raises(ValueError, match="each step of the value must be a vector"):
        C.sequence.attention(query, key, C.sequence.input_variable((2, 2), sequence_axis=C.Axis("words")))


def test_attention_is_saved(tmp_path: Any) -> None:
    query, key, value = attending(3, 3, 2)
    attended = C.sequence.attention(query, key, value, scale=0.5)
    attended.save(tmp_path / "attention.model")
    loaded = C.load_model(tmp_path / "attention.model")
    data = [[np.ones((2, 3), np.float32)], [np.eye(4, 3, dtype=np.float32)], [np.eye(4, 2, dtype=np.float32)]]
    ours, again = (f.eval(dict(zip(f.arguments, data, strict=True))) for f in (attended, loaded))
    np.testing.assert_array_equal(ours[0], again[0])
