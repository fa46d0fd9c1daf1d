"""The formats of model files that CNTK knows by name."""

from __future__ import annotations

from enum import Enum


class ModelFormat(Enum):
    """Formats of model files.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, 'model.onnx')
    ...     C.relu(C.input_variable(2)).save(path, format=C.ModelFormat.ONNX)
    ...     model = C.load_model(path)
    >>> model.eval([[-1, 1]])
    array([[0., 1.]], dtype=float32)
    """

    CNTKv2 = 0
    """CNTK's own."""
    ONNX = 1
    """Open Neural Network Exchange."""
