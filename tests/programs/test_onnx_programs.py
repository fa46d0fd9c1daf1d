"""The programs of docs/onnx.md that run models in other languages compute what the models do here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C

LANGUAGES = ("python", "js", "csharp", "java", "cpp")
SAMPLES = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
SEQUENCES = [np.arange(16, dtype=np.float32).reshape(4, 4), np.arange(8, dtype=np.float32).reshape(2, 4)]


def program(root: Path, language: str) -> str:
    """The one program of the page that is in a language."""
    page = (root / "docs" / "onnx.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```{language}\n((?!>>>).*?)^```$", page, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def models(tmp_path: Path) -> tuple[Any, Any]:
    """The models of the page, which are files in the test's folder."""
    model = C.layers.Dense(3, activation=C.softmax, name="z")(C.input_variable(4, name="x"))
    layers = C.layers.Sequential([C.layers.Recurrence(C.layers.LSTM(5)), C.layers.Dense(2, name="tags")])
    tagger = layers(C.sequence.input_variable(4, name="steps"))
    model.save(tmp_path / "model.onnx", format="onnx")
    tagger.save(tmp_path / "tagger.onnx", format="onnx")
    return model, tagger


def check(models: tuple[Any, Any], z: Any, tags: Any) -> None:
    """Compare results of a program with those of the models; what is behind the end of a sequence must be 0."""
    model, tagger = models
    np.testing.assert_allclose(z, model.eval(SAMPLES), rtol=1e-5, atol=1e-6)
    for found, right in zip(tags, tagger.eval(SEQUENCES), strict=True):
        np.testing.assert_allclose(found[: len(right)], right, rtol=1e-5, atol=1e-6)
        assert not np.any(found[len(right) :])


def run(*command: str, folder: Path, **environment: str) -> str:
    """What a program prints that is run in a folder."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python(root: Path, models: tuple[Any, Any], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    shown = "\nnp.savez('results.npz', z=z, tags=tags)\n"
    (tmp_path / "program.py").write_text(program(root, "python") + shown, encoding="utf-8")
    run(sys.executable, "program.py", folder=tmp_path)
    results = np.load(tmp_path / "results.npz")
    check(models, results["z"], results["tags"])


def test_javascript(root: Path, models: tuple[Any, Any], tmp_path: Path) -> None:
    packages = root / "build" / "node" / "node_modules"
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    if not (packages / "onnxruntime-node").is_dir():
        pytest.skip("make build/node.made, which fetches onnxruntime-node, has not been run")
    (tmp_path / "program.js").write_text(program(root, "js"), encoding="utf-8")
    printed = run(node, "program.js", folder=tmp_path, NODE_PATH=str(packages)).splitlines()
    results = [line.split(" : ") for line in printed]
    check(models, *(np.array(values.split(), np.float32).reshape([int(size) for size in sizes.split()]) for sizes, values in results))


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_name_what_the_files_have(root: Path, models: tuple[Any, Any], tmp_path: Path, language: str) -> None:
    from cntk.plugins.formats.onnx.format import signature_of

    text = program(root, language)
    for file in ("model.onnx", "tagger.onnx"):
        assert f'"{file}"' in text
        for name in (one.partition(" ")[0] for ends in signature_of(str(tmp_path / file)) for one in ends):
            assert re.search(rf"\b{name}\b", text), f"{file} has {name}"
