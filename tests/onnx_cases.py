"""The cases that ONNX's own package judges programs by: models with inputs and the right results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cntk as C
from cntk.core.common.dtypes import is_float, is_real

KINDS = ("node", "pytorch-converted", "pytorch-operator", "simple")
EXCLUDED = Path(__file__).parent / "data" / "onnx_excluded.txt"
OF_1_4 = Path(__file__).resolve().parents[1] / "build" / "onnx-1.4.1" / "onnx" / "backend" / "test" / "data"
"""Those of ONNX 1.4, whose operators have the version 9, CNTK 2.7's; ``make build/onnx-1.4.1.made`` fetches them."""


class Case(NamedTuple):
    """A model, and pairs of inputs and right results."""

    name: str
    model: Any
    data: list[tuple[list[Any], list[Any]]]
    tolerance: float


def cases(kind: str) -> Iterator[Case]:
    """The cases of a kind: of single operators, or of small models that PyTorch or others have written; with 1.4/ in front, ONNX 1.4's."""
    if kind.startswith("1.4/"):
        for folder in sorted((OF_1_4 / kind.removeprefix("1.4/")).glob("test_*")):
            yield _stored(folder.name, folder, 1e-3)
        return
    if kind == "node":
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            pairs = [([*inputs], [*outputs]) for inputs, outputs in case.data_sets]
            yield Case(case.name, case.model, pairs, case.rtol)
        return
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind=kind):
        yield _stored(case.name, Path(case.model_dir), case.rtol)


def _stored(name: str, folder: Path, tolerance: float) -> Case:
    """The case that a folder holds."""
    import onnx

    sets = sorted(folder.glob("test_data_set_*"))
    return Case(name, onnx.load(folder / "model.onnx"), [(_read(one, "input"), _read(one, "output")) for one in sets], tolerance)


def _read(folder: Path, what: str) -> list[Any]:
    import onnx

    found = []
    for path in sorted(folder.glob(f"{what}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2])):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        found.append(tensor)
    return found


def failure(case: Case) -> str:
    """What is wrong with the results of a case; empty if nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for inputs, outputs in case.data:
                for found, right in zip(_results(case.model, inputs), outputs, strict=False):
                    _compare(found, _array(right), case.tolerance)
        except Exception as error:  # of whatever kind: the case has failed
            return f"{type(error).__name__}: {error}"
    return ""


def _array(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else value
    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError("lists of arrays, and what is optional, are not fed")
    return np.asarray(array)


def _compare(found: Any, right: Any, tolerance: float) -> None:
    if not is_real(right.dtype):
        raise TypeError(f"results of type {right.dtype}")
    found = np.stack(found) if isinstance(found, list) else np.asarray(found)
    if found.shape != right.shape:
        raise ValueError(f"the shape is {found.shape}, expected {right.shape}")
    half = right.dtype.kind not in "iub" and right.dtype.itemsize == 2
    np.testing.assert_allclose(
        found.astype(np.float64), right.astype(np.float64), rtol=max(tolerance, 1e-2 if half else 1e-3), atol=1e-2 if half else 1e-5
    )


def _results(model: Any, inputs: list[Any]) -> list[Any]:
    """What a model gives."""
    function, fed = loaded(model, inputs)
    values = function.eval(fed)
    if len(function.outputs) == 1:
        return [values]
    by_name = {output.name: value for output, value in values.items()}
    return [by_name[one.name] for one in model.graph.output]


def loaded(model: Any, inputs: list[Any]) -> tuple[Any, dict[Any, Any]]:
    """The function of a model, and its data by argument.

    Inputs of whole numbers are constants of it; so are lists of floats where their values decide shapes.
    """
    try:
        return _loaded(model, inputs, lists_too=False)
    except RuntimeError as error:
        if "must be known" not in str(error):
            raise
        return _loaded(model, inputs, lists_too=True)


def _loaded(model: Any, inputs: list[Any], *, lists_too: bool) -> tuple[Any, dict[Any, Any]]:
    from onnx import ModelProto, numpy_helper

    own = ModelProto()
    own.CopyFrom(model)
    begun = {tensor.name for tensor in own.graph.initializer}
    names = [one.name for one in own.graph.input if one.name not in begun or len(inputs) == len(own.graph.input)]
    fed = {}
    for place, (name, value) in enumerate(zip(names, inputs, strict=False)):
        array = _array(value)
        known = lists_too and array.ndim < 2 and (place > 0 or array.ndim == 0)
        if is_float(array.dtype) and array.size and not known:
            fed[name] = array
        else:
            own.graph.initializer.append(numpy_helper.from_array(array, name))
    function = C.load_model(own.SerializeToString())
    arguments = {one.name: one for one in function.arguments}
    return function, {arguments[name]: array.astype(arguments[name].dtype) for name, array in fed.items() if name in arguments}


def excluded() -> set[str]:
    """The cases, as kind/name, that are known to fail."""
    lines = EXCLUDED.read_text("utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}
