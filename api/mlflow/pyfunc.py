"""Models as MLflow's own programs see them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from cntk.core.graph.function import Function
from cntk.eval.predictor import Predictor
from cntk.eval.signature import TensorInfo
from cntk.mlflow.schemas import element_type


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> PythonFunction:
    """The model whose file is *path*; MLflow calls this."""
    for module in (model_config or {}).get("imports", ()):
        import_module(module)
    return PythonFunction(Function.load(path))


class PythonFunction:
    """A function as a ``python_function`` of MLflow.

    Args:
        function: the function; of several results, losses and metrics are left out.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._predictor = Predictor(function)

    def get_raw_model(self) -> Function:
        """The function."""
        return self._function

    def predict(self, data: Any) -> Any:
        """Compute the results.

        Args:
            data: whatever :class:`~cntk.eval.Predictor` takes: a dictionary of arrays by input, a frame, a list of dictionaries; for
                the only input also an array or list.  Sequences may be padded arrays, with their lengths in ``sequence_lengths``.

        Returns:
            For a dictionary or an array: an array, or a dictionary of arrays where there are several, by result; sequences are padded by
            zeros, with their lengths in ``sequence_lengths``.  For anything else what a predictor gives, such as a frame for a frame.

        Raises:
            ValueError: the data does not fit.
        """
        found = self._predictor(data)
        if isinstance(found, np.ndarray):
            return _plain(self._predictor.signature.outputs[0], found)
        return self._of_dictionary(found) if isinstance(found, Mapping) else found

    def _of_dictionary(self, found: Mapping[str, Any]) -> Any:
        signature = self._predictor.signature
        results = signature.padded(found)
        results |= {info.name: _plain(info, results[info.name]) for info in signature.outputs}
        return next(iter(results.values())) if len(results) == 1 else results


def _plain(info: TensorInfo, array: Any) -> Any:
    """A result with elements of a type that NumPy itself has."""
    return array.astype(element_type(info), copy=False)
