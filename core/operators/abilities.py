"""Optional abilities of operators, a method each: an operator whose class has the method has the ability.

These protocols define the methods' arguments and results; operators need not derive from them.  Test with ``issubclass(type(op), ...)``,
whose result Python caches for each class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from ..common.shape import Shape
from ..types.spec import Spec

if TYPE_CHECKING:
    from ..program.slots import Instruction, Slot
    from ..types.context import Context
    from .op import Op


@runtime_checkable
class AssumesShapes(Protocol):
    """Its type can be inferred where operands depend on the result itself, which is how a recurrence starts its inference of types."""

    def assume(self, *inputs: Spec) -> Sequence[Spec] | None:
        """The operands with shapes put in for those of unknown shape, as far as they do not matter; None where they do."""


@runtime_checkable
class GivesRowSparse(Protocol):
    """Some of its gradients concern few rows of an operand."""

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        """Whether the gradient of operand *index* comes as a :class:`~cntk.core.types.sparse.RowSparse` for *inputs* of this kind."""


@runtime_checkable
class AcceptsStrided(Protocol):
    """It works on parts of arrays, so that slices before it are views."""

    def accepts_strided(self, *inputs: Spec) -> bool:
        """Whether arrays of these operands and their gradients need not be contiguous, so that nothing is written through reshaped ones."""


@runtime_checkable
class CommutesWithMonotone(Protocol):
    """It selects greatest elements, which may be done before an operator that keeps their order."""

    def commutes_with_monotone(self, operand: Spec) -> bool:
        """Whether each element of the result is the greatest of some elements of this only operand, and the gradient goes there."""


@runtime_checkable
class Follows(Protocol):
    """It can be fused with a preceding operator."""

    def after(self, before: Instruction, own: Instruction, inputs: Sequence[Spec]) -> Op | None:
        """An operator that computes both, if that is faster; None if there is none.

        Args:
            before: the operator of one of the operands, which this operator reads once, and others only if they are fused with it as well.
            own: what this operator is at work in.
            inputs: types of the new operator's operands: this operator's, with those of *before* in place of its result.
        """


class Expression(NamedTuple):
    """What a program computes before an instruction.

    Attributes:
        maker: for a slot the instruction that makes it, if a single operand of one other is all that reads it; else None.
        slots: all values.
    """

    maker: Callable[[int], Instruction | None]
    slots: Sequence[Slot]


@runtime_checkable
class EndsExpression(Protocol):
    """It can be fused with several operators before it, of which each alone reads the results of those before."""

    def whole(self, own: Instruction, expression: Expression) -> tuple[Op, tuple[int, ...]] | None:
        """An operator that computes the whole expression, and slots of its operands; None if there is none.

        Args:
            own: what this operator is at work in.
            expression: what comes before it.
        """


@runtime_checkable
class IsIdentity(Protocol):
    """Under some circumstances it does nothing."""

    def is_identity(self, training: bool) -> bool:
        """Whether its result is its only operand."""


class AsAffine(NamedTuple):
    """An operator as a product with some numbers and a sum with others.

    Attributes:
        multiply, add: operators of two operands each, the first of which is the operand, or the product.
        shape: the static shape of the numbers, which broadcasts to that of the operand.
        sources: the operands that the numbers depend on.
    """

    multiply: Op
    add: Op
    shape: Shape
    sources: Sequence[int]


@runtime_checkable
class Affine(Protocol):
    """Outside training it multiplies its first operand by numbers and adds others, which other operands decide."""

    def as_affine(self, *inputs: Spec) -> AsAffine | None:
        """What it is then; None if operands of these types need more."""

    def write_affine(self, xp: Any, numbers: Sequence[Any], sources: Sequence[Any]) -> None:
        """Write the factors and the terms.

        Args:
            xp: the backend's array namespace.
            numbers: arrays to write the two to.
            sources: arrays of the operands they depend on.
        """


@runtime_checkable
class TakesFactors(Protocol):
    """It is linear in one operand, so that numbers that its result is multiplied by may be multiplied into that beforehand."""

    def factored(self, factor: Shape, *inputs: Spec) -> tuple[int, Shape] | None:
        """Where factors go that have this shape, which broadcasts to the static shape of the result.

        Returns:
            The operand, and the shape in which the factors broadcast to that; None if there is none.
        """


@runtime_checkable
class CountsOperations(Protocol):
    """It reports to the profiler how much it computes; without this an operator counts as moving data."""

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """Floating-point operations of a forward step; of arrays it reads the shapes alone.

        Args:
            ctx: the context.
            out: the result, of shape ``(rows, *static)``.
            inputs: the operands, of shape ``(rows, *static)``.  For a backward step they are gradients, and None for an operand that
                backward neither reads nor differentiates.
        """
