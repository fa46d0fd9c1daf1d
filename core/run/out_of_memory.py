"""Error messages for running out of memory, which name the operator or variable that holds it.

Code that catches such an error while a program runs must free the workspace and raise a new error outside the ``except`` clause, so that
neither the frames of the original error nor those of its handler keep alive the memory that the next minibatch needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..extension.device import device_of
from ..graph.inference import named

if TYPE_CHECKING:
    from ..graph.nodes import Primitive
    from ..graph.variable import Variable
    from .binding import Binding


def too_large(binding: Binding, own: Sequence[int], nbytes: Sequence[int], error: MemoryError) -> MemoryError:
    """Return the error for an arena that cannot be allocated.

    Args:
        binding: the binding that needs the arena.
        own, nbytes: the slots to be placed in it, and the bytes of each.
        error: the backend's error.
    """
    size, slot = max(zip(nbytes, own, strict=True))
    return MemoryError(
        f"out of memory on {device_of(binding.backend)}: values and gradients{_of_minibatch(binding)} do not fit. "
        f"{sum(nbytes):,} bytes in all, less what can share memory; the largest are the {size:,} bytes of {_owner(binding, slot)}. "
        f"{_remedy(binding)}{_said(error)}"
    )


def in_a_step(binding: Binding, node: Primitive, error: MemoryError) -> MemoryError:
    """Return the error for an operator that cannot allocate the memory that it needs when it is bound or runs."""
    sizes, backend = binding.sizes, binding.backend
    outputs = [index for one in binding.program.instructions if one.node is node for index in one.outputs]
    dense = [index for index in outputs if sizes.shapes[index] is not None and not sizes.specs[index].sparse]
    result = sum(backend.nbytes(sizes.shapes[index], sizes.specs[index].dtype) for index in dense)
    return MemoryError(
        f"out of memory on {device_of(backend)}: {named(node)}{_of_minibatch(binding)} needs more than there is beside its result "
        f"of {result:,} bytes [built at {node.line}]. {_remedy(binding)}{_said(error)}"
    )


def _samples(binding: Binding) -> int:
    return max((layout.samples for layout in binding.layouts if layout is not None), default=0)


def _of_minibatch(binding: Binding) -> str:
    samples = _samples(binding)
    rows = max((layout.rows for layout in binding.layouts if layout is not None), default=0)
    steps = f" with {rows:,} steps" if rows > samples else ""
    return f" of a minibatch of {samples:,} samples{steps}" if samples else ""


def _remedy(binding: Binding) -> str:
    samples = _samples(binding)
    if samples > 1:
        return f"Try minibatches of at most {samples // 2:,} samples: training can go on with them"
    return "There is nothing to divide: make the model smaller, sequences shorter, or compute elsewhere (device=...)"


def _said(error: MemoryError) -> str:
    return f" ({error})" if str(error) else ""


def _owner(binding: Binding, slot: int) -> str:
    """Return a description of the node or variable whose value or gradient a slot holds."""
    held = binding.program.slots[slot]
    value = slot if held.like is None else held.like
    what = "" if held.like is None else "the gradient of "
    for instruction in binding.program.instructions:
        if value in instruction.outputs:
            return f"{what}{named(instruction.node)} [built at {instruction.node.line}]"
    variable: Variable = held.variable
    return f"{what}{variable!r}"
