"""The microkernel: variables, functions, values, programs, and the protocols that plugins implement.

It imports nothing else of the project.  Its packages, each below the next, are ``storage`` and ``common``, ``extension``, ``machine``,
``types``, ``formulas``, ``operators``, ``graph``, ``values``, ``program`` and ``run``: what a package needs of a higher one it asks of
:mod:`~cntk.core.common.services`.
"""

from typing import Any

import numpy as np

from .graph.foreign import as_data
from .graph.variable import Variable
from .values.value import NDArrayView, Value


def asarray(value: Any, dtype: Any = None) -> Any:
    """The data of a Value, NDArrayView, parameter or array-like as a NumPy array.

    >>> C.asarray(C.constant([1, 2]))
    array([1., 2.], dtype=float32)
    """
    data = value.asarray() if hasattr(value, "asarray") else np.asarray(as_data("asarray", value))
    return data if dtype is None else data.astype(dtype)


def asvalue(variable: Variable, data_array: object) -> Value:
    """Convert data for an input to a Value.

    >>> C.asvalue(C.input_variable(2), np.ones((3, 2), dtype=np.float32))
    Value([3 x 2], CPU)
    """
    return Value.create(variable, data_array)


__all__ = ["NDArrayView", "Value", "asarray", "asvalue"]
