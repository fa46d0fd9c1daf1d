"""Large ONNX files: what memory it takes to read them, and files that change afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from onnx_graphs import file_of, graph, node, normal, value

import cntk as C
from cntk.core.storage import file_bytes
from cntk.plugins.protobuf import DamagedFile

CHILD = """
import resource, sys
import numpy as np
import cntk as C
small, large = sys.argv[1:]
C.load_model(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
f = C.load_model(large)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown * (1 if sys.platform == "darwin" else 1024), f.eval(np.ones((1, 8), np.float32)).sum())
"""


def saved(path: Path, width: int) -> np.ndarray:
    """A model of weights as they are and transposed; what it computes of ones."""
    first, second = normal(8, width) / 8, normal(4, width) / width
    nodes = [node("MatMul", "x first", "h"), node("Gemm", "h second", "y", transB=1)]
    path.write_bytes(file_of(graph(nodes, [value("x", "N", 8)], "y", first=first, second=second)))
    return np.ones((1, 8), np.float32) @ first @ second.T


@pytest.mark.skipif(os.name != "posix", reason="the system does not say how much memory a process has had")
def test_a_model_takes_little_more_memory_than_its_file(tmp_path: Path) -> None:
    small, large = tmp_path / "small.onnx", tmp_path / "large.onnx"
    saved(small, 8)
    expected = saved(large, 1 << 20)
    made = subprocess.run([sys.executable, "-c", CHILD, small, large], capture_output=True, text=True, check=True)
    grown, found = made.stdout.split()
    assert int(grown) < 2 * large.stat().st_size
    assert float(found) == pytest.approx(expected.sum(), rel=1e-3)


@pytest.mark.parametrize("external", [False, True])
def test_a_model_outlives_its_file(external: bool, tmp_path: Path) -> None:
    x = C.input_variable(8, name="x")
    z = C.layers.Dense(70_000, name="z")(x)
    path, data = tmp_path / "model.onnx", normal(2, 8)
    z.save(path, format="onnx", use_external_files_to_store_parameters=external)
    read = C.load_model(path)
    contents = {file: (tmp_path / file).read_bytes() for file in os.listdir(tmp_path)}
    for file in contents:
        os.truncate(tmp_path / file, 10)
    np.testing.assert_allclose(read.eval(data), z.eval(data), rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match=r"model\.onnx"):
        C.load_model(path)
    trainer = C.Trainer(read, C.squared_error(read, C.input_variable(70_000)), [C.sgd(read.parameters, 0.1)])
    trainer.train_minibatch({read.arguments[0]: data, trainer.loss_function.arguments[-1]: np.ones((2, 70_000), np.float32)})
    assert all((tmp_path / file).stat().st_size == 10 for file in contents)


@pytest.mark.skipif(os.name != "posix", reason="the system has no named pipes")
def test_a_model_comes_through_a_pipe(tmp_path: Path) -> None:
    expected = saved(tmp_path / "model.onnx", 1 << 14)
    content = (tmp_path / "model.onnx").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    found = C.load_model(tmp_path / "pipe")
    writer.join()
    np.testing.assert_allclose(found.eval(np.ones((1, 8), np.float32)), expected, rtol=1e-3, atol=1e-4)


def test_a_file_that_becomes_shorter_while_it_is_read_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    saved(path, 1 << 16)
    whole = os.path.getsize(path)
    os.truncate(path, whole // 2)
    status = os.stat_result([*os.stat(path)[:6], whole, *os.stat(path)[7:10]])
    monkeypatch.setattr(file_bytes.os, "fstat", lambda descriptor: status)
    with pytest.raises(DamagedFile, match=r"model\.onnx: expected \d+ bytes from byte \d+ on, found \d+; the file became shorter"):
        C.load_model(path)
