"""Public functions of operators, and their samples: ways of calling them that the generic tests try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from ..common.shape import Shape
from ..types.arguments import checked


class Operand:
    """An operand of a sample: a static shape with the range its values are drawn from, or a fixed array."""

    def __init__(
        self, shape: Shape | Any, low: float = -1.0, high: float = 1.0, *, sparse: bool = False, kind: str = "batch", gradient: bool = True
    ) -> None:
        """
        Args:
            shape: static shape, or an array to use as it is (without batch axis for ``kind='constant'``).
            low, high: range of the values.
            sparse: feed it as one-hot CSR rows.
            kind: ``'batch'`` (an input with batch axis), ``'sequence'`` (one with a sequence axis as well), ``'static'`` (an input without
                dynamic axes) or ``'parameter'``.
            gradient: whether the op is differentiable there, so that finite differences must agree.
        """
        self.shape, self.low, self.high = shape, low, high
        self.sparse, self.kind, self.gradient = sparse, kind, gradient


Sequences = Literal["any", "all", "none"]
"""Which operands of a sample may be sequences."""


class Sample:
    """One way of calling an operator, which the generic tests try on every backend and dtype."""

    def __init__(
        self,
        operands: Sequence[Operand],
        attributes: dict[str, Any],
        call: Callable[..., Any] | None,
        expected: Any,
        sequences: Sequences = "any",
    ) -> None:
        self.operands, self.attributes, self.call, self.expected, self.sequences = operands, attributes, call, expected, sequences

    def build(self, function: Callable[..., Any], variables: Sequence[Any]) -> Any:
        """Apply *function* to *variables* as this sample specifies."""
        call = self.call or (lambda f, *xs: f(*xs, **self.attributes))
        return call(function, *variables)


def sample(
    *operands: Any,
    call: Callable[..., Any] | None = None,
    expected: Callable[..., Any] | None = None,
    sequences: Sequences = "any",
    **attributes: Any,
) -> Sample:
    """Describe one way of calling an operator.

    Args:
        operands: :class:`Operand` objects, or plain shapes for batch inputs in [-1, 1].
        call: ``call(function, *variables)`` when the operands do not come first and in order.
        expected: NumPy function of one sample's operand arrays that gives the right result.
        sequences: which of the operands on the batch axis may have a sequence axis as well: ``'any'``, ``'all'`` if they do so together,
            or ``'none'``; calls with others must be refused.
        attributes: keyword arguments of the call.

    >>> from cntk.extend import Operand, sample
    >>> described = sample(Operand((2,), low=0.5, high=2), expected=lambda x: 1 / x)
    >>> described.build(C.reciprocal, [C.input_variable(2)]).eval([[0.5, 2]])
    array([[2. , 0.5]], dtype=float32)
    >>> described.expected(np.array([0.5, 2]))
    array([2. , 0.5])
    """
    made = [operand if isinstance(operand, Operand) else Operand(operand) for operand in operands]
    return Sample(made, attributes, call, expected, sequences)


F = TypeVar("F", bound=Callable[..., Any])


def operator(*samples: Sample) -> Callable[[F], F]:
    """Mark a function as the public face of an operator, with the samples that the generic tests run.

    Its arguments are :func:`~cntk.core.types.arguments.checked`.

    >>> from cntk.extend import operator, sample
    >>> @operator(sample((2, 3), factor=3))
    ... def scaled(x, factor, name=''):
    ...     return C.element_times(x, factor, name=name)
    >>> [described] = scaled.samples
    >>> described.operands[0].shape, described.attributes
    ((2, 3), {'factor': 3})
    """

    def mark(function: F) -> F:
        public = checked(function)
        public.samples = samples  # type: ignore[attr-defined]
        return public

    return mark
