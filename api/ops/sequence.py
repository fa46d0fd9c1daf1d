"""Operators on sequences: those that plugins register as ``sequence.<name>``, and the inputs that take sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.common.user_frame import warn_user
from cntk.core.extension import plugins
from cntk.core.graph.arguments import DTypeLike, ShapeLike
from cntk.core.graph.variable import Input
from cntk.core.graph.variable import input_variable as _input_variable
from cntk.core.types.arguments import checked
from cntk.core.types.axis import Axis


@checked
def input_variable(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    sequence_axis: Axis | None = None,
    name: str = "",
) -> Input:
    """Declare an input that takes sequences.

    Args:
        shape: static shape of one step.
        dtype: float32 (the default), float64, float16 or bfloat16.
        needs_gradient: whether gradients with respect to it may be asked for.
        is_sparse: whether steps are rows of CSR matrices.
        sequence_axis: the sequence axis, the default one where None; inputs on different axes have lengths of their own.
        name: a name to feed and find it by.

    >>> x = C.sequence.input_variable(2)
    >>> x
    Input('Input...', [#, *], [2])
    >>> (x * 2).eval([np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6]], np.float32)])
    [array([[2., 4.],
           [6., 8.]], dtype=float32), array([[10., 12.]], dtype=float32)]
    """
    axes = (Axis.default_batch_axis(), sequence_axis or Axis.default_dynamic_axis())
    return _input_variable(shape, dtype, needs_gradient, is_sparse, axes, name)


@checked
def input(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    sequence_axis: Axis | None = None,
    name: str = "",
) -> Input:
    """The old name of :func:`input_variable`.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter('always')
    ...     x = C.sequence.input(3, name='x')
    >>> x, str(said[0].message)
    (Input('x', [#, *], [3]), 'sequence.input is the old name of sequence.input_variable')
    """
    warn_user("sequence.input is the old name of sequence.input_variable", DeprecationWarning)
    return input_variable(shape, dtype, needs_gradient, is_sparse, sequence_axis, name)


_PREFIX = "sequence."
_RECIPES = {
    "reduce_mean": "C.sequence.reduce_sum(x) / C.sequence.reduce_sum(C.sequence.broadcast_as(1, x)) for the mean over the steps",
    "reduce_min": "-C.sequence.reduce_max(-x) for the least value of the steps",
    "length": "C.sequence.reduce_sum(C.sequence.broadcast_as(1, x)) for the number of steps",
}


if TYPE_CHECKING:
    from cntk.ops._sequence_names import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return ["input", "input_variable", *plugins.names_to_import(plugins.ops, __name__, _PREFIX)]
        if _PREFIX + name in plugins.ops:
            return plugins.shown(plugins.ops, _PREFIX + name, __name__)
        recipe = f"; write {_RECIPES[name]}" if name in _RECIPES else ""
        raise AttributeError(f"module 'cntk.ops.sequence' has no operator '{name}'{recipe}")


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names_shown(plugins.ops, _PREFIX)})
