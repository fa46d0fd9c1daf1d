"""Functions that ONNX files give back, compared with those that were written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import cntk as C
from cntk.plugins.formats.cntk_v2 import CNTKv2


def check_same(function: Any, found: Any, data: Mapping[Any, Any], tolerance: float = 1e-4) -> None:
    """Require that a function is the same graph as another, takes the same data, and gives the same.

    Args:
        function: the function that was written.
        found: the function that was read.
        data: the data of the first one, by variable or name.
        tolerance: how large errors may be.
    """
    assert [_signature(one) for one in found.arguments] == [_signature(one) for one in function.arguments]
    assert [_signature(one) for one in found.outputs] == [_signature(one) for one in function.outputs]
    assert CNTKv2.pairs(function, found) is not None
    own = {one.name or one.uid: one for one in found.arguments}
    given = {key if isinstance(key, str) else key.name or key.uid: value for key, value in data.items()}
    expected, results = _values(function, data), _values(found, {own[name]: value for name, value in given.items() if name in own})
    for output, one, other in zip(function.outputs, results, expected, strict=True):
        assert isinstance(one, list) == isinstance(other, list)
        for a, b in zip(_rows(one), _rows(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance, err_msg=str(output))


def _signature(variable: Any) -> tuple[Any, ...]:
    axes = [(axis.name, axis.is_sequence_axis) for axis in variable.dynamic_axes]
    return variable.name, variable.shape, np.dtype(variable.dtype).name, variable.is_sparse, axes


def _values(function: Any, data: Mapping[Any, Any]) -> list[Any]:
    parts = (C.combine([output]) for output in function.outputs)
    return [part.eval({key: value for key, value in data.items() if _is_argument(key, part)}) for part in parts]


def _is_argument(key: Any, function: Any) -> bool:
    return any(key is one or key == (one.name or one.uid) for one in function.arguments)


def _rows(value: Any) -> list[Any]:
    return [np.asarray(one.toarray() if hasattr(one, "toarray") else one) for one in (value if isinstance(value, list) else [value])]
