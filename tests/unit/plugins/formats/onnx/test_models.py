"""The models that are saved for CNTK 2.7, as ONNX."""

from __future__ import annotations

from typing import Any

import exported
import numpy as np
import pytest
from crossing.zoo import MODELS

from cntk.plugins.formats.onnx.writing.model import UnsupportedOperators

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models(name: str) -> None:
    function, data = MODELS[name]()
    outputs = list(function.outputs)
    if name in exported.OPEN:
        with pytest.raises(ValueError, match=r"(?i)placeholder"):
            exported.Exported(function, outputs=outputs)
    elif name in exported.REFUSED:
        with pytest.raises(UnsupportedOperators):
            exported.Exported(function, outputs=outputs)
    else:
        found = function.eval(data)
        expected = [found[output] for output in outputs] if isinstance(found, dict) else [found]
        check(exported.Exported(function, outputs=outputs), data, expected, name == "random_numbers")


def check(model: exported.Exported, data: dict[str, Any], expected: list[Any], drawn: bool) -> None:
    """Require that a model computes what is expected, or something of that shape where it draws numbers."""
    feed: dict[str, Any] = {}
    types = {one.name: TYPES[one.type] for one in model.session.get_inputs()}
    for name, values in data.items():
        if isinstance(values, list):
            sequences = [dense(one).astype(types.get(name, np.float32)) for one in values]
            feed[name] = model.in_rows(name, sequences)
            sizes = model.inputs.get(name, [])
            if len(sizes) == 1 + sequences[0].ndim:
                feed[f"{sizes[1]}_lengths"] = np.array(list(map(len, sequences)), np.int64)
        else:
            feed[name] = dense(values).astype(types.get(name, np.float32))
    for found, wanted in zip(model.run(feed), expected, strict=False):  # lengths of sequences that the model makes come last
        if drawn:
            assert found.shape == wanted.shape
        else:
            exported.check_close(
                found, [dense(one) for one in wanted] if isinstance(wanted, list) else dense(wanted), model.model.graph.name
            )


def dense(values: Any) -> Any:
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)
