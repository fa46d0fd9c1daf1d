"""``cntk show``: files of all formats, sound and damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cntk as C
from cntk.cli import main
from cntk.plugins.formats.onnx.messages import Graph, Model, Node, OperatorSet, TensorType, Type, ValueInfo, write_message

LAYERS = "inputs: x [batch, 4]\noutputs: z [batch, 3]\n15 parameters (60 bytes), 0 constants\n"


@pytest.fixture
def network() -> Any:
    return C.layers.Dense(3, name="z")(C.input_variable(4, name="x"))


def shown(capsys: pytest.CaptureFixture[str], path: Path, status: int = 0) -> tuple[str, str]:
    """What is printed about a file, and the error, which is one line."""
    assert main(["show", str(path)]) == status
    out, error = capsys.readouterr()
    assert error.count("\n") == status
    return out, error


@pytest.mark.parametrize("kind", ["CNTKv2", "CNTKv1", "onnx"])
def test_formats_are_told_by_their_content(network: Any, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    network.save(path := tmp_path / "file.bin", format=kind)
    out, _ = shown(capsys, path)
    assert out.startswith(f"file.bin: {kind}, {path.stat().st_size:,} bytes\n")
    assert out.endswith(LAYERS)


@pytest.mark.parametrize("kind", ["CNTKv2", "CNTKv1", "onnx", "safetensors"])
def test_damage_is_one_line(network: Any, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    network.save(path := tmp_path / "file.bin", format=kind)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    out, error = shown(capsys, path, 1)
    assert out.startswith(f"file.bin: {kind}, {len(whole) // 2:,} bytes\n")
    assert error.startswith(f"cntk show: {path}")
    assert "byte " in error


@pytest.mark.parametrize(
    ("content", "text"), [(b"", "an empty file"), (b"Once upon a time", "it seems to be text"), (b"PK\x03\x04junk", "a zip archive")]
)
def test_other_files_are_called_what_they_are(tmp_path: Path, content: bytes, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (path := tmp_path / "file").write_bytes(content)
    out, error = shown(capsys, path, 1)
    assert out == ""
    assert text in error


def test_missing_files_and_directories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such file" in shown(capsys, tmp_path / "nothing", 1)[1]
    assert "is a directory" in shown(capsys, tmp_path, 1)[1]


def test_files_of_values_alone_list_them(network: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network.save(path := tmp_path / "values", format="safetensors")
    out, error = shown(capsys, path, 1)
    assert "W: float32 [4 x 3]\n" in out
    assert "holds values and no graph" in error


def test_onnx_files_with_other_operators_tell_their_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [ValueInfo("x", Type(TensorType(7))), ValueInfo("list")]
    graph = Graph([Node(["x"], ["y"], op_type="Own", domain="com.example")], input=inputs, output=[ValueInfo("y")])
    model = Model(8, graph=graph, opset_import=[OperatorSet("", 18), OperatorSet("com.example", 2)], producer_name="other")
    (path := tmp_path / "own.onnx").write_bytes(b"".join(map(bytes, write_message(model))))
    out, error = shown(capsys, path, 1)
    assert "version 18 of ONNX's operators, version 2 of com.example's operators, written by other\n" in out
    assert "inputs: x int64, list\noutputs: y\n" in out
    assert "Own of the domain com.example, version 2" in error
