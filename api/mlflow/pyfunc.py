"""Models as MLflow's own programs see them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from cntk.core.graph.function import Function
from cntk.eval.signature import Signature
from cntk.mlflow.package import mlflow_module
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
        self._signature = Signature(function)

    def get_raw_model(self) -> Function:
        """The function."""
        return self._function

    def predict(self, data: Any) -> Any:
        """Compute the results.

        Args:
            data: a dictionary of arrays by input; a frame, with a column for each input, or for each element of the only one; or an array
                or list, the data of the only input.  Sequences are arrays or lists in a list or column; or padded arrays, with
                their lengths in ``sequence_lengths``.

        Returns:
            An array where the only result is one, else a dictionary of arrays by result, in which sequences are padded by zeros and
            ``sequence_lengths`` has their lengths.  For a frame a frame with the same index.

        Raises:
            TypeError: the function has several inputs, and *data* is an array or a list.
            ValueError: the data does not fit.
        """
        if isinstance(data, mlflow_module("pandas").DataFrame):
            return self._of_frame(data)
        if not isinstance(data, Mapping):
            data = {self._only_input(data): data}
        results = self._element_types(self._signature.padded(self._signature.eval(data)))
        return next(iter(results.values())) if len(results) == 1 else results

    def _of_frame(self, frame: Any) -> Any:
        names = [info.name for info in self._signature.inputs]
        if set(names) <= set(frame.columns):
            data = {name: frame[name].tolist() for name in names}
        else:
            data = {self._only_input(frame): frame.to_numpy()}
        columns = {name: _column(value) for name, value in self._signature.eval(data).items()}
        return type(frame)(columns, index=frame.index)

    def _only_input(self, data: Any) -> str:
        inputs = self._signature.inputs
        if len(inputs) != 1:
            raise TypeError(f"expected data by name, for the inputs {', '.join(map(str, inputs))}; got {type(data).__name__}")
        return inputs[0].name

    def _element_types(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Results in types that MLflow knows."""
        types = {info.name: element_type(info) for info in self._signature.outputs}
        return {name: value.astype(types[name], copy=False) if name in types else value for name, value in results.items()}


def _column(value: Any) -> Any:
    """A result as a column: numbers, or an array for each row."""
    return value.reshape(-1) if isinstance(value, np.ndarray) and value.size == len(value) else list(value)
