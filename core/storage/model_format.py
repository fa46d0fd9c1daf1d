"""The formats of model files that CNTK knows by name."""

from __future__ import annotations

from enum import Enum


class ModelFormat(Enum):
    """Formats of model files."""

    CNTKv2 = 0
    """CNTK's own."""
    ONNX = 1
    """Open Neural Network Exchange."""
