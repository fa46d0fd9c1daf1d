"""What is measured, a line each."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import atis
import atis_file
import bag_of_words
import bidirectional
import convolution
import embedding
import gru
import inference
import logistic_regression
import mlp
import ragged_transformer
import resnet
import resnet50
import resnet50_inference
import sequence_to_sequence
import tagger
import transformer
import wide_transformer
from torch_mode import DENSE_MODES, EAGER, IMAGE_MODES

import learners

TRAINED = ("cntk", "torch")
WITH_JAX = (*TRAINED, "jax")


class Figure(NamedTuple):
    """A line of the table.

    Attributes:
        title: what it tells.
        measure: function of worker.py that takes it.
        workload: module that is run.
        modules: frameworks it is taken of.
        unit: unit that numbers are shown in.
        flop, nbytes: arithmetic and memory traffic that no program does without; 0 where that says nothing.
        torch_modes: in which PyTorch is tried.
        items: what goes through a step, where it is told how many of them a second.
        file: file of real data that it wants.
    """

    title: str
    measure: str
    workload: str
    modules: tuple[str, ...] = TRAINED
    unit: str = "ms"
    flop: int = 0
    nbytes: int = 0
    torch_modes: tuple[str, ...] = (EAGER,)
    items: float = 0
    file: str = ""


def trained(module: ModuleType, modules: tuple[str, ...] = TRAINED, **options: Any) -> Figure:
    """What a step of a workload takes."""
    floor = {"flop": module.FLOP, "nbytes": module.BYTES, "file": getattr(module, "FILE", "")}
    return Figure(module.TITLE, "step_time", module.__name__, modules, **(floor | options))


def peak(name: str, module: ModuleType, modules: tuple[str, ...] = TRAINED) -> Figure:
    """The most memory that a workload holds."""
    title = f"{name}: memory at the start, and at most"
    return Figure(title, "peak_memory", module.__name__, modules, unit="MB", file=getattr(module, "FILE", ""))


FIGURES = [
    trained(logistic_regression, (*TRAINED, "numpy"), unit="µs", torch_modes=DENSE_MODES),
    trained(mlp, WITH_JAX, torch_modes=DENSE_MODES),
    trained(convolution, WITH_JAX, torch_modes=IMAGE_MODES),
    trained(inference, torch_modes=IMAGE_MODES),
    trained(tagger),
    trained(bidirectional),
    trained(bag_of_words),
    trained(resnet, torch_modes=IMAGE_MODES),
    trained(sequence_to_sequence),
    trained(transformer, WITH_JAX, torch_modes=DENSE_MODES),
    trained(atis, unit="words/s", items=atis.WORDS),
    trained(atis_file, ("cntk",), unit="words/s", items=atis.WORDS),
    *(
        Figure(
            learners.TITLES[name], "step_time", f"learners:{name}", TRAINED if name in learners.IN_TORCH else ("cntk",),
            flop=learners.SIZE * learners.OPERATIONS, nbytes=learners.nbytes(name),
        )
        for name in learners.KEPT
    ),
    Figure("dense network: building it and the first training step", "first_call", "mlp"),
    Figure("convolutional network: building it and the first training step", "first_call", "convolution"),
    Figure("LSTM tagger: building it and the first training step", "first_call", "tagger"),
    Figure("import, where NumPy has been imported", "import_time", "import"),
    Figure("logistic regression: memory at the start, after 100 and after 1,000 steps", "memory", "logistic_regression", unit="MB"),
    Figure("dense network: memory at the start, after 100 and after 1,000 steps", "memory", "mlp", unit="MB"),
    Figure("LSTM tagger: memory at the start, after 100 and after 1,000 steps", "memory", "tagger", unit="MB"),
    peak("convolutional network", convolution),
    peak("convolutional network on one image", inference),
    peak("bidirectional GRU", bidirectional),
    peak("bag of words", bag_of_words),
    peak("residual network", resnet),
    peak("sequence to sequence", sequence_to_sequence),
    peak("Transformer encoder", transformer),
    peak("LSTM tagger on ATIS from its file", atis_file, ("cntk",)),
]  # fmt: skip

LARGE = [
    trained(resnet50, torch_modes=IMAGE_MODES),
    *(
        Figure(
            title, "step_time", f"resnet50_inference:{name}", torch_modes=IMAGE_MODES,
            flop=resnet50_inference.flop(name), nbytes=resnet50_inference.nbytes(name),
        )
        for name, title in resnet50_inference.TITLES.items()
    ),
    trained(wide_transformer, WITH_JAX, torch_modes=DENSE_MODES),
    trained(ragged_transformer, torch_modes=DENSE_MODES),
    trained(gru, WITH_JAX),
    trained(embedding),
    Figure("embedding of 1,000,000 words: building it and the first training step", "first_call", "embedding"),
]  # fmt: skip
"""Networks of today's sizes."""
