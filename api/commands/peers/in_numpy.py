"""The workloads in NumPy as one would write them by hand: those of the dense network."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from . import Step, Workload
from .data import CLASSES, HIDDEN, ROW, rows


def _evaluating(data: Any) -> Step:
    random = np.random.default_rng(2)
    sizes = itertools.pairwise((ROW, HIDDEN, HIDDEN, CLASSES))
    (U, a), (V, b), (W, c) = [(random.normal(0, 0.1, size).astype(np.float32), np.zeros(size[1], np.float32)) for size in sizes]
    return lambda: np.maximum(np.maximum(data @ U + a, 0) @ V + b, 0) @ W + c


WORKLOADS: dict[str, Workload] = {
    "one row": lambda: _evaluating(rows(1)),
    "256 rows": lambda: _evaluating(rows(256)),
}
