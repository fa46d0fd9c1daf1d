"""What is measured, a line each."""

from __future__ import annotations

from typing import NamedTuple

import bag_of_words
import bidirectional
import convolution
import inference
import logistic_regression
import mlp
import tagger

import learners

TRAINED = ("cntk", "torch")


class Figure(NamedTuple):
    """A line of the table.

    Attributes:
        title: what it tells.
        measure: function of worker.py that takes it.
        workload: module that is run.
        modules: frameworks it is taken of.
        unit: unit that numbers are shown in.
        flop, nbytes: arithmetic and memory traffic that no program does without; 0 where that says nothing.
    """

    title: str
    measure: str
    workload: str
    modules: tuple[str, ...] = TRAINED
    unit: str = "ms"
    flop: int = 0
    nbytes: int = 0


FIGURES = [
    Figure(
        logistic_regression.TITLE, "step_time", "logistic_regression", (*TRAINED, "numpy"), "µs",
        logistic_regression.FLOP, logistic_regression.BYTES,
    ),
    Figure(mlp.TITLE, "step_time", "mlp", flop=mlp.FLOP, nbytes=mlp.BYTES),
    Figure(convolution.TITLE, "step_time", "convolution", flop=convolution.FLOP, nbytes=convolution.BYTES),
    Figure(inference.TITLE, "step_time", "inference", flop=inference.FLOP, nbytes=inference.BYTES),
    Figure(tagger.TITLE, "step_time", "tagger", flop=tagger.FLOP, nbytes=tagger.BYTES),
    Figure(bidirectional.TITLE, "step_time", "bidirectional", flop=bidirectional.FLOP, nbytes=bidirectional.BYTES),
    Figure(bag_of_words.TITLE, "step_time", "bag_of_words", flop=bag_of_words.FLOP, nbytes=bag_of_words.BYTES),
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
]  # fmt: skip
