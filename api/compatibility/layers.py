"""Helpers of CNTK's layers that layers of others are made with."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, cast

import numpy as np

from cntk import ops
from cntk.core.graph.function import Function
from cntk.layers.arguments import INFERRED, initializer_for, per_axis
from cntk.layers.basic_blocks import named
from cntk.layers.recurrent_blocks import GRU, LSTM, RNNStep
from cntk.layers.typing import SequenceMeta, TensorMeta
from cntk.ops.functions import BlockFunction
from cntk.variables import Constant

_INFERRED = INFERRED
"""Shape of one axis whose dimension the layer's input tells."""


def _initializer_for(init: Any, rank_params: dict[str, int] | None = None) -> Any:
    """The initialiser that an ``init`` argument means: of a number a constant one, of another one with the given ranks.

    Raises:
        ValueError: *init* is None.

    >>> from cntk.layers.blocks import _initializer_for
    >>> C.parameter(2, init=_initializer_for(3)).value
    array([3., 3.], dtype=float32)
    """
    if init is None or np.isscalar(init):
        return initializer_for(init)
    return initializer_for(init, **rank_params) if rank_params else init


def _get_initial_state_or_default(initial_state: Any) -> Any:
    """An initial state as delays take it: 0 where there is none, a constant where it is a number, a tuple of states one by one."""
    if isinstance(initial_state, tuple):
        return tuple(map(_get_initial_state_or_default, initial_state))
    if initial_state is None:
        return Constant(0)
    return Constant(cast(float, initial_state), shape=1) if np.isscalar(initial_state) else initial_state


def _inject_name(f: Any, name: str) -> Any:
    """The function under a name of its own; without a name as it is.

    >>> from cntk.layers.blocks import _inject_name
    >>> _inject_name(C.relu(C.input_variable(2)), 'rectified').name
    'rectified'
    """
    return named(f, name) if name else f


def _RecurrentBlock(
    type: str,
    shape: Any,
    cell_shape: Any,
    activation: Any,
    use_peepholes: bool,
    init: Any,
    init_bias: Any,
    enable_self_stabilization: bool,
    name: str = "",
) -> Function:
    """The step function that *type* names: ``'LSTM'``, ``'GRU'`` or ``'RNNStep'``.

    Raises:
        ValueError: there is no such step function, or it has no peepholes.
    """
    options = {"init": init, "init_bias": init_bias, "enable_self_stabilization": enable_self_stabilization, "name": name}
    if type == "LSTM":
        return LSTM(shape, cell_shape, activation, use_peepholes, **options)
    if type not in ("GRU", "RNNStep"):
        raise ValueError(f"_RecurrentBlock: expected 'LSTM', 'GRU' or 'RNNStep', got {type!r}")
    if use_peepholes:
        raise ValueError(f"_RecurrentBlock: a {type} has no peepholes; only an LSTM has")
    return (GRU if type == "GRU" else RNNStep)(shape, cell_shape, activation, **options)


def _pad_to_shape(filter_shape: Sequence[int], param: Any, what: str) -> tuple[Any, ...]:
    """An argument for each axis of a filter; a single value is that of all.

    Raises:
        ValueError: there are more or fewer values than axes.
    """
    return per_axis("layer", what, param, len(filter_shape))


def _window(x: Any, axis: Any, begin: int, end: int, step: int, stride: int, initial_state: Any = None) -> Function:
    """The steps from *begin* to before *end* around each step of a sequence, one after another along an axis.

    Raises:
        NotImplementedError: *stride* is not 1.
    """
    if stride != 1:
        raise NotImplementedError(f"_window: the stride must be 1, got {stride}; take every {stride}th step of the result")
    steps = [ops.sequence.delay(x, initial_state, -offset) for offset in range(begin, end, step)]
    return ops.splice(*steps, axis=axis)


def _Pooling(
    op: int, filter_shape: Sequence[int], sequential: bool = False, strides: Any = 1, pad: Any = False, op_name: Any = None, name: str = ""
) -> Function:
    """A layer that pools over windows; *op* is ``PoolingType_Max`` or ``PoolingType_Average``.

    Raises:
        NotImplementedError: it is to pool along a sequence.
    """
    if sequential:
        raise NotImplementedError("_Pooling: along sequences there is none; reduce windows made by PastValueWindow")
    strides, pad = _pad_to_shape(filter_shape, strides, "strides"), _pad_to_shape(filter_shape, pad, "pad")

    @BlockFunction(op_name, name)
    def pool(x: Any) -> Any:
        return ops.pooling(x, op, filter_shape, strides, pad)

    return pool


def _sanitize_function(f: Any) -> Any:
    """A Python function as a Function; anything else as it is."""
    return Function(f) if isinstance(f, FunctionType) else f


_santize_step_function = _sanitize_function


def _make_tensor_meta(cls_name: str, is_sparse: bool = False, dynamic_axes: Any = TensorMeta.dynamic_axes) -> TensorMeta:
    """A class such as ``Tensor``, whose ``[shape]`` denotes a type."""
    return TensorMeta(cls_name, (), {"is_sparse": is_sparse, "dynamic_axes": tuple(dynamic_axes)})


def _make_seq_meta(cls_name: str, axes: Any) -> SequenceMeta:
    """A class such as ``Sequence``, whose ``[item]`` denotes a type."""
    return SequenceMeta(cls_name, (), {"dynamic_axes": tuple(axes)})
