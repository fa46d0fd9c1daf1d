"""Types in Python's notation: ``Tensor[2,3]``, ``Sequence[SparseTensor[9]]``.

They annotate the arguments of a ``@Function``, go to ``update_signature``, and ``input_variable(**type)`` makes an input of one.
"""

from __future__ import annotations

from typing import Any

from cntk.axis import Axis
from cntk.core.common.dtypes import is_float_type
from cntk.core.common.shape import as_shape
from cntk.core.graph.python_function import Signature
from cntk.core.types.axis import Axes
from cntk.core.types.types import UNKNOWN_SHAPE, VariableType, as_type

_BATCH: Axes = (Axis.default_batch_axis(),)


class TensorMeta(type):
    """Makes ``Tensor[shape]`` and its kin denote a type."""

    is_sparse: bool = False
    dynamic_axes: Axes = _BATCH

    __iter__ = None  # each number gives another type, without end

    def __getitem__(cls, shape: Any) -> VariableType:
        dims = shape if isinstance(shape, tuple) else (shape,)
        dtype = dims[0] if dims and is_float_type(dims[0]) else None
        if dtype is not None:
            dims = dims[1:]
        return VariableType(as_shape(dims), dtype, is_sparse=cls.is_sparse, dynamic_axes=cls.dynamic_axes)


class Tensor(metaclass=TensorMeta):
    """Type of dense data with a batch axis; the first index may be an element type.

    >>> from cntk.layers.typing import Tensor
    >>> print(Tensor[2,3], Tensor[np.float64,2])
    Tensor[2,3] Tensor[np.float64,2]
    >>> C.input_variable(**Tensor[2,3], name='x')
    Input('x', [#], [2 x 3])
    """


class SparseTensor(metaclass=TensorMeta):
    """Type of sparse data with a batch axis.

    >>> from cntk.layers.typing import SparseTensor
    >>> print(SparseTensor[9000])
    SparseTensor[9000]
    """

    is_sparse = True


class ParameterTensor(metaclass=TensorMeta):
    """Type of a value without dynamic axes, such as a parameter.

    >>> from cntk.layers.typing import ParameterTensor
    >>> print(ParameterTensor[512,256])
    ParameterTensor[512,256]
    """

    dynamic_axes = ()


tensor = VariableType(UNKNOWN_SHAPE, is_sparse=False, dynamic_axes=_BATCH)
"""Type of dense data with a batch axis, of which no dimension is known."""


class SequenceMeta(type):
    """Makes ``Sequence[item]`` denote a type."""

    dynamic_axes: Axes = Axis.default_input_variable_dynamic_axes()

    __iter__ = None

    def __getitem__(cls, item: Any) -> VariableType:
        item_type = as_type(item)
        if item_type is None:
            raise TypeError(f"Sequence: expected the type of an item, such as Sequence[Tensor[3]] with a Tensor of cntk, got {item!r}")
        if item_type.dynamic_axes and item_type.dynamic_axes != _BATCH:
            raise TypeError(f"sequences over sequences are currently not supported; the item is a {item_type}")
        return item_type.updated_with(dynamic_axes=cls.dynamic_axes)


class Sequence(metaclass=SequenceMeta):
    """Type of sequences of items, on the default sequence axis.

    >>> from cntk.layers.typing import Sequence, Tensor
    >>> print(Sequence[Tensor[2]])
    Sequence[Tensor[2]]
    """


class SequenceOverMeta(type):
    """Makes ``SequenceOver[axis]`` denote a kind of sequences.

    >>> from cntk.layers.typing import SequenceOver, SequenceOverMeta, Tensor
    >>> isinstance(SequenceOver, SequenceOverMeta)
    True
    >>> print(SequenceOver[C.Axis('source')][Tensor[2]])
    SequenceOver[source][Tensor[2]]
    """

    __iter__ = None

    def __getitem__(cls, axis: Axis) -> SequenceMeta:
        if not isinstance(axis, Axis):
            raise TypeError(f"SequenceOver: expected a sequence axis such as Axis('source'), got {axis!r}")
        return SequenceMeta("Sequence", (), {"dynamic_axes": (*_BATCH, axis)})


class SequenceOver(metaclass=SequenceOverMeta):
    """Types of sequences on an axis of their own.

    >>> from cntk.layers.typing import SequenceOver, Tensor
    >>> SourceSequence = SequenceOver[C.Axis('source')]
    >>> print(SourceSequence[Tensor[2]])
    SequenceOver[source][Tensor[2]]
    """


__all__ = ["ParameterTensor", "Sequence", "SequenceOver", "SequenceOverMeta", "Signature", "SparseTensor", "Tensor", "tensor"]
