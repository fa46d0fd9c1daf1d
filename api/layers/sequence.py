"""Layers over sequences: delays and windows, and the functions that run a step function along a sequence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from cntk import ops
from cntk.axis import Axis
from cntk.core.graph.arguments import FunctionLike, TensorLike
from cntk.core.types.arguments import checked
from cntk.default_options import default_override_or, get_default_override
from cntk.layers.basic_blocks import named
from cntk.ops.functions import BlockFunction, Function
from cntk.variables import Constant

LONGEST_WINDOW = 2**16
"""Steps of the largest :func:`PastValueWindow`."""

STATES = "hcabdefgij"
"""Names of the arguments for states, in order; there are no more states than names."""


@checked
def Delay(T: int = 1, initial_state: TensorLike | tuple[TensorLike, ...] = default_override_or(0), name: str = "") -> Function:
    """A layer that delays a sequence by some steps.

    Args:
        T: number of steps; negative ones bring the future forward, 0 leaves the sequence as it is.
        initial_state: the value before the first step, or after the last: a number, an array, a Constant or Parameter.
        name: name of the block.

    Returns:
        A function of a sequence of any static shape; the result has the same shape and dynamic axes.

    >>> from cntk.layers import Delay, Sequential
    >>> x = C.sequence.input_variable(1)
    >>> neighbours = Sequential([tuple(Delay(T) for T in (-1, 0, 1)), C.splice])
    >>> neighbours(x).eval([np.array([[1], [2], [3]], np.float32)])
    [array([[2., 1., 0.],
           [3., 2., 1.],
           [0., 3., 2.]], dtype=float32)]
    """
    initial = initial_value(get_default_override(Delay, initial_state=initial_state))

    @BlockFunction("Delay", name)
    def delay(x: Any) -> Any:
        return ops.sequence.delay(x, initial_state=initial, time_step=T)

    return delay


@checked
def PastValueWindow(window_size: int, axis: int | Axis, go_backwards: bool = default_override_or(False), name: str = "") -> Function:
    """A layer that makes a static axis of the last steps of a sequence, the last one first.

    Args:
        window_size: number of steps; shorter sequences are filled up with zeros.
        axis: static axis along which the steps are put together; -2 makes rows of vectors.
        go_backwards: whether to take the first steps instead, the first one first.
        name: name of the block.

    Returns:
        A function of a sequence with two results without sequence axis: the steps, and a mask that is 1 where there is a step.

    >>> from cntk.layers import PastValueWindow
    >>> x = C.sequence.input_variable(2)
    >>> value, valid = PastValueWindow(3, axis=-2)(x)([np.array([[1, 2], [3, 4]], np.float32)])
    >>> value
    array([[[3., 4.],
            [1., 2.],
            [0., 0.]]], dtype=float32)
    >>> valid
    array([[[1.],
            [1.],
            [0.]]], dtype=float32)
    """
    go_backwards = get_default_override(PastValueWindow, go_backwards=go_backwards)
    if not 1 <= window_size <= LONGEST_WINDOW:
        raise ValueError(f"PastValueWindow: window_size must be 1 to {LONGEST_WINDOW}, as each step of it is a delay, got {window_size}")
    end, sign = (ops.sequence.first, -1) if go_backwards else (ops.sequence.last, 1)

    def window(x: Any, name: str) -> Any:
        return ops.splice(*(end(Delay(sign * t, initial_state=0)(x)) for t in range(int(window_size))), axis=axis, name=name)

    @BlockFunction("PastValueWindow", name)
    def past_value_window(x: Any) -> Any:
        return window(x, "value"), window(ops.sequence.broadcast_as(1, x), "valid")

    return past_value_window


@checked
def RecurrenceFrom(
    step_function: FunctionLike, go_backwards: bool = default_override_or(False), return_full_state: bool = False, name: str = ""
) -> Function:
    """A layer that runs a step function along a sequence, from initial states that are given as data.

    Args:
        step_function: function (states..., x) → states...; a Function or a Python function that creates no parameters.
        go_backwards: whether to run from the end of the sequence to its start.
        return_full_state: whether to return all states, not the first one only.
        name: name of the result.

    Returns:
        A function of the initial states and the sequence, which gives the state after each step.  An initial state is a value
        without sequence axis, or a sequence of which the last step counts (the first, going backwards).

    Raises:
        TypeError: the numbers of states that the step function takes and gives differ.
        ValueError: it has no state, or more than ten.

    >>> from cntk.layers import RecurrenceFrom
    >>> x, start = C.sequence.input_variable(1), C.input_variable(1)
    >>> total = RecurrenceFrom(lambda sum, x: sum + x)(start, x)
    >>> total.eval({x: [np.array([[1], [2], [3]], np.float32)], start: [[10]]})
    [array([[11.],
           [13.],
           [16.]], dtype=float32)]
    """
    go_backwards = get_default_override(RecurrenceFrom, go_backwards=go_backwards)
    step = step_of("RecurrenceFrom", step_function)

    def recurrence_from(*args: Any) -> Any:
        *initial_states, x = args
        return run_along(step, initial_states, x, go_backwards, return_full_state)

    return named(with_arguments(recurrence_from, [*STATES[: len(step.outputs)], "x"]), name)


@checked
def Recurrence(
    step_function: FunctionLike,
    go_backwards: bool = default_override_or(False),
    initial_state: TensorLike | tuple[TensorLike, ...] = default_override_or(0),
    return_full_state: bool = False,
    name: str = "",
) -> Function:
    """A layer that runs a step function along a sequence.

    Args:
        step_function: function (states..., x) → states..., such as :func:`LSTM`, ``C.plus`` or a Python function that creates no
            parameters.
        go_backwards: whether to run from the end of the sequence to its start.
        initial_state: the state before the first step: a number, an array, a Constant or Parameter; a tuple for one of each state.
        return_full_state: whether to return all states, not the first one only.
        name: name of the result.

    Returns:
        A function of a sequence, which gives the state after each step, a sequence of the same length.

    Raises:
        TypeError: the numbers of states that the step function takes and gives differ, or from that of initial states.
        ValueError: it has no state, or more than ten.

    >>> from cntk.layers import Recurrence
    >>> x = C.sequence.input_variable(2)
    >>> Recurrence(C.plus, initial_state=[0, 0.5])(x).eval([np.array([[1, 2], [3, 4]], np.float32)])
    [array([[1. , 2.5],
           [4. , 6.5]], dtype=float32)]
    """
    go_backwards = get_default_override(Recurrence, go_backwards=go_backwards)
    initial = initial_value(get_default_override(Recurrence, initial_state=initial_state))
    step = step_of("Recurrence", step_function)
    count = len(step.outputs)
    initials = initial if isinstance(initial, tuple) else (initial,)
    if len(initials) not in (1, count):
        raise TypeError(f"Recurrence: {len(initials)} initial states are given; the step function has {count}")

    def recurrence(x: Any) -> Any:
        return run_along(step, initials if len(initials) == count else initials * count, x, go_backwards, return_full_state)

    return named(recurrence, name)


@checked
def Fold(
    folder_function: FunctionLike,
    go_backwards: bool = default_override_or(False),
    initial_state: TensorLike | tuple[TensorLike, ...] = default_override_or(0),
    return_full_state: bool = False,
    name: str = "",
) -> Function:
    """A layer that runs a step function along a sequence and gives the state at the end.

    Args:
        folder_function, go_backwards, initial_state, return_full_state, name: as of :func:`Recurrence`.

    Returns:
        A function of a sequence; the result has no sequence axis.

    Raises:
        TypeError, ValueError: as :func:`Recurrence`.

    >>> from cntk.layers import Fold
    >>> x = C.sequence.input_variable(2)
    >>> Fold(C.element_max)(x).eval([np.array([[1, 4], [3, 2]], np.float32), np.array([[5, 6]], np.float32)])
    array([[3., 4.],
           [5., 6.]], dtype=float32)
    """
    go_backwards = get_default_override(Fold, go_backwards=go_backwards)
    initial_state = get_default_override(Fold, initial_state=initial_state)
    recurrence = Recurrence(folder_function, go_backwards, initial_state, return_full_state)
    end = ops.sequence.first if go_backwards else ops.sequence.last
    return named(recurrence >> (end,) * len(recurrence.outputs), name)


@checked
def UnfoldFrom(
    generator_function: FunctionLike, until_predicate: FunctionLike | None = None, length_increase: float = 1, name: str = ""
) -> Function:
    """A layer that makes a sequence by applying a function again and again.

    Args:
        generator_function: function states... → output, states..., or of states alone, the first of which is the output then.
        until_predicate: function of the output that is 1 at the last step to keep, else 0; None to keep all.
        length_increase: length of the sequence, or the most it can have, in lengths of the sequence that it is like.
        name: name of the result.

    Returns:
        A function of the initial states and a sequence, of which only the sequence axis counts.  The result is a sequence on this
        axis, or on one of its own if its length may be another.

    Raises:
        TypeError: the numbers of states that the generator takes and gives are incompatible.

    >>> from cntk.layers import UnfoldFrom
    >>> x = C.sequence.input_variable(1)
    >>> powers = UnfoldFrom(lambda s: s * 2, until_predicate=lambda s: C.greater(s, 5), length_increase=2)
    >>> powers(C.Constant([1]), x).eval([np.zeros((1, 1), np.float32), np.zeros((4, 1), np.float32)])
    [array([[2.],
           [4.]], dtype=float32), array([[2.],
           [4.],
           [8.]], dtype=float32)]
    """
    generator = Function(generator_function)
    count = len(generator.signature)
    if count < 1 or len(generator.outputs) not in (count, count + 1):
        raise TypeError(
            f"UnfoldFrom: the generator must give as many states as it takes, after the output or with the first as output; "
            f"it takes {count} and gives {len(generator.outputs)} values"
        )
    until = None if until_predicate is None else Function(until_predicate)

    def unfold_from(*args: Any) -> Any:
        *initial_states, like = args
        if length_increase != 1:
            like = ops.sequence.where(ops.sequence.broadcast_as(length_increase, like))
        ends = [ops.placeholder(name="unfold_state_fwd") for _ in initial_states]
        previous = [
            ops.sequence.delay(end, initial_state=initial, name="unfold_prev_state")
            for end, initial in zip(ends, initial_states, strict=True)
        ]
        results = generator(*previous).outputs
        states = ops.combine([ops.reconcile_dynamic_axes(state, like) for state in results[-count:]], name="unfold_new_state")
        states.replace_placeholders(dict(zip(ends, states.outputs, strict=True)))
        output = ops.combine([results[0]], name="unfold_output")
        if until is None:
            return output
        return ops.sequence.gather(output, _before_the_end(until(output)), name="valid_output")

    first = ["initial_state"] if count == 1 else [f"initial_state_{i + 1}" for i in range(count)]
    return named(with_arguments(unfold_from, [*first, "dynamic_axes_like"]), name)


def _before_the_end(is_last: Any) -> Any:
    """1 up to the first step at which *is_last* is 1, that step included, then 0."""
    step = Function(lambda valid, is_last: (1 - ops.sequence.past_value(is_last)) * valid)
    return Recurrence(step, initial_state=1, name="valid_frames")(is_last)


def step_of(layer: str, step_function: Any) -> Function:
    """A step function as a Function.

    Raises:
        TypeError: it does not give as many states as it takes.
        ValueError: it has no state, or more than there are names for.
    """
    step = Function(step_function)
    count = len(step.signature) - 1
    if len(step.outputs) != count:
        raise TypeError(
            f"{layer}: the step function must take its states and an input, and give its states; "
            f"this one takes {count + 1} arguments and gives {len(step.outputs)} values"
        )
    if not 1 <= count <= len(STATES):
        raise ValueError(f"{layer}: the step function must have from 1 to {len(STATES)} states, this one has {count}")
    return step


def run_along(step: Function, initial_states: Sequence[Any], x: Any, go_backwards: Any, return_full_state: bool) -> Function:
    """The states, or the first one, after each step along a sequence."""
    ends = [ops.placeholder(name=state.name) for state in step.signature[:-1]]
    previous = [
        ops.sequence.delay(end, initial_state=initial, time_step=-1 if go_backwards else 1)
        for end, initial in zip(ends, initial_states, strict=True)
    ]
    result = step(*previous, x)
    result.replace_placeholders(dict(zip(ends, result.outputs, strict=True)))
    return result if return_full_state else ops.combine([result.outputs[0]])


def with_arguments(function: Callable[..., Any], names: Sequence[str]) -> Function:
    """Convert a Python function of any number of arguments to a Function of these."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Function(function)


def initial_value(state: Any) -> Any:
    """An initial state as a variable: numbers and arrays become constants; of a tuple each item does."""
    if isinstance(state, tuple):
        return tuple(initial_value(item) for item in state)
    if state is None:
        return Constant(0)
    if np.isscalar(state):
        return Constant(cast(float, state), shape=(1,))
    return Constant(state) if isinstance(state, (np.ndarray, list)) else state


__all__ = ["Delay", "Fold", "PastValueWindow", "Recurrence", "RecurrenceFrom", "UnfoldFrom"]
