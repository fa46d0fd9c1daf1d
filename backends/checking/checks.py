"""Checks of what operators declare, whenever one of their methods is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ...core.operators.effects import Assignment
from ...core.operators.elementwise import Elementwise
from ...core.operators.op import Op, Which, includes
from ...core.program.passes import Pass
from ...core.program.slots import COMPUTED

if TYPE_CHECKING:
    from ...core.program.program import Program
    from ...core.program.slots import Instruction, Slot
    from ...core.types.context import Context


class Checks(Pass):
    """Calls operators' methods such that it shows if they read unwritten memory, or write memory that is not theirs."""

    name = "checks"

    def arrange(self, program: Program) -> None:
        count, start = len(program.instructions), 0
        for part in program.parts():
            for instruction in part:
                instruction.forward = partial(_forward, instruction.op, instruction.forward)
                instruction.backward = partial(_backward, instruction.op, instruction.backward)
                if instruction.loop is None:
                    _forget_operands(program.slots, instruction, start, 2 * count - start)
            start += len(part)


def poison(array: Any) -> None:
    """Fill an array with NaN, or with -1 where there is none: all bits of each element of raw memory."""
    array.fill(np.nan if array.dtype.kind == "f" else np.array(-1).astype(array.dtype))


def _forward(op: Op, method: Callable[..., None], ctx: Context, out: Any, *inputs: Any) -> None:
    results = list(_arrays(out))
    _refuse_shared(op, "the result", results, inputs, op.in_place)
    assigned = op.assigns if isinstance(op, Assignment) else ()
    others = [x for i, x in enumerate(inputs) if i not in assigned and not _is_shared(x, results)]
    _poison_unshared(results, inputs)
    with _unchanged(op, "forward", others):
        method(ctx, out, *inputs)
    _forget(ctx)


def _backward(op: Op, method: Callable[..., None], ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
    results, arriving = list(_arrays(grads)), list(_arrays(grad))
    for i, dx in enumerate(grads):
        _refuse_shared(op, f"the gradient of operand {i}", list(_arrays(dx)), (out, *inputs), ())
        if _is_shared(dx, arriving) and not (isinstance(op, Elementwise) and includes(op.gradient_in_place, i)):
            raise RuntimeError(f"{op.op_name}: the gradient of operand {i} lies in that of the result, which gradient_in_place forbids")
    _poison_unshared(results, arriving)
    with _unchanged(op, "backward", [x for x in (*arriving, *_arrays(out), *inputs) if not _is_shared(x, results)]):
        method(ctx, grad, grads, out, *inputs)
    _forget(ctx)


def _forget_operands(slots: Sequence[Slot], instruction: Instruction, forward: int, backward: int) -> None:
    """Overwrite operands and arriving gradients with NaN after their last use, at these moments; parts of chains use them once each."""

    def last(read: Sequence[int | None], written: Iterable[int | None], moment: int) -> list[int]:
        kept = {slots[index].base for index in written if index is not None}
        bases = [None if index is None else slots[index].base for index in read]
        dying = [base is not None and base not in kept and slots[base].kind == COMPUTED and slots[base].death == moment for base in bases]
        return [i for i, dies in enumerate(dying) if dies]

    if instruction.chain is None:
        places = [1 + i for i in last(instruction.inputs, instruction.outputs, forward)]
        instruction.forward = partial(_then_forget, instruction.forward, places)
    if instruction.backward_chain is None and instruction.grad is not None and len(instruction.outputs) == 1:
        read = (*instruction.grad, None, *instruction.outputs, *instruction.inputs)
        written = (*instruction.grads, *(slot for pair in instruction.sums for slot in pair), *(slot for _, slot in instruction.passed))
        instruction.backward = partial(_then_forget, instruction.backward, last(read, written, backward))


def _then_forget(method: Callable[..., None], places: Sequence[int], ctx: Context, *arguments: Any) -> None:
    method(ctx, *arguments)
    for array in _arrays([arguments[i] for i in places]):
        poison(array)


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays among one or several; sparse ones are left out."""
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(item, np.ndarray):
            yield item


def _is_shared(array: Any, others: Iterable[Any]) -> bool:
    return isinstance(array, np.ndarray) and any(np.may_share_memory(array, other) for other in others)


def _refuse_shared(op: Op, what: str, results: Sequence[Any], inputs: Sequence[Any], allowed: Which) -> None:
    for i, x in enumerate(inputs):
        if _is_shared(x, results) and not includes(allowed, i):
            raise RuntimeError(f"{op.op_name}: {what} lies in the memory of operand {i}, and the operator does not say that it may")


def _poison_unshared(results: Iterable[Any], others: Sequence[Any]) -> None:
    others = list(_arrays(others))
    for array in results:
        if not _is_shared(array, others):
            poison(array)


@contextmanager
def _unchanged(op: Op, method: str, arrays: Iterable[Any]) -> Iterator[None]:
    """Raise an error if arrays have changed."""
    before = [(array, _digest(array)) for array in _arrays(list(arrays))]
    yield
    for array, digest in before:
        if _digest(array) != digest:
            raise RuntimeError(f"{op.op_name}: {method} has written to an array of shape {array.shape} that it is to read")


def _digest(array: Any) -> int:
    return crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _forget(ctx: Context) -> None:
    """Scratch space is valid during a call alone."""
    for array in ctx._scratch.values():
        poison(array)
