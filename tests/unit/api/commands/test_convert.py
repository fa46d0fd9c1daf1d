"""``cntk convert``: models become ONNX files, which are compared with them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import cntk as C
from cntk.cli import main

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


@pytest.fixture
def tagger(tmp_path: Path) -> str:
    """The file of a network with a recurrence, two results and a loss."""
    x, y = C.sequence.input_variable(5, name="x"), C.sequence.input_variable(3, name="y")
    hidden = C.layers.Recurrence(C.layers.LSTM(20), name="hidden")(x)
    z = C.layers.Dense(3, name="z")(hidden)
    path = str(tmp_path / "tagger.dnn")
    C.combine([z, C.cross_entropy_with_softmax(z, y)]).save(path)
    return path


def test_a_model_is_converted_and_compared(tagger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = str(tmp_path / "tagger.onnx")
    with pytest.warns(UserWarning, match="losses and metrics are left out"):
        assert main(["convert", tagger, new, "--check"]) == 0
    described, compared = capsys.readouterr().out.splitlines()
    assert described == "tagger.onnx: x [batch, sequence, 5], sequence_lengths [batch] -> z [batch, sequence, 3]"
    assert compared.startswith("z: largest difference")
    assert compared.endswith("equal up to rounding")
    onnx.checker.check_model(new, full_check=True)


def test_options_of_onnx(tagger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = str(tmp_path / "part.onnx")
    assert main(["convert", tagger, new, "--outputs", "hidden", "--opset", "20", "--no-lengths", "--external", "--check"]) == 0
    assert "x [batch, sequence, 5] -> hidden [batch, sequence, 20]" in capsys.readouterr().out
    assert onnx.load(new).opset_import[0].version == 20
    assert os.path.getsize(f"{new}.data") > 0


def test_a_difference_is_found(tagger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One weight is changed behind the exporter's back."""
    from cntk.plugins.formats.onnx.writing import model as writing

    def spoilt(function: C.Function, **options: object) -> object:
        model = whole(function, **options)
        weights = max(model.graph.initializer, key=lambda one: len(one.raw_data))
        weights.raw_data = memoryview((np.frombuffer(weights.raw_data, np.float32) * 1.1).tobytes())
        return model

    whole = writing.write_model
    monkeypatch.setattr(writing, "write_model", spoilt)
    assert main(["convert", tagger, str(tmp_path / "new.onnx"), "--outputs", "z", "--check"]) == 1
    assert "more than rounding explains" in capsys.readouterr().out


def test_other_formats(tagger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", tagger, str(tmp_path / "again.model")]) == 0
    assert [v.name for v in C.load_model(tmp_path / "again.model").arguments] == ["x", "y"]
    assert main(["convert", tagger, str(tmp_path / "values.safetensors")]) == 0


def test_a_comparison_needs_onnx_runtime_before_a_file_is_written(
    tagger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["convert", tagger, str(tmp_path / "new.onnx"), "--check"]) == 1
    assert "pip install 'opencntk[onnx]'" in capsys.readouterr().err
    assert not (tmp_path / "new.onnx").exists()
