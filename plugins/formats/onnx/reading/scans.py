"""Scan along an axis whose size depends on the data: a recurrence of ours."""

from __future__ import annotations

from collections.abc import Sequence

from .....core.common.shape import FreeDimension
from ....ops import delay
from ....ops.identity import alias
from ..messages import Graph
from .arrays import Array, Unsupported, batched, made, reshape, static, whole
from .importer import Operator
from .sequences import Steps, end_of, from_steps
from .sizes import Size


def scan_of_free_length(
    node: Operator,
    body: Graph,
    states: Sequence[Array | None],
    scanned: Sequence[Array],
    axes: Sequence[int],
    backwards: Sequence[int],
    out_axes: Sequence[int],
    out_backwards: Sequence[int],
) -> list[Array | None]:
    """The results of a Scan, whose steps become those of a sequence.

    Raises:
        Unsupported: some of it runs forwards and some backwards.
    """
    if len({*backwards, *out_backwards}) > 1:
        raise Unsupported("a Scan whose inputs or outputs run in different directions, along an axis whose size depends on the data")
    reverse = bool(backwards[0])
    inputs = [whole(one) for one in scanned]
    first = Steps(inputs[0], axes[0])
    sequences = [first, *(Steps(_on_batch(one, first), axis, first) for one, axis in zip(inputs[1:], axes[1:], strict=True))]
    parts = [_step(one, x, axis) for one, x, axis in zip(sequences, inputs, axes, strict=True)]
    begins = [_on_batch(one, first) for one in states if one is not None]
    places, old = [], []
    for begin in begins:
        at = begin.batch
        shape = [dim for axis, dim in enumerate(begin.dims) if axis != at]
        place = first.placeholder([FreeDimension if isinstance(dim, Size) else dim for dim in shape], begin.held().dtype)
        places.append(place)
        initial = begin.held()
        old.append(made((delay.future_value if reverse else delay.past_value)(place, initial), begin.dims, begin.dtype, at))
    from .control import body_of

    results = [one for one in body_of(node, body, [*old, *parts]) if one is not None]
    count = len(begins)
    new = [alias(_aligned(one, begin).held(place.dtype)) for one, begin, place in zip(results[:count], begins, places, strict=True)]
    pairs = {place: one.output for place, one in zip(places, new, strict=True)}
    outputs = [alias(one.held()) for one in results[count:]]
    for one in (*new, *outputs):
        one.replace_placeholders({place: pairs[place] for place in places if place in one.placeholders})
    ends: list[Array | None] = []
    for one, begin in zip(new, begins, strict=True):
        end = made(
            end_of(one, reverse=reverse),
            begin.dims if not first.of_one else [1, *begin.dims],
            begin.dtype,
            0 if first.of_one else begin.batch,
        )
        ends.append(reshape(static(end), begin.dims) if first.of_one else end)
    stacked: list[Array | None] = []
    for variable, result, out_axis in zip(outputs, results[count:], out_axes, strict=True):
        axis = out_axis if out_axis >= 0 else out_axis + result.rank + 1
        dims = [*result.dims[:axis], first.count, *result.dims[axis:]]
        at = None if first.of_one or result.batch is None else result.batch + (result.batch >= axis)
        stacked.append(from_steps(variable, dims, axis, result.dtype, first, at))
    return [*ends, *stacked]


def _on_batch(x: Array, first: Steps) -> Array:
    """The array with the batch axis that the first sequence has."""
    x = whole(x)
    if first.of_one or x.batch is not None:
        return x
    at = next((axis for axis, dim in enumerate(x.dims) if dim == first.samples), None)
    return x if at is None else batched(x, at)


def _step(steps: Steps, x: Array, axis: int) -> Array:
    """A step of an array, within the recurrence."""
    dims = [dim for place, dim in enumerate(x.dims) if place != axis]
    at = None
    if not steps.of_one:
        batch = x.batch if x.batch is not None else x.dims.index(steps.samples)
        at = batch - (batch > axis)
    return made(steps.variable, dims, x.dtype, at)


def _aligned(new: Array, begin: Array) -> Array:
    if new.dims != begin.dims and len(new.dims) != len(begin.dims):
        raise Unsupported(f"a state of the shape {list(begin.dims)} that becomes one of {list(new.dims)}")
    return new
