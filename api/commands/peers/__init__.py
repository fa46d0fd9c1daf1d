"""The workloads of ``cntk bench``, in opencntk and in what it is compared with: a file a framework, each with a table of the same names.

A workload is a function that makes a step: a function of nothing that trains a network on a minibatch, or evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Step = Callable[[], object]
Workload = Callable[[], Step]


class Framework(NamedTuple):
    """A framework: its name, its module, and the module here that has its workloads."""

    name: str
    module: str
    workloads: str


FRAMEWORKS = (
    Framework("opencntk", "cntk", "in_cntk"),
    Framework("PyTorch", "torch", "in_torch"),
    Framework("ONNX Runtime", "onnxruntime", "in_onnxruntime"),
    Framework("NumPy", "numpy", "in_numpy"),
)

WORKLOADS = {
    "train rows": "training a dense network, 784-200-200-10, on 64 rows",
    "train images": "training two convolutions and a dense layer on 32 images of 28 x 28",
    "train sentences": "training a tagger with an LSTM of 128 on 16 sentences of 5 to 40 words",
    "one row": "evaluating the dense network for one row",
    "256 rows": "evaluating the dense network for 256 rows",
    "one image": "evaluating the convolutions for one image",
}
"""What is measured, in words."""
