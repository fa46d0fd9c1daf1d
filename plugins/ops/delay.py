"""Delays: the value of an earlier or later step of the same sequence.  A cycle of a graph through one is a recurrence."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import Shape, broadcast, format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.delay import Delay
from ...core.operators.elementwise import lined_up_shapes
from ...core.operators.samples import Operand, operator, sample
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.spec import Spec, merge_dtypes
from .identity import alias

TRAINING = "last steps in training"


class PastValue(Delay):
    """The first operand *offset* steps earlier; where a sequence has no such step, the second operand, the initial state.

    An initial state without a sequence axis serves for every such step.  The steps of one with a sequence axis lie before the
    sequence: its last step is the one before the first.

    Where sequences go on in the next minibatch, their last steps are kept for it, in training and in evaluation each on its own.
    """

    op_name = "PastValue"
    offset: int

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._last_steps: dict[bool, tuple[Any, Any]] = {}

    @property
    def steps_back(self) -> int:
        """How many steps earlier the operand is read."""
        return self.offset

    def copy(self) -> PastValue:
        copied = copy.copy(self)
        copied._last_steps = {}
        return copied

    def create_checkpoint(self) -> dict[str, Any]:
        return {TRAINING: list(self._last_steps[True])} if True in self._last_steps else {}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        values, there = checkpoint[TRAINING]
        if not isinstance(values, np.ndarray) or not isinstance(there, np.ndarray) or values.shape[: there.ndim] != there.shape:
            raise ValueError(f"{self.op_name}: expected the last steps of sequences, and which of them are there; got {values!r:.80}")
        self._last_steps = {**self._last_steps, True: (values, there)}

    # ---- types ----

    def infer(self, x: Spec, initial: Spec) -> Spec:
        if x.axes is not None and len(x.axes) != 2:
            raise RuntimeError(
                "the operand must have a batch axis and a sequence axis; declare the input with sequence.input_variable, "
                "or give the value a sequence axis with sequence.broadcast_as"
            )
        shape = broadcast(x.dims, initial.dims)
        if shape is None:
            raise ValueError(
                f"the initial state has the shape {format_shape(initial.shape)}, which does not broadcast with that of the operand, "
                f"{format_shape(x.shape)}"
            )
        return x.but(shape=shape, dtype=merge_dtypes((x, initial)))

    def resolve(self, x: Spec, initial: Spec) -> Sequence[Shape]:
        return lined_up_shapes((x, initial))

    # ---- values ----

    def forward(self, ctx: Context, out: Any, x: Any, initial: Any) -> None:
        """Compute all steps, outside a recurrence."""
        read = ctx.brought(self._rows_read(_of_sequences(ctx.layout)))
        if x.shape == out.shape:
            ctx.xp.take(x, read, axis=0, out=out, mode="clip")
        else:
            ctx.xp.copyto(out, lined_up(x, out)[read])
        self.fill(ctx, out, initial)
        self.remember(ctx, x)

    def fill(self, ctx: Context, out: Any, initial: Any) -> None:
        """Write the initial state to the steps that read outside their sequence."""
        layout = _of_sequences(ctx.layout)
        if self.steps_back > 0 and ctx.layouts[1] is None and layout.continues is None:
            out[: layout.offsets[min(self.steps_back, len(layout.offsets) - 1)]] = initial  # the first steps lie first
            return
        rows, states = self._outside(ctx)
        if states is None:
            out[ctx.brought(rows)] = initial
        else:
            out[ctx.brought(rows)] = lined_up(initial[ctx.brought(states)], out)
        continued = self._continued(ctx, rows)
        if continued is not None and continued.any():
            self._recall(ctx, out, rows[continued])

    def remember(self, ctx: Context, x: Any) -> None:
        """Keep the last steps of the sequences, which the next minibatch may continue; those before them are over."""
        layout = _of_sequences(ctx.layout)
        if layout.continues is None or self.steps_back < 0:
            self._last_steps.pop(ctx.training, None)
            return
        steps = _lengths(layout)[:, np.newaxis] + np.arange(-self.steps_back, 0)
        there = steps >= 0
        rows = layout.offsets[np.where(there, steps, 0)] + layout.rank[:, np.newaxis]
        self._last_steps[ctx.training] = ctx.backend.to_numpy(x[ctx.brought(rows)]), there

    def _continued(self, ctx: Context, rows: Index) -> Any:
        """Which of the rows belong to sequences that continue those of the previous minibatch; None if none does."""
        layout = _of_sequences(ctx.layout)
        if layout.continues is None or self.steps_back < 0:
            return None
        return layout.continues[layout.sequence_of_row[rows]] >= 0

    def _recall(self, ctx: Context, out: Any, rows: Index) -> None:
        """Write the last steps of the previous minibatch to the rows."""
        layout, (kept, there) = _of_sequences(ctx.layout), self._last_steps.get(ctx.training, ((), ()))
        assert layout.continues is not None
        own, steps = layout.sequence_of_row[rows], layout.step_of_row[rows]
        sequences = layout.continues[own]
        if len(kept) <= sequences.max():
            raise ValueError(
                f"sequence {own[np.argmax(sequences)]} continues one of the previous minibatch, which had no such sequence; a minibatch "
                "can be continued where its data came with flags of new sequences too: (data, [True, ...])"
            )
        if not there[sequences, steps].all():
            short = int(own[np.argmin(there[sequences, steps])])
            raise ValueError(
                f"sequence {short} continues one of the previous minibatch, which had fewer than the {self.steps_back} steps of the delay"
            )
        out[ctx.brought(rows)] = ctx.backend.asarray(lined_up(kept[sequences, steps], out), out.dtype)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, initial: Any) -> None:
        dx, dinitial = grads
        if dx is not None:
            read = self._rows_read(_of_sequences(ctx.layout))
            (inside,) = (read >= 0).nonzero()
            dx.fill(0)
            terms = grad[ctx.brought(inside)]
            if dx.shape[1:] != grad.shape[1:]:
                sums = ctx.scratch("terms", (len(inside), *dx.shape[1:]), grad.dtype)
                ctx.sum_to(terms, lined_up(sums, grad))
                terms = sums
            dx[ctx.brought(read[inside])] = terms
        if dinitial is not None:
            rows, states = self._outside(ctx)
            continued = self._continued(ctx, rows)
            if continued is not None:
                rows, states = rows[~continued], None if states is None else states[~continued]
            terms = grad[ctx.brought(rows)]
            if states is None:
                ctx.sum_to(terms, dinitial)
                return
            sums = ctx.scratch("terms of states", (len(rows), *dinitial.shape[1:]), grad.dtype)
            ctx.sum_to(terms, lined_up(sums, grad))
            dinitial.fill(0)
            ctx.xp.add.at(dinitial, ctx.brought(states), sums)

    # ---- rows ----

    def continues(self, ctx: Context) -> bool:
        """Whether sequences may continue others: those of the previous minibatch, or in the next one."""
        layout = _of_sequences(ctx.layout)
        return self.steps_back > 0 and (layout.continues is not None or ctx.training in self._last_steps)

    def rows_read(self, ctx: Context) -> Index:
        """Row of the operand that each row reads; where that is outside of the sequence, -1 less the row of the initial state.

        Raises:
            RuntimeError: sequences may continue others.
        """
        if self.continues(ctx):
            raise RuntimeError("steps of another minibatch are no rows of the operand")
        read = self._rows_read(_of_sequences(ctx.layout))
        rows, states = self._outside(ctx)
        read[rows] = -1 if states is None else -1 - states
        return read

    def rows_outside(self, ctx: Context) -> Index:
        """Each row that reads the initial state, and -1 in the place of the others.

        Raises:
            RuntimeError: sequences may continue others.
        """
        read = self.rows_read(ctx)
        found = read * 0 - 1
        (outside,) = (read < 0).nonzero()
        found[outside] = outside
        return found

    def rows_filled(self, ctx: Context) -> Index:
        """The rows that read the initial state, and below each the state's row, 0 where there is but one.

        There are as many for all minibatches of as many sequences and rows: the first comes again where too few rows read it.

        Raises:
            RuntimeError: sequences may continue others.
        """
        if self.continues(ctx):
            raise RuntimeError("steps of another minibatch are no initial state")
        layout = _of_sequences(ctx.layout)
        rows, states = self._outside(ctx)
        return _filled_up(rows, rows * 0 if states is None else states, min(layout.samples * abs(self.steps_back), layout.rows))

    def rows_that_read(self, ctx: Context) -> Index:
        """Row that reads each row of the operand, -1 where none does."""
        read = self._rows_read(_of_sequences(ctx.layout))
        (inside,) = (read >= 0).nonzero()
        found = read * 0 - 1
        found[read[inside]] = inside
        return found

    def _steps_read(self, layout: Layout) -> Index:
        """Step that each row reads, which may lie outside its sequence."""
        return layout.step_of_row - self.steps_back

    def _rows_read(self, layout: Layout) -> Index:
        """Row that each row reads, -1 where it lies outside the sequence."""
        steps, sequences = self._steps_read(layout), layout.sequence_of_row
        inside = (steps >= 0) & (steps < _lengths(layout)[sequences])
        return np.where(inside, layout.offsets[np.where(inside, steps, 0)] + layout.rank[sequences], -1)

    def _outside(self, ctx: Context) -> tuple[Index, Index | None]:
        """Rows that read outside their sequences, and the row of the initial state that each takes; None if there is but one state."""
        layout, states = _of_sequences(ctx.layout), ctx.layouts[1]
        steps, sequences = self._steps_read(layout), layout.sequence_of_row
        beyond = steps if self.steps_back > 0 else steps - _lengths(layout)[sequences]
        rows = np.flatnonzero(beyond < 0 if self.steps_back > 0 else beyond >= 0)
        if states is None or states.lengths is None:
            return rows, None if states is None else sequences[rows]
        own = sequences[rows]
        length = states.lengths[own]
        step = beyond[rows] + length if self.steps_back > 0 else beyond[rows]
        step = np.where(length == 1, 0, step)
        outside = (step < 0) | (step >= length)
        if outside.any():
            short = int(own[np.argmax(outside)])
            raise ValueError(
                f"the initial state of sequence {short} has {states.lengths[short]} steps, "
                f"but a delay of {abs(self.steps_back)} steps needs as many, or one"
            )
        return rows, states.offsets[step] + states.rank[own]


class FutureValue(PastValue):
    """The first operand *offset* steps later; where a sequence has no such step, the second operand, the initial state.

    The steps of an initial state with a sequence axis lie behind the sequence.
    """

    op_name = "FutureValue"

    @property
    def steps_back(self) -> int:
        return -self.offset


def _of_sequences(layout: Layout | None) -> Layout:
    assert layout is not None
    return layout


def _lengths(layout: Layout) -> Index:
    assert layout.lengths is not None
    return layout.lengths


def _filled_up(rows: Index, states: Index, count: int) -> Index:
    """Both, one below the other, with the first of each as often behind them as makes *count*."""
    missing = count - len(rows)
    return np.array([np.append(rows, rows[:1].repeat(missing)), np.append(states, states[:1].repeat(missing))])


def lined_up(rows: Any, like: Any) -> Any:
    """A view of the rows that broadcasts to those of *like*: with as many axes."""
    return rows if rows.ndim == like.ndim else rows.reshape(len(rows), *(1,) * (like.ndim - rows.ndim), *rows.shape[1:])


def _delayed(steps: int) -> Any:
    """What :func:`past_value` gives for one sequence, and :func:`future_value` for a negative number of steps."""

    def expected(x: Any, initial: Any = 0) -> Any:
        result = np.empty((len(x), *np.broadcast_shapes(x.shape[1:], np.shape(initial))), x.dtype)
        for step in range(len(x)):
            inside = 0 <= step - steps < len(x)
            result[step] = x[step - steps] if inside else initial
        return result

    return expected


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=_delayed(1)),
    sample(Operand((2,), kind="sequence"), Operand((2,), kind="batch"), time_step=2, expected=_delayed(2)),
    sample(Operand((2, 2), kind="sequence"), Operand((2,), kind="parameter"), time_step=3, expected=_delayed(3)),
    sample(Operand((), kind="sequence"), expected=_delayed(1)),
    sample(Operand((3, 1), kind="sequence"), Operand((2, 1, 2), kind="parameter"), expected=_delayed(1)),
    sample(Operand((), kind="sequence"), Operand((1,), kind="batch"), expected=_delayed(1)),
)
def past_value(x: TensorLike, initial_state: TensorLike | None = None, time_step: int = 1, name: str = "") -> Function:
    """The value of earlier steps: step ``t`` of the result is step ``t - time_step`` of *x*.

    Where the operand depends on the result, the graph has a cycle and computes step by step: a recurrence.

    Args:
        x: operand of static shape ``S`` with a sequence axis.
        initial_state: value for the first *time_step* steps, which broadcasts with ``S``: a number, an array, or a variable without
            dynamic axes, with the batch axis (a state for each sequence), or with a sequence axis (whose last steps are taken);
            0 by default.
        time_step: number of steps; 0 gives *x* itself.
        name: name of the function.

    Returns:
        Function of the broadcast shape on the dynamic axes of *x*.

    Raises:
        NotImplementedError: *time_step* is negative; that is what :func:`future_value` is for.
        RuntimeError: *x* has no sequence axis.
        ValueError: the initial state's shape does not broadcast with ``S``.

    >>> x = C.sequence.input_variable(())
    >>> C.sequence.past_value(x, initial_state=9).eval([np.float32([1, 2, 3])])
    [array([9., 1., 2.], dtype=float32)]
    """
    return _delay(PastValue, "past_value", x, initial_state, time_step, name)


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=_delayed(-1)),
    sample(Operand((2,), kind="sequence"), Operand((2,), kind="batch"), time_step=2, expected=_delayed(-2)),
    sample(Operand((2, 2), kind="sequence"), Operand((2,), kind="parameter"), time_step=3, expected=_delayed(-3)),
    sample(Operand((2,), kind="sequence"), Operand((3, 1), kind="batch"), time_step=2, expected=_delayed(-2)),
)
def future_value(x: TensorLike, initial_state: TensorLike | None = None, time_step: int = 1, name: str = "") -> Function:
    """The value of later steps: step ``t`` of the result is step ``t + time_step`` of *x*.

    Args:
        x: operand of static shape ``S`` with a sequence axis.
        initial_state: value for the last *time_step* steps, as for :func:`past_value`; of a state with a sequence axis the first
            steps are taken.
        time_step: number of steps; 0 gives *x* itself.
        name: name of the function.

    Returns:
        Function of the broadcast shape on the dynamic axes of *x*.

    Raises:
        NotImplementedError: *time_step* is negative; that is what :func:`past_value` is for.
        RuntimeError: *x* has no sequence axis.
        ValueError: the initial state's shape does not broadcast with ``S``.

    >>> x = C.sequence.input_variable(())
    >>> C.sequence.future_value(x).eval([np.float32([1, 2, 3])])
    [array([2., 3., 0.], dtype=float32)]
    """
    return _delay(FutureValue, "future_value", x, initial_state, time_step, name)


@operator(
    sample(Operand((2,), kind="sequence"), time_step=2, expected=_delayed(2)),
    sample(Operand((2,), kind="sequence"), time_step=-1, expected=_delayed(-1)),
)
def delay(x: TensorLike, initial_state: TensorLike | None = None, time_step: int = 1, name: str = "") -> Function:
    """The value of earlier steps, or for a negative *time_step* of later ones; see :func:`past_value` and :func:`future_value`.

    Args:
        x: operand of static shape ``S`` with a sequence axis.
        initial_state: value for steps that read outside the sequence; 0 by default.
        time_step: number of steps; 0 gives *x* itself.
        name: name of the function.

    Returns:
        Function of the broadcast shape on the dynamic axes of *x*.

    >>> x = C.sequence.input_variable(())
    >>> C.sequence.delay(x, time_step=-2).eval([np.float32([1, 2, 3])])
    [array([3., 0., 0.], dtype=float32)]
    """
    if time_step > 0:
        return past_value(x, initial_state, time_step, name)
    if time_step < 0:
        return future_value(x, initial_state, -time_step, name)
    return alias(x, name=name) if name else x  # type: ignore[return-value]  # as it is, in CNTK too


def _delay(op: type[PastValue], op_name: str, x: Any, initial_state: Any, time_step: int, name: str) -> Function:
    if time_step < 0:
        raise NotImplementedError(f"{op_name}: time_step must not be negative, got {time_step}; sequence.delay goes both ways")
    if time_step == 0:
        return alias(x, name=name) if name else x
    return op(offset=int(time_step))(x, 0 if initial_state is None else initial_state, name=name)
