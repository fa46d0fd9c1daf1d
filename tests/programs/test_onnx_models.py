"""Model files that CNTK 1 and 2 wrote become ONNX models that compute the same, or are refused for a known reason."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import cntk as C

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

DATA = Path(__file__).parents[1] / "data"
FILES = sorted([*(DATA / "models").glob("*.model"), *(DATA / "legacy_models").glob("*.model")])

FOR_TRAINING = {
    "assigned": "Assign",
    "connectionist": "ForwardBackward",
    "edit_distance": "EditDistanceError",
    "frequencies": "RandomSampleInclusionFrequency",
    "gain": "NDCG",
    "labels_of_graph": "LabelsToGraph",
    "noise_contrastive": "RandomSample",
    "ranking": "LambdaRank",
    "ranks": "LambdaRank",
    "sampled_softmax": "RandomSample",
}
"""Models with operators that serve training alone, with one of these."""
OPEN = ("with_a_placeholder", "without_shapes")
"""Models with placeholders."""
NOT_COMPARED = {
    "made_sequences": "one of its inputs is lengths, which random numbers are not",
    "random_numbers": "each program draws its own",
    "user_function": "the class is not there",
    "user_function_on_sequences": "the class is not there",
}


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.stem not in NOT_COMPARED], ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_a_model_of_cntk_as_onnx(file: Path, tmp_path: Path) -> None:
    from cntk.plugins.formats.onnx.check import differences

    model, path = C.load_model(file), tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "save: losses and metrics are left out", UserWarning)
        if file.stem in FOR_TRAINING:
            with pytest.raises(ValueError, match=rf"(?s)ONNX has no counterpart .* outputs= .*{FOR_TRAINING[file.stem]}.*\[built at "):
                model.save(path, format="onnx")
            return
        if file.stem in OPEN:
            with pytest.raises(ValueError, match="is an unbound placeholder"):
                model.save(path, format="onnx")
            return
        model.save(path, format="onnx")
        found = differences(model, str(path))
    assert found
    assert [one for one in found if not one.largest <= 1e-4 * max(1, one.scale)] == []
