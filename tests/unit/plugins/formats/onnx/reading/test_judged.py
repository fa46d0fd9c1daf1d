"""Files are read as ONNX's own package says: its cases for programs that run models."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import KINDS, OF_1_4, cases, excluded, failure

import cntk as C
from cntk.logging.graph import depth_first_search

pytest.importorskip("onnx", reason="onnx is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *(f"1.4/{kind}" for kind in KINDS)])
def test_cases_pass_but_for_those_that_are_listed(kind: str) -> None:
    if kind.startswith("1.4/") and not OF_1_4.is_dir():
        pytest.skip("make build/onnx-1.4.1.made, which fetches the cases of ONNX 1.4, has not been run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(cases(kind))
    failed = {f"{kind}/{case.name}": text for case in found if (text := failure(case))}
    assert found
    known = {name for name in excluded() if name.startswith(f"{kind}/")}
    assert {name: text for name, text in failed.items() if name not in known} == {}
    assert sorted(known - set(failed)) == [], "these pass: take them off the list"


IMAGES = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "squeezenet" else pytest.mark.slow) for name in IMAGES])
def test_networks_for_images_agree(name: str) -> None:
    import onnx
    from onnx import numpy_helper

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    function = C.load_model(str(folder / f"light_{name}.onnx"))
    (image,) = function.arguments
    assert image.shape == (1, 3, 224, 224)
    size = 3 * 224 * 224
    data = (np.arange(size) / size).astype(np.float32).reshape(image.shape)  # the input that the results of the package belong to
    right = numpy_helper.to_array(onnx.load_tensor(str(folder / f"light_{name}_output_0.pb")))
    softmax = next(iter(depth_first_search(function.root_function, _is_softmax)), None)
    if softmax is None:
        np.testing.assert_allclose(function.eval(data), right, rtol=1e-3, atol=1e-5)
        return
    scores = softmax.inputs[0]
    results = C.combine([function, scores]).eval(data)
    # Scores of alexnet are 4e12: their last bits, which differ with the BLAS, decide what a softmax makes of them.
    rounding = 4 * np.finfo(np.float32).eps * np.abs(results[scores]).max()
    np.testing.assert_allclose(_behind_largest(results[scores]), _behind_largest(np.log(right)), atol=rounding + 1e-3)
    if rounding < 1e-3:
        np.testing.assert_allclose(results[function.output], right, rtol=1e-3, atol=1e-5)


def _is_softmax(node: Any) -> bool:
    return getattr(node, "op_name", "") == "Softmax"


def _behind_largest(scores: Any) -> Any:
    """By how much scores are less than the largest, in one row."""
    return scores.reshape(-1) - scores.max()
