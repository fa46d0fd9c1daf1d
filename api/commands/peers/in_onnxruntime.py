"""The workloads in ONNX Runtime, which evaluates: opencntk's networks, written as ONNX files."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import onnxruntime

import cntk as C

from . import Step, Workload
from .data import images, rows
from .in_cntk import convolutional, dense


def _evaluating(model: C.Function, data: Any) -> Step:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        model.save(path, format="onnx")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": data})


WORKLOADS: dict[str, Workload] = {
    "one row": lambda: _evaluating(dense(), rows(1)),
    "256 rows": lambda: _evaluating(dense(), rows(256)),
    "one image": lambda: _evaluating(convolutional(), images(1)),
}
